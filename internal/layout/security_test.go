package layout

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// namedTest matches `package.TestName` and `package.TestName/Part`.
var namedTest = regexp.MustCompile("`([a-z/]+)\\.(Test\\w+)(?:/(\\w+))?`")

// Each line of the threat model names the test that proves it, and each of these tests is there.
func TestSecurityIsProved(t *testing.T) {
	root := filepath.Join("..", "..")
	data, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests := func(dir string) string {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			b.Write(data)
		}
		return b.String()
	}
	sources := map[string]string{}
	rows := 0
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| |") {
			continue
		}
		rows++
		names := namedTest.FindAllStringSubmatch(line, -1)
		if len(names) == 0 {
			t.Errorf("no test is named in %q", line)
		}
		for _, m := range names {
			if sources[m[1]] == "" {
				sources[m[1]] = tests(m[1])
			}
			_, noScript := os.Stat(filepath.Join(root, m[1], "testdata", "script", m[3]+".txtar"))
			if !strings.Contains(sources[m[1]], "func "+m[2]+"(") || m[3] != "" && noScript != nil && !strings.Contains(sources[m[1]], `"`+m[3]+`"`) {
				t.Errorf("there is no test %s of %s, named in %q", m[2]+"/"+m[3], m[1], line)
			}
		}
	}
	if rows < 20 {
		t.Errorf("%d rows were found", rows)
	}
}
