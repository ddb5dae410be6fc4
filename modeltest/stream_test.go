package modeltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// lines is a stream as name and data, without what is the same in all of them.
func lines(t *testing.T, body string) string {
	t.Helper()
	var b strings.Builder
	for _, e := range events(t, body) {
		if !json.Valid([]byte(e.Data)) {
			t.Errorf("event %s: not JSON: %s", e.Name, e.Data)
		}
		fmt.Fprintf(&b, "%s %s\n", e.Name, strings.Replace(e.Data, `"type":"`+e.Name+`",`, "", 1))
	}
	return b.String()
}

const start = `message_start {"message":{"id":"msg_000001","type":"message","role":"assistant","model":"claude-test","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}
ping {"type":"ping"}
`

func TestStreamShapes(t *testing.T) {
	const end = `message_delta {"delta":{"stop_reason":"%s","stop_sequence":%s},"usage":{"input_tokens":25,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":%d}}
message_stop {"type":"message_stop"}
`
	tests := []struct {
		name string
		turn Turn
		want string
	}{
		{"a text", Text("The quick brown fox jumps over the lazy dog"), start + `content_block_start {"index":0,"content_block":{"type":"text","text":""}}
content_block_delta {"index":0,"delta":{"type":"text_delta","text":"The quick brown fox"}}
content_block_delta {"index":0,"delta":{"type":"text_delta","text":" jumps over the lazy dog"}}
content_block_stop {"index":0}
` + fmt.Sprintf(end, "end_turn", "null", 11)},
		{"two calls", Say(ToolUse("t", `{"path":"/a","deep":true}`), ToolUseID("mine", "u", nil)), start + `content_block_start {"index":0,"content_block":{"type":"tool_use","id":"toolu_000001","name":"t","input":{}}}
content_block_delta {"index":0,"delta":{"type":"input_json_delta","partial_json":""}}
content_block_delta {"index":0,"delta":{"type":"input_json_delta","partial_json":"{\"path\":\"/a\""}}
content_block_delta {"index":0,"delta":{"type":"input_json_delta","partial_json":",\"deep\":true"}}
content_block_delta {"index":0,"delta":{"type":"input_json_delta","partial_json":"}"}}
content_block_stop {"index":0}
content_block_start {"index":1,"content_block":{"type":"tool_use","id":"mine","name":"u","input":{}}}
content_block_delta {"index":1,"delta":{"type":"input_json_delta","partial_json":""}}
content_block_delta {"index":1,"delta":{"type":"input_json_delta","partial_json":"{}"}}
content_block_stop {"index":1}
` + fmt.Sprintf(end, "tool_use", "null", 8)},
		{"a thought", Say(Thinking("hm"), Text("yes")), start + `content_block_start {"index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
content_block_delta {"index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}
content_block_delta {"index":0,"delta":{"type":"signature_delta","signature":"` + Signature("hm") + `"}}
content_block_stop {"index":0}
content_block_start {"index":1,"content_block":{"type":"text","text":""}}
content_block_delta {"index":1,"delta":{"type":"text_delta","text":"yes"}}
content_block_stop {"index":1}
` + fmt.Sprintf(end, "end_turn", "null", 2)},
		{"cut short in the input of a call", Say(RawToolUse("t", `{"pa`)).Stop(StopMaxTokens), start + `content_block_start {"index":0,"content_block":{"type":"tool_use","id":"toolu_000001","name":"t","input":{}}}
content_block_delta {"index":0,"delta":{"type":"input_json_delta","partial_json":"{\"pa"}}
content_block_stop {"index":0}
` + fmt.Sprintf(end, "max_tokens", "null", 2)},
		{"a call without input", RawToolUse("t"), start + `content_block_start {"index":0,"content_block":{"type":"tool_use","id":"toolu_000001","name":"t","input":{}}}
content_block_stop {"index":0}
` + fmt.Sprintf(end, "tool_use", "null", 1)},
		{"a stop sequence", Say(Text("a")).StopAt("END"), start + `content_block_start {"index":0,"content_block":{"type":"text","text":""}}
content_block_delta {"index":0,"delta":{"type":"text_delta","text":"a"}}
content_block_stop {"index":0}
` + fmt.Sprintf(end, "stop_sequence", `"END"`, 1)},
		{"a refusal", Say().Stop(StopRefusal).StopDetails(`{"type": "refusal",
			"category": "cyber"}`), start + strings.Replace(fmt.Sprintf(end, "refusal", "null", 1), `"stop_sequence":null`, `"stop_sequence":null,"stop_details":{"type":"refusal","category":"cyber"}`, 1)},
		{"a block of another kind", Say(RawBlock(`{"type":"server_tool_use","id":"s1","name":"web_search",
			"input":{}}`)).Stop(StopPauseTurn), start + `content_block_start {"index":0,"content_block":{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}}
content_block_stop {"index":0}
` + fmt.Sprintf(end, "pause_turn", "null", 17)},
		{"an error in mid-stream", Say(Text("abc").Fragments("a", "b", "c").After(2, Break("overloaded_error", "Overloaded"))), start + `content_block_start {"index":0,"content_block":{"type":"text","text":""}}
content_block_delta {"index":0,"delta":{"type":"text_delta","text":"a"}}
content_block_delta {"index":0,"delta":{"type":"text_delta","text":"b"}}
error {"error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_000001"}
`},
		{"steps between and beside blocks", Say(Ping(), Text("a").After(0, Event("strange", "{\"x\":\n1}")).After(9, Ping())), start + `ping {"type": "ping"}
content_block_start {"index":0,"content_block":{"type":"text","text":""}}
strange {"x":1}
content_block_delta {"index":0,"delta":{"type":"text_delta","text":"a"}}
ping {"type": "ping"}
content_block_stop {"index":0}
` + fmt.Sprintf(end, "end_turn", "null", 1)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := post(t, New(t, tt.turn), streamed)
			if got := r.Header.Get("Content-Type"); got != "text/event-stream; charset=utf-8" {
				t.Errorf("content type %q", got)
			}
			if d := cmp.Diff(tt.want, lines(t, r.body)); d != "" {
				t.Errorf("stream (-want +got):\n%s", d)
			}
		})
	}
}

