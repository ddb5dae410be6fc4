package agent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lines are the messages of testdata/messages.jsonl: every kind in the form of the CLI's output.
func lines(t testing.TB) []string {
	t.Helper()
	data, err := os.ReadFile("testdata/messages.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	s := bufio.NewScanner(bytes.NewReader(data))
	for s.Scan() {
		out = append(out, s.Text())
	}
	return out
}

func decoded(t testing.TB, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// Every field of every kind survives, known or not. D105
func TestRoundTrip(t *testing.T) {
	for _, line := range lines(t) {
		m, err := DecodeMessage([]byte(line))
		if err != nil {
			t.Errorf("%v in %s", err, line)
			continue
		}
		out, err := json.Marshal(m)
		if err != nil {
			t.Errorf("%v in %s", err, line)
			continue
		}
		got, want := decoded(t, string(out)).(map[string]any), decoded(t, line).(map[string]any)
		// Fields that are always written come in addition.
		for k, v := range got {
			if _, ok := want[k]; !ok && (v == nil || v == "" || cmp.Equal(v, []any{})) {
				delete(got, k)
			}
		}
		normaliseStop(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("round trip of %s (-want +got):\n%s", line, diff)
		}
	}
}

// normaliseStop replaces an empty stop sequence by null, which means the same.
func normaliseStop(m map[string]any) {
	if msg, ok := m["message"].(map[string]any); ok && msg["stop_sequence"] == "" {
		msg["stop_sequence"] = nil
	}
}

func TestDecodeKinds(t *testing.T) {
	var kinds []string
	for _, line := range lines(t) {
		m, err := DecodeMessage([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		switch m := m.(type) {
		case *SystemInit:
			kinds = append(kinds, "init")
		case *System:
			kinds = append(kinds, m.Subtype)
		case *Assistant:
			kinds = append(kinds, "assistant")
		case *User:
			kinds = append(kinds, "user")
		case *StreamEvent:
			kinds = append(kinds, "event "+m.TextDelta())
		case *Result:
			kinds = append(kinds, m.Subtype)
		case *Unknown:
			kinds = append(kinds, "unknown "+m.Type)
		}
	}
	want := []string{
		"init", "init", "api_retry", "never_seen_before", "assistant", "assistant", "assistant", "user", "user", "user", "event Hi",
		"success", "error_during_execution", "unknown rate_limit_event", "unknown tool_progress", "unknown ",
	}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Error(diff)
	}
}

// D105
func TestInitFields(t *testing.T) {
	m, err := DecodeMessage([]byte(lines(t)[0]))
	if err != nil {
		t.Fatal(err)
	}
	init := m.(*SystemInit)
	if len(init.Raw) == 0 || string(init.Extra["fast_mode_state"]) != `"off"` {
		t.Errorf("raw payload of %d bytes, extra %v", len(init.Raw), init.Extra)
	}
	// D49
	var mcp []string
	for _, name := range init.Tools {
		if strings.HasPrefix(name, "mcp__") {
			mcp = append(mcp, name)
		}
	}
	if diff := cmp.Diff([]string{"mcp__stock__lookup"}, mcp); diff != "" {
		t.Error(diff)
	}
	if m, err = DecodeMessage([]byte(`{"type":"system","subtype":"init"}`)); err != nil || len(m.(*SystemInit).Tools) != 0 {
		t.Errorf("an init message without tools: %v, %v", m, err)
	}
}

func TestInitKeepsItsOwnCopy(t *testing.T) {
	const line = `{"type":"system","subtype":"init","cwd":"/a"}`
	var m SystemInit
	data := []byte(line)
	if err := m.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	clear(data)
	if string(m.Raw) != line {
		t.Errorf("Raw is %q, want %q", m.Raw, line)
	}
}

func TestUserMessageIsWrittenWithARole(t *testing.T) {
	for want, m := range map[string]UserMessage{
		`{"role":"user","content":[]}`:         {},
		`{"role":"user","content":"hi","x":1}`: {Content: TextContent("hi"), Extra: Fields{"x": json.RawMessage("1")}},
	} {
		got, err := json.Marshal(m)
		if err != nil || string(got) != want {
			t.Errorf("got %s, %v; want %s", got, err, want)
		}
	}
}

// Selecting by status gives the servers that will not be usable. D74 D76
func TestUnusableServers(t *testing.T) {
	line := `{"type":"system","subtype":"init","mcp_servers":[{"name":"a","status":"connected"},{"name":"b","status":"pending"},` +
		`{"name":"c","status":"failed"},{"name":"d","status":"needs-auth"},{"name":"e","status":"disabled"}]}`
	m, err := DecodeMessage([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	var gone []string
	for _, s := range m.(*SystemInit).MCPServers {
		if !s.Usable() {
			gone = append(gone, s.Name)
		}
	}
	if diff := cmp.Diff([]string{"c", "d", "e"}, gone); diff != "" {
		t.Error(diff)
	}
}

// A message of a known type that does not fit is passed on whole.
func TestDecodeMisfits(t *testing.T) {
	for _, line := range []string{
		`{"type":"result","subtype":"success","num_turns":"two"}`,
		`{"type":"assistant","message":"a string"}`,
		`{"type":"system","subtype":7}`,
		`{"type":"user","message":{"role":"user","content":7}}`,
		`{"type":17}`,
	} {
		m, err := DecodeMessage([]byte(line))
		u, ok := m.(*Unknown)
		if err != nil || !ok || string(u.Raw) != line {
			t.Errorf("%s: got %T, %v", line, m, err)
		}
		out, err := json.Marshal(m)
		if err != nil || string(out) != line {
			t.Errorf("%s: encoded as %s, %v", line, out, err)
		}
	}
	for _, line := range []string{``, `null`, `[]`, `"x"`, `{`, `{"type":"user"}x`} {
		if m, err := DecodeMessage([]byte(line)); err == nil {
			t.Errorf("%q: got %v, want an error", line, m)
		}
	}
}

// Names count by their exact spelling.
func TestFieldNamesAreExact(t *testing.T) {
	line := `{"type":"assistant","message":{"id":"1","ID":"other","role":"assistant"},"UUID":"not this","uuid":"this","session_id":"s"}`
	m, err := DecodeMessage([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	a := m.(*Assistant)
	if a.UUID != "this" || a.Message.ID != "1" || string(a.Extra["UUID"]) != `"not this"` || string(a.Message.Extra["ID"]) != `"other"` {
		t.Errorf("got %+v", a)
	}
}

// D70
func TestIsMCP(t *testing.T) {
	for name, want := range map[string]bool{"mcp__stock__lookup": true, "Bash": false, "StructuredOutput": false} {
		if got := (&ToolUseBlock{Name: name}).IsMCP(); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

func TestContentForms(t *testing.T) {
	tests := []struct{ in, out, text string }{
		{`"hi"`, `"hi"`, "hi"},
		{`[{"type":"text","text":"hi"}]`, `[{"type":"text","text":"hi"}]`, "hi"},
		{`[]`, `[]`, ""},
		{`[{"type":"text","text":"a"},{"type":"new","x":1},{"type":"text","text":"b"}]`, `[{"type":"text","text":"a"},{"type":"new","x":1},{"type":"text","text":"b"}]`, "a\nb"},
		{`[7]`, `[7]`, ""},
	}
	for _, tt := range tests {
		var c Content
		if err := json.Unmarshal([]byte(tt.in), &c); err != nil {
			t.Errorf("%s: %v", tt.in, err)
			continue
		}
		out, err := json.Marshal(c)
		if err != nil || string(out) != tt.out || c.Text() != tt.text {
			t.Errorf("%s: got %s and %q, %v", tt.in, out, c.Text(), err)
		}
	}
}

func FuzzDecodeMessage(f *testing.F) {
	for _, line := range lines(f) {
		f.Add([]byte(line))
	}
	f.Add([]byte(`{"type":"user","message":{"content":[{"type":"tool_result","content":[[]]}]}}`))
	f.Add([]byte(`{"type":"result","usage":null,"modelUsage":{"a":null},"permission_denials":[null]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := DecodeMessage(data)
		if err != nil {
			return
		}
		once, err := json.Marshal(m)
		if err != nil {
			t.Fatalf("%T does not encode: %v", m, err)
		}
		again, err := DecodeMessage(once)
		if err != nil {
			t.Fatalf("%T does not decode again: %v\n%s", m, err, once)
		}
		twice, err := json.Marshal(again)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(once, twice) {
			t.Fatalf("not stable:\n%s\n%s", once, twice)
		}
		// No top-level field is lost.
		var before, after map[string]json.RawMessage
		if json.Unmarshal(data, &before) != nil || json.Unmarshal(once, &after) != nil {
			return
		}
		for name := range before {
			if _, ok := after[name]; !ok && !optional[name] {
				t.Errorf("field %q was lost", name)
			}
		}
	})
}

// optional are known fields that are left out when they are empty.
var optional = map[string]bool{
	"mcp_server_errors": true, "claude_code_version": true, "output_style": true, "capabilities": true,
	"error": true, "aborted": true, "supersedes": true, "request_id": true, "timestamp": true, "tool_use_result": true,
	"isReplay": true, "isSynthetic": true, "api_message_id": true, "ttft_ms": true, "structured_output": true,
	"terminal_reason": true, "api_error_status": true, "errors": true, "user_message_uuids": true, "result": true,
}

// What is read in one pass must be what encoding/json reads.
func FuzzVisitObject(f *testing.F) {
	for _, seed := range []string{
		`{"type":"a","Type":"b","type":"c"}`, `{}`, `null`, `[]`, ` {"a" : [1, {"b":"\u00e9"}] , "b":null}`, `{"\u0061":1,"a":2}`,
		"{\"a\xff\":\"\xff\"}", `{"a":"\ud800"}`, `{"a":"x\ny"}`, `{"a":1,}`, `{"a":"x"} x`, `{"a":9223372036854775808,"b":-0,"c":1.0,"d":1e3,"e":"5","f":-9223372036854775808}`, `{"a":"` + "\x01" + `"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var want map[string]json.RawMessage
		wantErr := json.Unmarshal(data, &want)
		got := map[string]json.RawMessage{}
		err := visitObject(data, func(name []byte, value json.RawMessage) { got[string(name)] = value })
		if fails := wantErr != nil || want == nil; fails != (err != nil) {
			t.Fatalf("visitObject: %v; encoding/json: %v, %v", err, wantErr, want)
		}
		if err != nil {
			return
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
		for _, value := range got {
			sameValue[string](t, value)
			sameValue[NullString](t, value)
			sameValue[int64](t, value)
			sameValue[json.RawMessage](t, value)
			sameValue[Content](t, value)
		}
	})
}

func sameValue[T any](t *testing.T, raw json.RawMessage) {
	t.Helper()
	var got, want T
	err, wantErr := decodeValue(raw, &got), json.Unmarshal(raw, &want)
	if (err == nil) != (wantErr == nil) || err == nil && !reflect.DeepEqual(got, want) {
		t.Fatalf("%s as %T is %v, %v; want %v, %v", raw, got, got, err, want, wantErr)
	}
}
