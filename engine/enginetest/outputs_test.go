package enginetest

import (
	"encoding/json"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/modeltest"
)

var outputBehaviours = []behaviour{
	{"Structured", structuredOutput},
	{"StructuredNever", structuredOutputNever},
}

const countSchema = `{"type":"object","properties":{"count":{"type":"integer"}},"required":["count"],"additionalProperties":false}`

// giveOutput answers each request with the next of the inputs as the structured answer, and with text after the last.
func giveOutput(inputs ...string) modeltest.Turn {
	return modeltest.Func(func(r *modeltest.Request) modeltest.Turn {
		var given int
		for _, m := range r.Messages {
			for _, c := range m.Content {
				if c.Type == "tool_use" {
					given++
				}
			}
		}
		if given >= len(inputs) {
			return modeltest.Text("done")
		}
		return modeltest.ToolUse("StructuredOutput", inputs[given])
	})
}

func structuredOutput(e *env) {
	_, r := e.answered(e.script(giveOutput(`{"count":"four"}`, `{"count":4}`)), "x", &agent.Options{OutputSchema: json.RawMessage(countSchema)})
	if !sameJSON(r.StructuredOutput, json.RawMessage(`{"count":4}`)) || r.Subtype != agent.SubtypeSuccess {
		e.Errorf("output %s, result %+v", r.StructuredOutput, r)
	}
}

func structuredOutputNever(e *env) {
	wrong := make([]string, 20)
	for i := range wrong {
		wrong[i] = `{"count":"many"}`
	}
	tr := e.ask(e.script(giveOutput(wrong...)), "x", &agent.Options{OutputSchema: json.RawMessage(countSchema)})
	if r := tr.result(e); r.Subtype != agent.SubtypeErrorStructuredOutput || !r.IsError || tr.err == nil {
		e.Errorf("result %+v, then %v", r, tr.err)
	}
}
