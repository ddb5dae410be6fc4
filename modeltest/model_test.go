package modeltest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/sjson"
)

func TestAnswersInOrder(t *testing.T) {
	m := New(t, Text("one"), Say(Text("two"), ToolUse("lookup", map[string]any{"sku": "A"})))
	if got := post(t, m, basic).body; !strings.Contains(got, `"content":[{"type":"text","text":"one"}],"stop_reason":"end_turn"`) {
		t.Errorf("first answer: %s", got)
	}
	got := post(t, m, basic).body
	if !strings.Contains(got, `{"type":"tool_use","id":"toolu_000001","name":"lookup","input":{"sku":"A"}}],"stop_reason":"tool_use"`) {
		t.Errorf("second answer: %s", got)
	}
	if m.Left() != 0 {
		t.Errorf("%d turns left, want none", m.Left())
	}
}

func TestExhaustedScriptSaysSo(t *testing.T) {
	m := New(t, Text("one"))
	post(t, m, basic)
	r := post(t, m, basic)
	const want = `invalid_request_error: modeltest: the script is exhausted: it has no turn left for request 2 (1 messages, last user text "Hello")`
	if got := r.errorText(t); r.StatusCode != 400 || got != want {
		t.Errorf("got %d %s, want 400 %s", r.StatusCode, got, want)
	}
	m.Add(Text("more"))
	if r := post(t, m, basic); r.StatusCode != 200 {
		t.Errorf("after Add: %d %s", r.StatusCode, r.body)
	}
}

// said is the text of an answer that is one text.
func said(t *testing.T, r reply) string {
	t.Helper()
	_, text, ok := strings.Cut(r.body, `"content":[{"type":"text","text":"`)
	if !ok {
		t.Fatalf("no text: %s", r.body)
	}
	text, _, _ = strings.Cut(text, `"`)
	return text
}

func TestFuncStaysUntilItReturnsNil(t *testing.T) {
	m := New(t,
		Text("first"),
		Func(func(r *Request) Turn {
			if r.Number() > 3 {
				return nil
			}
			return Func(func(r *Request) Turn { return Text(fmt.Sprintf("number %d says %s", r.Number(), r.LastUserText())) })
		}),
		Text("last"))
	var got []string
	for range 4 {
		got = append(got, said(t, post(t, m, basic)))
	}
	if d := cmp.Diff([]string{"first", "number 2 says Hello", "number 3 says Hello", "last"}, got); d != "" {
		t.Errorf("answers (-want +got):\n%s", d)
	}
}

func TestEachConversationHasItsScript(t *testing.T) {
	m := NewModel(&Options{
		TB: t,
		Script: func(key string) []Turn {
			if key == "stranger" {
				return nil
			}
			return []Turn{Text(key + " 1"), Text(key + " 2")}
		},
		Turns: []Turn{Text("shared")},
	})
	ask := func(key string) string { return said(t, post(t, m, set(basic, "messages.0.content", `"`+key+`"`))) }
	got := []string{ask("a"), ask("b"), ask("a"), ask("stranger"), ask("b")}
	if d := cmp.Diff([]string{"a 1", "b 1", "a 2", "shared", "b 2"}, got); d != "" {
		t.Errorf("answers (-want +got):\n%s", d)
	}
}

func TestKeyOfTheCaller(t *testing.T) {
	m := NewModel(&Options{
		TB:     t,
		Key:    func(r *Request) string { return r.Header.Get("X-Session") },
		Script: func(key string) []Turn { return []Turn{Text(key)} },
	})
	req := newRequest(t, "http://m/v1/messages", basic)
	req.Header.Set("X-Session", "seven")
	if got := said(t, do(t, m.Client(), req)); got != "seven" {
		t.Errorf("got %q", got)
	}
}

