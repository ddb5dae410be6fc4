package claudecode

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/tenon-sdk/tenon/engine/claudecode/event"
)

// stream adds the input of a call as the CLI streams it.
func stream(t *toolInputs, parent, id string, pieces ...string) {
	t.add(&event.ToolInput{Parent: parent, Index: 1, Starts: true, ID: id})
	for _, p := range pieces {
		t.add(&event.ToolInput{Parent: parent, Index: 1, Piece: p})
	}
}

// The digits that JavaScript loses come back wherever the CLI repeats a call's arguments, and
// nothing that a hook has changed is undone. // D97
func TestArgumentsKeepTheirDigits(t *testing.T) {
	const written, rounded = `{"n": 12345678901234567890, "f": 1.50}`, `{"n":12345678901234567000,"f":1.5}`
	a := newToolInputs()
	stream(a, "", "toolu_1", `{"n": 12345678`, `901234567890, "f": 1.50}`)
	stream(a, "toolu_9", "toolu_2", `{"n":1}`) // a subagent's, at the same index
	if got := a.complete("toolu_1", json.RawMessage(rounded)); string(got) != written {
		t.Errorf("in the message: %s", got)
	}
	if got := a.restore("toolu_1", json.RawMessage(rounded)); string(got) != written {
		t.Errorf("in a question: %s", got)
	}
	if got := a.restore("toolu_1", json.RawMessage(`{"n":7}`)); string(got) != `{"n":7}` {
		t.Errorf("changed by a hook: %s", got)
	}
	if got := a.complete("toolu_2", json.RawMessage(`{"n":1}`)); string(got) != `{"n":1}` {
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
	call := inMessage(a, json.RawMessage(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","arguments":`+rounded+`,"_meta":{"claudecode/toolUseId":"toolu_1"}}}`))
	if !sameDigits(call, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","arguments":`+written+`,"_meta":{"claudecode/toolUseId":"toolu_1"}}}`) {
		t.Errorf("in the call: %s", call)
	}
	a.endTurn()
	if got := a.restore("toolu_1", json.RawMessage(rounded)); string(got) != rounded {
		t.Errorf("after the turn: %s", got)
	}
}

// Calls of subagents are kept until they have a result, since those go on in the background.
func TestArgumentsOutliveTheTurn(t *testing.T) {
	const written, rounded = `{"n":12345678901234567890}`, `{"n":12345678901234567000}`
	a := newToolInputs()
	stream(a, "toolu_9", "toolu_1", written)
	stream(a, "toolu_8", "toolu_2", written)
	a.setOpen("toolu_1", true)
	a.complete("toolu_1", json.RawMessage(rounded))
	a.endTurn()
	if got := a.inCall("toolu_1", json.RawMessage(rounded)); string(got) != written {
		t.Errorf("a call in the background: %s", got)
	}
	if got := a.complete("toolu_2", json.RawMessage(rounded)); string(got) != written {
		t.Errorf("a call that was half in the stream: %s", got)
	}
	a.setOpen("toolu_1", false)
	a.endTurn()
	if len(a.calls)+len(a.blocks) > 0 {
		t.Errorf("left behind: %v, %v", a.calls, a.blocks)
	}
}

// What the program changed counts before what the model wrote, though the CLI rounds both to the same.
func TestArgumentsAreTheProgramsOwn(t *testing.T) {
	const rounded = `{"n":12345678901234567000}`
	a := newToolInputs()
	stream(a, "", "toolu_1", `{"n":12345678901234567890}`)
	if got := a.complete("toolu_1", json.RawMessage(rounded)); string(got) != `{"n":12345678901234567890}` {
		t.Errorf("the model's: %s", got)
	}
	for _, own := range []string{`{"n":12345678901234567891}`, `{"n":12345678901234567892}`} {
		a.replace("toolu_1", json.RawMessage(`{"n":1}`), json.RawMessage(own))
		if got := a.inCall("toolu_1", json.RawMessage(rounded)); string(got) != own {
			t.Errorf("the program gave %s, the call has %s", own, got)
		}
	}
}

// Structured output is what the call for it says, and not another call with the same rounded numbers.
func TestOutputIsItsCalls(t *testing.T) {
	const rounded = `{"n":12345678901234567000}`
	for range 20 { // the calls have no order
		a := newToolInputs()
		for i, id := range []string{"other", "first", "output", "later"} {
			stream(a, "", id, fmt.Sprintf(`{"n":1234567890123456789%d}`, i))
			a.complete(id, json.RawMessage(rounded))
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
		a.endTurn()
		if got := a.restoreOutput(json.RawMessage(rounded)); string(got) != rounded {
			t.Errorf("in the next turn: %s", got)
		}
	}
}

func sameDigits(got json.RawMessage, want string) bool {
	return sameExact(got, json.RawMessage(want))
}

// inMessage returns a message for a server with the input of a call restored.
func inMessage(t *toolInputs, raw json.RawMessage) json.RawMessage {
	return (&session{inputs: t}).withOwnInput(raw)
}

// Messages that make no sense to this are not its business.
func TestArgumentsLeaveOtherMessagesAlone(t *testing.T) {
	a := newToolInputs()
	stream(a, "", "toolu_1", `{"n": 1.0`) // cut off
	if got := a.complete("toolu_1", json.RawMessage(`{}`)); string(got) != `{}` {
		t.Errorf("broken arguments: %s", got)
	}
	a.empty("toolu_3")
	for _, raw := range []string{
		`no JSON "tools/call"`, `{"method":"tools/list"}`, `{"method":"tools/call"}`, `{"method":"tools/call","params":{"_meta":{}}}`,
		`{"method":"tools/call","params":{"arguments":{"a":1},"_meta":{"claudecode/toolUseId":"toolu_2"}}}`,
	} {
		if got := inMessage(a, json.RawMessage(raw)); string(got) != raw {
			t.Errorf("%s became %s", raw, got)
		}
	}
	got := inMessage(a, json.RawMessage(`{"method":"tools/call","params":{"arguments":{"a":1},"_meta":{"claudecode/toolUseId":"toolu_3"}}}`))
	if !sameDigits(got, `{"method":"tools/call","params":{"arguments":{},"_meta":{"claudecode/toolUseId":"toolu_3"}}}`) {
		t.Errorf("a call without arguments: %s", got)
	}
}