func TestStreamOverASocketIsTheSame(t *testing.T) {
	turn := Say(Thinking("hm"), Text("Grüße, "+strings.Repeat("wörter ", 500)), ToolUse("t", map[string]string{"k": strings.Repeat("日本", 300)}))
	direct := post(t, New(t, turn), streamed)
	m := New(t, turn)
	server, err := m.Serve()
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Transport: &http.Transport{}}
	defer c.CloseIdleConnections()
	socket := do(t, c, newRequest(t, server.URL+"/v1/messages?beta=true", streamed))
	if d := cmp.Diff(direct.body, socket.body); d != "" {
		t.Errorf("stream (-direct +socket):\n%s", d)
	}
	if direct.Header.Get("Request-Id") != "req_000001" || socket.Header.Get("Request-Id") != "req_000001" {
		t.Errorf("request ids %q and %q", direct.Header.Get("Request-Id"), socket.Header.Get("Request-Id"))
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if err := server.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

// TestWholeAndStreamedAgree rebuilds messages from their streams.
func TestWholeAndStreamedAgree(t *testing.T) {
	turn := Say(
		Thinking("a thought of some length, so that it comes in pieces"),
		Text(strings.Repeat("Ünïcödé \"quoted\"\n\t\\ and more. ", 40)),
		ToolUse("t", `{"a":[1,2.5e10,"\u00e9\ud83d\ude00",{"b":null}]}`),
		RawBlock(`{"type":"server_tool_use","id":"s","name":"n","input":{}}`),
	).Usage(Usage{InputTokens: 7, OutputTokens: 8, CacheReadInputTokens: 9, CacheCreationInputTokens: 10})
	type block struct {
		Type, Text, Thinking, Signature, ID, Name string
		Input                                     json.RawMessage
	}
	type message struct {
		Content    []block
		StopReason string         `json:"stop_reason"`
		Usage      map[string]int `json:"usage"`
	}
	var whole, rebuilt message
	if err := json.Unmarshal([]byte(post(t, New(t, turn), basic).body), &whole); err != nil {
		t.Fatal(err)
	}
	inputs := map[int]string{}
	for _, e := range events(t, post(t, New(t, turn), streamed).body) {
		var d struct {
			Index        int
			ContentBlock block `json:"content_block"`
			Delta        struct {
				Text, Thinking, Signature string
				PartialJSON               string `json:"partial_json"`
				StopReason                string `json:"stop_reason"`
			}
			Usage map[string]int
		}
		if err := json.Unmarshal([]byte(e.Data), &d); err != nil {
			t.Fatal(err)
		}
		switch e.Name {
		case "content_block_start":
			rebuilt.Content = append(rebuilt.Content, d.ContentBlock)
		case "content_block_delta":
			b := &rebuilt.Content[d.Index]
			b.Text += d.Delta.Text
			b.Thinking += d.Delta.Thinking
			b.Signature += d.Delta.Signature
			inputs[d.Index] += d.Delta.PartialJSON
		case "message_delta":
			rebuilt.StopReason, rebuilt.Usage = d.Delta.StopReason, d.Usage
		}
	}
	for i, in := range inputs {
		if in != "" {
			rebuilt.Content[i].Input = json.RawMessage(in)
		}
	}
	if d := cmp.Diff(whole, rebuilt); d != "" {
		t.Errorf("message (-whole +streamed):\n%s", d)
	}
}

func TestStepsOfAnAnswerThatIsNotStreamed(t *testing.T) {
	ran := false
	m := New(t,
		Say(Pause(func(context.Context) error { ran = true; return nil }), Text("a").After(0, Ping())),
		Say(Text("a").After(1, Break("overloaded_error", "Overloaded"))),
		Say(Break("api_error", "Oops")),
		Say(Text("a"), Cut()),
		RawToolUse("t", `{"cut`),
	)
	if r := post(t, m, basic); !ran || r.StatusCode != 200 {
		t.Errorf("pause: ran %t, status %d", ran, r.StatusCode)
	}
	if r := post(t, m, basic); r.StatusCode != 529 || r.errorText(t) != "overloaded_error: Overloaded" {
		t.Errorf("break: %d %s", r.StatusCode, r.body)
	}
	if r := post(t, m, basic); r.StatusCode != 500 || r.errorText(t) != "api_error: Oops" {
		t.Errorf("break: %d %s", r.StatusCode, r.body)
	}
	res, err := m.Client().Do(newRequest(t, "http://m/v1/messages", basic))
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut: %v, want io.ErrUnexpectedEOF", err)
	}
	if err == nil {
		res.Body.Close()
	}
	if r := post(t, m, basic); !strings.Contains(r.body, `"name":"t","input":{}}`) {
		t.Errorf("raw input: %s", r.body)
	}
}

