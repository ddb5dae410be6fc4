package corpus

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"testing"

	"github.com/tenon-sdk/tenon/modeltest"
	"github.com/tenon-sdk/tenon/toolschema"
)

// Every tool of the corpus is accepted by a model as strict as the real one: all
// servers in one request, and each alone.
func TestModelTakesEveryTool(t *testing.T) {
	var all []toolschema.Model
	kinds, mended, quarantined := map[string]int{}, 0, 0
	for _, s := range Load(t) {
		var own []toolschema.Model
		for _, tool := range s.Tools {
			m, q := toolschema.ForModel(t.Context(), input(s, tool), nil)
			if q != nil {
				quarantined++
				t.Logf("quarantined: %v", q)
				continue
			}
			if len(m.Report) > 0 {
				mended++
			}
			for _, r := range m.Report {
				kinds[r.Kind]++
			}
			own = append(own, m)
		}
		if len(own) > 0 {
			ask(t, s.Name, own)
		}
		all = append(all, own...)
	}
	ask(t, "all servers", all)
	t.Logf("%d tools taken, %d of them mended %v, %d quarantined", len(all), mended, kinds, quarantined)
	if quarantined > 0 {
		t.Errorf("%d tools of real servers were left out, want none", quarantined)
	}
}

func TestNamesAreWithinLimits(t *testing.T) {
	legal := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	owners := map[string]string{}
	for _, s := range Load(t) {
		for _, tool := range s.Tools {
			m, q := toolschema.ForModel(t.Context(), input(s, tool), nil)
			if q != nil {
				continue
			}
			if !legal.MatchString(m.Name) {
				t.Errorf("%s/%s is called %q", s.Name, tool.Name, m.Name)
			}
			if other, taken := owners[m.Name]; taken {
				t.Errorf("%s/%s and %s are both called %q", s.Name, tool.Name, other, m.Name)
			}
			owners[m.Name] = s.Name + "/" + tool.Name
		}
	}
}

// Arguments for a tool whose keys were left alone reach the server byte for
// byte, and those for mended keys in the server's own words.
func TestArgumentsReachTheServer(t *testing.T) {
	plain, renamed := 0, 0
	for _, s := range Load(t) {
		for _, tool := range s.Tools {
			m, q := toolschema.ForModel(t.Context(), input(s, tool), nil)
			if q != nil {
				continue
			}
			args := sample(m.InputSchema)
			got := m.RestoreArgs(args)
			if hasMend(m, "key") {
				renamed++
				own := properties(tool.InputSchema)
				var back map[string]json.RawMessage
				if err := json.Unmarshal(got, &back); err != nil {
					t.Errorf("%s/%s: %s: %v", s.Name, tool.Name, got, err)
				}
				for name := range back {
					if len(own) > 0 && own[name] == nil {
						t.Errorf("%s/%s: %s comes back with %q, which the server does not know", s.Name, tool.Name, args, name)
					}
				}
				continue
			}
			plain++
			if !bytes.Equal(got, args) {
				t.Errorf("%s/%s: %s became %s", s.Name, tool.Name, args, got)
			}
		}
	}
	t.Logf("%d tools with keys as they were, %d with mended keys", plain, renamed)
}

func input(s Server, tool Tool) toolschema.Tool {
	return toolschema.Tool{Server: s.Name, Name: tool.Name, Description: tool.Description, InputSchema: tool.InputSchema}
}

func hasMend(m toolschema.Model, kind string) bool {
	for _, r := range m.Report {
		if r.Kind == kind {
			return true
		}
	}
	return false
}

// properties are the property schemas at the root of a schema.
func properties(schema json.RawMessage) map[string]json.RawMessage {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	return s.Properties
}

// sample is arguments with a value for each property of a schema, spaced as no
// encoder would.
func sample(schema json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	b.WriteString("{ ")
	props := properties(schema)
	for i, k := range slices.Sorted(maps.Keys(props)) {
		if i > 0 {
			b.WriteString(" ,")
		}
		name, _ := json.Marshal(k) // a string
		fmt.Fprintf(&b, "%s : %s", name, value(props[k], 3))
	}
	b.WriteString("\n}")
	return b.Bytes()
}

// value is a value of a schema's type, as far as a schema says one.
func value(schema json.RawMessage, depth int) string {
	var s struct {
		Type  any             `json:"type"`
		Enum  []any           `json:"enum"`
		Items json.RawMessage `json:"items"`
	}
	if json.Unmarshal(schema, &s) != nil || depth == 0 {
		return "null"
	}
	switch {
	case len(s.Enum) > 0:
		b, err := json.Marshal(s.Enum[0])
		if err != nil {
			return "null"
		}
		return string(b)
	case s.Type == "object":
		return string(sample(schema))
	case s.Type == "array":
		return "[ " + value(s.Items, depth-1) + "]"
	case s.Type == "integer", s.Type == "number":
		return "1.50e1"
	case s.Type == "boolean":
		return "true"
	}
	return `"caf\u00e9 \/"`
}

// ask sends a request with the tools to a strict model.
func ask(t *testing.T, what string, tools []toolschema.Model) {
	t.Helper()
	type apiTool struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		InputSchema json.RawMessage `json:"input_schema"`
	}
	list := make([]apiTool, len(tools))
	for i, m := range tools {
		list[i] = apiTool{m.Name, m.Description, m.InputSchema}
	}
	body, err := json.Marshal(struct {
		Model     string            `json:"model"`
		MaxTokens int               `json:"max_tokens"`
		Messages  []json.RawMessage `json:"messages"`
		Tools     []apiTool         `json:"tools"`
	}{"claude", 100, []json.RawMessage{json.RawMessage(`{"role":"user","content":"hello"}`)}, list})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example.com/v1/messages", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	req.Header.Set("X-Api-Key", "any")
	res, err := modeltest.New(t, modeltest.Text("hello")).Client().Do(req)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		answer, err := io.ReadAll(res.Body)
		t.Errorf("%s: %d tools are refused with status %d: %.2000s %v", what, len(tools), res.StatusCode, answer, err)
	}
}
