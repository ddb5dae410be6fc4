package rpcmsg

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/tenon-sdk/tenon/internal/growth"
)

func one(t *testing.T, raw string) *Message {
	t.Helper()
	msgs, batch, err := Parse([]byte(raw))
	if err != nil || batch || len(msgs) != 1 {
		t.Fatalf("Parse(%s) = %d messages, batch %v, err %v; want one message", raw, len(msgs), batch, err)
	}
	return msgs[0]
}

func TestRequestIsTakenApart(t *testing.T) {
	m := one(t, ` {"method":"tools/call","params":{"name":"add","arguments":{"a":[1,{}]},"_meta":null},"id":7} `)
	if m.Method != "tools/call" || string(m.ID) != "7" || m.Fault != nil || m.Reply() || m.Notification() {
		t.Errorf("got %+v", m)
	}
	if got, want := string(m.Params), `{"name":"add","arguments":{"a":[1,{}]},"_meta":null}`; got != want {
		t.Errorf("params %s, want %s", got, want)
	}
	if name, fault := m.TextParam("name"); name != "add" || fault != nil {
		t.Errorf("name %q, %v", name, fault)
	}
	if got := string(m.Param("arguments")); got != `{"a":[1,{}]}` {
		t.Errorf("arguments %s", got)
	}
	if m.Param("_meta") != nil || m.Param("cursor") != nil || m.Param("Name") != nil {
		t.Error("null, absent and differently cased params must read as absent")
	}
	if _, fault := m.TextParam("arguments"); fault == nil || fault.Code != jsonrpc.CodeInvalidParams {
		t.Errorf("a text that is an object: %v", fault)
	}
	var n int
	if fault := m.DecodeParam("name", &n); fault == nil || fault.Code != jsonrpc.CodeInvalidParams {
		t.Errorf("decoding a text as a number: %v", fault)
	}
}

func TestIDsKeepTheirBytes(t *testing.T) {
	for _, id := range []string{
		`0`, `-1`, `1.50`, `1e400`, `123456789012345678901234567890`, `""`, `"a\u0062\"\\"`, `"\ud800"`, `"日本"`, `null`,
	} {
		m := one(t, `{"id":`+id+`,"method":"ping"}`)
		if string(m.ID) != id || m.Fault != nil || m.Notification() {
			t.Errorf("id %s came back as %s, fault %v, notification %v", id, m.ID, m.Fault, m.Notification())
		}
	}
	if m := one(t, `{"method":"ping"}`); m.ID != nil || !m.Notification() {
		t.Errorf("an absent id: %+v", m)
	}
}

func TestFaults(t *testing.T) {
	tests := []struct {
		name, raw string
		code      int64
		id        string
	}{
		{"an array as id", `{"id":[1],"method":"ping"}`, jsonrpc.CodeInvalidRequest, "null"},
		{"a truth value as id", `{"id":true,"method":"ping"}`, jsonrpc.CodeInvalidRequest, "null"},
		{"no method", `{"id":1}`, jsonrpc.CodeInvalidRequest, "1"},
		{"an empty object", `{}`, jsonrpc.CodeInvalidRequest, ""},
		{"a number as method", `{"id":1,"method":5}`, jsonrpc.CodeInvalidRequest, "1"},
		{"an empty method", `{"id":1,"method":""}`, jsonrpc.CodeInvalidRequest, "1"},
		{"params by position", `{"id":1,"method":"ping","params":[1]}`, jsonrpc.CodeInvalidParams, "1"},
		{"a text as params", `{"id":1,"method":"ping","params":"x"}`, jsonrpc.CodeInvalidParams, "1"},
		{"a number as message", `42`, jsonrpc.CodeInvalidRequest, ""},
		{"a text as message", `"x"`, jsonrpc.CodeInvalidRequest, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := one(t, test.raw)
			if m.Fault == nil || m.Fault.Code != test.code || string(m.ID) != test.id {
				t.Errorf("fault %v, id %q; want code %d, id %q", m.Fault, m.ID, test.code, test.id)
			}
		})
	}
}