func TestManyConversationsAtOnce(t *testing.T) {
	const conversations, turns = 50, 20
	m := NewModel(&Options{TB: t, KeepRequests: 10, Script: func(key string) []Turn {
		var script []Turn
		for i := range turns {
			script = append(script, Say(Text("going on"), ToolUse("t", map[string]int{"n": i})))
		}
		return append(script, Text("done "+key))
	}})
	server, err := m.Serve()
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{MaxConnsPerHost: 20}
	defer tr.CloseIdleConnections()
	var mu sync.Mutex
	ids := map[string]bool{}
	var wg sync.WaitGroup
	for i := range conversations {
		c, url := m.Client(), "http://m"
		if i%5 == 0 {
			c, url = &http.Client{Transport: tr}, server.URL
		}
		wg.Go(func() {
			key := fmt.Sprintf("conversation %d", i)
			body := set(set(streamed, "messages.0.content", `"`+key+`"`), "tools", "["+tool("t")+"]")
			for range turns {
				r := do(t, c, newRequest(t, url+"/v1/messages", body))
				_, rest, ok := strings.Cut(r.body, `"type":"tool_use","id":"`)
				if !ok {
					t.Errorf("%s: %s", key, r.body)
					return
				}
				id, _, _ := strings.Cut(rest, `"`)
				mu.Lock()
				if ids[id] {
					t.Errorf("id %s twice", id)
				}
				ids[id] = true
				mu.Unlock()
				body = set(body, "messages.-1", assistant(use(id)))
				body = set(body, "messages.-1", user(result(id)))
			}
			if r := do(t, c, newRequest(t, url+"/v1/messages", body)); !strings.Contains(r.body, "message_stop") || r.StatusCode != 200 {
				t.Errorf("%s: %s", key, r.body)
			}
			_, _, _ = m.Requests(), m.Violations(), m.Last()
		})
	}
	wg.Wait()
	if len(ids) != conversations*turns {
		t.Errorf("%d calls, want %d", len(ids), conversations*turns)
	}
	if n := len(m.Requests()); n != 10 {
		t.Errorf("%d requests kept, want 10", n)
	}
}

func TestRequestsAreDecoded(t *testing.T) {
	m := New(t, Text("fine"))
	body := set(messages(
		user(`{"type":"text","text":"first"}`, `{"type":"text","text":"and"}`),
		assistant(signed("hm"), use("a"), use("b")),
		user(`{"type":"tool_result","tool_use_id":"b","is_error":true,"content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]}`, result("a"), `{"type":"text","text":"go on"}`),
		`{"role":"system","content":"be brief"}`,
	), "tools", `[{"name":"t","description":"Does it","input_schema":{"type":"object"}},{"name":"u","defer_loading":true,"input_schema":{"type":"object"}}]`)
	body = set(body, "system", `[{"type":"text","text":"one"},{"type":"text","text":"two"}]`)
	req := newRequest(t, "http://m/v1/messages?beta=true", body)
	req.Header.Add("anthropic-beta", "a-1, b-2")
	req.Header.Add("anthropic-beta", "c-3")
	do(t, m.Client(), req)
	r := m.Last()
	results := r.ToolResults()
	b, ok := r.ToolResult("b")
	if !ok || !b.IsError || b.PlainText() != "x\ny" || len(results) != 2 || results[0].ToolUseID != "b" || results[1].PlainText() != "ok" {
		t.Errorf("results %+v, of b %+v", results, b)
	}
	if _, ok := r.ToolResult("c"); ok {
		t.Error("found a result that is not there")
	}
	u, ok := r.Tool("u")
	if !ok || !u.DeferLoading || string(u.InputSchema) != `{"type":"object"}` {
		t.Errorf("tool u: %+v", u)
	}
	if _, ok := r.Tool("v"); ok {
		t.Error("found a tool that is not there")
	}
	uses := r.ToolUses()
	got := []string{
		r.Method, r.Path, r.Model, fmt.Sprint(r.MaxTokens, r.Stream, r.Number()), r.SystemText(), r.FirstUserText(), r.LastUserText(),
		strings.Join(r.ToolNames(), " "), strings.Join(r.Betas(), " "), r.Tools[0].Description, fmt.Sprint(len(r.Messages)),
		uses[0].ID + uses[1].ID + uses[0].Name + string(uses[0].Input), r.Messages[1].Content[0].Thinking, string(r.Field("max_tokens")),
		string(r.Messages[2].Content[1].Raw), r.Messages[3].Content[0].PlainText(), r.Header.Get("X-Api-Key"),
	}
	want := []string{
		"POST", "/v1/messages", "claude-test", "1024 false 1", "one\ntwo", "first\nand", "go on",
		"t u", "a-1 b-2 c-3", "Does it", "4",
		"abt{}", "hm", "1024",
		result("a"), "be brief", "sk-ant-fake",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("request (-want +got):\n%s", d)
	}
	if string(r.Body) != body {
		t.Error("the body is not as it was sent")
	}
	if r.Context().Err() == nil {
		t.Error("the request is over and its context is not")
	}
}

