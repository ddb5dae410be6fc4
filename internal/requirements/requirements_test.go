// Package requirements holds docs/requirements.md against the tests: which row
// is named by which test, and which row by none.
//
// It is tests only. `make requirements` prints the report. The rows of an issue
// that is done are mandatory: a test fails for each one that nothing names.
package requirements

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rowCount is how many rows docs/requirements.md has; its ids are stable.
const rowCount = 249

// enforced are the issues whose rows must be named by a test. The line is all
// there is to change when an issue is done.
var enforced = []int{3, 4, 5, 6, 7}

// mandatory are the rows that each issue has to prove. What only the Claude
// Code engine can show, and the docs rows about it, belong to its issue.
var mandatory = []struct {
	issue int
	rows  string
}{
	{3, "B03-B30 R01-R65 T01-T46"},
	{4, "D01 D02 D04-D22 D24-D29 D31-D36 D50-D56 D58-D65 D67-D69 D71-D76 D81-D85 D91-D93 D99-D101 D104 D107 D108"},
	{5, "D03 D37-D49 D57 D70 D86-D90 D94-D98 D102 D105"},
	{6, "D07 D08 D20-D22 D43 D44 D70 D72 D77-D80 D101-D103 D105 D106"},
	{7, "B01 B02 D23 D30 D66"},
}

// docsRows are proved by a paragraph of the docs that has all of these words.
var docsRows = map[string][]string{
	"D23": {"2.1.284", "nam", "wait"},
	"D66": {"2.1.307", "keychain", "needs-auth"},
}

func TestEveryRowIsUnique(t *testing.T) {
	rows := readRows(t)
	if len(rows) != rowCount {
		t.Errorf("docs/requirements.md has %d rows, want %d", len(rows), rowCount)
	}
	seen := map[string]bool{}
	for _, r := range rows {
		if seen[r.id] {
			t.Errorf("docs/requirements.md has %s twice", r.id)
		}
		seen[r.id] = true
		if r.text == "" {
			t.Errorf("%s says nothing", r.id)
		}
	}
}

// Every row belongs to an issue, so that none is forgotten when all are done.
func TestEveryRowHasAnIssue(t *testing.T) {
	owned := map[string]bool{}
	known := byID(readRows(t))
	for _, m := range mandatory {
		for _, id := range expand(t, m.rows) {
			owned[id] = true
			if known[id] == nil {
				t.Errorf("issue %d has row %s, which docs/requirements.md has not", m.issue, id)
			}
		}
	}
	for id := range known {
		if !owned[id] {
			t.Errorf("no issue has row %s", id)
		}
	}
	for id := range docsRows {
		if r := known[id]; r == nil || !r.docs {
			t.Errorf("%s is looked for in the docs and is not marked so", id)
		}
	}
}

// A name that is no row is a slip of the pen that hides a row without a proof.
func TestNamesAreRows(t *testing.T) {
	known := byID(readRows(t))
	for id, places := range readNames(t) {
		if known[id] == nil {
			t.Errorf("%s names %s, which is no row", strings.Join(places, ", "), id)
		}
	}
}

func TestMandatoryRowsAreNamed(t *testing.T) {
	proved := readProofs(t)
	for _, m := range mandatory {
		if !slices.Contains(enforced, m.issue) {
			continue
		}
		for _, id := range expand(t, m.rows) {
			if len(proved[id]) == 0 {
				t.Errorf("no test names %s, which issue %d has to prove", id, m.issue)
			}
		}
	}
}

// TestReport lists what is not named yet; it never fails.
func TestReport(t *testing.T) {
	rows, proved := readRows(t), readProofs(t)
	total := 0
	for _, source := range []string{"B", "R", "T", "D"} {
		var missing []string
		all := 0
		for _, r := range rows {
			if r.id[:1] != source {
				continue
			}
			all++
			if len(proved[r.id]) == 0 {
				missing = append(missing, r.id)
			}
		}
		total += all - len(missing)
		t.Logf("%s: %d of %d rows named; not yet: %s", source, all-len(missing), all, compress(missing))
	}
	t.Logf("in all: %d of %d rows named", total, len(rows))
	for _, m := range mandatory {
		var missing []string
		for _, id := range expand(t, m.rows) {
			if len(proved[id]) == 0 {
				missing = append(missing, id)
			}
		}
		t.Logf("issue %d (enforced: %v): %d not named: %s", m.issue, slices.Contains(enforced, m.issue), len(missing), compress(missing))
	}
}

// root is the module's, seen from this package.
var root = filepath.Join("..", "..")

func readRows(t *testing.T) []row {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "docs", "requirements.md"))
	if err != nil {
		t.Fatal(err)
	}
	return parseRows(string(data))
}

func readNames(t *testing.T) map[string][]string {
	t.Helper()
	names, err := scanNames(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// readProofs are the names in tests, and for the docs rows the places in the docs.
func readProofs(t *testing.T) map[string][]string {
	t.Helper()
	proofs := readNames(t)
	for id, words := range docsRows {
		place, err := scanDocs(os.DirFS(root), words)
		if err != nil {
			t.Fatal(err)
		}
		if place != "" {
			proofs[id] = append(proofs[id], place)
		}
	}
	return proofs
}

func byID(rows []row) map[string]*row {
	index := map[string]*row{}
	for i, r := range rows {
		index[r.id] = &rows[i]
	}
	return index
}
