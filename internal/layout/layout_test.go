// Package layout holds the rules of the house that no linter knows: which
// package may import which, how big a file may grow, what a package is called,
// that it says what it is for, that what starts goroutines looks for leaks,
// and that no file tells about the machine it was written on.
//
// It is tests only and parses the source itself. The table of rooms in
// table_test.go is the import graph; a new import between packages of ours is
// a line there. Each rule has a small tree in testdata that breaks it.
package layout

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rules are what the tests of this package enforce, by name.
var rules = map[string]func(*tree) []finding{
	"ImportGraph":     importGraph,
	"LibraryWalls":    libraryWalls,
	"PackageNames":    packageNames,
	"PackageComments": packageComments,
	"FileSize":        fileSize,
	"BackArrows":      backArrows,
	"BannedCalls":     bannedCalls,
	"LeakGates":       leakGates,
	"GlobalState":     globalState,
	"BareSkips":       bareSkips,
	"MachineTraces":   machineTraces,
	"LockAddresses":   lockAddresses,
	"Stubs":           stubs,
}

func TestHouse(t *testing.T) {
	tr := house(t)
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			for _, f := range rule(tr) {
				t.Error(f)
			}
		})
	}
	t.Run("StaleRows", func(t *testing.T) {
		for _, f := range staleRows(tr) {
			t.Error(f)
		}
	})
}

// Some JSON belongs to the user, so what this finds is read by people; see
// `go test -v -run TestReport ./internal/layout`.
func TestReport(t *testing.T) {
	tr := house(t)
	for _, f := range looseSignatures(tr) {
		t.Log(f)
	}
	count, lines := looseMaps(tr)
	t.Logf("map[string]any: %d in %d lines of code", count, lines)

	var ships, tests, sizes []int
	for _, p := range tr.pkgs {
		for _, f := range p.files {
			if f.test {
				tests = append(tests, f.lines)
			} else {
				ships = append(ships, f.lines)
			}
			sizes = append(sizes, f.lines)
		}
	}
	slices.Sort(sizes)
	t.Logf("lines: %d of code, %d of tests; a file's median %d, maximum %d", sum(ships), sum(tests), sizes[len(sizes)/2], sizes[len(sizes)-1])
}

func sum(numbers []int) int {
	total := 0
	for _, n := range numbers {
		total += n
	}
	return total
}

// house loads the module that this package is part of.
func house(t *testing.T) *tree {
	t.Helper()
	root := filepath.Join("..", "..")
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil || !strings.HasPrefix(string(mod), "module "+modulePath+"\n") {
		t.Fatalf("no go.mod of %s two folders up: %v", modulePath, err)
	}
	tr, err := load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.pkgs) < 2 {
		t.Fatalf("found %d packages, want the whole module", len(tr.pkgs))
	}
	return tr
}