func TestFieldNamesAreTakenAsTheyAre(t *testing.T) {
	m := NewModel(&Options{TB: t, AllowViolations: true})
	for _, body := range []string{
		strings.Replace(basic, `"role"`, `"Role"`, 1),
		strings.Replace(basic, `"max_tokens"`, `"MAX_TOKENS"`, 1),
	} {
		if r := post(t, m, body); r.StatusCode != 400 || !strings.Contains(r.body, "Extra inputs are not permitted") {
			t.Errorf("%s: %d %s", body, r.StatusCode, r.body)
		}
	}
}

func TestKeepRequests(t *testing.T) {
	for keep, want := range map[int][]int{0: {1, 2, 3, 4}, 2: {3, 4}, -1: nil} {
		m := NewModel(&Options{TB: t, KeepRequests: keep, AllowViolations: true})
		for range 4 {
			post(t, m, with("max_tokens", "0"))
		}
		var got, violations []int
		for _, r := range m.Requests() {
			got = append(got, r.Number())
		}
		for _, v := range m.Violations() {
			violations = append(violations, v.Request.Number())
		}
		wantViolations := want
		if keep < 0 {
			wantViolations = []int{1, 2, 3, 4}
		}
		if !slices.Equal(got, want) || !slices.Equal(violations, wantViolations) {
			t.Errorf("keep %d: requests %v, violations %v, want %v", keep, got, violations, want)
		}
		if (m.Last() == nil) != (want == nil) {
			t.Errorf("keep %d: last %v", keep, m.Last())
		}
	}
}

func TestUsageIsEstimated(t *testing.T) {
	m := New(t, Text(strings.Repeat("x", 400)), Text("y"))
	if got := post(t, m, basic).body; !strings.Contains(got, fmt.Sprintf(`"input_tokens":%d,`, len(basic)/4)) || !strings.Contains(got, `"output_tokens":101}`) {
		t.Errorf("got %s", got)
	}
	m = NewModel(&Options{TB: t, CountTokens: func(r *Request) int { return 1000 * len(r.Messages) }, Turns: []Turn{Text("y")}})
	if got := post(t, m, basic).body; !strings.Contains(got, `"input_tokens":1000,`) {
		t.Errorf("got %s", got)
	}
	counted, err := sjson.Delete(basic, "max_tokens")
	if err != nil {
		t.Fatal(err)
	}
	if r := do(t, m.Client(), newRequest(t, "http://m/v1/messages/count_tokens", counted)); r.body != `{"input_tokens":1000}` {
		t.Errorf("count_tokens: %s", r.body)
	}
	if n := len(m.Requests()); n != 1 {
		t.Errorf("%d requests: count_tokens is none of them", n)
	}
}

