package mcphost

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/internal/jsonscan"
)

// A listPage is one page of a list, as far as it was not read yet.
type listPage struct {
	elements json.RawMessage // nil if there are none
	next     string
}

// pageOf finds the elements under key, and the next cursor, in the result of a request that lists.
func pageOf(raw json.RawMessage, key string) (listPage, error) {
	var p listPage
	err := jsonscan.Object(raw, func(k []byte, v json.RawMessage) {
		switch {
		case jsonscan.IsNull(v):
		case string(k) == key:
			p.elements = v
		case string(k) == "nextCursor":
			p.next = jsonscan.TextOf(v)
		}
	})
	if err != nil || p.elements != nil && p.elements[0] != '[' {
		return listPage{}, fmt.Errorf("the result holds no array of %s", key)
	}
	return p, nil
}

// A toolPage is what was read of one page of a tools/list result.
type toolPage struct {
	tools    []Tool
	rejected []RejectedTool
	next     string
	count    int // of elements so far, with those before it
}

// decodeToolPage reads a page of tools, before which others were listed. A tool that cannot be used is rejected
// with the reason; its siblings stay. It fails only if there is no list at all, or it is too long.
func decodeToolPage(server string, raw json.RawMessage, before int) (toolPage, error) {
	page, err := pageOf(raw, "tools")
	if err != nil {
		return toolPage{}, err
	}
	p := toolPage{next: page.next}
	p.count = listed(page.elements, before, func(i int, raw json.RawMessage) {
		t, err := decodeTool(raw)
		if err != nil {
			name := t.Name
			if name == "" {
				name = fmt.Sprintf("#%d", i)
			}
			p.rejected = append(p.rejected, RejectedTool{Server: server, Name: name, Reason: err.Error()})
			return
		}
		t.Server = server
		p.tools = append(p.tools, t)
	})
	if p.count > maxListed {
		return p, errTooMany
	}
	return p, nil
}

// maxToolName bounds a tool's name, in bytes.
const maxToolName = 1024

// decodeTool reads one listed tool. Only what a call needs can make it useless.
func decodeTool(raw json.RawMessage) (Tool, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil || m == nil {
		return Tool{}, errors.New("not a JSON object")
	}
	var t Tool
	switch err := json.Unmarshal(m["name"], &t.Name); {
	case m["name"] == nil:
		return t, errors.New("it has no name")
	case err != nil:
		return t, errors.New("its name is not a string")
	case t.Name == "":
		return t, errors.New("its name is empty")
	case len(t.Name) > maxToolName:
		t.Name = clip.Text(t.Name, 64)
		return t, fmt.Errorf("its name is longer than %d bytes", maxToolName)
	}
	t.InputSchema = bytes.TrimSpace(m["inputSchema"])
	if len(t.InputSchema) == 0 || jsonscan.IsNull(t.InputSchema) {
		t.InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	if t.InputSchema[0] != '{' {
		return t, errors.New("its inputSchema is not a JSON object")
	}
	if out := bytes.TrimSpace(m["outputSchema"]); len(out) > 0 && out[0] == '{' {
		t.OutputSchema = out
	}
	// What is malformed below is left out: none of it decides whether the tool works.
	_ = json.Unmarshal(m["title"], &t.Title)
	_ = json.Unmarshal(m["description"], &t.Description)
	_ = json.Unmarshal(m["icons"], &t.Icons)
	_ = json.Unmarshal(m["_meta"], &t.Meta)
	t.Annotations = decodeAnnotations(m["annotations"])
	t.derive()
	return t, nil
}

func decodeAnnotations(raw json.RawMessage) *mcp.ToolAnnotations {
	var a *mcp.ToolAnnotations
	if raw == nil || json.Unmarshal(raw, &a) != nil {
		return nil
	}
	return a
}

// derive sets what follows from annotations and _meta.
func (t *Tool) derive() {
	if a := t.Annotations; a != nil {
		t.ReadOnly, t.Idempotent = a.ReadOnlyHint, a.IdempotentHint
		if t.Title == "" {
			t.Title = a.Title
		}
	}
	if hint, ok := t.Meta["anthropic/searchHint"].(string); ok {
		t.SearchHint = hint
	}
	switch n := t.Meta["anthropic/maxResultSizeChars"].(type) {
	case float64:
		t.MaxResultSize = max(0, int(min(n, 1<<30)))
	case int:
		t.MaxResultSize = max(0, n)
	}
}

// fromLibraryTool converts a tool of a server in this process.
func fromLibraryTool(server string, lt *mcp.Tool) (Tool, error) {
	if lt == nil {
		return Tool{}, errors.New("it is nil")
	}
	t := Tool{
		Server: server, Name: lt.Name, Title: lt.Title, Description: lt.Description,
		Annotations: lt.Annotations, Icons: lt.Icons, Meta: lt.Meta,
	}
	var err error
	if t.InputSchema, err = rawSchema(lt.InputSchema); err != nil {
		return t, fmt.Errorf("its inputSchema cannot be encoded: %w", err)
	}
	if t.OutputSchema, err = rawSchema(lt.OutputSchema); err != nil {
		t.OutputSchema = nil // only what validates results would need it
	}
	switch {
	case t.Name == "":
		return t, errors.New("its name is empty")
	case t.InputSchema == nil:
		t.InputSchema = json.RawMessage(`{"type":"object"}`)
	case t.InputSchema[0] != '{':
		return t, errors.New("its inputSchema is not a JSON object")
	}
	t.derive()
	return t, nil
}

func rawSchema(v any) (json.RawMessage, error) {
	raw, ok := v.(json.RawMessage)
	if !ok {
		if v == nil {
			return nil, nil
		}
		b, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		raw = b
	}
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || jsonscan.IsNull(raw) {
		return nil, nil
	}
	return raw, nil
}

// listed calls f with the elements of an array in a list's result, until maxListed elements were listed, before of them in
// earlier pages. It returns the count of all elements so far.
func listed(raw json.RawMessage, before int, f func(i int, element json.RawMessage)) int {
	n := before
	_ = jsonscan.Array(raw, func(e json.RawMessage) { // no array has no elements
		if n++; n <= maxListed {
			f(n-before, e)
		}
	})
	return n
}

// unmarshal is json.Unmarshal for types of the MCP library, some of which panic on null.
func unmarshal[T any](raw json.RawMessage, v *T) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("malformed JSON: %v", p)
		}
	}()
	return json.Unmarshal(raw, v)
}

// maxListed bounds the elements of one list, and maxRejected the tools left out that are named.
const (
	maxListed   = 50_000
	maxRejected = 1000
)

// An endlessError is why a list was not read to its end. The part that was read is used.
type endlessError struct{ why string }

func (e *endlessError) Error() string { return e.why }

func endlessf(format string, args ...any) error { return &endlessError{fmt.Sprintf(format, args...)} }

var errTooMany = endlessf("the list has more than %d elements; those before are used", maxListed)
