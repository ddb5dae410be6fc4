package native

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/messages"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// start, delta and stop are events of one content block.
func start(i int, block string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, block)
}

func delta1(i int, d string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, i, d)
}

func stop(i int) string { return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i) }

func begin(more string) string {
	return `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-5-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}` + more + `}}`
}

func end(reason, more string) []string {
	return []string{
		`{"type":"message_delta","delta":{"stop_reason":"` + reason + `","stop_sequence":null` + more + `},"usage":{"output_tokens":7}}`,
		`{"type":"message_stop"}`,
	}
}

// whole is a block that comes with its start and no delta.
func whole(i int, block string) []string { return []string{start(i, block), stop(i)} }

func events(parts ...any) []string {
	all := []string{begin("")}
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			all = append(all, p)
		case []string:
			all = append(all, p...)
		}
	}
	return all
}

const (
	search       = `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`
	searchResult = `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://e.test","title":"T","encrypted_content":"abc","page_age":null}]}`
)

// Streams of every kind of block, delta, end and event that the official client knows, and of some that it does not.
var streams = []struct {
	name   string
	events []string
	stop   string
	sent   []string // the kinds of blocks that go back to the model
	result string   // "" for none
	reason string   // why the turn ended
}{
	{
		"text", events(start(0, `{"type":"text","text":""}`), delta1(0, `{"type":"text_delta","text":"Hel"}`), `{"type":"ping"}`, delta1(0, `{"type":"text_delta","text":"lo 😀"}`), stop(0), end("end_turn", "")),
		"end_turn",
		[]string{"text"},
		"Hello 😀", agent.ReasonCompleted,
	},
	{
		"text with citations", events(start(0, `{"type":"text","text":"","citations":[]}`), delta1(0, `{"type":"text_delta","text":"so"}`),
			delta1(0, `{"type":"citations_delta","citation":{"type":"char_location","cited_text":"c","document_index":0,"document_title":null,"start_char_index":0,"end_char_index":1,"file_id":null}}`), stop(0), end("stop_sequence", "")),
		"stop_sequence",
		[]string{"text"},
		"so", agent.ReasonCompleted,
	},
	{
		"thinking", events(start(0, `{"type":"thinking","thinking":"","signature":""}`), delta1(0, `{"type":"thinking_delta","thinking":"hm"}`), delta1(0, `{"type":"signature_delta","signature":"c2ln"}`), stop(0),
			whole(1, `{"type":"redacted_thinking","data":"c2VjcmV0"}`), whole(2, `{"type":"text","text":"aha"}`), end("end_turn", "")),
		"end_turn",
		[]string{"thinking", "redacted_thinking", "text"},
		"aha", agent.ReasonCompleted,
	},
	{
		"tool use after thinking", events(start(0, `{"type":"thinking","thinking":"","signature":""}`), delta1(0, `{"type":"thinking_delta","thinking":"hm"}`), delta1(0, `{"type":"signature_delta","signature":"c2ln"}`), stop(0),
			start(1, `{"type":"tool_use","id":"toolu_1","name":"mcp__s__w","input":{}}`), delta1(1, `{"type":"input_json_delta","partial_json":""}`), delta1(1, `{"type":"input_json_delta","partial_json":"{\"n\":"}`), delta1(1, `{"type":"input_json_delta","partial_json":" 12345678901234567890}"}`), stop(1),
			end("tool_use", "")),
		"tool_use",
		[]string{"thinking", "tool_use"},
		"", "",
	},
	{
		"tool use with its caller", events(whole(0, `{"type":"tool_use","id":"toolu_1","name":"mcp__s__w","input":{"a":1},"caller":{"type":"direct"}}`), end("tool_use", "")),
		"tool_use",
		[]string{"tool_use"},
		"", "",
	},
	{
		"server tools", events(start(0, search), delta1(0, `{"type":"input_json_delta","partial_json":"{\"query\":\"x\"}"}`), stop(0), whole(1, searchResult),
			whole(2, `{"type":"web_fetch_tool_result","tool_use_id":"srvtoolu_2","content":{"type":"web_fetch_result","url":"https://e.test","retrieved_at":null,"content":{"type":"document","source":{"type":"text","media_type":"text/plain","data":"d"},"title":null,"citations":null}}}`),
			whole(3, `{"type":"code_execution_tool_result","tool_use_id":"srvtoolu_3","content":{"type":"code_execution_result","stdout":"1","stderr":"","return_code":0,"content":[]}}`),
			whole(4, `{"type":"bash_code_execution_tool_result","tool_use_id":"srvtoolu_4","content":{"type":"bash_code_execution_result","stdout":"1","stderr":"","return_code":0,"content":[]}}`),
			whole(5, `{"type":"text_editor_code_execution_tool_result","tool_use_id":"srvtoolu_5","content":{"type":"text_editor_code_execution_create_result","is_file_update":false}}`),
			whole(6, `{"type":"tool_search_tool_result","tool_use_id":"srvtoolu_6","content":{"type":"tool_search_tool_search_result","tool_references":[]}}`),
			whole(7, `{"type":"container_upload","file_id":"file_1"}`), whole(8, `{"type":"text","text":"found"}`), end("end_turn", "")),
		"end_turn",
		[]string{"server_tool_use", "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result", "bash_code_execution_tool_result", "text_editor_code_execution_tool_result", "tool_search_tool_result", "container_upload", "text"},
		"found", agent.ReasonCompleted,
	},
	{
		"a search that failed", events(whole(0, search), whole(1, `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"web_search_tool_result_error","error_code":"max_uses_exceeded"}}`), whole(2, `{"type":"text","text":"sorry"}`), end("end_turn", "")),
		"end_turn",
		[]string{"server_tool_use", "web_search_tool_result", "text"},
		"sorry", agent.ReasonCompleted,
	},
	{
		"refusal", events(whole(0, `{"type":"text","text":"I will"}`), end("refusal", `,"stop_details":{"type":"refusal","category":"cyber","explanation":"Not that."}`)),
		"refusal", nil, "", agent.ReasonModelError,
	},
	{
		"the limit of tokens", events(whole(0, `{"type":"text","text":"and so"}`), end("max_tokens", "")),
		"max_tokens",
		[]string{"text"},
		"and so", agent.ReasonCompleted,
	},
	{
		"the context window", events(whole(0, `{"type":"text","text":"and so"}`), end("model_context_window_exceeded", "")),
		"model_context_window_exceeded",
		[]string{"text"},
		"and so", agent.ReasonCompleted,
	},
	{
		"kinds that nobody knows", events(start(0, `{"type":"hologram","depth":3,"shape":""}`), delta1(0, `{"type":"hologram_delta","shape":"cu"}`), delta1(0, `{"type":"hologram_delta","shape":"be"}`), stop(0),
			`{"type":"weather_report","sky":"clear"}`, whole(1, `{"type":"text","text":"look"}`), end("applause", "")),
		"applause",
		[]string{"hologram", "text"},
		"look", agent.ReasonCompleted,
	},
}

