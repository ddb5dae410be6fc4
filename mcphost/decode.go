package mcphost

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpserver"
)

// decodeResult reads the result of a tool call. Whatever can be read is kept: a
// block that cannot be is replaced by a short text that says so.
func decodeResult(raw json.RawMessage) (*mcpserver.Result, error) {
	r := &mcpserver.Result{}
	var kind, requests, state, legacy json.RawMessage
	object := eachMember(raw, func(key string, v json.RawMessage) {
		if isNull(v) {
			return
		}
		switch key {
		case "content":
			r.Content = decodeContent(v)
		case "structuredContent":
			r.StructuredContent = v
		case "isError":
			r.IsError = truth(v)
		case "_meta":
			_ = json.Unmarshal(v, &r.Meta) // what is no object says nothing
		case "resultType":
			kind = v
		case "inputRequests":
			requests = v
		case "requestState":
			state = v
		case "toolResult":
			legacy = v
		default:
			if r.Extra == nil {
				r.Extra = map[string]json.RawMessage{}
			}
			r.Extra[key] = v
		}
	})
	if !object {
		return nil, errors.New("the result is not a JSON object")
	}
	var err error
	if r.InputRequests, r.RequestState, err = decodeInput(kind, requests, state); err != nil {
		return nil, err
	}
	if legacy != nil && len(r.Content) == 0 { // before 2024-11-05
		r.Content = []mcp.Content{&mcp.TextContent{Text: textOf(legacy)}}
	}
	return r, nil
}

// maxInputs bounds what a server can ask in place of one result.
const maxInputs = 64

// decodeInput reads what a result asks in place of being one: answers to
// questions, or no more than to be called again with a state. Neither means that
// it is the result.
func decodeInput(kind, requests, state json.RawMessage) (mcp.InputRequestMap, string, error) {
	if requests == nil && string(kind) != `"input_required"` {
		return nil, "", nil
	}
	var all map[string]struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if requests != nil {
		if err := json.Unmarshal(requests, &all); err != nil {
			return nil, "", fmt.Errorf("reading the server's requests for input: %w", err)
		}
	}
	switch {
	case len(all) > maxInputs:
		return nil, "", fmt.Errorf("the server asks %d questions at once, at most %d are answered", len(all), maxInputs)
	case len(all) == 0 && textOf(state) == "":
		return nil, "", errors.New("the server wants input and says neither what nor with which state to call again")
	}
	out := make(mcp.InputRequestMap, len(all))
	for key, r := range all {
		var err error
		switch r.Method {
		case "elicitation/create":
			out[key], err = decodeParams[mcp.ElicitParams](r.Params)
		case "sampling/createMessage":
			out[key], err = decodeParams[mcp.CreateMessageWithToolsParams](r.Params)
		case "roots/list":
			if r.Params == nil || isNull(r.Params) { // it has none of its own
				r.Params = json.RawMessage("{}")
			}
			out[key], err = decodeParams[mcp.ListRootsParams](r.Params)
		default:
			err = errors.New("there is no such question")
		}
		if err != nil {
			return nil, "", fmt.Errorf("reading the server's request for input %s (%s): %w", quote(key), clip(r.Method, 100), err)
		}
	}
	return out, textOf(state), nil
}

func decodeParams[T any](raw json.RawMessage) (*T, error) {
	if raw == nil || isNull(raw) {
		return nil, errors.New("it has no params")
	}
	v := new(T)
	return v, decodeGuarded(raw, v)
}

// inputOf reads what the result of another request than a call asks.
func inputOf(raw json.RawMessage) (mcp.InputRequestMap, string, error) {
	var kind, requests, state json.RawMessage
	eachMember(raw, func(key string, v json.RawMessage) {
		switch {
		case isNull(v):
		case key == "resultType":
			kind = v
		case key == "inputRequests":
			requests = v
		case key == "requestState":
			state = v
		}
	})
	return decodeInput(kind, requests, state)
}

// decodeGuarded unmarshals into a type of the library whose decoding may panic
// on null.
func decodeGuarded[T any](raw json.RawMessage, v *T) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("malformed JSON: %v", p)
		}
	}()
	return json.Unmarshal(raw, v)
}

func truth(raw json.RawMessage) bool {
	return string(raw) == "true" || string(raw) == `"true"`
}

func decodeContent(raw json.RawMessage) []mcp.Content {
	var out []mcp.Content
	if !eachElement(raw, func(b json.RawMessage) { out = append(out, decodeBlock(b)) }) {
		out = []mcp.Content{decodeBlock(raw)} // a block alone
	}
	return out
}

// decodeBlock reads one content block.
func decodeBlock(raw json.RawMessage) mcp.Content {
	var kind string
	var text json.RawMessage
	t := &mcp.TextContent{}
	eachMember(raw, func(key string, v json.RawMessage) {
		switch key {
		case "type":
			kind = textOf(v)
		case "text":
			text = v
		case "annotations":
			_ = json.Unmarshal(v, &t.Annotations) // a malformed one says nothing
		case "_meta":
			_ = json.Unmarshal(v, &t.Meta)
		}
	})
	if kind == "text" && text != nil && !isNull(text) {
		t.Text = textOf(text)
		return t
	}
	var err error
	if kind != "text" && kind != "" {
		var res mcp.CallToolResult
		whole := append(append([]byte(`{"content":[`), raw...), `]}`...)
		if err = decodeGuarded(whole, &res); err == nil && len(res.Content) == 1 {
			return res.Content[0]
		}
	}
	return &mcp.TextContent{Text: unreadable(kind, raw, err)}
}

// unreadable is the text in place of a block that cannot be read. A short block
// is quoted: it may say what a model needs.
func unreadable(kind string, raw json.RawMessage, err error) string {
	const quoteLimit = 1000
	why := "which this host does not know"
	switch {
	case kind == "" || kind == "text":
		why = "which is malformed"
	case err != nil && knownBlocks[kind]:
		why = fmt.Sprintf("which is malformed (%v)", err)
	}
	s := fmt.Sprintf("[content block of type %q, %s", kind, why)
	if len(raw) > quoteLimit {
		return s + fmt.Sprintf("; %d bytes left out]", len(raw))
	}
	return s + ": " + string(raw) + "]"
}

var knownBlocks = map[string]bool{"image": true, "audio": true, "resource": true, "resource_link": true, "tool_use": true, "tool_result": true}

// A listPage is one page of a list, as far as it was not read yet.
type listPage struct {
	elements json.RawMessage // nil if there are none
	next     string
}

// pageOf finds the elements under key, and the next cursor, in the result of a request that lists.
func pageOf(raw json.RawMessage, key string) (listPage, error) {
	var p listPage
	object := eachMember(raw, func(k string, v json.RawMessage) {
		switch {
		case isNull(v):
		case k == key:
			p.elements = v
		case k == "nextCursor":
			p.next = textOf(v)
		}
	})
	if !object || p.elements != nil && p.elements[0] != '[' {
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
	p.count, _ = listed(page.elements, before, func(i int, raw json.RawMessage) {
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
		t.Name = clip(t.Name, 64)
		return t, fmt.Errorf("its name is longer than %d bytes", maxToolName)
	}
	t.InputSchema = bytes.TrimSpace(m["inputSchema"])
	if len(t.InputSchema) == 0 || isNull(t.InputSchema) {
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
	if len(raw) == 0 || isNull(raw) {
		return nil, nil
	}
	return raw, nil
}
