package modeltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A veteran is a model that remembers messages of earlier requests. Nobody must be able to tell it from one
// that has seen none.
type veteran struct{ model *Model }

func newVeteran(t *testing.T) veteran {
	t.Helper()
	return veteran{NewModel(&Options{AllowViolations: true, KeepRequests: 1, Turns: []Turn{Func(func(*Request) Turn { return Text("fine") })}})}
}

// compare has the veteran and a new model judge a body. The veteran does so twice, as it may learn from the body itself.
func (v veteran) compare(t *testing.T, body string) {
	t.Helper()
	fresh := newVeteran(t).model
	want := post(t, fresh, body)
	for range 2 {
		got := post(t, v.model, body)
		if got.StatusCode != want.StatusCode || got.errorText(t) != want.errorText(t) {
			t.Errorf("%.2000s\nis judged %d %q after other requests, want %d %q", body, got.StatusCode, got.errorText(t), want.StatusCode, want.errorText(t))
		}
		if len(body) > 1<<16 {
			return // a difference would not be readable, nor soon be found
		}
		if got, want := v.model.Last().Messages, fresh.Last().Messages; !reflect.DeepEqual(got, want) {
			t.Errorf("%.2000s\nis decoded as something else after other requests: %s", body, cmp.Diff(want, got))
		}
	}
}

func TestRememberedMessagesAreJudgedByTheirPlace(t *testing.T) {
	const marked = `{"type":"text","text":"m","cache_control":{"type":"ephemeral"}}`
	const hour = `{"type":"text","text":"m","cache_control":{"type":"ephemeral","ttl":"1h"}}`
	refers := `{"type":"tool_result","tool_use_id":"a","content":[{"type":"tool_reference","tool_name":"t"}]}`
	pool := []string{
		user(hi), user(marked), user(hour), assistant(hi), assistant(use("a")), assistant(use("b")), assistant(use("a"), use("b")),
		user(result("a")), user(result("b")), user(result("a"), result("b")), user(result("b"), hi), user(hi, result("a")), user(refers),
		assistant(signed("x"), use("a")), assistant(signed("x")), assistant(strings.Replace(signed("x"), `"x"`, `"y"`, 1), use("a")),
		assistant(`{"type":"text","text":"ends "}`), user(`{"type":"text","text":" "}`), user(), assistant(), `{"role":"user","content":"x"}`,
		`{"role":"user","content":""}`, `{"role":"assistant","content":""}`, `{"role":"system","content":"x"}`, `{"role":"user"}`, `[]`,
		`{"role":"user","content":[{"type":"text","text":"x","more":1}]}`,
		user(`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"x"}}`),
	}
	old := newVeteran(t)
	random := rand.New(rand.NewPCG(1, 2))
	bodies := []string{messages(), tools(tool("t")), set(basic, "thinking", `{"type":"adaptive"}`)}
	accepted := 0
	for range 3000 {
		list := []string{user(hi)}
		for range random.IntN(5) {
			list = append(list, pool[random.IntN(len(pool))])
		}
		if random.IntN(5) == 0 {
			list = list[1:]
		}
		body := set(bodies[random.IntN(len(bodies))], "messages", "["+strings.Join(list, ",")+"]")
		old.compare(t, body)
		if post(t, old.model, body).StatusCode == 200 {
			accepted++
		}
		if t.Failed() {
			return
		}
	}
	if accepted < 100 {
		t.Errorf("only %d conversations were in order", accepted)
	}
}

// What the cache knows does not depend on which messages are remembered, and which are too long for that.
func TestUsageOfRememberedMessages(t *testing.T) {
	const mark = `,"cache_control":{"type":"ephemeral"}}`
	long := strings.TrimSuffix(hi, "}") + `,"citations":null}`
	long = strings.Replace(long, "hi", strings.Repeat("long ", maxKnownMessage/5+1), 1)
	old, list := newVeteran(t).model, []string{}
	var bodies []string
	for i := range 12 {
		block := fmt.Sprintf(`{"type":"text","text":"question %d"}`, i)
		if i == 3 {
			block = long
		}
		list = append(list, user(strings.TrimSuffix(block, "}")+mark))
		bodies = append(bodies, messages(list...))
		list[len(list)-1] = user(block)
		list = append(list, assistant(hi))
	}
	for i, body := range bodies {
		got := usageOf(t, old, body)
		fresh := newVeteran(t).model
		for _, earlier := range bodies[:i] {
			fresh.known = messageCache{}
			usageOf(t, fresh, earlier)
		}
		fresh.known = messageCache{}
		if want := usageOf(t, fresh, body); got != want || i > 0 && got.CacheReadInputTokens == 0 {
			t.Errorf("request %d: %+v, want %+v", i, got, want)
		}
	}
}

