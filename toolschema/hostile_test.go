package toolschema

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/modeltest"
)

var update = flag.Bool("update", false, "write the golden files")

// hostile are the committed schemas, and those that are too large to commit.
func hostile(t testing.TB) []txtar.File {
	t.Helper()
	a, err := txtar.ParseFile("testdata/hostile.txtar")
	if err != nil {
		t.Fatal(err)
	}
	return a.Files
}

// generated are schemas that are bad by their size.
func generated() map[string]string {
	many := func(n int, f func(i int) string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = f(i)
		}
		return strings.Join(parts, ",")
	}
	deep := func(n int, open, core, end string) string {
		return strings.Repeat(open, n) + core + strings.Repeat(end, n)
	}
	return map[string]string{
		"10,000 levels of properties": deep(10_000, `{"type":"object","properties":{"a":`, `{}`, `}}`),
		"10,000 levels of not":        `{"type":"object","properties":{"a":` + deep(10_000, `{"not":`, `{}`, `}`) + `}}`,
		"100,000 brackets":            `{"type":"object","default":` + deep(100_000, `[`, ``, `]`) + `}`,
		"10,000 levels of root allOf": deep(10_000, `{"allOf":[`, `{}`, `]}`),
		"100,000 values in an enum":   `{"type":"object","properties":{"a":{"enum":[` + many(100_000, func(i int) string { return fmt.Sprint(i) }) + `]}}}`,
		"one value of 100 KB":         `{"type":"object","properties":{"a":{"enum":["` + strings.Repeat("x", 100_000) + `"]}}}`,
		"1,000 alternatives": `{"oneOf":[` + many(1_000, func(i int) string {
			return fmt.Sprintf(`{"properties":{"p%d":{"type":"string"}},"required":["p%d"]}`, i, i)
		}) + `]}`,
		"5,000 alternatives": `{"oneOf":[` + many(5_000, func(i int) string { return fmt.Sprintf(`{"properties":{"p":{"minLength":%d}}}`, i) }) + `]}`,
		"40 definitions, each twice": `{"allOf":[{"$ref":"#/$defs/d0"}],"$defs":{` + many(40, func(i int) string {
			return fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1)
		}) + `,"d40":{"properties":{"a":{}}}}}`,
		"a chain of 2,000 references":  `{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{` + many(2_000, func(i int) string { return fmt.Sprintf(`"d%d":{"$ref":"#/$defs/d%d"}`, i, i+1) }) + `,"d2000":{"type":"string"}}}`,
		"a circle of 2,000 references": `{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{` + many(2_000, func(i int) string { return fmt.Sprintf(`"d%d":{"$ref":"#/$defs/d%d"}`, i, (i+1)%2_000) }) + `}}`,
		"500 references to places":     `{"type":"object","properties":{` + many(500, func(i int) string { return fmt.Sprintf(`"p%d":{"$ref":"#/properties/p%d"}`, i, i+1) }) + `,"p500":{"type":"string"}}}`,
		"5,000 illegal keys":           `{"type":"object","properties":{` + many(5_000, func(i int) string { return fmt.Sprintf(`"k[%d]":{}`, i) }) + `}}`,
		"500 keys that look alike":     `{"type":"object","properties":{` + many(500, func(i int) string { return fmt.Sprintf(`"%c":{}`, 0x4e00+i) }) + `}}`,
		"5,000 properties": `{"type":"object","properties":{` + many(5_000, func(i int) string {
			return fmt.Sprintf(`"p%d":{"type":"string","description":"Property number %d"}`, i, i)
		}) + `}}`,
		"a description of 1 MB":        `{"type":"object","properties":{"a":{"description":"` + strings.Repeat("ü", 500_000) + `"}}}`,
		"a pattern of 100 KB":          `{"type":"object","properties":{"a":{"pattern":"` + strings.Repeat("(a", 50_000) + `"}}}`,
		"a default of 1 MB":            `{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"default":"` + strings.Repeat("x", 1_000_000) + `"}}}}}`,
		"a vendor extension of 1 MB":   `{"type":"object","x-data":"` + strings.Repeat("x", 1_000_000) + `"}`,
		"9 MB":                         `{"type":"object","x-data":"` + strings.Repeat("x", 9_000_000) + `"}`,
		"3,000 kinds of wrong keyword": `{"type":"object","properties":{` + many(3_000, func(i int) string { return fmt.Sprintf(`"p%d":{"minLength":-1}`, i) }) + `}}`,
	}
}

// outcome is what became of a schema, for the golden file.
func outcome(m Model, q *Quarantine) string {
	if q != nil {
		return "quarantine: " + q.Reason + "\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", m.InputSchema)
	if m.Description != "" {
		fmt.Fprintf(&b, "description: %s\n", m.Description)
	}
	for _, r := range m.Report {
		fmt.Fprintf(&b, "%s at %s\n", r.Kind, r)
	}
	return b.String()
}

