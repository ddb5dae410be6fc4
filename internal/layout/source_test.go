package layout

import (
	"go/ast"
	"go/token"
	"strings"
)

// fileSize finds files that hold more than one concept can need.
func fileSize(tr *tree) []finding {
	var found []finding
	for _, p := range tr.pkgs {
		for _, f := range p.files {
			if f.lines > maxLines {
				found = append(found, tr.at(f.File, "%d lines, the limit is %d: split it", f.lines, maxLines))
			}
		}
	}
	return found
}

// packageComments finds packages without a comment that says what they are for.
func packageComments(tr *tree) []finding {
	var found []finding
	for _, p := range tr.pkgs {
		files := p.ships()
		if len(files) == 0 {
			files = p.tests()
		}
		if !commented(p.name, files) {
			found = append(found, finding{p.dir, 0, "no package comment (\"Package " + p.name + " ...\")"})
		}
	}
	return found
}

func commented(name string, files []file) bool {
	for _, f := range files {
		if f.Doc == nil {
			continue
		}
		// A program's begins with the program's name, whatever that is.
		if comment := f.Doc.Text(); name == "main" && comment != "" || strings.HasPrefix(comment, "Package "+name) {
			return true
		}
	}
	return false
}

// banned are calls that library code does not make.
var banned = map[string]string{
	"time.Sleep":         "wait on a channel or a timer that ctx can end",
	"context.Background": "take the caller's context",
	"context.TODO":       "take the caller's context",
}

// bannedCalls finds waits that nothing can end and contexts from nowhere in
// library code.
func bannedCalls(tr *tree) []finding {
	var found []finding
	for _, p := range tr.pkgs {
		if p.program() {
			continue
		}
		for _, f := range p.ships() {
			ast.Inspect(f.File, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok {
					if why := banned[f.qualified(sel)]; why != "" {
						found = append(found, tr.at(sel, "%s in library code: %s", f.qualified(sel), why))
					}
				}
				return true
			})
		}
	}
	return found
}

// qualified returns the name of what sel takes from another package as
// "import/path.Name", or "" if it takes a field or a method.
func (f file) qualified(sel *ast.SelectorExpr) string {
	id, ok := sel.X.(*ast.Ident)
	if !ok {
		return ""
	}
	for _, spec := range f.Imports {
		path := strings.Trim(spec.Path.Value, `"`)
		name := path[strings.LastIndex(path, "/")+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name == id.Name {
			return path + "." + sel.Sel.Name
		}
	}
	return ""
}

// leakGates finds packages that start goroutines or processes and do not look
// for leaks when their tests have ended.
func leakGates(tr *tree) []finding {
	var found []finding
	for _, p := range tr.pkgs {
		if p.name == "main" && !within(p.dir, "cmd") {
			continue // examples and the like are run as children, and a child's end is looked for
		}
		starts := p.starts()
		if starts != nil && !p.hasGate() {
			found = append(found, tr.at(starts, "%s starts goroutines or processes, and no TestMain of it uses goleak", p.dir))
		}
	}
	return found
}

// starts returns the first place where the package starts something.
func (p *pkg) starts() ast.Node {
	var first ast.Node
	for _, f := range p.ships() {
		ast.Inspect(f.File, func(n ast.Node) bool {
			if first == nil && f.isStart(n) {
				first = n
			}
			return first == nil
		})
	}
	return first
}

func (f file) isStart(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		return true
	case *ast.CallExpr:
		sel, ok := n.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		switch name := f.qualified(sel); {
		case name == "os/exec.Command", name == "os/exec.CommandContext", name == "os.StartProcess":
			return true
		case strings.HasPrefix(name, modulePath+"/internal/subproc."):
			return true
		case name != "":
			return false
		}
		// sync.WaitGroup and errgroup.Group both have a method Go.
		return sel.Sel.Name == "Go" && len(n.Args) == 1
	}
	return false
}

func (p *pkg) hasGate() bool {
	for _, f := range p.tests() {
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || fn.Name.Name != "TestMain" {
				continue
			}
			gate := false
			ast.Inspect(fn, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				gate = gate || ok && strings.HasPrefix(f.qualified(sel), "go.uber.org/goleak.")
				return true
			})
			if gate {
				return true
			}
		}
	}
	return false
}

// globalState finds package-level variables that exist to change: locks, shared
// maps and counters. Two hosts in one process must not meet.
func globalState(tr *tree) []finding {
	var found []finding
	for _, p := range tr.pkgs {
		for _, f := range p.ships() {
			for _, decl := range f.Decls {
				d, ok := decl.(*ast.GenDecl)
				if !ok || d.Tok != token.VAR {
					continue
				}
				for _, spec := range d.Specs {
					s := spec.(*ast.ValueSpec)
					if name := s.Names[0].Name; f.mutable(s) && stateAllowed[p.dir+"."+name] == "" {
						found = append(found, tr.at(s, "package-level state %s: it belongs into a value that the caller owns", name))
					}
				}
			}
		}
	}
	return found
}

// mutable tells whether a package-level variable is a lock, an atomic, or a map
// that starts empty. A map with content is a table.
func (f file) mutable(s *ast.ValueSpec) bool {
	if sel, ok := s.Type.(*ast.SelectorExpr); ok {
		name := f.qualified(sel)
		return strings.HasPrefix(name, "sync.") || strings.HasPrefix(name, "sync/atomic.")
	}
	if _, ok := s.Type.(*ast.MapType); ok && s.Values == nil {
		return true
	}
	for _, value := range s.Values {
		switch v := value.(type) {
		case *ast.CallExpr:
			if ident(v.Fun) != "make" || len(v.Args) == 0 {
				continue
			}
			if _, ok := v.Args[0].(*ast.MapType); ok {
				return true
			}
		case *ast.CompositeLit:
			if _, ok := v.Type.(*ast.MapType); ok && len(v.Elts) == 0 {
				return true
			}
		}
	}
	return false
}

// bareSkips finds tests that are skipped past internal/skip, which knows where
// that is a failure.
func bareSkips(tr *tree) []finding {
	var found []finding
	for _, p := range tr.pkgs {
		if skipsAllowed[p.dir] != "" {
			continue
		}
		for _, f := range p.files {
			ast.Inspect(f.File, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && bareSkip(call) {
					found = append(found, tr.at(call, "a skipped test: use internal/skip"))
				}
				return true
			})
		}
	}
	return found
}

func bareSkip(call *ast.CallExpr) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	switch sel.Sel.Name {
	case "Skip", "Skipf", "SkipNow":
	default:
		return false
	}
	// The names that tests give to a testing.TB, alone or in a struct that has one.
	x := sel.X
	if inner, ok := x.(*ast.SelectorExpr); ok {
		x = inner.Sel
	}
	id, ok := x.(*ast.Ident)
	return ok && strings.Contains(" t T b B f F tb TB ", " "+id.Name+" ")
}
