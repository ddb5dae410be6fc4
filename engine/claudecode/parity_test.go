package claudecode

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/internal/peers"
)

// Every name in the public types of the installed TypeScript SDK is in docs/parity.md, with a Go
// name that exists or the reason why there is none.
func TestParityWithTheTypeScriptSDK(t *testing.T) {
	table := readParity(t)
	names := goNames(t)
	for section, want := range typescriptNames(t) {
		if len(want) == 0 {
			t.Errorf("%s: no names were found in the package's types: has their form changed?", section)
		}
		for _, name := range want {
			if _, ok := table[section][name]; !ok {
				t.Errorf("%s: %s is not in the table", section, name)
			}
		}
	}
	if n := len(typescriptNames(t)["Options"]); n < 49 {
		t.Errorf("%d options, want 49 at least", n)
	}
	for section, rows := range table {
		for name, r := range rows {
			if r.here == "-" && r.note == "" {
				t.Errorf("%s: %s is not here, without a reason", section, name)
			}
			for _, g := range r.names {
				if !names[g] {
					t.Errorf("%s: %s: there is no %s", section, name, g)
				}
			}
			if r.here != "-" && len(r.names) == 0 {
				t.Errorf("%s: %s has no Go name and no dash", section, name)
			}
		}
	}
}

type parityRow struct {
	here, note string
	names      []string
}

var code = regexp.MustCompile("`([^`]+)`")

// readParity reads the tables by their headings.
func readParity(t *testing.T) map[string]map[string]parityRow {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "parity.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string]parityRow{}
	section := ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = title
			all[section] = map[string]parityRow{}
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if section == "" || !strings.HasPrefix(line, "| `") || len(cells) < 3 {
			continue
		}
		name := strings.Trim(strings.TrimSpace(cells[0]), "`")
		if _, twice := all[section][name]; twice {
			t.Errorf("%s: %s is there twice", section, name)
		}
		r := parityRow{here: strings.TrimSpace(cells[1]), note: strings.TrimSpace(cells[2])}
		for _, m := range code.FindAllStringSubmatch(cells[1], -1) {
			r.names = append(r.names, m[1])
		}
		all[section][name] = r
	}
	return all
}

// goNames are the exported names of the packages that the table speaks of: package.Name and
// package.Type.Member.
func goNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for name, dir := range map[string]string{"claudecode": ".", "event": "event", "transcript": "transcript", "agent": "../../agent", "mcpserver": "../../mcpserver", "mcphost": "../../mcphost", "mcpbridge": "../../mcpbridge"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				declared(d, func(member string) { names[name+"."+member] = true })
			}
		}
	}
	return names
}

func declared(d ast.Decl, add func(string)) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			add(d.Name.Name)
			return
		}
		recv := d.Recv.List[0].Type
		if star, ok := recv.(*ast.StarExpr); ok {
			recv = star.X
		}
		if id, ok := recv.(*ast.Ident); ok {
			add(id.Name + "." + d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				for _, id := range spec.Names {
					add(id.Name)
				}
			case *ast.TypeSpec:
				add(spec.Name.Name)
				if s, ok := spec.Type.(*ast.StructType); ok {
					for _, field := range s.Fields.List {
						for _, id := range field.Names {
							add(spec.Name.Name + "." + id.Name)
						}
					}
				}
			}
		}
	}
}

var (
	comment   = regexp.MustCompile(`(?s)/\*.*?\*/`)
	exported  = regexp.MustCompile(`(?m)^export declare (?:function|class) (\w+)`)
	member    = regexp.MustCompile(`^(?:readonly )?["']?(\w+)["']?\??[(:]`)
	literal   = regexp.MustCompile(`'(\w+)'`)
	reference = regexp.MustCompile(`\w+`)
	subtype   = regexp.MustCompile(`subtype: ((?:'\w+'(?: \| )?)+)`)
)

// typescriptNames reads the names from the package's type declarations, by section of the table.
func typescriptNames(t *testing.T) map[string][]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(peers.Dir(t), "node_modules", "@anthropic-ai", "claude-agent-sdk", "sdk.d.ts"))
	if err != nil {
		t.Fatal(err)
	}
	src := comment.ReplaceAllString(string(data), "")
	alias := func(name string) string {
		_, rest, ok := strings.Cut(src, "declare type "+name+" = ")
		if !ok {
			t.Fatalf("the package has no type %s", name)
		}
		text, _, _ := strings.Cut(rest, ";")
		return text
	}
	literals := func(text string) []string {
		var all []string
		for _, m := range literal.FindAllStringSubmatch(text, -1) {
			all = append(all, m[1])
		}
		return all
	}
	var functions, requests, failures []string
	for _, m := range exported.FindAllStringSubmatch(src, -1) {
		functions = append(functions, m[1])
	}
	for _, name := range reference.FindAllString(alias("SDKControlRequestInner"), -1) {
		requests = append(requests, literals(subtype.FindString(body(t, src, "type "+name+" =")))...)
	}
	for _, m := range subtype.FindAllStringSubmatch(body(t, src, "type SDKResultError ="), -1) {
		failures = append(failures, literals(m[1])...)
	}
	initialize := slices.DeleteFunc(membersOf(t, src, "type SDKControlInitializeRequest ="), func(name string) bool { return name == "subtype" })
	messages := append(reference.FindAllString(alias("SDKMessage"), -1), "SDKActiveGoalMessage")
	return map[string][]string{
		"Options":                           membersOf(t, src, "type Options ="),
		"Query methods":                     membersOf(t, src, "interface Query "),
		"Functions and classes":             functions,
		"Control requests":                  requests,
		"Fields of initialize":              initialize,
		"Agent definitions":                 membersOf(t, src, "type AgentDefinition ="),
		"Messages":                          messages,
		"Hook events":                       literals(alias("HookEvent")),
		"Errors of a request to the model":  literals(alias("SDKAssistantMessageError")),
		"Results that are errors":           failures,
		"Reasons why a turn ended":          literals(alias("TerminalReason")),
		"Reasons why the CLI did not start": literals(alias("SDKStartupFailureReason")),
	}
}

// body is what stands between the braces of a declaration.
func body(t *testing.T, src, head string) string {
	t.Helper()
	_, rest, ok := strings.Cut(src, "declare "+head)
	if !ok {
		t.Fatalf("the package has no %s", head)
	}
	begin, depth := strings.IndexByte(rest, '{'), 0
	for i := begin; i < len(rest); i++ {
		switch rest[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return rest[begin+1 : i]
			}
		}
	}
	t.Fatalf("%s does not end", head)
	return ""
}

// membersOf are the names of a declaration's own members.
func membersOf(t *testing.T, src, head string) []string {
	t.Helper()
	var all []string
	depth := 0
	for line := range strings.Lines(body(t, src, head)) {
		line = strings.TrimSpace(line)
		if m := member.FindStringSubmatch(line); m != nil && depth == 0 {
			all = append(all, m[1])
		}
		depth += strings.Count(line, "{") + strings.Count(line, "(") - strings.Count(line, "}") - strings.Count(line, ")")
	}
	return all
}
