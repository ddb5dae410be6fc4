//go:build unix

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// Every help text stands in testdata/help, so that a change of the command line is seen in review.
func TestHelpTexts(t *testing.T) {
	var walk func(c *cobra.Command, path []string)
	seen := map[string]bool{}
	walk = func(c *cobra.Command, path []string) {
		if c.Hidden || len(path) > 0 && (path[0] == "completion" || path[0] == "help") {
			return
		}
		name := strings.Join(append([]string{"tenon"}, path...), "-") + ".txt"
		seen[name] = true
		t.Run(name, func(t *testing.T) { checkHelp(t, name, path) })
		for _, sub := range c.Commands() {
			walk(sub, append(path[:len(path):len(path)], sub.Name()))
		}
	}
	walk(newRootCommand(&process{out: os.Stdout, err: os.Stderr}), nil)
	files, err := filepath.Glob("testdata/help/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !seen[filepath.Base(f)] {
			t.Errorf("%s is of no command that there is", f)
		}
	}
}

func checkHelp(t *testing.T, name string, path []string) {
	var out, errs bytes.Buffer
	if code := run(t.Context(), append(path, "--help"), &process{in: strings.NewReader(""), out: &out, err: &errs}); code != exitOK {
		t.Fatalf("exit status %d, stderr %s", code, &errs)
	}
	if errs.Len() > 0 {
		t.Errorf("stderr of --help: %s", &errs)
	}
	for line := range strings.Lines(out.String()) {
		if n := len(strings.TrimRight(line, "\n")); n > 120 {
			t.Errorf("a line of %d characters: %s", n, line)
		}
	}
	file := filepath.Join("testdata", "help", name)
	if *update {
		if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; go test -update writes it", err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("help of tenon %s (-want +got):\n%s\ngo test -update accepts it", strings.Join(path, " "), diff)
	}
}
