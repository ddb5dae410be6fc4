package mcpbridge_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/mcpbridge"
	"github.com/tenon-sdk/tenon/mcpserver"
)

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"sampling":{},"roots":{}}}`

// A round is the reply to a request that may take several.
type round struct {
	Result struct {
		ResultType    string                     `json:"resultType"`
		InputRequests map[string]json.RawMessage `json:"inputRequests"`
		RequestState  string                     `json:"requestState"`
		Content       []struct{ Text string }    `json:"content"`
		Messages      []struct {
			Content struct{ Text string } `json:"content"`
		} `json:"messages"`
	} `json:"result"`
	Error *struct {
		Code    int64
		Message string
	} `json:"error"`
}

// ask makes one round of a request; responses are the answers, state comes from the round before.
func ask(t *testing.T, b *mcpbridge.Bridge, method, params string, responses map[string]string, state string) round {
	t.Helper()
	raw := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s,%s`, method, params, modernMeta)
	if responses != nil {
		var parts []string
		for key, value := range responses {
			parts = append(parts, fmt.Sprintf(`%q:%s`, key, value))
		}
		raw += `,"inputResponses":{` + strings.Join(parts, ",") + `}`
	}
	if state != "" {
		raw += fmt.Sprintf(`,"requestState":%q`, state)
	}
	var r round
	reply := handle(t, b, raw+"}}")
	if err := json.Unmarshal([]byte(reply), &r); err != nil {
		t.Fatalf("%v in %s", err, reply)
	}
	return r
}

// key is the one question of a round.
func (r round) key(t *testing.T) string {
	t.Helper()
	keys := slices.Collect(maps.Keys(r.Result.InputRequests))
	if len(keys) != 1 || r.Result.ResultType != "input_required" {
		t.Fatalf("want one question, got %+v", r)
	}
	return keys[0]
}

// A handler that asks while it runs works in 2026-07-28 as well: each question
// ends the call, which comes again with the answer.
func TestHandlerAsksInRounds(t *testing.T) {
	b := newBridge(t, full(t, nil), nil)
	const both = `"name":"ask","arguments":{"for":"both"}`
	first := ask(t, b, "tools/call", both, nil, "")
	if q := string(first.Result.InputRequests[first.key(t)]); !strings.Contains(q, "Your name?") || !strings.Contains(q, `"elicitation/create"`) {
		t.Errorf("first question: %s", q)
	}
	second := ask(t, b, "tools/call", both, map[string]string{first.key(t): `{"action":"accept","content":{"name":"Ada"}}`}, first.Result.RequestState)
	if q := string(second.Result.InputRequests[second.key(t)]); !strings.Contains(q, "Your color?") {
		t.Errorf("second question: %s", q)
	}
	if second.key(t) == first.key(t) {
		t.Error("two questions with one key")
	}
	last := ask(t, b, "tools/call", `"name":"ask","arguments":{ "for" : "both" }`,
		map[string]string{second.key(t): `{"action":"accept","content":{"color":"blue"}}`}, second.Result.RequestState)
	if last.Result.ResultType != "complete" || last.Result.Content[0].Text != "Ada likes blue" {
		t.Errorf("the end: %+v", last)
	}
	if strings.Contains(second.Result.RequestState, "Ada") {
		t.Error("the state can be read by the client")
	}
	for what, state := range map[string]string{
		"changed":            first.Result.RequestState[:len(first.Result.RequestState)-2] + "xx",
		"appended to":        second.Result.RequestState + "-TAMPERED",
		"another call's":     ask(t, b, "tools/call", `"name":"ask","arguments":{"for":"roots"}`, nil, "").Result.RequestState,
		"made by a stranger": "eyJ9",
	} {
		r := ask(t, b, "tools/call", both, nil, state)
		if r.Error == nil || r.Error.Code != -32602 {
			t.Errorf("a state that is %s: %+v", what, r)
		}
	}
	if r := ask(t, b, "tools/call", both, map[string]string{"other": `{"action":"accept"}`}, first.Result.RequestState); r.key(t) != first.key(t) {
		t.Errorf("an answer to nothing: %+v", r)
	}
}

// Sampling, roots and prompts take rounds too.
func TestOtherQuestionsInRounds(t *testing.T) {
	b := newBridge(t, full(t, nil), nil)
	for arg, c := range map[string]struct{ answer, want string }{
		"sample": {`{"role":"assistant","model":"m","content":{"type":"text","text":"Hi"}}`, "Hi"},
		"roots":  {`{"roots":[{"uri":"file:///a"}]}`, "roots: file:///a"},
	} {
		params := `"name":"ask","arguments":{"for":"` + arg + `"}`
		first := ask(t, b, "tools/call", params, nil, "")
		last := ask(t, b, "tools/call", params, map[string]string{first.key(t): c.answer}, first.Result.RequestState)
		if len(last.Result.Content) != 1 || last.Result.Content[0].Text != c.want {
			t.Errorf("%s: %+v", arg, last)
		}
	}
	first := ask(t, b, "prompts/get", `"name":"interview"`, nil, "")
	last := ask(t, b, "prompts/get", `"name":"interview"`,
		map[string]string{first.key(t): `{"action":"accept","content":{"topic":"bees"}}`}, first.Result.RequestState)
	if len(last.Result.Messages) != 1 || last.Result.Messages[0].Content.Text != "bees" {
		t.Errorf("prompt: %+v", last)
	}
}

// A result that asks works for clients of both eras; its state is its own.
func TestResultAsks(t *testing.T) {
	s := mcpserver.New("s", &mcpserver.Options{LookupEnv: noEnv})
	if err := s.AddTool(&mcpserver.Tool{Name: "t"}, stateful); err != nil {
		t.Fatal(err)
	}
	send := make(chan json.RawMessage, 1)
	b := newBridge(t, s, &mcpbridge.Options{Send: sendTo(send)})
	first := ask(t, b, "tools/call", `"name":"t"`, nil, "")
	if first.key(t) != "mine" || strings.Contains(first.Result.RequestState, "plain") {
		t.Errorf("the question: %+v", first)
	}
	last := ask(t, b, "tools/call", `"name":"t"`, map[string]string{"mine": `{"action":"accept","content":{"name":"Bo"}}`}, first.Result.RequestState)
	if len(last.Result.Content) != 1 || last.Result.Content[0].Text != "plain state, Bo" {
		t.Errorf("the end: %+v", last)
	}
	handle(t, b, `{"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}}}}`)
	done := make(chan string, 1)
	go func() { done <- handle(t, b, `{"id":2,"method":"tools/call","params":{"name":"t"}}`) }()
	var question struct{ ID json.RawMessage }
	if err := json.Unmarshal(<-send, &question); err != nil {
		t.Fatal(err)
	}
	handle(t, b, `{"id":`+string(question.ID)+`,"result":{"action":"accept","content":{"name":"Al"}}}`)
	if got := <-done; !strings.Contains(got, "plain state, Al") {
		t.Errorf("with a handshake: %s", got)
	}
}