// play is a model that answers with these streams, one after the other, and then with a text. sent has what it was asked.
func play(sent *[]json.RawMessage, streams ...[]string) *http.Client {
	n := 0
	return &http.Client{Transport: roundTripFunc(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		*sent = append(*sent, body)
		stream := events(whole(0, `{"type":"text","text":"the end"}`), end("end_turn", ""))
		if n < len(streams) {
			stream = streams[n]
		}
		n++
		var b strings.Builder
		for _, data := range stream {
			var e struct{ Type string }
			_ = json.Unmarshal([]byte(data), &e)
			fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", e.Type, data)
		}
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}},
			Body: io.NopCloser(strings.NewReader(b.String())), Request: r,
		}, nil
	})}
}

// Each stream is decoded as the official client decodes it, and goes back as the API wants it.
func TestStreams(t *testing.T) {
	for _, tt := range streams {
		t.Run(tt.name, func(t *testing.T) {
			var sent []json.RawMessage
			e := New(&Options{APIKey: "test", HTTPClient: play(&sent, tt.events)})
			o := withTools(t, echoArgs, &mcpserver.Tool{Name: "w"})
			o.ToolSearch, o.Model, o.IncludePartialMessages = "false", "claude-sonnet-5-5", true
			c, err := agent.Open(t.Context(), e, o)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			r, msgs := say(t, c, "x")
			if tt.reason != "" && (string(r.StopReason) != tt.stop || r.TerminalReason != tt.reason || tt.reason == agent.ReasonCompleted && r.Result != tt.result) {
				t.Errorf("result %+v", r)
			}
			if diff := cmp.Diff(official(t, tt.events), heardBlocks(t, msgs, "msg_1", len(sent))); diff != "" {
				t.Errorf("(-official +ours):\n%s", diff)
			}
			want := slices.DeleteFunc(slices.Clone(tt.events), func(data string) bool { return strings.Contains(data, `"ping"`) }) // which say nothing
			got := streamed(msgs)
			if diff := cmp.Diff(want, got[:min(len(want), len(got))]); diff != "" {
				t.Errorf("the events that were passed on (-want +got):\n%s", diff)
			}
			if len(sent) == 1 {
				say(t, c, "y")
			}
			if diff := cmp.Diff(tt.sent, sentKinds(t, sent[len(sent)-1])); diff != "" {
				t.Errorf("what goes back (-want +got):\n%s", diff)
			}
		})
	}
}

