package layout

import (
	"go/ast"
	"go/token"
	"strings"
)

// looseSignatures finds map[string]any in what packages offer to others.
func looseSignatures(tr *tree) []finding {
	var found []finding
	for _, p := range tr.pkgs {
		if p.name == "main" {
			continue
		}
		for _, f := range p.ships() {
			for _, decl := range f.Decls {
				for _, n := range exportedTypes(decl) {
					if m := looseMap(n); m != nil {
						found = append(found, tr.at(m, "map[string]any in an exported signature: make it a type, or json.RawMessage if it is only passed on"))
					}
				}
			}
		}
	}
	return found
}

// exportedTypes returns the type expressions that a declaration shows to other
// packages.
func exportedTypes(decl ast.Decl) []ast.Node {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && (d.Recv == nil || exportedReceiver(d.Recv.List[0].Type)) {
			return []ast.Node{d.Type}
		}
	case *ast.GenDecl:
		return exportedSpecs(d)
	}
	return nil
}

func exportedReceiver(expr ast.Expr) bool {
	switch e := expr.(type) {
	case *ast.StarExpr:
		return exportedReceiver(e.X)
	case *ast.IndexExpr:
		return exportedReceiver(e.X)
	case *ast.IndexListExpr:
		return exportedReceiver(e.X)
	case *ast.Ident:
		return e.IsExported()
	}
	return false
}

func exportedSpecs(d *ast.GenDecl) []ast.Node {
	var shown []ast.Node
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() {
				shown = append(shown, exportedParts(s.Type)...)
			}
		case *ast.ValueSpec:
			if d.Tok == token.VAR && s.Type != nil && ast.IsExported(s.Names[0].Name) {
				shown = append(shown, s.Type)
			}
		}
	}
	return shown
}

// exportedParts leaves out the unexported fields of a struct.
func exportedParts(expr ast.Expr) []ast.Node {
	st, ok := expr.(*ast.StructType)
	if !ok {
		return []ast.Node{expr}
	}
	var shown []ast.Node
	for _, field := range st.Fields.List {
		if len(field.Names) == 0 || ast.IsExported(field.Names[0].Name) {
			shown = append(shown, field.Type)
		}
	}
	return shown
}

// looseMap returns the first map[string]any below n.
func looseMap(n ast.Node) ast.Node {
	var first ast.Node
	ast.Inspect(n, func(n ast.Node) bool {
		m, ok := n.(*ast.MapType)
		if first == nil && ok && ident(m.Key) == "string" && (ident(m.Value) == "any" || emptyInterface(m.Value)) {
			first = m
		}
		return first == nil
	})
	return first
}

func ident(expr ast.Expr) string {
	if id, ok := expr.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

func emptyInterface(expr ast.Expr) bool {
	i, ok := expr.(*ast.InterfaceType)
	return ok && len(i.Methods.List) == 0
}

// looseMaps counts map[string]any in the code that ships, with the number of
// its lines; the house keeps it under two in a thousand lines.
func looseMaps(tr *tree) (count, lines int) {
	for _, p := range tr.pkgs {
		for _, f := range p.ships() {
			lines += f.lines
			ast.Inspect(f.File, func(n ast.Node) bool {
				if m, ok := n.(*ast.MapType); ok && looseMap(m) == ast.Node(m) {
					count++
				}
				return true
			})
		}
	}
	return count, lines
}

// stub is what a body says that is not written yet.
const stub = "not implemented yet"

// stubs finds bodies that are not written yet.
func stubs(tr *tree) []finding {
	var found []finding
	for _, p := range tr.pkgs {
		for _, f := range p.ships() {
			ast.Inspect(f.File, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && strings.Contains(lit.Value, stub) {
					found = append(found, tr.at(lit, "a stub"))
				}
				return true
			})
		}
	}
	return found
}
