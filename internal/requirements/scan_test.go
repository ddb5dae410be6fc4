package requirements

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// A row is one testable statement of docs/requirements.md.
type row struct {
	id, text string
	docs     bool // proved by a sentence in the docs
}

// The rows of docs/requirements.md and of docs/faults.md.
var (
	rowLine   = regexp.MustCompile(`^\| ([BRTD]\d{2,3}) \| (.*) \|$`)
	faultLine = regexp.MustCompile(`^\| ([A-I]\d{1,2}) \| (.*) \|$`)
)

// docsMark is how a row says so: "(docs)" or "(claudecode, docs)".
var docsMark = regexp.MustCompile(`^\((?:\w+, )?docs\)`)

// readList reads the rows of a document in docs.
func readList(t *testing.T, file string, line *regexp.Regexp) []row {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "docs", file))
	if err != nil {
		t.Fatal(err)
	}
	return parseRows(string(data), line)
}

func parseRows(text string, form *regexp.Regexp) []row {
	var rows []row
	for line := range strings.Lines(text) {
		if m := form.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			rows = append(rows, row{id: m[1], text: m[2], docs: docsMark.MatchString(m[2])})
		}
	}
	return rows
}

// named matches the ids at the beginning of a comment, up to a colon, a full
// stop or the end: "// D38", "// R24 R25: the text is the model's", "// Story. // D62".
// An id in the middle of a sentence proves nothing.
var named = regexp.MustCompile(`(?m)(?://|#|^)[ \t]*((?:[BRTD]\d{2,3}[ ,\t]*)+)(?:[:.]|$)`)

// namedFault matches the ids of faults after the word: "// fault B1",
// "// The story. fault A1 A4", "// Faults G1, G2: the story".
var namedFault = regexp.MustCompile(`\b[Ff]aults? ((?:[A-I]\d{1,2}\b[ ,]*)+)`)

var anID = regexp.MustCompile(`[A-Z]\d{1,3}`)

// names are the places where each id is named.
type names struct{ rows, faults map[string][]string }

func (n names) add(line, place string) {
	for _, form := range []struct {
		named *regexp.Regexp
		ids   map[string][]string
	}{{named, n.rows}, {namedFault, n.faults}} {
		for _, m := range form.named.FindAllStringSubmatch(line, -1) {
			for _, id := range anID.FindAllString(m[1], -1) {
				form.ids[id] = append(form.ids[id], place)
			}
		}
	}
}

// scanNames returns where each id is named: in comments of test files, and in
// the scripts of tests, which have them in their header or after "#".
func scanNames(fsys fs.FS) (names, error) {
	found := names{map[string][]string{}, map[string][]string{}}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			// What this package says about rows is no proof of any.
			if slices.Contains([]string{".git", "node_modules", "bin"}, d.Name()) || name == "internal/requirements" {
				return fs.SkipDir
			}
			return nil
		}
		comments, err := commentsOf(fsys, name)
		if err != nil {
			return err
		}
		for line, comment := range comments {
			found.add(comment, name+":"+strconv.Itoa(line))
		}
		return nil
	})
	for _, ids := range []map[string][]string{found.rows, found.faults} {
		for _, places := range ids {
			slices.Sort(places)
		}
	}
	return found, err
}

// commentsOf returns the comment lines of a test's file by line number.
func commentsOf(fsys fs.FS, name string) (map[int]string, error) {
	script := strings.Contains(name, "testdata/") && (path.Ext(name) == ".txtar" || path.Ext(name) == ".txt")
	if !script && !strings.HasSuffix(name, "_test.go") {
		return nil, nil
	}
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	comments := map[int]string{}
	if script {
		header := true
		for i, line := range strings.Split(string(data), "\n") {
			header = header && !strings.HasPrefix(line, "-- ")
			if header {
				comments[i+1] = line
			}
		}
		return comments, nil
	}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, name, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, group := range parsed.Comments {
		for _, c := range group.List {
			first := fset.Position(c.Pos()).Line
			for i, line := range strings.Split(strings.TrimSuffix(strings.TrimPrefix(c.Text, "/*"), "*/"), "\n") {
				comments[first+i] = line
			}
		}
	}
	return comments, nil
}