func TestCountTokensIsStrictToo(t *testing.T) {
	m := NewModel(&Options{TB: t, AllowViolations: true})
	r := do(t, m.Client(), newRequest(t, "http://m/v1/messages/count_tokens", basic))
	if r.StatusCode != 400 || r.errorText(t) != "invalid_request_error: max_tokens: Extra inputs are not permitted" {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}

func TestOtherEndpoints(t *testing.T) {
	m := New(t)
	tests := []struct {
		method, path string
		status       int
		body         string
	}{
		{"HEAD", "/", 200, ""},
		{"GET", "/v1/models", 200, `"data":[{"type":"model","id":"claude-modeltest"`},
		{"GET", "/v1/models/claude-x", 200, `{"type":"model","id":"claude-x"`},
		{"GET", "/v1/messages", 405, `"type":"invalid_request_error"`},
		{"GET", "/", 404, `"type":"not_found_error","message":"Not Found: GET /"`},
		{"POST", "/v1/complete", 404, `"type":"not_found_error"`},
		{"POST", "/v1/messages/batches", 404, `"type":"not_found_error"`},
	}
	for _, tt := range tests {
		req := newRequest(t, "http://m"+tt.path, "")
		req.Method = tt.method
		if r := do(t, m.Client(), req); r.StatusCode != tt.status || !strings.Contains(r.body, tt.body) {
			t.Errorf("%s %s: %d %s, want %d %s", tt.method, tt.path, r.StatusCode, r.body, tt.status, tt.body)
		}
	}
	if len(m.Violations()) != 0 || len(m.Requests()) != 0 {
		t.Errorf("violations %v, requests %v", m.Violations(), m.Requests())
	}
}

func TestHeaders(t *testing.T) {
	tests := []struct {
		name          string
		header, value string // to set, or to remove if empty
		status        int
		want          string
	}{
		{"no key", "X-Api-Key", "", 401, "authentication_error: x-api-key header is required"},
		{"no version", "Anthropic-Version", "", 400, "invalid_request_error: anthropic-version: header is required"},
		{"unknown version", "Anthropic-Version", "2099-01-01", 400, `invalid_request_error: anthropic-version: "2099-01-01" is not a valid version`},
		{"no content type", "Content-Type", "", 400, "invalid_request_error: content-type: must be application/json"},
		{"other content type", "Content-Type", "text/plain", 400, "invalid_request_error: content-type: must be application/json"},
		{"charset", "Content-Type", "application/json; charset=utf-8", 200, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := NewModel(&Options{TB: t, AllowViolations: true, Turns: []Turn{Text("fine")}})
			req := newRequest(t, "http://m/v1/messages", basic)
			req.Header.Del(tt.header)
			if tt.value != "" {
				req.Header.Set(tt.header, tt.value)
			}
			r := do(t, m.Client(), req)
			if got := r.errorText(t); r.StatusCode != tt.status || !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %d %s, want %d %s", r.StatusCode, got, tt.status, tt.want)
			}
		})
	}
	for auth, status := range map[string]int{"Bearer sk-oat": 200, "Bearer ": 401, "Basic eDp5": 401} {
		m := NewModel(&Options{TB: t, AllowViolations: true, Turns: []Turn{Text("fine")}})
		req := newRequest(t, "http://m/v1/messages", basic)
		req.Header.Del("X-Api-Key")
		req.Header.Set("Authorization", auth)
		if r := do(t, m.Client(), req); r.StatusCode != status {
			t.Errorf("%q: %d %s, want %d", auth, r.StatusCode, r.body, status)
		}
	}
}

func TestBodyLimit(t *testing.T) {
	m := NewModel(&Options{TB: t, AllowViolations: true, KeepRequests: -1})
	r := post(t, m, set(basic, "messages.0.content", `"`+strings.Repeat("x", maxBody)+`"`))
	if r.StatusCode != 413 || r.errorText(t) != "request_too_large: Request exceeds the maximum size" {
		t.Errorf("%d %.200s", r.StatusCode, r.body)
	}
}

// recorder is a TB that keeps what it is told.
type recorder struct {
	errors   []string
	cleanups []func()
}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func TestViolationsFailTheTest(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		tb := &recorder{}
		m := New(tb, Text("fine"))
		if allowed {
			m.AllowViolations()
		}
		server, err := m.Serve()
		if err != nil {
			t.Fatal(err)
		}
		post(t, m, with("max_tokens", "0"))
		post(t, m, basic)
		for _, f := range tb.cleanups {
			f()
		}
		want := []string{"modeltest: request 1 to /v1/messages would have been refused: 400 invalid_request_error: max_tokens: Input should be greater than or equal to 1"}
		if allowed {
			want = nil
		}
		if d := cmp.Diff(want, tb.errors); d != "" {
			t.Errorf("allowed %t (-want +got):\n%s", allowed, d)
		}
		if res, err := http.DefaultClient.Do(newRequest(t, server.URL+"/v1/messages", basic)); err == nil {
			res.Body.Close()
			t.Error("the server goes on after the end of its test")
		}
	}
}

