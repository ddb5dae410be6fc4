package corpus

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/toolschema"
)

// A wire serves tool lists over HTTP as they were written, byte for byte, and
// keeps the arguments of the last call. The first element of a path is the server.
type wire struct {
	lists map[string]json.RawMessage

	mu   sync.Mutex
	args json.RawMessage
}

func (w *wire) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Arguments json.RawMessage `json:"arguments"`
		} `json:"params"`
	}
	body, err := io.ReadAll(r.Body)
	if r.Method != http.MethodPost || err != nil || json.Unmarshal(body, &m) != nil {
		rw.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if m.ID == nil {
		rw.WriteHeader(http.StatusAccepted)
		return
	}
	result := ""
	switch m.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"wire","version":"1"}}`
	case "tools/list":
		result = `{"tools":` + string(w.lists[strings.Trim(r.URL.Path, "/")]) + `}`
	case "tools/call":
		w.mu.Lock()
		w.args = m.Params.Arguments
		w.mu.Unlock()
		result = `{"content":[]}`
	}
	rw.Header().Set("Content-Type", "application/json")
	if result == "" {
		_, _ = fmt.Fprintf(rw, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}`, m.ID)
		return
	}
	_, _ = fmt.Fprintf(rw, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

func (w *wire) received() json.RawMessage {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.args
}

// hostOf connects a host to servers that list what lists says.
func hostOf(t testing.TB, lists map[string]json.RawMessage) (*mcphost.Host, *wire) {
	t.Helper()
	w := &wire{lists: map[string]json.RawMessage{}}
	srv := httptest.NewServer(w)
	t.Cleanup(srv.Close)
	configs := map[string]mcphost.ServerConfig{}
	for i, name := range slices.Sorted(maps.Keys(lists)) {
		path := fmt.Sprint("s", i)
		w.lists[path] = lists[name]
		configs[name] = mcphost.HTTP{URL: srv.URL + "/" + path, HTTPClient: srv.Client()}
	}
	h, err := mcphost.New(&mcphost.Options{Servers: configs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	h.Start(t.Context())
	if err := h.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, s := range h.Status() {
		if s.Status != mcphost.StatusConnected {
			t.Fatalf("%s: %s: %v", s.Name, s.Status, s.Err)
		}
	}
	return h, w
}

// hostileLists are the tool lists of servers that get everything wrong: the
// committed hostile schemas, and names.
func hostileLists(t testing.TB) (lists map[string]json.RawMessage, schemas int) {
	t.Helper()
	archive, err := txtar.ParseFile("../../toolschema/testdata/hostile.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var tools []string
	for _, f := range archive.Files {
		if schema := bytes.TrimSpace(f.Data); json.Valid(schema) { // a list that is no JSON is another test's
			tools = append(tools, fmt.Sprintf(`{"name":%q,"description":"d","inputSchema":%s}`, f.Name, schema))
		}
	}
	names := []string{
		`{"name":"dup.x","inputSchema":{"type":"object"}}`, `{"name":"dup_x","inputSchema":{"type":"object"}}`, `{"name":"dup.x","inputSchema":{"type":"object"}}`,
		`{"name":"日本","inputSchema":{"type":"object"}}`, `{"name":"時間","inputSchema":{"type":"object"}}`, `{"name":"😀","inputSchema":{"type":"object"}}`,
		`{"name":"","inputSchema":{"type":"object"}}`, `{"inputSchema":{"type":"object"}}`, `{"name":7,"inputSchema":{"type":"object"}}`, `null`, `[]`, `"tool"`,
		`{"name":"lone \ud800","description":"also \ud800 here","inputSchema":{"type":"object","properties":{"k \ud800":{"description":"\udfff"}}}}`,
		`{"name":"` + strings.Repeat("n", 200) + `","inputSchema":{"type":"object"}}`, `{"name":"` + strings.Repeat("n", 201) + `","inputSchema":{"type":"object"}}`,
		`{"name":"huge","description":"` + strings.Repeat("ü", 500_000) + `","inputSchema":{"type":"object","properties":{"a":{"description":"` + strings.Repeat("x", 1_000_000) + `"}}}}`,
		`{"name":"no-schema"}`, `{"name":"no-description","description":null,"inputSchema":{"type":"object","properties":{}}}`, `{"name":"odd","description":7,"title":[],"annotations":"x","_meta":3,"inputSchema":{}}`,
	}
	return map[string]json.RawMessage{
		"hostile":                          json.RawMessage("[" + strings.Join(tools, ",") + "]"),
		"my.server":                        json.RawMessage("[" + strings.Join(names, ",") + "]"),
		"my server":                        json.RawMessage(`[{"name":"dup x","inputSchema":{"type":"object"}},{"name":"fine","inputSchema":{"type":"object"}}]`),
		"日本語":                              json.RawMessage(`[{"name":"fine","inputSchema":{"type":"object"}}]`),
		"a__b":                             json.RawMessage(`[{"name":"c","inputSchema":{"type":"object"}}]`),
		"a":                                json.RawMessage(`[{"name":"b__c","inputSchema":{"type":"object"}}]`),
		"long-" + strings.Repeat("x", 200): json.RawMessage(`[{"name":"one","inputSchema":{"type":"object"}},{"name":"two","inputSchema":{"type":"object"}}]`),
	}, len(tools)
}

func corpusLists(t testing.TB) map[string]json.RawMessage {
	t.Helper()
	lists := map[string]json.RawMessage{}
	for _, s := range Load(t) {
		list, err := json.Marshal(s.Tools)
		if err != nil {
			t.Fatal(err)
		}
		lists[s.Name] = list
	}
	return lists
}

// modelTools are what an agent sends of a host's tools, by the way that it goes.
func modelTools(t testing.TB, h *mcphost.Host) (models []toolschema.Model, tools []mcphost.Tool) {
	t.Helper()
	for _, tool := range h.Tools() {
		m, q := toolschema.ForModel(t.Context(), toolschema.Tool{
			Server: tool.Server, Name: tool.Name, FullName: tool.FullName, Description: tool.Description, InputSchema: tool.InputSchema,
		}, nil)
		if q != nil {
			t.Logf("quarantined: %v", q)
			continue
		}
		models, tools = append(models, m), append(tools, tool)
	}
	return models, tools
}

// Pains 28, 29, 30, 31 and 32: whatever servers list, and whatever they call it,
// a model as strict as the real one takes the request, from the wire on.
func TestModelTakesWhatAHostLists(t *testing.T) {
	lists, schemas := hostileLists(t)
	if schemas < 100 {
		t.Errorf("%d hostile schemas on the wire, want 100", schemas)
	}
	maps.Copy(lists, corpusLists(t))
	h, _ := hostOf(t, lists)
	models, tools := modelTools(t, h)
	ask(t, "all servers", models)
	for i, m := range models {
		if tools[i].Server == "hostile" || tools[i].Server == "my.server" {
			ask(t, tools[i].Name, []toolschema.Model{m})
		}
	}
	rejected := map[string][]string{}
	for _, s := range h.Status() {
		for _, r := range s.Rejected {
			rejected[s.Name] = append(rejected[s.Name], r.Name+": "+r.Reason)
		}
	}
	t.Logf("%d servers, %d tools taken, rejected: %q", len(lists), len(models), rejected)
	if left := len(h.Tools()) - len(models); left > 10 {
		t.Errorf("%d tools are quarantined", left)
	}
	if n := len(rejected["my.server"]); n != 7 { // six without a name, one that is listed twice
		t.Errorf("%d tools of my.server are rejected: %q", n, rejected["my.server"])
	}
	alike := map[string]string{} // tools that would all be mcp__my_server__dup_x, by the names that they have
	for _, tool := range h.Tools() {
		if strings.HasPrefix(tool.FullName, "mcp__my_server__dup_x") {
			alike[tool.FullName] = tool.Server + " " + tool.Name
		}
	}
	if len(alike) != 3 {
		t.Errorf("of the tools whose names are alike there are %q, want dup.x and dup_x of my.server, and dup x of my server", alike)
	}
}

// The tools of a request are the same bytes after every reconnection, so that
// the model's cache holds.
func TestToolsAreTheSameAfterReconnecting(t *testing.T) {
	lists := corpusLists(t)
	lists, extra := map[string]json.RawMessage{"github": lists["github"], "gitlab": lists["gitlab"], "linear": lists["linear"]}, lists["slack"]
	h, _ := hostOf(t, lists)
	bytesOf := func(h *mcphost.Host) string {
		models, _ := modelTools(t, h)
		out, err := json.Marshal(models)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	first := bytesOf(h)
	for _, name := range []string{"linear", "github", "gitlab"} {
		if err := h.Reconnect(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		if again := bytesOf(h); again != first {
			t.Errorf("after reconnecting %s the tools are other bytes", name)
		}
	}
	other, _ := hostOf(t, lists)
	if again := bytesOf(other); again != first {
		t.Error("another host has other bytes")
	}
	lists["slack"] = extra
	more, _ := hostOf(t, lists)
	if again := bytesOf(more); again == first {
		t.Error("another server makes no difference")
	}
}

// D97: what the model sends for a mended schema reaches the server in the
// server's own words, over the wire; all else as it was written, but for the space
// between.
func TestArgumentsReachTheServerOverTheWire(t *testing.T) {
	lists, _ := hostileLists(t)
	maps.Copy(lists, corpusLists(t))
	h, w := hostOf(t, lists)
	models, tools := modelTools(t, h)
	r := rand.New(rand.NewPCG(5, 11))
	plain, renamed := 0, 0
	for i, m := range models {
		own := map[string]bool{}
		keysWithin(tools[i].InputSchema, own)
		for range 3 {
			args := randomObject(r, m.InputSchema, m.InputSchema, 4)
			if _, err := h.Call(t.Context(), m.Name, m.RestoreArgs(args), nil); err != nil {
				t.Fatalf("%s: %v", m.Name, err)
			}
			got := w.received()
			if !hasMend(m, "key") {
				plain++
				var compact bytes.Buffer // a message is one line: the space between is not kept, all else is
				if err := json.Compact(&compact, args); err != nil || compact.String() != string(got) {
					t.Errorf("%s: %s reaches the server as %s", m.Name, args, got)
				}
				continue
			}
			renamed++
			sent, arrived := decode(t, args), decode(t, got)
			if why := sameButForKeys(sent, arrived, own); why != "" {
				t.Errorf("%s: %s reaches the server as %s: %s", m.Name, args, got, why)
			}
		}
	}
	t.Logf("%d calls with keys as they were, %d with mended keys", plain, renamed)
	if renamed < 50 {
		t.Errorf("%d calls with mended keys, want 50", renamed)
	}
}

func decode(t *testing.T, raw json.RawMessage) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}

// keysWithin gathers all keys of a JSON value.
func keysWithin(raw json.RawMessage, keys map[string]bool) {
	var object map[string]json.RawMessage
	var list []json.RawMessage
	switch {
	case json.Unmarshal(raw, &object) == nil:
		for k, v := range object {
			keys[k] = true
			keysWithin(v, keys)
		}
	case json.Unmarshal(raw, &list) == nil:
		for _, v := range list {
			keysWithin(v, keys)
		}
	}
}

// sameButForKeys says how two values differ otherwise than in keys of which the
// one that arrived is the server's own.
func sameButForKeys(sent, arrived any, own map[string]bool) string {
	different := fmt.Sprintf("%v became %v", sent, arrived)
	switch s := sent.(type) {
	case map[string]any:
		a, ok := arrived.(map[string]any)
		if !ok || len(a) != len(s) || !sameMembers(slices.Sorted(maps.Keys(s)), s, maps.Clone(a), own) {
			return different
		}
		return ""
	case []any:
		a, ok := arrived.([]any)
		if !ok || len(a) != len(s) {
			return different
		}
		for i := range s {
			if why := sameButForKeys(s[i], a[i], own); why != "" {
				return why
			}
		}
		return ""
	}
	if fmt.Sprint(sent) != fmt.Sprint(arrived) {
		return different
	}
	return ""
}

// sameMembers reports whether each key that was sent has become one that is left,
// in some way: several may look alike to the model.
func sameMembers(keys []string, sent, left map[string]any, own map[string]bool) bool {
	if len(keys) == 0 {
		return len(left) == 0
	}
	key := keys[0]
	for _, candidate := range slices.Sorted(maps.Keys(left)) {
		v := left[candidate]
		if candidate != key && !(own[candidate] && aliasOf(candidate, key)) || sameButForKeys(sent[key], v, own) != "" {
			continue
		}
		delete(left, candidate)
		if sameMembers(keys[1:], sent, left, own) {
			return true
		}
		left[candidate] = v
	}
	return false
}

// aliasOf reports whether a model's key may stand for a server's: every illegal
// character an underscore, with a hash behind it or not.
func aliasOf(key, model string) bool {
	plain := strings.Map(func(r rune) rune {
		if r < 0x80 && strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-", r) {
			return r
		}
		return '_'
	}, key)
	if plain == model || plain == "" && strings.HasPrefix(model, "_") {
		return true
	}
	cut := strings.LastIndexByte(model, '_')
	return cut >= 0 && len(model)-cut == len("_01234567") && strings.HasPrefix(plain, model[:cut])
}

// randomObject is arguments for a schema: some of its properties, spaced as no
// encoder would, and now and then one that it does not know.
func randomObject(r *rand.Rand, schema, root json.RawMessage, depth int) json.RawMessage {
	props := properties(schema)
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(props)) {
		if r.IntN(4) > 0 {
			key, _ := json.Marshal(k) // a string
			parts = append(parts, fmt.Sprintf("%s :%s", key, randomValue(r, props[k], root, depth-1)))
		}
	}
	if r.IntN(5) == 0 {
		parts = append(parts, `"not [known]": {"not [known]": 1}`)
	}
	r.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	return json.RawMessage("{ " + strings.Join(parts, ", ") + "}")
}

func randomValue(r *rand.Rand, schema, root json.RawMessage, depth int) string {
	var s struct {
		Type  any               `json:"type"`
		Ref   string            `json:"$ref"`
		Enum  []json.RawMessage `json:"enum"`
		Items json.RawMessage   `json:"items"`
		AnyOf []json.RawMessage `json:"anyOf"`
		OneOf []json.RawMessage `json:"oneOf"`
	}
	_ = json.Unmarshal(schema, &s) // a boolean: anything
	if depth <= 0 {
		return "null"
	}
	choices := slices.Concat(s.AnyOf, s.OneOf)
	switch {
	case strings.HasPrefix(s.Ref, "#/"):
		return randomValue(r, follow(root, s.Ref), root, depth-1)
	case len(choices) > 0:
		return randomValue(r, choices[r.IntN(len(choices))], root, depth-1)
	case len(s.Enum) > 0:
		return string(s.Enum[r.IntN(len(s.Enum))])
	case s.Type == "object", len(properties(schema)) > 0:
		return string(randomObject(r, schema, root, depth))
	case s.Type == "array":
		return "[" + randomValue(r, s.Items, root, depth-1) + " ,\n" + randomValue(r, s.Items, root, depth-1) + "]"
	case s.Type == "integer", s.Type == "number":
		return []string{"1.50e1", "-0", "12345678901234567890", "7"}[r.IntN(4)]
	case s.Type == "boolean":
		return "true"
	}
	return []string{`"caf\u00e9 \/"`, `""`, `"a"`, `"\"[]"`}[r.IntN(4)]
}

// follow finds what a reference means that is a definition's.
func follow(root json.RawMessage, ref string) json.RawMessage {
	at := root
	for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		var o map[string]json.RawMessage
		if json.Unmarshal(at, &o) != nil {
			return nil
		}
		at = o[part]
	}
	return at
}
