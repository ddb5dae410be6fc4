package modeltest

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzRequest checks that any body gets a whole answer, an error or not.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		basic, streamed, conversation(2, false),
		tools(tool("a"), `{"name":"d","input_schema":{"type":"object","properties":{"a b":{}}},"defer_loading":true}`),
		messages(user(hi), assistant(signed("x"), use("a")), user(result("a")), `{"role":"system","content":"x"}`),
		messages(user(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}`)),
		messages(user(`{"type":"document","source":{"type":"content","content":[` + hi + `]}}`)),
		set(basic, "thinking", `{"type":"enabled","budget_tokens":1e3}`), with("output_config", `{"format":{"type":"json_schema","schema":{"$ref":"#"}}}`),
		set(tools(tool("t")), "messages.0.content", `"@t {\"x\":\"{{1}}\"}"`),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m := Offline()
		r := post(t, m, string(body))
		switch {
		case r.err != nil:
			t.Fatal(r.err)
		case r.StatusCode == 400 && strings.Contains(r.body, `"type":"invalid_request_error"`):
			if len(m.Violations()) != 1 || !json.Valid([]byte(r.body)) {
				t.Fatalf("%v: %s", m.Violations(), r.body)
			}
		case r.StatusCode != 200:
			t.Fatalf("status %d: %s", r.StatusCode, r.body)
		case r.Header.Get("Content-Type") == "application/json" && !json.Valid([]byte(r.body)):
			t.Fatalf("no JSON: %s", r.body)
		case r.Header.Get("Content-Type") != "application/json" && !strings.HasSuffix(r.body, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"):
			t.Fatalf("a stream without an end: %s", r.body)
		}
		if again := post(t, m, string(body)); again.StatusCode != r.StatusCode || r.StatusCode != 200 && again.errorText(t) != r.errorText(t) {
			t.Fatalf("the second time: %d %s, before %d %s", again.StatusCode, again.body, r.StatusCode, r.body)
		}
	})
}

// FuzzRefer checks that replacing references keeps an input JSON, and keeps one
// without references as it is.
func FuzzRefer(f *testing.F) {
	f.Add(`{"a":"{{1}}","b":["x {{2.c}} \\{{1}}",{"{{1}}":1e5}]}`, `{"c":[1,"2"]}`)
	f.Add(`{"a":"{{1.$}}"}`, `"text"`)
	f.Add(`{"a":"{{1.a.0}} {{99}} {{x}}"}`, "{\"a\":[\"\u00e9\"]}")
	f.Fuzz(func(t *testing.T, input, result string) {
		if checkJSON([]byte(input)) != nil || !strings.HasPrefix(input, "{") || strings.HasSuffix(input, "\n") {
			return
		}
		input = strings.TrimSpace(input)
		got, wrong := refer(json.RawMessage(input), func(n int) (*Content, string) {
			if n > 2 {
				return nil, "there is no such call"
			}
			return &Content{Type: "tool_result", Content: []Content{{Type: "text", Text: strings.ToValidUTF8(result, "?")}}}, ""
		})
		if bad := checkJSON(got); bad != nil {
			t.Fatalf("%s became %s: %s", input, got, bad.msg)
		}
		if !strings.Contains(input, "{{") && (wrong != "" || string(got) != input) {
			t.Fatalf("%s became %s, %s", input, got, wrong)
		}
	})
}