// A plainBlock is a content block as far as both decoders have words for it.
type plainBlock struct {
	Type, Text, Thinking, Signature, Data, ID, Name, ToolUseID, Input string
}

func plain(t *testing.T, raw []byte) plainBlock {
	t.Helper()
	var b struct {
		Type, Text, Thinking, Signature, Data, ID, Name string
		ToolUseID                                       string `json:"tool_use_id"`
		Input                                           json.RawMessage
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	p := plainBlock{b.Type, b.Text, b.Thinking, b.Signature, b.Data, b.ID, b.Name, b.ToolUseID, ""}
	if len(b.Input) > 0 {
		p.Input = strings.ReplaceAll(string(b.Input), " ", "")
	}
	return p
}

// official decodes a stream with the official client.
func official(t *testing.T, stream []string) []plainBlock {
	t.Helper()
	var m anthropic.Message
	for _, data := range stream {
		var e anthropic.MessageStreamEventUnion
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatal(err)
		}
		if e.Type == "ping" || e.Type == "weather_report" || strings.Contains(data, "hologram_delta") {
			continue // it knows no such thing
		}
		if err := m.Accumulate(e); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
	}
	var blocks []plainBlock
	for _, b := range m.Content {
		p := plainBlock{b.Type, b.Text, b.Thinking, b.Signature, b.Data, b.ID, b.Name, b.ToolUseID, ""}
		if len(b.Input) > 0 {
			p.Input = strings.ReplaceAll(string(b.Input), " ", "")
		}
		blocks = append(blocks, p)
	}
	return blocks
}

// heardBlocks are the blocks of the first response as the program hears them.
func heardBlocks(t *testing.T, msgs []agent.Message, id string, requests int) []plainBlock {
	t.Helper()
	var blocks []plainBlock
	for _, m := range msgs {
		a, ok := m.(*agent.Assistant)
		if !ok || a.Message.ID != id || a.Message.Content.Text() == "the end" && requests > 1 {
			continue
		}
		for _, b := range a.Message.Content {
			raw, err := json.Marshal(b)
			if err != nil {
				t.Fatal(err)
			}
			blocks = append(blocks, plain(t, raw))
		}
	}
	return blocks
}

func streamed(msgs []agent.Message) []string {
	var all []string
	for _, m := range msgs {
		if e, ok := m.(*agent.StreamEvent); ok {
			all = append(all, string(e.Event))
		}
	}
	return all
}

