// Package requirements holds docs/requirements.md and docs/faults.md against
// the tests: each row and each fault must be named by a test.
//
// It is tests only. `make requirements` prints the report.
package requirements

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// How many rows docs/requirements.md has, and docs/faults.md. Their ids are stable.
const (
	rowCount   = 253
	faultCount = 128
)

// docsRows are proved by a paragraph of the docs that has all of these words.
var docsRows = map[string][]string{
	"D23": {"2.1.284", "nam", "wait"},
	"D66": {"2.1.307", "keychain", "needs-auth"},
}

func TestEveryRowIsUnique(t *testing.T) {
	for _, list := range []struct {
		file string
		rows []row
		want int
	}{{"docs/requirements.md", readRows(t), rowCount}, {"docs/faults.md", readFaults(t), faultCount}} {
		if len(list.rows) != list.want {
			t.Errorf("%s has %d rows, want %d", list.file, len(list.rows), list.want)
		}
		seen := map[string]bool{}
		for _, r := range list.rows {
			if seen[r.id] {
				t.Errorf("%s has %s twice", list.file, r.id)
			}
			seen[r.id] = true
			if r.text == "" {
				t.Errorf("%s: %s has no text", list.file, r.id)
			}
		}
	}
	known := byID(readRows(t))
	for id := range docsRows {
		if r := known[id]; r == nil || !r.docs {
			t.Errorf("%s is looked for in the docs and is not marked so", id)
		}
	}
}

// A name that is no row is a slip of the pen that hides a row without a proof.
func TestNamesAreRows(t *testing.T) {
	for _, list := range []struct {
		rows  []row
		names map[string][]string
	}{{readRows(t), readNames(t).rows}, {readFaults(t), readNames(t).faults}} {
		known := byID(list.rows)
		for id, places := range list.names {
			if known[id] == nil {
				t.Errorf("%s names %s, which is no row", strings.Join(places, ", "), id)
			}
		}
	}
}

func TestEveryRowIsNamed(t *testing.T) {
	rows, faults := readProofs(t)
	for _, r := range readRows(t) {
		if len(rows[r.id]) == 0 {
			t.Errorf("no test names %s: %s", r.id, r.text)
		}
	}
	for _, f := range readFaults(t) {
		if len(faults[f.id]) == 0 {
			t.Errorf("no test names fault %s: %s", f.id, f.text)
		}
	}
}

// TestReport lists what is not named yet; it never fails.
func TestReport(t *testing.T) {
	rows, faults := readProofs(t)
	report := func(list []row, proved map[string][]string, source string) {
		var missing []string
		all := 0
		for _, r := range list {
			if r.id[:1] != source {
				continue
			}
			all++
			if len(proved[r.id]) == 0 {
				missing = append(missing, r.id)
			}
		}
		t.Logf("%s: %d of %d named; not yet: %s", source, all-len(missing), all, compress(missing))
	}
	t.Logf("rows of docs/requirements.md:")
	for _, source := range []string{"B", "R", "T", "D"} {
		report(readRows(t), rows, source)
	}
	t.Logf("rows of docs/faults.md:")
	for _, source := range []string{"A", "B", "C", "D", "E", "F", "G", "H", "I"} {
		report(readFaults(t), faults, source)
	}
}

// root is the module's, seen from this package.
var root = filepath.Join("..", "..")

func readRows(t *testing.T) []row { return readList(t, "requirements.md", rowLine) }

func readFaults(t *testing.T) []row { return readList(t, "faults.md", faultLine) }

func readNames(t *testing.T) names {
	t.Helper()
	found, err := scanNames(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// readProofs returns the places that prove rows and faults: names in tests, and
// for the rows of docsRows the places in the docs.
func readProofs(t *testing.T) (rows, faults map[string][]string) {
	t.Helper()
	found := readNames(t)
	for id, words := range docsRows {
		place, err := scanDocs(os.DirFS(root), words)
		if err != nil {
			t.Fatal(err)
		}
		if place != "" {
			found.rows[id] = append(found.rows[id], place)
		}
	}
	return found.rows, found.faults
}

func byID(rows []row) map[string]*row {
	index := map[string]*row{}
	for i, r := range rows {
		index[r.id] = &rows[i]
	}
	return index
}