func TestHostileSchemas(t *testing.T) {
	files := hostile(t)
	if n := len(files) + len(generated()); n < 100 {
		t.Errorf("%d schemas, want 100", n)
	}
	var got txtar.Archive
	for _, f := range files {
		t.Run(f.Name, func(t *testing.T) {
			raw := json.RawMessage(strings.TrimSuffix(string(f.Data), "\n"))
			before := string(raw)
			m, q := ForModel(t.Context(), Tool{Name: "t", InputSchema: raw}, nil)
			if string(raw) != before {
				t.Errorf("the tool's own schema has changed to %s", raw)
			}
			got.Files = append(got.Files, txtar.File{Name: f.Name, Data: []byte(outcome(m, q))})
			if q != nil {
				return
			}
			if err := accepted(m); err != nil {
				t.Errorf("%s\nbecomes %s\n%v", raw, m.InputSchema, err)
			}
			again, q := ForModel(t.Context(), Tool{Name: "t", InputSchema: m.InputSchema}, nil)
			if q != nil || string(again.InputSchema) != string(m.InputSchema) || again.Description != "" || len(again.Report) > 0 {
				t.Errorf("%s\nis mended again, to %s, %v, %v", m.InputSchema, again.InputSchema, again.Report, q)
			}
		})
	}
	const golden = "testdata/hostile.golden"
	if *update {
		if err := os.WriteFile(golden, txtar.Format(&got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := txtar.ParseFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(txtar.Format(want)), string(txtar.Format(&got))); d != "" {
		t.Errorf("outcomes (-want +got):\n%s", d)
	}
}

// The strict model takes all hostile schemas that could be mended in one request, those that are bad by their size as well.
func TestStrictModelTakesHostileSchemas(t *testing.T) {
	type apiTool struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		InputSchema json.RawMessage `json:"input_schema"`
	}
	var tools []apiTool
	add := func(raw string) {
		m, q := ForModel(t.Context(), Tool{Name: fmt.Sprint("t", len(tools)), InputSchema: json.RawMessage(raw)}, nil)
		if q == nil {
			tools = append(tools, apiTool{m.Name, m.Description, m.InputSchema})
		}
	}
	for _, f := range hostile(t) {
		add(string(f.Data))
	}
	for _, raw := range generated() {
		add(raw)
	}
	if len(tools) < 100 {
		t.Errorf("%d schemas could be mended, want 100", len(tools))
	}
	body, err := json.Marshal(map[string]any{
		"model": "claude", "max_tokens": 10, "messages": []any{map[string]any{"role": "user", "content": "hello"}}, "tools": tools,
	})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example.com/v1/messages", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Anthropic-Version": {"2023-06-01"}, "X-Api-Key": {"any"}}
	res, err := modeltest.New(t, modeltest.Text("hello")).Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		answer, err := io.ReadAll(res.Body)
		t.Errorf("%d tools are refused with status %d: %.2000s %v", len(tools), res.StatusCode, answer, err)
	}
}

// However large or deep a schema is, the copy is bounded and acceptable.
func TestHostileSizes(t *testing.T) {
	for name, raw := range generated() {
		t.Run(name, func(t *testing.T) {
			m, q := ForModel(t.Context(), Tool{Name: "t", InputSchema: json.RawMessage(raw)}, nil)
			if q != nil {
				if !strings.Contains(q.Reason, "bytes") {
					t.Errorf("quarantined: %v", q)
				}
				return
			}
			if len(m.InputSchema) > DefaultMaxSchema || len([]rune(m.Description)) > DefaultMaxDescription+len(truncated) || len(m.Report) > maxReport+5 {
				t.Errorf("%d bytes, %d bytes of description, %d reports", len(m.InputSchema), len(m.Description), len(m.Report))
			}
			if err := accepted(m); err != nil {
				t.Error(err)
			}
		})
	}
}

// A reference that leads back to itself for one and the same value is taken out,
// whichever keyword it stands below.
func TestCirclesOnOneValue(t *testing.T) {
	const back = `{"$ref":"#/$defs/a"}`
	for key, value := range map[string]string{
		"allOf": `[` + back + `,{"type":"string"}]`, "anyOf": `[` + back + `,{"type":"string"}]`, "oneOf": `[` + back + `,{"type":"string"}]`,
		"not": back, "if": back, "then": back + `,"if":{"type":"string"}`, "else": back + `,"if":{"type":"string"}`,
		"dependentSchemas": `{"k":` + back + `}`,
	} {
		m, q := ForModel(t.Context(), Tool{Server: "s", Name: "t", InputSchema: json.RawMessage(
			`{"type":"object","properties":{"x":` + back + `,"y":` + back + `},"$defs":{"a":{"description":"d","` + key + `":` + value + `}}}`)}, nil)
		if q != nil {
			t.Errorf("%s: %v", key, q)
			continue
		}
		if n := strings.Count(string(m.InputSchema), back); n != 2 || !strings.Contains(fmt.Sprint(m.Report), "a reference that leads back to itself is taken out") {
			t.Errorf("%s: %d references in %s, report %v", key, n, m.InputSchema, m.Report)
		}
	}
}
