package layout

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// A tree is the source of the module, parsed.
type tree struct {
	fset  *token.FileSet
	pkgs  []*pkg // sorted by folder
	texts []text // every text file, sorted by path
}

// A pkg is the Go files of one folder.
type pkg struct {
	dir   string // "." for the module's root
	name  string // of the files that ship, or else of the test files
	files []file
}

type file struct {
	path  string
	test  bool
	lines int
	*ast.File
}

type text struct {
	path string
	data []byte
}

// A finding is a place where a rule is broken.
type finding struct {
	path    string
	line    int // 0: the file or folder as a whole
	message string
}

func (f finding) String() string {
	if f.line == 0 {
		return f.path + ": " + f.message
	}
	return fmt.Sprintf("%s:%d: %s", f.path, f.line, f.message)
}

// load reads what git would track: folders of tools and builds are left out.
// It parses the files itself, since a child such as `go list` would escape the
// cache of test results.
func load(fsys fs.FS) (*tree, error) {
	tr := &tree{fset: token.NewFileSet()}
	byDir := map[string]*pkg{}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if skipped(d.Name()) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil // .git is a file in a linked checkout
		}
		if d.IsDir() {
			return nil
		}
		if !d.Type().IsRegular() || binary(name) {
			return nil
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		if !utf8.Valid(data) {
			return nil // data of a test, or a program
		}
		tr.texts = append(tr.texts, text{name, data})
		if path.Ext(name) == ".go" && !inTestdata(name) {
			return tr.parse(byDir, name, data)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, p := range byDir {
		tr.pkgs = append(tr.pkgs, p)
	}
	slices.SortFunc(tr.pkgs, func(a, b *pkg) int { return strings.Compare(a.dir, b.dir) })
	return tr, nil
}

func (tr *tree) parse(byDir map[string]*pkg, name string, data []byte) error {
	parsed, err := parser.ParseFile(tr.fset, name, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	dir := path.Dir(name)
	p := byDir[dir]
	if p == nil {
		p = &pkg{dir: dir}
		byDir[dir] = p
	}
	f := file{path: name, test: strings.HasSuffix(name, "_test.go"), lines: bytes.Count(data, []byte("\n")), File: parsed}
	p.files = append(p.files, f)
	if declared := strings.TrimSuffix(parsed.Name.Name, "_test"); p.name == "" || !f.test {
		p.name = declared
	}
	return nil
}

// skipped reports whether a folder, or a file in its place, holds nothing that is tracked.
func skipped(name string) bool {
	return slices.Contains([]string{".git", ".cache", "bin", "node_modules"}, name)
}

// binary tells whether the ending is that of what a build leaves behind.
func binary(name string) bool {
	return slices.Contains([]string{".test", ".out", ".prof"}, path.Ext(name))
}

func inTestdata(name string) bool {
	return slices.Contains(strings.Split(path.Dir(name), "/"), "testdata")
}

// ships are the files of the package that are not tests.
func (p *pkg) ships() []file { return p.pick(false) }

// tests are the test files of the package.
func (p *pkg) tests() []file { return p.pick(true) }

func (p *pkg) pick(test bool) []file {
	var picked []file
	for _, f := range p.files {
		if f.test == test {
			picked = append(picked, f)
		}
	}
	return picked
}

// program tells whether the package is a command, an example or a child of a test.
func (p *pkg) program() bool {
	return p.name == "main" || within(p.dir, "cmd") || within(p.dir, "examples")
}

// within tells whether dir is the folder or below it.
func within(dir, folder string) bool {
	return dir == folder || strings.HasPrefix(dir, folder+"/")
}

// at makes a finding at a node.
func (tr *tree) at(n ast.Node, format string, args ...any) finding {
	pos := tr.fset.Position(n.Pos())
	return finding{pos.Filename, pos.Line, fmt.Sprintf(format, args...)}
}
