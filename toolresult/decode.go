package toolresult

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/internal/jsonscan"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// Decode reads the result of a tools/call request, which must be valid JSON. A content block that
// cannot be read is replaced by a short text about it.
func Decode(raw json.RawMessage) (*mcpserver.Result, error) {
	r := &mcpserver.Result{}
	var in input
	var legacy json.RawMessage
	err := jsonscan.Object(raw, func(key []byte, v json.RawMessage) {
		if jsonscan.IsNull(v) || in.member(key, v) {
			return
		}
		switch string(key) {
		case "content":
			r.Content = decodeContent(v)
		case "structuredContent":
			r.StructuredContent = v
		case "isError":
			r.IsError = string(v) == "true" || string(v) == `"true"`
		case "_meta":
			_ = json.Unmarshal(v, &r.Meta) // any other value than an object is ignored
		case "toolResult":
			legacy = v
		default:
			if r.Extra == nil {
				r.Extra = map[string]json.RawMessage{}
			}
			r.Extra[string(key)] = v
		}
	})
	if err != nil {
		return nil, errors.New("the result is not a JSON object")
	}
	if r.InputRequests, r.RequestState, err = in.decode(); err != nil {
		return nil, err
	}
	if legacy != nil && len(r.Content) == 0 { // protocol versions before 2024-11-05
		r.Content = []mcp.Content{&mcp.TextContent{Text: jsonscan.TextOf(legacy)}}
	}
	return r, nil
}

// DecodeInput returns the requests for input, and the state to send with the answers, if a server
// answered a request with them in place of a result. Without either the response is the result.
func DecodeInput(raw json.RawMessage) (mcp.InputRequestMap, string, error) {
	var in input
	_ = jsonscan.Object(raw, func(key []byte, v json.RawMessage) { // any other value asks for nothing
		if !jsonscan.IsNull(v) {
			in.member(key, v)
		}
	})
	return in.decode()
}

// maxInputs bounds the requests for input in one response.
const maxInputs = 64

// An input holds the members of a response that ask for input.
type input struct{ kind, requests, state json.RawMessage }

// member keeps a member of a response. It reports whether the member is one that asks for input.
func (in *input) member(key []byte, v json.RawMessage) bool {
	switch string(key) {
	case "resultType":
		in.kind = v
	case "inputRequests":
		in.requests = v
	case "requestState":
		in.state = v
	default:
		return false
	}
	return true
}

func (in *input) decode() (mcp.InputRequestMap, string, error) {
	if in.requests == nil && string(in.kind) != `"input_required"` {
		return nil, "", nil
	}
	var all map[string]struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if in.requests != nil {
		if err := json.Unmarshal(in.requests, &all); err != nil {
			return nil, "", fmt.Errorf("reading the server's requests for input: %w", err)
		}
	}
	state := jsonscan.TextOf(in.state)
	switch {
	case len(all) > maxInputs:
		return nil, "", fmt.Errorf("the server asks %d questions at once, at most %d are answered", len(all), maxInputs)
	case len(all) == 0 && state == "":
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
			if r.Params == nil || jsonscan.IsNull(r.Params) { // they are optional
				r.Params = json.RawMessage("{}")
			}
			out[key], err = decodeParams[mcp.ListRootsParams](r.Params)
		default:
			err = errors.New("there is no such question")
		}
		if err != nil {
			return nil, "", fmt.Errorf("reading the server's request for input %q (%s): %w", clip.Text(key, 200), clip.Text(r.Method, 100), err)
		}
	}
	return out, state, nil
}

func decodeParams[T any](raw json.RawMessage) (*T, error) {
	if raw == nil || jsonscan.IsNull(raw) {
		return nil, errors.New("it has no params")
	}
	v := new(T)
	return v, unmarshal(raw, v)
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

func decodeContent(raw json.RawMessage) []mcp.Content {
	var out []mcp.Content
	if err := jsonscan.Array(raw, func(b json.RawMessage) { out = append(out, decodeBlock(b)) }); err != nil {
		out = []mcp.Content{decodeBlock(raw)} // a block without an array around it
	}
	return out
}

func decodeBlock(raw json.RawMessage) mcp.Content {
	var kind string
	var text json.RawMessage
	t := &mcp.TextContent{}
	_ = jsonscan.Object(raw, func(key []byte, v json.RawMessage) { // any other value has no kind
		switch string(key) {
		case "type":
			kind = jsonscan.TextOf(v)
		case "text":
			text = v
		case "annotations":
			_ = json.Unmarshal(v, &t.Annotations) // malformed annotations are ignored
		case "_meta":
			_ = json.Unmarshal(v, &t.Meta)
		}
	})
	if kind == "text" && text != nil && !jsonscan.IsNull(text) {
		t.Text = jsonscan.TextOf(text)
		return t
	}
	var err error
	if kind != "text" && kind != "" {
		var res mcp.CallToolResult
		whole := append(append([]byte(`{"content":[`), raw...), `]}`...)
		if err = unmarshal(whole, &res); err == nil && len(res.Content) == 1 {
			return res.Content[0]
		}
	}
	return &mcp.TextContent{Text: unreadable(kind, raw, err)}
}

// unreadable returns the text that replaces a block that cannot be read. It quotes a short block,
// which may hold what the model needs.
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
