package toolschema

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNames(t *testing.T) {
	uuid := "3f2b8c1d-5e6f-4a7b-8c9d-0e1f2a3b4c5d"
	tests := []struct {
		name string
		tool Tool
		max  int
		want string
	}{
		{"of a server", Tool{Server: "stock", Name: "lookup"}, 0, "mcp__stock__lookup"},
		// D38 D39
		{"with odd characters", Tool{Server: "my.server", Name: "list issues"}, 0, "mcp__my_server__list_issues"},
		{"without server", Tool{Name: "get.weather"}, 0, "get_weather"},
		{"given", Tool{Server: "s", Name: "t", FullName: "other"}, 0, "other"},
		{"given and illegal", Tool{Server: "s", Name: "t", FullName: "o.k"}, 0, "o_k"},
		{"long, with room", Tool{Server: uuid, Name: strings.Repeat("n", 80)}, 128, "mcp__" + uuid + "__" + strings.Repeat("n", 80)},
		{"beyond any limit", Tool{Name: strings.Repeat("n", 200)}, 1000, strings.Repeat("n", 119) + "_d7a1c89d"},
		{"below any limit", Tool{Name: strings.Repeat("n", 20)}, 1, "nnnnnnn_5ec1b0b6"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, q := ForModel(t.Context(), tt.tool, &Options{MaxName: tt.max})
			if q != nil {
				t.Fatal(q)
			}
			if tt.name[0] == 'b' { // the hash is the same each time, whatever it is
				if again, _ := ForModel(t.Context(), tt.tool, &Options{MaxName: tt.max}); again.Name != m.Name || len(m.Name) != min(max(tt.max, 16), 128) {
					t.Errorf("got %q of %d characters, then %q", m.Name, len(m.Name), again.Name)
				}
				return
			}
			if m.Name != tt.want {
				t.Errorf("got %q, want %q", m.Name, tt.want)
			}
		})
	}
	if _, q := ForModel(t.Context(), Tool{Server: "s"}, nil); q == nil || q.Error() != `tool "" of server "s" is left out: it has no name` {
		t.Errorf("a tool without a name: got %v", q)
	}
}

// F07 of the field cases: long names that share their beginning stay apart, within the limit and stable.
func TestLongNamesStayApart(t *testing.T) {
	const server = "3f2b8c1d-5e6f-4a7b-8c9d-0e1f2a3b4c5d"
	name := func(tool string) string {
		m, q := ForModel(t.Context(), Tool{Server: server, Name: tool, InputSchema: json.RawMessage(`{"type":"object","properties":{}}`)}, nil)
		if q != nil {
			t.Fatal(q)
		}
		if err := accepted(m); err != nil {
			t.Error(err)
		}
		if len(m.Report) != 1 || m.Report[0].Kind != "name" {
			t.Errorf("report %v, want one about the name", m.Report)
		}
		return m.Name
	}
	a, b := name("search_the_whole_archive_of_documents_public"), name("search_the_whole_archive_of_documents_private")
	if a == b || len(a) > 64 || len(b) > 64 {
		t.Errorf("got %q and %q", a, b)
	}
	if again := name("search_the_whole_archive_of_documents_public"); again != a {
		t.Errorf("got %q, then %q", a, again)
	}
}

func TestDescriptions(t *testing.T) {
	const choice = `{"type":"object","properties":{},"oneOf":[{"required":["a"]},{"required":["b"]}]}`
	const rule = "Give exactly one of these sets of arguments: {a} or {b}."
	long := strings.Repeat("ü", 5000)
	tests := []struct {
		name, in, schema, want string
		max                    int
	}{
		{"none", "", "", "", 0},
		{"short", "Finds things", "", "Finds things", 0},
		{"4096 characters", long[:2*4096], "", long[:2*4096], 0},
		{"4097 characters", long[:2*4097], "", long[:2*4096] + "… [truncated]", 0},
		{"a limit", "abcdef", "", "abc… [truncated]", 3},
		{"with a rule", "Finds things", choice, "Finds things\n" + rule, 0},
		{"a rule alone", "", choice, rule, 0},
		{"cut for a rule", long, choice, long[:2*(4096-len(rule)-1)] + "… [truncated]\n" + rule, 0},
		{"not UTF-8", "a\xffb\x00c", "", "a\ufffdb\ufffdc", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, q := ForModel(t.Context(), Tool{Name: "t", Description: tt.in, InputSchema: json.RawMessage(tt.schema)}, &Options{MaxDescription: tt.max})
			if q != nil {
				t.Fatal(q)
			}
			if m.Description != tt.want {
				t.Errorf("got %.80q (%d bytes), want %.80q (%d bytes)", m.Description, len(m.Description), tt.want, len(tt.want))
			}
		})
	}
}

