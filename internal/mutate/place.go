package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A place is a change to a file: the bytes from start to end become new.
type place struct {
	path       string
	line       int
	start, end int
	kind       string
	old, new   string
}

func (p place) String() string {
	return fmt.Sprintf("%s:%d %s: %s", filepath.Base(p.path), p.line, p.kind, change(p.old, p.new))
}

// change is one short line.
func change(old, new string) string {
	short := func(s string) string {
		s = strings.Join(strings.Fields(s), " ")
		if len(s) > 60 {
			s = s[:60] + "…"
		}
		return s
	}
	if new == "" {
		return short(old)
	}
	return short(old) + " becomes " + short(new)
}

func (p place) apply(src []byte) []byte {
	return slices.Concat(src[:p.start], []byte(p.new), src[p.end:])
}

// otherOps are operators and what they become.
var otherOps = map[token.Token]struct {
	kind string
	to   token.Token
}{
	token.LSS:  {"boundary", token.LEQ},
	token.LEQ:  {"boundary", token.LSS},
	token.GTR:  {"boundary", token.GEQ},
	token.GEQ:  {"boundary", token.GTR},
	token.EQL:  {"comparison", token.NEQ},
	token.NEQ:  {"comparison", token.EQL},
	token.LAND: {"logic", token.LOR},
	token.LOR:  {"logic", token.LAND},
	token.ADD:  {"arithmetic", token.SUB},
	token.SUB:  {"arithmetic", token.ADD},
}

// places finds the changes that may be made to a file, in the order of the text.
// Generated files have none.
func places(path string, src []byte) ([]place, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, src, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(file) {
		return nil, nil
	}
	f := &finder{path: path, src: src, fset: fset}
	ast.Inspect(file, f.visit)
	return f.found, nil
}

type finder struct {
	path  string
	src   []byte
	fset  *token.FileSet
	found []place
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec:
		return false
	case *ast.Field: // types and tags
		return false
	case *ast.IfStmt:
		f.add("negation", n.Cond.Pos(), n.Cond.End(), "!("+f.text(n.Cond.Pos(), n.Cond.End())+")")
	case *ast.BinaryExpr:
		if op, ok := otherOps[n.Op]; ok {
			f.add(op.kind, n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), op.to.String())
		}
	case *ast.BasicLit:
		f.literal(n)
	case *ast.Ident:
		if other := map[string]string{"true": "false", "false": "true"}[n.Name]; other != "" {
			f.add("constant", n.Pos(), n.End(), other)
		}
	case *ast.ReturnStmt:
		f.swallow(n)
	case *ast.BlockStmt:
		f.removals(n.List)
	case *ast.CaseClause:
		f.removals(n.Body)
	case *ast.CommClause:
		f.removals(n.Body)
	}
	return true
}

func (f *finder) literal(n *ast.BasicLit) {
	switch n.Kind {
	case token.INT:
		if i, err := strconv.ParseInt(n.Value, 0, 64); err == nil {
			f.add("constant", n.Pos(), n.End(), strconv.FormatInt(i+1, 10))
		}
	case token.STRING:
		if s, err := strconv.Unquote(n.Value); err == nil {
			f.add("constant", n.Pos(), n.End(), strconv.Quote(s+"x"))
		}
	}
}

// swallow makes a return of an error one of nil.
func (f *finder) swallow(n *ast.ReturnStmt) {
	if len(n.Results) == 0 {
		return
	}
	if id, ok := n.Results[len(n.Results)-1].(*ast.Ident); ok && id.Name == "err" {
		f.add("error swallowed", id.Pos(), id.End(), "nil")
	}
}

func (f *finder) removals(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt, *ast.IncDecStmt, *ast.DeferStmt, *ast.SendStmt:
			f.add("removal", s.Pos(), s.End(), "")
		case *ast.BranchStmt:
			if s.Label == nil {
				f.add("removal", s.Pos(), s.End(), "")
			}
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE {
				f.add("removal", s.Pos(), s.End(), "")
			}
		}
	}
}

func (f *finder) text(from, to token.Pos) string {
	return string(f.src[f.fset.Position(from).Offset:f.fset.Position(to).Offset])
}

func (f *finder) add(kind string, from, to token.Pos, with string) {
	at := f.fset.Position(from)
	f.found = append(f.found, place{
		path: f.path, line: at.Line, start: at.Offset, end: f.fset.Position(to).Offset,
		kind: kind, old: f.text(from, to), new: with,
	})
}