func TestErrors(t *testing.T) {
	m := New(t, RateLimited(6001*time.Millisecond), Overloaded(), Fail(413, "request_too_large", "too large").Header("x-should-retry", "false"), Text("at last"))
	r := post(t, m, streamed)
	if r.StatusCode != 429 || r.Header.Get("Retry-After") != "7" || r.errorText(t) != "rate_limit_error: This request would exceed your rate limit." {
		t.Errorf("%d %v %s", r.StatusCode, r.Header, r.body)
	}
	if r := post(t, m, streamed); r.StatusCode != 529 || r.errorText(t) != "overloaded_error: Overloaded" || r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if r := post(t, m, streamed); r.StatusCode != 413 || r.Header.Get("X-Should-Retry") != "false" {
		t.Errorf("%d %v", r.StatusCode, r.Header)
	}
	if r := post(t, m, streamed); r.StatusCode != 200 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if len(m.Violations()) != 0 {
		t.Errorf("an error of the script is no violation: %v", m.Violations())
	}
}

// clients are the two ways to a model.
func clients(t *testing.T, m *Model) map[string]func() (*http.Client, string) {
	return map[string]func() (*http.Client, string){
		"direct": func() (*http.Client, string) { return m.Client(), "http://model" },
		"socket": func() (*http.Client, string) {
			server, err := m.Serve()
			if err != nil {
				t.Fatal(err)
			}
			tr := &http.Transport{}
			t.Cleanup(tr.CloseIdleConnections)
			return &http.Client{Transport: tr}, server.URL
		},
	}
}

