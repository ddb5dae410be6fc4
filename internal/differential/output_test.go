package differential

import (
	"encoding/json"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/modeltest"
)

// output makes a script whose answer has to have a form; the model gives these inputs in turn.
func output(name string, inputs ...string) script {
	return script{
		name: name,
		turns: turns(modeltest.Func(func(r *modeltest.Request) modeltest.Turn {
			given := 0
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
			return modeltest.ToolUseID("toolu_out"+string(rune('a'+given)), "StructuredOutput", inputs[given])
		})),
		options: func(*world) *agent.Options {
			return &agent.Options{OutputSchema: json.RawMessage(`{"type":"object","properties":{"count":{"type":"integer"}},"required":["count"],"additionalProperties":false}`)}
		},
	}
}

var outputScripts = []script{
	output("structured answer", `{"count":4}`),
	output("structured answer at the second try", `{"count":"four"}`, `{"count":4}`),
	output("structured answer with a big number", `{"count":12345678901234567890}`),
	output("text in place of a structured answer"),
	{name: "partial messages", turns: turns(modeltest.Text("one two three").Fragments("one", " two", " three")), options: func(*world) *agent.Options {
		return &agent.Options{IncludePartialMessages: true}
	}},
}