// F03 and F05 of the field cases.
func TestFieldCases(t *testing.T) {
	m := forModel(t, `{"type":"object","$defs":{"Q":{"type":"object","properties":{"limit":{"type":"integer"}}}},"properties":{"q":{"$ref":"#/$defs/Q"}},"required":["q"]}`)
	if !strings.Contains(string(m.InputSchema), `"$defs":{"Q":{"type":"object","properties":{"limit":{"type":"integer"}}}}`) || len(m.Report) > 0 {
		t.Errorf("F03: got %s, %v", m.InputSchema, m.Report)
	}
	for _, schema := range []string{"", "null", "{}", `{"type":"object"}`, `{"type":"object","properties":null}`} {
		if m := forModel(t, schema); string(m.InputSchema) != `{"type":"object","properties":{}}` {
			t.Errorf("F05: %q becomes %s", schema, m.InputSchema)
		}
	}
}

func TestFineSchemasPassUnchanged(t *testing.T) {
	const fine = `{"type":"object","properties":{"z":{"type":"string","description":"<b> & ü"},"a":{"type":["integer","null"],"default":1.0}},"required":["z"],"additionalProperties":false}`
	m := forModel(t, fine)
	if string(m.InputSchema) != fine || len(m.Report) > 0 || m.back != nil {
		t.Errorf("got %s, %v", m.InputSchema, m.Report)
	}
	var spaced strings.Builder
	for _, c := range fine {
		spaced.WriteRune(c)
		if c == ',' || c == '{' {
			spaced.WriteString("\n ")
		}
	}
	if m := forModel(t, spaced.String()); string(m.InputSchema) != fine {
		t.Errorf("with space: got %s", m.InputSchema)
	}
}

// A model's copy may be used by any number of runs at once.
func TestModelIsSafeForConcurrentUse(t *testing.T) {
	m := forModel(t, `{"type":"object","properties":{"a!":{"$ref":"#"}}}`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				if got := m.RestoreArgs(json.RawMessage(`{"a_":{"a_":1}}`)); string(got) != `{"a!":{"a!":1}}` {
					t.Errorf("got %s", got)
				}
			}
		})
	}
	wg.Wait()
}

func TestReportNamesEveryChange(t *testing.T) {
	m, _ := ForModel(t.Context(), Tool{Name: "a b", Description: "x\xff", InputSchema: json.RawMessage(`{"type":"OBJECT","properties":{"n!":{"type":"int","minLength":-1}}}`)}, nil)
	want := []Mend{
		{"name", "name", `"a b" is written as "a_b"`},
		{"description", "text", "text that is not valid Unicode is replaced by U+FFFD"},
		{"/type", "type", `"OBJECT" is written as "object"`},
		{"/properties/n!/type", "type", `"int" is written as "integer"`},
		{"/properties/n!/minLength", "keyword", "is no count and is taken out"},
		{"/properties/n!", "key", `called "n_", since the API accepts A-Z a-z 0-9 _ . - and 64 characters only`},
	}
	if d := cmp.Diff(want, m.Report); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func FuzzForModel(f *testing.F) {
	for _, h := range hostile(f) {
		f.Add(h.Data, []byte(`{"a_":1,"filter__":[{"x_y":2}]}`))
	}
	f.Fuzz(func(t *testing.T, schema, args []byte) {
		before := string(schema)
		m, q := ForModel(t.Context(), Tool{Name: "t", InputSchema: schema}, nil)
		if string(schema) != before {
			t.Fatalf("the tool's own schema has changed")
		}
		if q != nil {
			return
		}
		if err := accepted(m); err != nil {
			t.Fatalf("%s\nbecomes %s\n%v", schema, m.InputSchema, err)
		}
		again, q := ForModel(t.Context(), Tool{Name: "t", InputSchema: m.InputSchema}, nil)
		if q != nil || string(again.InputSchema) != string(m.InputSchema) || len(again.Report) > 0 {
			t.Fatalf("%s\nis mended again, to %s, %v, %v", m.InputSchema, again.InputSchema, again.Report, q)
		}
		back := m.RestoreArgs(args)
		if json.Valid(args) != json.Valid(back) {
			t.Fatalf("%s becomes %s", args, back)
		}
		if m.back == nil && string(back) != string(args) {
			t.Fatalf("%s becomes %s without a mended key", args, back)
		}
	})
}

func benchmarkTool(props int) Tool {
	var b strings.Builder
	for i := range props {
		fmt.Fprintf(&b, `"property_%d":{"type":"string","description":"The property number %d of the tool","minLength":1},`, i, i)
	}
	return Tool{Server: "bench", Name: "tool", Description: "Does something", InputSchema: json.RawMessage(`{"type":"object","properties":{` + strings.TrimSuffix(b.String(), ",") + `},"required":["property_0"]}`)}
}

func BenchmarkForModel(b *testing.B) {
	for _, props := range []int{3, 20} {
		b.Run(fmt.Sprint(props, " properties"), func(b *testing.B) {
			t := benchmarkTool(props)
			b.ReportAllocs()
			for b.Loop() {
				if _, q := ForModel(b.Context(), t, nil); q != nil {
					b.Fatal(q)
				}
			}
		})
	}
}

func BenchmarkRestoreArgs(b *testing.B) {
	m := forModel(b, `{"type":"object","properties":{"filter[]":{"type":"array","items":{"type":"object","properties":{"a b":{}}}},"page":{}}}`)
	args := json.RawMessage(`{"filter__":[{"a_b":1},{"a_b":2}],"page":3}`)
	b.ReportAllocs()
	for b.Loop() {
		m.RestoreArgs(args)
	}
}
