package layout

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every dependency that we chose has a line in docs/dependencies.md that says
// what for and why this one, and every line has its dependency.
func TestDependenciesAreExplained(t *testing.T) {
	root := filepath.Join("..", "..")
	read := func(name string) string {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	var manifest struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	if err := json.Unmarshal([]byte(read("internal/peers/package.json")), &manifest); err != nil {
		t.Fatal(err)
	}
	chosen := slices.Concat(
		directModules(read("go.mod")),
		directModules(read("internal/schemasuite/suite/go.mod")),
		toolModules(read("internal/tools/go.mod")),
		slices.Sorted(maps.Keys(manifest.Dependencies)),
	)
	explained := explainedDependencies(read("docs/dependencies.md"))
	for _, name := range chosen {
		if explained[name] == "" {
			t.Errorf("docs/dependencies.md has no line for %s: what for, why this one", name)
		}
	}
	for name := range explained {
		if !slices.Contains(chosen, name) {
			t.Errorf("docs/dependencies.md explains %s, which nothing requires", name)
		}
	}
}

// Versions of npm packages are exact: a range would be resolved anew by
// whoever writes the lock file next.
func TestPeersAreExact(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "peers", "package.json"))
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	if err := json.Unmarshal(data, &manifest); err != nil {
		t.Fatal(err)
	}
	exact := regexp.MustCompile(`^\d+\.\d+\.\d+(-[\w.]+)?$`)
	for name, version := range manifest.Dependencies {
		if !exact.MatchString(version) {
			t.Errorf("%s is %q, want one exact version", name, version)
		}
	}
}

// directModules are those that a go.mod requires for our own code.
func directModules(mod string) []string {
	var names []string
	block := false
	for line := range strings.Lines(mod) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0:
		case fields[0] == "require" && fields[1] == "(":
			block = true
		case fields[0] == ")":
			block = false
		case strings.Contains(line, "// indirect"):
		case fields[0] == "require":
			names = append(names, fields[1])
		case block:
			names = append(names, fields[0])
		}
	}
	return names
}

// toolModules are those that the tools of a go.mod come from.
func toolModules(mod string) []string {
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^\t(\S+)$`).FindAllStringSubmatch(mod, -1) {
		name, _, _ := strings.Cut(m[1], "/cmd/")
		name = strings.TrimSuffix(name, "/v2")
		names = append(names, name)
	}
	return names
}

// explainedDependencies are the lines "- `name`: text".
func explainedDependencies(text string) map[string]string {
	lines := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^- `([^`]+)`: (.+)$").FindAllStringSubmatch(text, -1) {
		lines[m[1]] = m[2]
	}
	return lines
}

func TestDirectModules(t *testing.T) {
	got := directModules("module x\n\ngo 1.26.0\n\nrequire a.example/one v1.0.0\n\nrequire (\n\tb.example/two v2.0.0\n\tc.example/three v3.0.0 // indirect\n)\n\nrequire d.example/four v4.0.0 // indirect\n")
	if want := []string{"a.example/one", "b.example/two"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
