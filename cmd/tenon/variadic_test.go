//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Several values behind --mcp-config and --add-dir are the flag's; a prompt never is.
func TestSpreadValues(t *testing.T) {
	p := &process{dir: t.TempDir()}
	for _, name := range []string{"servers", "lib", "src"} {
		var err error
		if name == "servers" {
			err = os.WriteFile(filepath.Join(p.dir, name), nil, 0o600)
		} else {
			err = os.Mkdir(filepath.Join(p.dir, name), 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct{ name, in, want string }{
		{"files", "run --mcp-config a.json|b.json|servers|What?", "run --mcp-config a.json|--mcp-config=b.json|--mcp-config=servers|What?"},
		{"after =", "run --mcp-config=a.json|b.json", "run --mcp-config=a.json|--mcp-config=b.json"},
		{"the next flag ends it", "run --mcp-config a.json|--model x|b.json", "run --mcp-config a.json|--model x|b.json"},
		{"a flag without a value ends it", "run --mcp-config a.json|-p|b.json", "run --mcp-config a.json|-p|b.json"},
		{"a prompt ends it", "run --mcp-config a.json|What?|b.json", "run --mcp-config a.json|What?|b.json"},
		{"a prompt that speaks of a file", "run --mcp-config a.json|read b.json", "run --mcp-config a.json|read b.json"},
		{"in place", `run --mcp-config {"mcpServers":{}}|{"mcpServers":{}}|{"q":1}`, `run --mcp-config {"mcpServers":{}}|--mcp-config={"mcpServers":{}}|{"q":1}`},
		{"directories", "run --add-dir lib|src|servers", "run --add-dir lib|--add-dir=src|servers"},
		{"behind --", "run --mcp-config a.json|--|b.json", "run --mcp-config a.json|--|b.json"},
		{"the value of another flag", "run --system-prompt --add-dir|src", "run --system-prompt --add-dir|src"},
		{"standard input", "run --mcp-config a.json|-", "run --mcp-config a.json|-"},
		{"another command", "mcp call|s|t|--mcp-config a.json|b.json", "mcp call|s|t|--mcp-config a.json|--mcp-config=b.json"},
		{"the server of another command, called like a file", "mcp call|--mcp-config a.json|b.json|servers|lib", "mcp call|--mcp-config a.json|--mcp-config=b.json|servers|lib"},
		{"the arguments of a tool", `mcp call|s|t|--mcp-config a.json|{"q":1}`, `mcp call|s|t|--mcp-config a.json|{"q":1}`},
		{"the file with the arguments of a tool", "mcp call|s|t|--mcp-config a.json|@b.json", "mcp call|s|t|--mcp-config a.json|@b.json"},
		{"a command without the flag", "mcp get|--mcp-config a.json|b.json", "mcp get|--mcp-config a.json|b.json"},
	}
	split := func(s string) []string { // a flag and its first value are parted by a blank
		var args []string
		for word := range strings.SplitSeq(s, "|") {
			if flag, value, ok := strings.Cut(word, " "); ok && (strings.HasPrefix(word, "-") || flag == "run" || flag == "mcp") {
				args = append(args, flag)
				word = value
				if flag, value, ok = strings.Cut(word, " "); ok && strings.HasPrefix(word, "-") {
					args = append(args, flag)
					word = value
				}
			}
			args = append(args, word)
		}
		return args
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(split(tt.want), spreadValues(newRootCommand(p), p, split(tt.in))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