func TestMessagesAreForgottenInTime(t *testing.T) {
	m := newVeteran(t).model
	for i := range 2*maxKnownMessages/maxKnownMessage + 2 {
		post(t, m, messages(user(fmt.Sprintf(`{"type":"text","text":"%d %s"}`, i, strings.Repeat("x", maxKnownMessage-100)))))
		if m.known.size > maxKnownMessages+maxKnownMessage {
			t.Fatalf("%d bytes of messages are remembered, want at most %d", m.known.size, maxKnownMessages)
		}
	}
	post(t, m, messages(user(fmt.Sprintf(`{"type":"text","text":"%s"}`, strings.Repeat("x", maxKnownMessage)))))
	for key := range m.known.seen {
		if len(key) > maxKnownMessage {
			t.Errorf("a message of %d bytes is remembered", len(key))
		}
	}
}

// What is noted while a body is read is what is in it, whatever its messages are like and how often it was read.
func TestPartsOfABody(t *testing.T) {
	for _, body := range []string{
		basic, conversation(3, true), `{}`, ` { } `, `[{"messages":[1]}]`, `"x"`, `{"messages":[]}`, `{"messages":{"a":[1],"b":{}}}`,
		`{"messages" : [ {"a":1} , 2,[3 ] ,"}"] , "x":[[1],{"messages":[5]}],"messages":[{"a":1},{"a":1}, {"a":2}]}`,
		`{"messages":[{"a":1},{"a":1}],"mess\u0061ges":[{"a":1}]}`, `{"mess\u0061ges":[{"a":1}],"tools":[{"a":1}],"":{"\"":"]"}}`,
		`{"messages":[{"a":1},{"a":1}x]}`, `{"messages":[{"a":1} {"a":1}]}`, `{"messages":[{"a":1},`,
	} {
		var cache messageCache
		learn := func(raw json.RawMessage) *knownMessage {
			if kindOf(raw) != '{' {
				return nil
			}
			return cache.add(raw, Message{Role: string(raw)}, 0)
		}
		for range 3 {
			parts := &bodyParts{cache: &cache}
			want := checkJSON([]byte(body))
			if got := checkParts([]byte(body), parts); (got == nil) != (want == nil) || got != nil && *got != *want {
				t.Errorf("%s: wrong is %v, want %v", body, got, want)
			}
			if raw := bytes.TrimSpace([]byte(body)); want == nil && kindOf(raw) == '{' {
				sameParts(t, raw, parts)
			}
			var last *knownMessage
			for _, f := range parts.fields {
				for _, m := range f.messages {
					if m.known != nil && m.known.message.Role != string(m.raw) {
						t.Errorf("%s: %s is taken for %s", body, m.raw, m.known.message.Role)
					}
					known := learn(bytes.Clone(m.raw))
					last.precedes(known)
					last = known
				}
			}
		}
	}
}

func sameParts(t *testing.T, object json.RawMessage, parts *bodyParts) {
	t.Helper()
	i := 0
	eachRawField(object, func(key, value json.RawMessage) {
		if i >= len(parts.fields) || string(parts.fields[i].key) != string(key) || string(parts.fields[i].value) != string(value) {
			t.Fatalf("%s: field %d is not noted as %s: %s", object, i, key, value)
		}
		var want, got []string
		if string(key) == `"messages"` && kindOf(value) == '[' {
			eachItem(value, func(_ int, v json.RawMessage) { want = append(want, string(v)) })
		}
		for _, m := range parts.fields[i].messages {
			got = append(got, string(m.raw))
		}
		if d := cmp.Diff(want, got); d != "" && kindOf(value) != '{' {
			t.Errorf("%s: messages: %s", object, d)
		}
		i++
	})
	if i != len(parts.fields) {
		t.Errorf("%s: %d fields are noted, want %d", object, len(parts.fields), i)
	}
}