func TestCutInMidStream(t *testing.T) {
	m := New(t, Func(func(*Request) Turn { return Say(Text("abc").Fragments("a", "b", "c").After(2, Cut())) }))
	for name, client := range clients(t, m) {
		t.Run(name, func(t *testing.T) {
			c, url := client()
			r := do(t, c, newRequest(t, url+"/v1/messages", streamed))
			if !errors.Is(r.err, io.ErrUnexpectedEOF) {
				t.Errorf("reading ended with %v, want io.ErrUnexpectedEOF", r.err)
			}
			if !strings.Contains(r.body, `"text":"b"`) || strings.Contains(r.body, `"text":"c"`) {
				t.Errorf("read %s", r.body)
			}
		})
	}
}

func TestCancelAtAGate(t *testing.T) {
	for _, name := range []string{"direct", "socket"} {
		for _, body := range []string{basic, streamed} {
			t.Run(name, func(t *testing.T) {
				gate := NewGate()
				gone := make(chan struct{})
				m := New(t, Say(Text("ab").Fragments("a", "b").After(1, Hold(gate)), Pause(func(context.Context) error {
					t.Error("the turn went on after its client had gone")
					return nil
				})), Func(func(*Request) Turn { return Text("next") }))
				m.Add(Text("unused"))
				c, url := clients(t, m)[name]()
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					defer close(gone)
					<-gate.Reached()
					cancel()
				}()
				res, err := c.Do(newRequest(t, url+"/v1/messages", body).WithContext(ctx))
				if err == nil {
					_, err = io.ReadAll(res.Body)
					res.Body.Close()
				}
				if !errors.Is(err, context.Canceled) {
					t.Errorf("got %v, want context.Canceled", err)
				}
				<-gone
				if r := do(t, c, newRequest(t, url+"/v1/messages", basic)); !strings.Contains(r.body, "next") {
					t.Errorf("the next answer: %s", r.body)
				}
			})
		}
	}
}

func TestCloseUnblocksAReader(t *testing.T) {
	gate := NewGate()
	res, err := New(t, Say(Hold(gate))).RoundTrip(newRequest(t, "http://m/v1/messages", streamed)) //nolint:bodyclose // closing it is the test
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := io.ReadAll(res.Body)
		done <- err
	}()
	<-gate.Reached()
	res.Body.Close()
	if err := <-done; !errors.Is(err, errClosed) {
		t.Errorf("read ended with %v", err)
	}
}

func TestAnOpenGateHoldsNothing(t *testing.T) {
	gate := NewGate()
	gate.Open()
	gate.Open()
	if r := post(t, New(t, Say(Hold(gate), Text("a"), Hold(gate))), streamed); r.err != nil || !strings.Contains(r.body, "message_stop") {
		t.Errorf("%v %s", r.err, r.body)
	}
}

func TestNaturalFragmentsAreBounded(t *testing.T) {
	big := strings.Repeat("日本語テキスト ", 1<<16)
	for _, p := range []Part{Text(big), Thinking(big), ToolUse("t", map[string]string{"x": big})} {
		b := blocksOf(Say(p), func() string { return "x" })[0]
		got := naturalFragments(b)
		if len(got) > 250 || strings.Join(got, "") != b.text {
			t.Errorf("%s: %d fragments, whole: %t", b.typ, len(got), strings.Join(got, "") == b.text)
		}
	}
}

func TestBuildersPanicOnWhatCannotBeSent(t *testing.T) {
	for name, f := range map[string]func(){
		"input that is no JSON":    func() { ToolUse("t", `{"a"`) },
		"input that can't be JSON": func() { ToolUse("t", make(chan int)) },
		"block without a type":     func() { RawBlock(`{}`) },
		"details that are no JSON": func() { Say().StopDetails("x") },
		"a block inside a block":   func() { Text("a").After(1, Text("b")) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}