func TestRepliesAreNoRequests(t *testing.T) {
	for _, raw := range []string{
		`{"id":"x","result":{}}`, `{"id":"x","error":{"code":1,"message":""}}`, `{"result":null}`,
	} {
		if m := one(t, raw); !m.Reply() || m.Fault != nil {
			t.Errorf("%s: reply %v, fault %v", raw, m.Reply(), m.Fault)
		}
	}
}

func TestTheLastOfTwoCounts(t *testing.T) {
	m := one(t, `{"params":{"a":1},"id":1,"method":"x","params":{"b":2,"b":3},"id":2,"method":"y"}`)
	if string(m.ID) != "2" || m.Method != "y" || m.Param("a") != nil || string(m.Param("b")) != "3" {
		t.Errorf("got id %s, method %s, a %s, b %s", m.ID, m.Method, m.Param("a"), m.Param("b"))
	}
	m = one(t, `{"id":1,"method":"x","params":{"a":1},"params":null}`)
	if m.Params != nil || m.Param("a") != nil || m.Fault != nil {
		t.Errorf("null params after others: %s, %v", m.Params, m.Fault)
	}
}

func TestEscapedKeys(t *testing.T) {
	m := one(t, `{"\u0069d":1,"\u006dethod":"ping","params":{"\u0061":1}}`)
	if string(m.ID) != "1" || m.Method != "ping" || string(m.Param("a")) != "1" {
		t.Errorf("got %+v", m)
	}
}

func TestBatch(t *testing.T) {
	msgs, batch, err := Parse([]byte(`[{"id":1,"method":"a"},5,{"method":"b"}]`))
	if err != nil || !batch || len(msgs) != 3 {
		t.Fatalf("got %d messages, batch %v, err %v", len(msgs), batch, err)
	}
	if msgs[0].Method != "a" || msgs[1].Fault == nil || !msgs[2].Notification() {
		t.Errorf("got %+v", msgs)
	}
	if msgs, batch, err := Parse([]byte(`[]`)); err != nil || !batch || len(msgs) != 0 {
		t.Errorf("an empty batch: %d messages, batch %v, err %v", len(msgs), batch, err)
	}
}

func TestDepthBombsAreRefusedCheaply(t *testing.T) {
	for _, open := range []string{"[", `{"a":`, `{"params":`, `{"params":{"a":[`} {
		if _, _, err := Parse([]byte(strings.Repeat(open, 1_000_000))); err == nil {
			t.Errorf("a million of %q was accepted", open)
		}
	}
	deep := func(n int) []byte {
		return []byte(`{"id":1,"method":"x","params":{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}}`)
	}
	if _, _, err := Parse(deep(MaxDepth - 2)); err != nil {
		t.Errorf("%d levels: %v", MaxDepth, err)
	}
	if _, _, err := Parse(deep(MaxDepth - 1)); err == nil {
		t.Errorf("%d levels were accepted", MaxDepth+1)
	}
}

func TestIDKeys(t *testing.T) {
	same := [][2]string{{`"a"`, `"\u0061"`}, {`1`, `1`}, {`null`, `null`}}
	for _, p := range same {
		if IDKey(json.RawMessage(p[0])) != IDKey(json.RawMessage(p[1])) {
			t.Errorf("%s and %s must be one id", p[0], p[1])
		}
	}
	different := [][2]string{{`"1"`, `1`}, {`"null"`, `null`}, {`1`, `2`}, {`"a"`, `"A"`}}
	for _, p := range different {
		if IDKey(json.RawMessage(p[0])) == IDKey(json.RawMessage(p[1])) {
			t.Errorf("%s and %s must differ", p[0], p[1])
		}
	}
}