func TestManyViolationsAreToldInShort(t *testing.T) {
	tb := &recorder{}
	m := New(tb)
	for range 20 {
		post(t, m, with("max_tokens", "0"))
	}
	for _, f := range tb.cleanups {
		f()
	}
	if n := len(tb.errors); n != fewViolations+1 || tb.errors[n-1] != "modeltest: and 4 more requests" {
		t.Errorf("%d errors, the last of them %q", n, tb.errors[n-1])
	}
}

func TestThinkingComesBackWithItsCalls(t *testing.T) {
	think := `{"type":"adaptive"}`
	conversation := func(blocks ...string) string {
		return set(messages(user(hi), assistant(blocks...), user(result("toolu_000001"))), "thinking", think)
	}
	call := use("toolu_000001")
	model := func(t *testing.T) *Model {
		m := NewModel(&Options{TB: t, AllowViolations: true, Turns: []Turn{
			Say(Thinking("one"), SignedThinking("two", "made-up"), ToolUse("t", nil)), Text("fine"),
		}})
		post(t, m, with("thinking", think))
		return m
	}
	two := `{"type":"thinking","thinking":"two","signature":"made-up"}`
	if r := post(t, model(t), conversation(signed("one"), two, call)); r.StatusCode != 200 {
		t.Errorf("complete: %s", r.body)
	}
	for name, blocks := range map[string][]string{
		"all gone": {call}, "one gone": {signed("one"), call}, "other order": {two, signed("one"), call}, "after the call": {call, signed("one"), two, hi},
	} {
		const want = "messages.1.content.%d.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`"
		r := post(t, model(t), conversation(blocks...))
		if at := slices.Index(blocks, call); r.StatusCode != 400 || !strings.Contains(r.errorText(t), fmt.Sprintf(want, at)) {
			t.Errorf("%s: %d %s", name, r.StatusCode, r.body)
		}
	}
	later := set(messages(user(hi), assistant(call), user(result("toolu_000001")), assistant(hi), user(hi)), "thinking", think)
	if r := post(t, model(t), later); r.StatusCode != 200 {
		t.Errorf("in an earlier turn: %s", r.body)
	}
	if r := post(t, model(t), set(conversation(call), "thinking", `{"type":"disabled"}`)); r.StatusCode != 200 {
		t.Errorf("with thinking off: %s", r.body)
	}
}

func TestIDsOfAResumedConversationAreNotUsedAgain(t *testing.T) {
	m := New(t, ToolUse("t", nil))
	got := post(t, m, messages(user(hi), assistant(use("toolu_000001")), user(result("toolu_000001")))).body
	if !strings.Contains(got, `"id":"toolu_000002"`) {
		t.Errorf("got %s", got)
	}
}

func TestReplySettings(t *testing.T) {
	m := New(t, Say(Text("a")).ID("msg_mine").Model("claude-other").Stop(StopContextWindow).Header("X-More", "1"))
	r := post(t, m, basic)
	if !strings.Contains(r.body, `{"id":"msg_mine","type":"message","role":"assistant","model":"claude-other"`) ||
		!strings.Contains(r.body, `"stop_reason":"model_context_window_exceeded"`) || r.Header.Get("X-More") != "1" {
		t.Errorf("%v %s", r.Header, r.body)
	}
}

func TestBetaFields(t *testing.T) {
	m := New(t, Text("a"), Text("b"))
	for _, beta := range []string{"context-management-2025-06-27", "x-1,compact-2026-01-12"} {
		req := newRequest(t, "http://m/v1/messages", with("context_management", `{"edits":[]}`))
		req.Header.Set("Anthropic-Beta", beta)
		if r := do(t, m.Client(), req); r.StatusCode != 200 {
			t.Errorf("%s: %s", beta, r.body)
		}
	}
}
