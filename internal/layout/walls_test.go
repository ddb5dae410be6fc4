package layout

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write what the rules find into the trees of testdata")

// Each tree in testdata breaks the rules that its "want" lists and no others,
// so a rule that no longer fires, or fires at what is right, is seen here.
func TestWalls(t *testing.T) {
	names, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	fired := map[string]bool{}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			last := &ar.Files[len(ar.Files)-1]
			if last.Name != "want" {
				t.Fatalf("the last file is %s, want the file want", last.Name)
			}
			got := findings(t, ar.Files[:len(ar.Files)-1], fired)
			if *update {
				last.Data = []byte(got)
				if err := os.WriteFile(name, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(last.Data), got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
	for rule := range everyRule() {
		if !fired[rule] {
			t.Errorf("no tree in testdata breaks the rule %s", rule)
		}
	}
}

// everyRule are the rules that are enforced and the one that is reported.
func everyRule() map[string]func(*tree) []finding {
	all := maps.Clone(rules)
	all["LooseSignatures"] = looseSignatures
	return all
}

// findings runs every rule on the files of an archive.
func findings(t *testing.T, files []txtar.File, fired map[string]bool) string {
	t.Helper()
	fsys := fstest.MapFS{}
	for _, f := range files {
		fsys[f.Name] = &fstest.MapFile{Data: expand(f.Data)}
	}
	tr, err := load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	all := everyRule()
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, f := range all[name](tr) {
			fired[name] = true
			out.WriteString(name + ": " + f.String() + "\n")
		}
	}
	return out.String()
}

// expand fills what a tree in testdata must not have itself: the traces of a
// machine, and a file that is too long.
func expand(data []byte) []byte {
	for _, r := range []struct{ from, to string }{
		{"{{work}}", "/wo" + "rk"},
		{"{{root}}", "/ro" + "ot"},
		{"{{npm registry}}", "registry.npm" + "js.org"},
		{"{{module proxy}}", "proxy.gol" + "ang.org"},
		{"{{resolved}}", `"resol` + `ved"`},
		{"{{many lines}}", strings.Repeat("// line\n", maxLines)},
	} {
		data = bytes.ReplaceAll(data, []byte(r.from), []byte(r.to))
	}
	return data
}