func TestReplies(t *testing.T) {
	tests := []struct{ got, want string }{
		{string(ResultReply(json.RawMessage(`1.50`), json.RawMessage(`{}`))), `{"jsonrpc":"2.0","id":1.50,"result":{}}`},
		{
			string(ErrorReply(nil, MethodNotFound("x"))),
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"method not found: \"x\""}}`,
		},
		{
			string(ErrorReply(json.RawMessage(`"a"`), &jsonrpc.Error{Code: 1, Message: "m", Data: json.RawMessage("no JSON")})),
			`{"jsonrpc":"2.0","id":"a","error":{"code":1,"message":"m"}}`,
		},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, test.got); diff != "" {
			t.Errorf("reply (-want +got):\n%s", diff)
		}
	}
}

// depth is how deep raw, which is valid JSON, nests.
func depth(raw []byte) int {
	deepest, now, inString := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}

// The scanner must accept what encoding/json accepts, and read the same values.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":[1,2.5e-3,"\u00e9",null,true]}}}`,
		`[{"id":"a","result":{}},{"method":"x"}]`, `[]`, `{}`, `[[],{}]`, `{"a":{"b":{}},"c":[]}`, `-0.0e+1`, `01`, `"\ud800"`, "\x00", `[1,]`,
		`{"id":[{}],"params":[{"a":[]}]}`, `{"params":{"a":1},"params":{"b":2}}`, `{"method":"\"\\\/\b\f\n\r\t"}`, "{\"a\":\"\xff\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		msgs, batch, err := Parse(raw)
		valid := json.Valid(raw) && utf8.Valid(raw)
		if valid && depth(raw) > MaxDepth {
			valid = false
		}
		if valid != (err == nil) {
			t.Fatalf("Parse: %v, json.Valid: %v", err, valid)
		}
		if err != nil {
			return
		}
		if !batch && len(msgs) != 1 {
			t.Fatalf("%d messages outside a batch", len(msgs))
		}
		want := []json.RawMessage{raw}
		if batch {
			want = nil
			if err := json.Unmarshal(raw, &want); err != nil || len(want) != len(msgs) {
				t.Fatalf("%d messages in a batch of %d: %v", len(msgs), len(want), err)
			}
		}
		for i, m := range msgs {
			sameMembers(t, want[i], m)
		}
	})
}

func sameMembers(t *testing.T, raw json.RawMessage, m *Message) {
	t.Helper()
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil || object == nil {
		return
	}
	if id, ok := object["id"]; ok && isID(id) && string(id) != string(m.ID) {
		t.Fatalf("id %s, want %s", m.ID, id)
	}
	var method string
	if json.Unmarshal(object["method"], &method) == nil && method != m.Method {
		t.Fatalf("method %q, want %q", m.Method, method)
	}
	var params map[string]json.RawMessage
	if json.Unmarshal(object["params"], &params) != nil {
		return
	}
	for key, value := range params {
		got := m.Param(key)
		if string(value) == "null" {
			value = nil
		}
		if string(got) != string(value) {
			t.Fatalf("params.%s is %s, want %s", key, got, value)
		}
	}
}

func TestOversizedID(t *testing.T) {
	tests := []struct{ name, head, tail, want string }{
		{"in front", `{"jsonrpc":"2.0","id":"a","method":"x","params":{"a":"xxx`, `xxx"}}`, `"a"`},
		{"in front, after a member", `{"method":"x","id":12,"params":{"id":3,"a":"x`, `xxx"}}`, `12`},
		{"at the end", `{"method":"x","params":{"a":"xxx`, `xxx"},"jsonrpc":"2.0","id":7}`, `7`},
		{"at the end, before jsonrpc", `{"method":"x","params":{"a":"xxx`, `xxx"},"id":"k","jsonrpc":"2.0"}`, `"k"`},
		{"of something inside", `{"method":"x","params":{"a":"xxx`, `xxx","id":7}}`, ``},
		{"in a text", `{"method":"x","params":{"a":"xxx`, `,\"id\":7}"}}`, ``},
		{"cut off", `{"method":"x","id":1234`, `xxx`, ``},
		{"none", `{"method":"x","params":{"a":"xxx`, `xxx"}}`, ``},
		{"a batch", `[{"id":1,"method":"x","params":{"a":"xxx`, `xxx"}}]`, ``},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, ok := OversizedID([]byte(test.head), []byte(test.tail))
			if string(got) != test.want || ok != (test.want != "") {
				t.Errorf("got %s, %v; want %s", got, ok, test.want)
			}
		})
	}
}

