package claudecode

import (
	"encoding/json"
	"fmt"
	"testing"
)

// stream feeds the arguments of one call as the CLI streams them.
func stream(a *arguments, parent, id string, fragments ...string) {
	event := func(format string, args ...any) {
		a.streamed(fmt.Appendf(nil, `{"type":"stream_event","parent_tool_use_id":%s,"event":%s}`, parent, fmt.Sprintf(format, args...)))
	}
	event(`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":%q,"input":{}}}`, id)
	for _, f := range fragments {
		event(`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":%q}}`, f)
	}
}

// The digits that JavaScript loses come back wherever the CLI repeats a call's arguments, and
// nothing that a hook has changed is undone. // D97
func TestArgumentsKeepTheirDigits(t *testing.T) {
	const written, rounded = `{"n": 12345678901234567890, "f": 1.50}`, `{"n":12345678901234567000,"f":1.5}`
	a := newArguments()
	stream(a, "null", "toolu_1", `{"n": 12345678`, `901234567890, "f": 1.50}`)
	stream(a, `"toolu_9"`, "toolu_2", `{"n":1}`) // a subagent's, at the same index
	if got := a.settle("toolu_1", json.RawMessage(rounded)); string(got) != written {
		t.Errorf("in the message: %s", got)
	}
	if got := a.restore("toolu_1", json.RawMessage(rounded)); string(got) != written {
		t.Errorf("in a question: %s", got)
	}
	if got := a.restore("toolu_1", json.RawMessage(`{"n":7}`)); string(got) != `{"n":7}` {
		t.Errorf("changed by a hook: %s", got)
	}
	if got := a.settle("toolu_2", json.RawMessage(`{"n":1}`)); string(got) != `{"n":1}` {
		t.Errorf("without loss: %s", got)
	}
	hook := a.inHook(json.RawMessage(`{"tool_use_id":"toolu_1","tool_input":` + rounded + `}`))
	if !sameDigits(hook, `{"tool_use_id":"toolu_1","tool_input":`+written+`}`) {
		t.Errorf("in a hook: %s", hook)
	}
	batch := a.inHook(json.RawMessage(`{"tool_calls":[{"tool_use_id":"toolu_1","tool_input":` + rounded + `}]}`))
	if !sameDigits(batch, `{"tool_calls":[{"tool_use_id":"toolu_1","tool_input":`+written+`}]}`) {
		t.Errorf("in a batch: %s", batch)
	}
	call := a.inMessage(json.RawMessage(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","arguments":` + rounded + `,"_meta":{"claudecode/toolUseId":"toolu_1"}}}`))
	if !sameDigits(call, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","arguments":`+written+`,"_meta":{"claudecode/toolUseId":"toolu_1"}}}`) {
		t.Errorf("in the call: %s", call)
	}
	a.turnEnded()
	if got := a.restore("toolu_1", json.RawMessage(rounded)); string(got) != rounded {
		t.Errorf("after the turn: %s", got)
	}
}

// Calls of subagents are kept until they have a result, since those go on in the background.
func TestArgumentsOutliveTheTurn(t *testing.T) {
	const written, rounded = `{"n":12345678901234567890}`, `{"n":12345678901234567000}`
	a := newArguments()
	stream(a, `"toolu_9"`, "toolu_1", written)
	stream(a, `"toolu_8"`, "toolu_2", written)
	a.opened("toolu_1")
	a.settle("toolu_1", json.RawMessage(rounded))
	a.turnEnded()
	if got := a.call("toolu_1", json.RawMessage(rounded)); string(got) != written {
		t.Errorf("a call in the background: %s", got)
	}
	if got := a.settle("toolu_2", json.RawMessage(rounded)); string(got) != written {
		t.Errorf("a call that was half in the stream: %s", got)
	}
	a.done("toolu_1")
	a.turnEnded()
	if len(a.written)+len(a.open)+len(a.blocks) > 0 {
		t.Errorf("left behind: %v, %v, %v", a.written, a.open, a.blocks)
	}
}

// What the program changed counts before what the model wrote, though the CLI rounds both to the same.
func TestArgumentsAreTheProgramsOwn(t *testing.T) {
	const rounded = `{"n":12345678901234567000}`
	a := newArguments()
	stream(a, "null", "toolu_1", `{"n":12345678901234567890}`)
	if got := a.settle("toolu_1", json.RawMessage(rounded)); string(got) != `{"n":12345678901234567890}` {
		t.Errorf("the model's: %s", got)
	}
	for _, own := range []string{`{"n":12345678901234567891}`, `{"n":12345678901234567892}`} {
		a.replaced("toolu_1", json.RawMessage(own))
		if got := a.call("toolu_1", json.RawMessage(rounded)); string(got) != own {
			t.Errorf("the program gave %s, the call has %s", own, got)
		}
	}
}

// Structured output is what the call for it says, and not another call with the same rounded numbers.
func TestOutputIsItsCalls(t *testing.T) {
	const rounded = `{"n":12345678901234567000}`
	for range 20 { // the calls have no order
		a := newArguments()
		for i, id := range []string{"other", "first", "output", "later"} {
			stream(a, "null", id, fmt.Sprintf(`{"n":1234567890123456789%d}`, i))
			a.settle(id, json.RawMessage(rounded))
		}
		if got := a.restoreOutput(json.RawMessage(rounded)); string(got) != rounded {
			t.Errorf("without a call for it: %s", got)
		}
		a.gaveOutput("first")
		a.gaveOutput("output")
		a.gaveOutput("exact")
		if got := a.restoreOutput(json.RawMessage(rounded)); string(got) != `{"n":12345678901234567892}` {
			t.Fatalf("got %s", got)
		}
		a.turnEnded()
		if got := a.restoreOutput(json.RawMessage(rounded)); string(got) != rounded {
			t.Errorf("in the next turn: %s", got)
		}
	}
}

func sameDigits(got json.RawMessage, want string) bool {
	return exactNumbers(got) == exactNumbers(json.RawMessage(want))
}

// Messages that make no sense to this are not its business.
func TestArgumentsLeaveOtherMessagesAlone(t *testing.T) {
	a := newArguments()
	stream(a, "null", "toolu_1", `{"n": 1.0`) // cut off
	if got := a.settle("toolu_1", json.RawMessage(`{}`)); string(got) != `{}` {
		t.Errorf("broken arguments: %s", got)
	}
	a.empty("toolu_3")
	for _, raw := range []string{
		`no JSON "tools/call"`, `{"method":"tools/list"}`, `{"method":"tools/call"}`, `{"method":"tools/call","params":{"_meta":{}}}`,
		`{"method":"tools/call","params":{"arguments":{"a":1},"_meta":{"claudecode/toolUseId":"toolu_2"}}}`,
	} {
		if got := a.inMessage(json.RawMessage(raw)); string(got) != raw {
			t.Errorf("%s became %s", raw, got)
		}
	}
	got := a.inMessage(json.RawMessage(`{"method":"tools/call","params":{"arguments":{"a":1},"_meta":{"claudecode/toolUseId":"toolu_3"}}}`))
	if !sameDigits(got, `{"method":"tools/call","params":{"arguments":{},"_meta":{"claudecode/toolUseId":"toolu_3"}}}`) {
		t.Errorf("a call without arguments: %s", got)
	}
	a.streamed([]byte(`input_json_delta but no JSON`))
}
