package layout

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
)

// maxBackArrows bounds, for each package, the references between its files that point back up
// when the files are sorted so that a file comes before those it uses.
const maxBackArrows = 30

// backArrows finds packages whose files use each other in too many loops.
func backArrows(tr *tree) []finding {
	var found []finding
	for _, p := range tr.pkgs {
		if n := p.backArrows(); n > maxBackArrows {
			found = append(found, finding{path: p.dir, message: fmt.Sprintf("%d references between its files point back, the most are %d", n, maxBackArrows)})
		}
	}
	return found
}

// backArrows counts the pairs of files that use each other against the best order found.
func (p *pkg) backArrows() int {
	uses := p.fileUses()
	order := sorted(uses)
	n := 0
	for i, name := range order {
		for _, earlier := range order[:i] {
			if uses[name][earlier] {
				n++
			}
		}
	}
	return n
}

// fileUses tells for each file which others declare what it refers to: names of the package, and
// methods and fields with a name that only one file declares.
func (p *pkg) fileUses() map[string]map[string]bool {
	names, members := map[string]string{}, map[string][]string{}
	member := func(name, file string) {
		if !slices.Contains(members[name], file) {
			members[name] = append(members[name], file)
		}
	}
	for _, f := range p.ships() {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					member(d.Name.Name, f.path)
				} else {
					names[d.Name.Name] = f.path
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						names[s.Name.Name] = f.path
					case *ast.ValueSpec:
						for _, n := range s.Names {
							names[n.Name] = f.path
						}
					}
				}
			}
		}
	}
	uses := map[string]map[string]bool{}
	for _, f := range p.ships() {
		to, imported := map[string]bool{}, map[string]bool{}
		uses[f.path] = to
		for _, i := range f.Imports {
			imported[path.Base(strings.Trim(i.Path.Value, `"`))] = true
		}
		add := func(file string) {
			if file != "" && file != f.path {
				to[file] = true
			}
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if id, ok := n.X.(*ast.Ident); ok && imported[id.Name] {
					return false // a name of another package
				}
				if where := members[n.Sel.Name]; len(where) == 1 {
					add(where[0])
				}
				ast.Inspect(n.X, func(n ast.Node) bool {
					if id, ok := n.(*ast.Ident); ok {
						add(names[id.Name])
					}
					return true
				})
			case *ast.Ident:
				if token.IsExported(n.Name) || names[n.Name] != "" {
					add(names[n.Name])
				}
			}
			return true
		})
	}
	return uses
}

// sorted orders the files so that few uses point back: files that nobody left uses go to the front,
// files that use nobody left to the back, and in a loop the file that uses the most and is used the least.
func sorted(uses map[string]map[string]bool) []string {
	left := map[string]bool{}
	for name := range uses {
		left[name] = true
	}
	degree := func(name string) (out, in int) {
		for other := range left {
			if uses[name][other] {
				out++
			}
			if uses[other][name] {
				in++
			}
		}
		return out, in
	}
	var front, back []string
	for len(left) > 0 {
		best, most := "", 0
		for _, name := range slices.Sorted(maps.Keys(left)) {
			out, in := degree(name)
			if out == 0 {
				best, most = name, -1
				break
			}
			if best == "" || out-in > most {
				best, most = name, out-in
			}
		}
		delete(left, best)
		if out, _ := degree(best); out == 0 {
			back = append(back, best)
		} else {
			front = append(front, best)
		}
	}
	slices.Reverse(back)
	return append(front, back...)
}