// sentKinds are the kinds of the blocks in the assistant's first message of a request.
func sentKinds(t *testing.T, body []byte) []string {
	t.Helper()
	var r struct {
		Messages []struct {
			Role    string
			Content []struct{ Type string }
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatal(err)
	}
	for _, m := range r.Messages {
		if m.Role != "assistant" {
			continue
		}
		var kinds []string
		for _, c := range m.Content {
			kinds = append(kinds, c.Type)
		}
		return kinds
	}
	return nil
}

// A thought and its signature go back with the results of the calls that followed it, byte for byte.
func TestThoughtsOverToolTurns(t *testing.T) {
	var sent []json.RawMessage
	e := New(&Options{APIKey: "test", HTTPClient: play(&sent, streams[3].events)})
	o := withTools(t, echoArgs, &mcpserver.Tool{Name: "w"})
	o.Thinking = &agent.Thinking{Type: "adaptive"}
	if _, err := collect(t, t.Context(), e, "x", o); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`{"type":"thinking","thinking":"hm","signature":"c2ln"}`, `{"n":12345678901234567890}`, `"tool_result"`} {
		if !strings.Contains(strings.ReplaceAll(string(sent[1]), ": ", ":"), want) {
			t.Errorf("the second request lacks %s:\n%s", want, sent[1])
		}
	}
}

// An error in mid-stream is the error that it says, whatever status the response began with.
func TestErrorsInMidStream(t *testing.T) {
	for _, tt := range []struct {
		kind    string
		status  int
		retried bool
	}{
		{"overloaded_error", 529, true},
		{"api_error", 500, true},
		{"rate_limit_error", 429, true},
		{"timeout_error", 504, true},
		{"invalid_request_error", 400, false},
		{"authentication_error", 401, false},
		{"permission_error", 403, false},
		{"not_found_error", 404, false},
		{"request_too_large", 413, false},
		{"billing_error", 402, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			broken := []string{
				begin(""), start(0, `{"type":"text","text":""}`), delta1(0, `{"type":"text_delta","text":"half"}`),
				`{"type":"error","error":{"type":"` + tt.kind + `","message":"no more of this"}}`,
			}
			var sent []json.RawMessage
			e := New(&Options{APIKey: "test", HTTPClient: play(&sent, broken)})
			msgs, _ := collect(t, t.Context(), e, "x", &agent.Options{SettingSources: []agent.SettingSource{}})
			r := last[*agent.Result](msgs)
			switch {
			case tt.retried && (r == nil || r.Result != "the end" || len(sent) != 2):
				t.Errorf("%s: %d requests, %+v", tt.kind, len(sent), r)
			case !tt.retried && (r == nil || r.APIErrorStatus != tt.status || !strings.Contains(r.Result, "no more of this") || len(sent) != 1):
				t.Errorf("%s: %d requests, %+v", tt.kind, len(sent), r)
			}
		})
	}
}

// What nobody has a name for in a call is kept, whether its start or a delta brought it.
func TestExtraFieldsOfACall(t *testing.T) {
	b, err := messages.NewBlock(json.RawMessage(`{"type":"tool_use","id":"toolu_1","name":"w","input":{},"caller":{"type":"direct"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, delta := range []string{`{"type":"input_json_delta","partial_json":"{\"a\":1}"}`, `{"type":"mood_delta","mood":"go"}`, `{"type":"mood_delta","mood":"od","new":[1]}`} {
		if err := b.Add(json.RawMessage(delta)); err != nil {
			t.Fatal(err)
		}
	}
	b.Done = true
	want := &agent.ToolUseBlock{ID: "toolu_1", Name: "w", Input: json.RawMessage(`{"a":1}`), Extra: agent.Fields{
		"caller": json.RawMessage(`{"type":"direct"}`), "mood": json.RawMessage(`"good"`), "new": json.RawMessage(`[1]`),
	}}
	if diff := cmp.Diff(agent.Block(want), b.Message()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	sent, _ := b.Sent()
	if got, want := string(sent.Raw), `{"type":"tool_use","id":"toolu_1","name":"w","input":{"a":1},"caller":{"type":"direct"},"mood":"good","new":[1]}`; got != want {
		t.Errorf("sent back as %s, want %s", got, want)
	}
}

// An event that cannot be one fails the request, and says where.
func TestEventsThatAreNone(t *testing.T) {
	for data, want := range map[string]string{
		`{"type":"content_block_stop","index":"one"}`: "decoding event of the stream: ",
		`{"type":`: "unexpected end of JSON input",
		`{"type":"content_block_delta","index":7,"delta":{}}`: "there are 0",
	} {
		body := "event: x\ndata: " + data + "\n\n"
		_, err := messages.ReadResponse(&http.Response{Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, messages.Sink{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", data, err, want)
		}
	}
}