// scanDocs returns the first paragraph of the docs that has all the words.
func scanDocs(fsys fs.FS, words []string) (place string, err error) {
	files, err := fs.Glob(fsys, "docs/*.md")
	if err != nil {
		return "", err
	}
	for _, name := range append(files, "README.md") {
		if name == "docs/requirements.md" {
			continue // it states the row
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			continue // README.md may not be written yet
		}
		for i, paragraph := range strings.Split(string(data), "\n\n") {
			lacks := func(word string) bool { return !strings.Contains(paragraph, word) }
			if !slices.ContainsFunc(words, lacks) {
				return fmt.Sprintf("%s, paragraph %d", name, i+1), nil
			}
		}
	}
	return "", nil
}

// compress turns B01 B02 B03 T01 into "B01-B03 T01".
func compress(ids []string) string {
	var out []string
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && follows(ids[j], ids[j+1]) {
			j++
		}
		switch {
		case j > i+1:
			out = append(out, ids[i]+"-"+ids[j])
		default:
			out = append(out, ids[i:j+1]...)
		}
		i = j + 1
	}
	return strings.Join(out, " ")
}

func follows(a, b string) bool {
	m, err1 := strconv.Atoi(a[1:])
	n, err2 := strconv.Atoi(b[1:])
	return err1 == nil && err2 == nil && a[0] == b[0] && n == m+1
}

func TestParseRows(t *testing.T) {
	got := parseRows("| Id | Testable statement |\n|---|---|\n| **When they connect** | |\n"+
		"| B01 | A pipe | in the text. |\n| D108 | Text (docs) later. |\n| D23 | (claudecode, docs) Old. |\ntext | B02 | no row\n", rowLine)
	want := []row{{"B01", "A pipe | in the text.", false}, {"D108", "Text (docs) later.", false}, {"D23", "(claudecode, docs) Old.", true}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(row{})); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

func TestScanNames(t *testing.T) {
	fsys := fstest.MapFS{
		"a/a_test.go": {Data: []byte(`// D01: at the beginning.
package a

// TestA tells a story. // D02 D03
func TestA() {
	_ = "// D04" // D05, D06
	// as B99 says, and D07
	// D08 without a colon goes on
	/*
	D09
	*/
	// Nobody else notices. fault G1
	// Faults B1, B12: a server that
	// no fault of B2
}
`)},
		"a/a.go":                         {Data: []byte("package a\n\n// D10: not a test.\n")},
		"a/testdata/call.txtar":          {Data: []byte("B01 B02: a call.\n# R24\n-- in --\nB03\n")},
		"a/notes.txt":                    {Data: []byte("B04\n")},
		"node_modules/x/x_test.go":       {Data: []byte("// D11\npackage x\n")},
		"internal/requirements/_test.go": {Data: []byte("// D12\npackage x\n")},
	}
	got, err := scanNames(fsys)
	if err != nil {
		t.Fatal(err)
	}
	want := names{rows: map[string][]string{
		"D01": {"a/a_test.go:1"}, "D02": {"a/a_test.go:4"}, "D03": {"a/a_test.go:4"},
		"D05": {"a/a_test.go:6"}, "D06": {"a/a_test.go:6"}, "D09": {"a/a_test.go:10"},
		"B01": {"a/testdata/call.txtar:1"}, "B02": {"a/testdata/call.txtar:1"}, "R24": {"a/testdata/call.txtar:2"},
	}, faults: map[string][]string{"G1": {"a/a_test.go:12"}, "B1": {"a/a_test.go:13"}, "B12": {"a/a_test.go:13"}}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(names{})); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestScanDocs(t *testing.T) {
	fsys := fstest.MapFS{
		"docs/requirements.md": {Data: []byte("Before 2.1.307 the keychain")},
		"docs/engines.md":      {Data: []byte("Engines\n\nBefore 2.1.307 a locked\nkeychain.\n")},
	}
	for _, tt := range []struct {
		words []string
		want  string
	}{
		{[]string{"2.1.307", "keychain"}, "docs/engines.md, paragraph 2"},
		{[]string{"Engines", "keychain"}, ""},
	} {
		if got, err := scanDocs(fsys, tt.words); err != nil || got != tt.want {
			t.Errorf("scanDocs(%q): got %q, %v, want %q", tt.words, got, err, tt.want)
		}
	}
}

func TestCompress(t *testing.T) {
	const list = "B09-B11 D99 D100 T01"
	if got := compress([]string{"B09", "B10", "B11", "D99", "D100", "T01"}); got != list {
		t.Errorf("compressed: got %q, want %q", got, list)
	}
}
