package native

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/toolschema"
)

const (
	// outputTool is the tool by which the model gives structured output.
	outputTool = "StructuredOutput"
	// defaultOutputRetries is used unless MAX_STRUCTURED_OUTPUT_RETRIES is set.
	defaultOutputRetries = 5

	outputDescription = "Give your final answer as structured data. Call this tool exactly once, at the end, with an input that matches its schema."
	outputReminder    = "You must call the " + outputTool + " tool to complete this request. Call this tool now."
)

// A structured has the tool for an answer that matches a schema. Nil means that the answer is free text.
type structured struct {
	server  *mcpserver.Server // validates, with messages that the model can act on
	model   toolschema.Model
	retries int
}

// outputRetries is the variable that bounds the retries of a structured answer.
const outputRetries = "MAX_STRUCTURED_OUTPUT_RETRIES"

// outputRetriesProblem reports an invalid value of that variable.
func outputRetriesProblem(env environ) []mcphost.EnvProblem {
	v := env.get(outputRetries)
	if n, err := strconv.Atoi(v); v == "" || err == nil && n >= 0 {
		return nil
	}
	return []mcphost.EnvProblem{{Name: outputRetries, Value: v, Want: fmt.Sprintf("a whole number, such as %d", defaultOutputRetries)}}
}

// newStructured makes the tool for a schema.
func newStructured(ctx context.Context, schema json.RawMessage, env environ) (*structured, error) {
	if schema == nil {
		return nil, nil
	}
	unusable := func(why string) error {
		return &agent.OptionError{Field: "OutputSchema", Problem: "cannot be used: " + why, Remedy: "mend the schema"}
	}
	out := &structured{server: mcpserver.New("output", nil), retries: defaultOutputRetries}
	if n, err := strconv.Atoi(env.get(outputRetries)); err == nil && n >= 0 {
		out.retries = n
	}
	given := func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
		return mcpserver.Text("Structured output provided successfully"), nil
	}
	if err := out.server.AddTool(&mcpserver.Tool{Name: outputTool, Description: outputDescription, InputSchema: schema}, given); err != nil {
		return nil, unusable(err.Error())
	}
	m, q := toolschema.ForModel(ctx, toolschema.Tool{Name: outputTool, FullName: outputTool, Description: outputDescription, InputSchema: schema}, nil)
	if q != nil {
		return nil, unusable(q.Reason)
	}
	out.model = m
	return out, nil
}

// tools returns the tools that structured output adds to requests.
func (o *structured) tools() []toolset.APITool {
	if o == nil {
		return nil
	}
	return []toolset.APITool{{Name: o.model.Name, Description: o.model.Description, InputSchema: o.model.InputSchema}}
}

// is reports whether a call gives the structured output.
func (o *structured) is(c *call) bool { return o != nil && c.use.Name == o.model.Name }

// giveOutput accepts the structured output of a call, or tells the model what is wrong with it.
func (t *turn) giveOutput(c *call) *answer {
	o := t.s.output
	args := o.model.RestoreArgs(c.use.Input)
	res, err := o.server.CallTool(t.ctx, outputTool, args)
	switch {
	case err != nil:
		return errorAnswer(c, err.Error())
	case res.IsError:
		t.badOutputs++
		return errorAnswer(c, res.Text())
	}
	t.given = args
	return textAnswer(c, res.Text())
}

// overOutput ends the turn once it has structured output, or too many attempts failed.
func (t *turn) overOutput() *agent.Result {
	o := t.s.output
	switch {
	case o == nil:
		return nil
	case t.given != nil:
		r := t.result(agent.SubtypeSuccess, agent.ReasonCompleted, "")
		r.StructuredOutput = t.given
		r.Result = cmp.Or(r.Result, string(t.given))
		return r
	case t.badOutputs > o.retries:
		return t.result(agent.SubtypeErrorStructuredOutput, agent.ReasonStructuredOutput,
			fmt.Sprintf("Failed to provide valid structured output after %d attempts", t.badOutputs))
	}
	return nil
}

// remind has a model go on that ended without structured output.
func (t *turn) remind() *agent.Result {
	t.badOutputs++
	if r := t.overOutput(); r != nil {
		return r
	}
	t.s.tell(outputReminder)
	return t.overTurns()
}