// What one message may hold is bounded, exactly.
//
// fault H4
func TestMessagesAreBounded(t *testing.T) {
	id := func(n int) string { return `{"id":"` + strings.Repeat("x", n-2) + `","method":"ping"}` }
	if m := one(t, id(MaxID)); m.Fault != nil || len(m.ID) != MaxID {
		t.Errorf("the longest id: %v", m.Fault)
	}
	m := one(t, id(MaxID+1))
	if m.Fault == nil || m.Fault.Code != jsonrpc.CodeInvalidRequest || m.Fault.Message != "invalid request: id has 4097 bytes, more than the limit of 4096" || string(m.ID) != "null" {
		t.Errorf("a longer one: %v, id %.20s", m.Fault, m.ID)
	}
	if m := one(t, `{"id":"`+strings.Repeat("x", MaxID)+`","result":{}}`); !m.Reply() || string(m.ID) != "null" {
		t.Errorf("a longer one of a reply: %.20s", m.ID)
	}
	params := func(n int) string {
		return `{"id":1,"method":"m","params":{` + strings.TrimSuffix(strings.Repeat(`"a":1,`, n), ",") + `}}`
	}
	if m := one(t, params(MaxParams)); m.Fault != nil || string(m.Param("a")) != "1" {
		t.Errorf("the most params: %v", m.Fault)
	}
	if m := one(t, params(MaxParams+1)); m.Fault == nil || m.Fault.Code != jsonrpc.CodeInvalidParams || m.Fault.Message != "invalid params: params have more than 1000 members" {
		t.Errorf("one more: %v", m.Fault)
	}
	if m := one(t, strings.TrimSuffix(params(MaxParams+1), "}")+`,"params":{}}`); m.Fault != nil {
		t.Errorf("params that are replaced: %v", m.Fault)
	}
	batch := func(n int) []byte {
		return []byte("[" + strings.TrimSuffix(strings.Repeat(`{"id":1,"method":"ping"},`, n), ",") + "]")
	}
	if msgs, isBatch, err := Parse(batch(MaxBatch)); len(msgs) != MaxBatch || !isBatch || err != nil {
		t.Errorf("the largest batch: %d messages, %v", len(msgs), err)
	}
	msgs, isBatch, err := Parse(batch(MaxBatch + 1))
	if msgs != nil || !isBatch || !errors.Is(err, ErrBatch) || ParseError(err).Code != jsonrpc.CodeInvalidRequest {
		t.Errorf("a larger one: %d messages, %v", len(msgs), err)
	}
}

// What reading a message costs is in proportion to its bytes, whatever they are.
func TestReadingGrowsWithTheBytes(t *testing.T) {
	for name, message := range map[string]func(n int) string{
		"a batch":              func(n int) string { return "[" + strings.Repeat(`{"id":1},`, n) + "1]" },
		"a batch of scalars":   func(n int) string { return "[" + strings.Repeat(`1,`, n) + "1]" },
		"a long id":            func(n int) string { return `{"id":"` + strings.Repeat("x", n) + `","method":"m"}` },
		"an id with escapes":   func(n int) string { return `{"id":"` + strings.Repeat(`\u0041`, n) + `","method":"m"}` },
		"one key many times":   func(n int) string { return `{` + strings.Repeat(`"id":1,`, n) + `"method":"m"}` },
		"one param many times": func(n int) string { return `{"params":{` + strings.Repeat(`"a":1,`, n) + `"b":1},"method":"m"}` },
		"params many times":    func(n int) string { return `{` + strings.Repeat(`"params":{"a":1},`, n) + `"method":"m"}` },
		"keys with escapes":    func(n int) string { return `{"params":{` + strings.Repeat(`"\u0041":1,`, n) + `"b":1},"method":"m"}` },
		"deep arguments": func(n int) string {
			return `{"params":{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `},"method":"m"}`
		},
		"brackets without ends": func(n int) string { return strings.Repeat("[", n) },
	} {
		t.Run(name, func(t *testing.T) {
			growth.Check(t, 20_000, func(n int) int {
				raw := []byte(message(n))
				// The bytes themselves count: where nothing is kept, nothing grows.
				return len(raw) + growth.Bytes(func() { _, _, _ = Parse(raw) })
			})
		})
	}
}
