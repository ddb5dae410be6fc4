package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/messages"
	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/toolresult"
)

// callsOf returns the whole calls of a response, as the program received them.
func callsOf(r *messages.Response) []*call {
	var calls []*call
	for _, use := range r.Uses() {
		calls = append(calls, &call{use: use})
	}
	return calls
}

// misuse answers a call of a tool that there is not, or not for the model, in the words of the CLI.
func misuse(c *call, format string, args ...any) *answer {
	text := "<tool_use_error>Error: " + toolresult.EscapeHostTags(strings.ToValidUTF8(fmt.Sprintf(format, args...), "\uFFFD")) + "</tool_use_error>"
	return &answer{
		result: &agent.ToolResultBlock{ToolUseID: c.use.ID, Content: agent.TextContent(cutError(text)), IsError: true},
		raw:    transcript.Encode("Error: " + text),
	}
}

// runCalls runs the calls of one response and returns the answers in the order of the calls. Calls
// of tools that may run together run together as long as they follow on each other, up to the
// bound; every other call waits for all before it. Each answer is reported as soon as it and all
// before it are there.
func (t *turn) runCalls(calls []*call, report func(*call, answer)) []answer {
	answers := make([]answer, len(calls))
	for start := 0; start < len(calls); {
		end := start + 1
		if t.resolve(calls[start]) {
			for end < len(calls) && t.resolve(calls[end]) {
				end++
			}
		}
		t.runGroup(calls[start:end], answers[start:end], report)
		start = end
	}
	return answers
}

// resolve finds the call's tool, and reports whether the call may run together with others.
func (t *turn) resolve(c *call) bool {
	if c.tool == nil {
		c.tool = t.s.table.ByName[c.use.Name]
	}
	return c.tool != nil && c.tool.Parallel()
}

// runGroup runs calls that may run together.
func (t *turn) runGroup(calls []*call, answers []answer, report func(*call, answer)) {
	if len(calls) == 1 {
		answers[0] = t.runOne(calls[0])
		report(calls[0], answers[0])
		return
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, t.s.opts.MaxToolConcurrency)
	done := make([]chan struct{}, len(calls))
	for i, c := range calls {
		done[i] = make(chan struct{})
		wg.Go(func() {
			defer close(done[i])
			slots <- struct{}{}
			defer func() { <-slots }()
			answers[i] = t.runOne(c)
		})
	}
	for i, c := range calls {
		<-done[i]
		report(c, answers[i])
	}
	wg.Wait()
}

// runOne answers one call, whatever happens.
func (t *turn) runOne(c *call) (a answer) {
	defer func() {
		if p := recover(); p != nil {
			t.s.opts.Logger.Error("panic in a tool call", "tool", c.use.Name, "panic", p)
			a = errorAnswer(c, fmt.Sprintf("The call of %s failed: internal error.", c.use.Name))
		}
	}()
	if t.ctx.Err() != nil || t.stopped.Load() {
		return t.unmade(c)
	}
	if c.inputErr != nil {
		return errorAnswer(c, fmt.Sprintf("The input of the call of %s cannot be used: %v. The tool was not run.", c.use.Name, c.inputErr))
	}
	if t.s.output.is(c) {
		return t.giveOutput(c)
	}
	if c.tool == nil {
		if missing := t.await(c); missing != nil {
			return *missing
		}
	}
	return t.call(c)
}

// unmade answers a call that is not made because the turn is over.
func (t *turn) unmade(c *call) answer {
	if t.ctx.Err() != nil {
		return errorAnswer(c, textInterrupted)
	}
	return errorAnswer(c, textStopped)
}

// await looks for the tool of a call that the table does not have: its server may be connecting
// still, and then the call waits for it. It answers the call if there is no such tool.
func (t *turn) await(c *call) *answer {
	hosts := t.s.hosts()
	name := c.use.Name
	for range 2 { // as it is now, and once its server has come up
		h, server, pending := toolset.ServerOf(hosts, name, func(s mcphost.ServerStatus) bool { return s.Status == mcphost.StatusPending })
		t.s.refreshTable(t.ctx)
		if tl := t.s.table.ByName[name]; tl != nil { // after the status: it may have come up just now
			c.tool = tl
			return nil
		}
		if !pending || h.Ready(t.ctx, server.Name) != nil {
			break
		}
	}
	if t.ctx.Err() != nil {
		a := errorAnswer(c, textInterrupted)
		return &a
	}
	if text := t.hidden(name); text != "" {
		return misuse(c, "%s", text)
	}
	_, server, found := toolset.ServerOf(hosts, name, func(s mcphost.ServerStatus) bool { return s.Status != mcphost.StatusConnected })
	switch {
	case found && server.Error != "":
		return misuse(c, "No such tool available: %s. MCP server %q is %s: %s", name, server.Name, server.Status, clip.Text(server.Error, 500))
	case found:
		return misuse(c, "No such tool available: %s. MCP server %q is %s", name, server.Name, server.Status)
	case t.s.finder.Active:
		return misuse(c, "No such tool available: %s. Look for one with %s", name, toolset.SearchTool)
	}
	return misuse(c, textNoTool, name)
}

// hidden says why a tool that a server has is kept from the model; empty if none has it.
func (t *turn) hidden(name string) string {
	for _, h := range t.s.hosts() {
		mt, ok := h.Tool(name)
		if !ok {
			continue
		}
		tl := &toolset.Tool{Tool: mt, Host: h}
		if p := t.s.permissions(); p.Hidden(tl.Request()) {
			return p.Decide(tl.Request()).Message
		}
	}
	return ""
}

// call asks for permission and calls the tool.
func (t *turn) call(c *call) answer {
	args := c.tool.Model.RestoreArgs(c.use.Input)
	args, denied := t.permit(c, args)
	if denied != nil {
		return *denied
	}
	if t.ctx.Err() != nil || t.stopped.Load() {
		return t.unmade(c)
	}
	began := time.Now()
	if c.tool.Own {
		a := t.callOwn(c, args)
		return t.postToolUse(c, args, time.Since(began), a)
	}
	res, err := c.tool.Host.CallServer(t.ctx, c.tool.Server, c.tool.Name, args, &mcphost.CallOptions{ToolUseID: c.use.ID, Session: t.s.opts.SessionID})
	var a answer
	switch {
	case t.ctx.Err() != nil:
		a = errorAnswer(c, textInterrupted)
	case err != nil:
		a = failedCall(c, err)
	default:
		a = t.convert(c, args, res)
	}
	return t.postToolUse(c, args, time.Since(began), a)
}

const textNoTool = "No such tool available: %s"

// failedCall answers a call that got no answer.
func failedCall(c *call, err error) answer {
	var ce *mcphost.CallError
	switch {
	case errors.Is(err, mcphost.ErrUnknownTool), errors.Is(err, mcphost.ErrUnknownServer):
		return *misuse(c, textNoTool, c.use.Name)
	case errors.As(err, &ce):
		return errorAnswer(c, ce.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return errorAnswer(c, fmt.Sprintf("MCP server %q tool %q timed out", c.tool.Server, c.tool.Name))
	}
	return errorAnswer(c, fmt.Sprintf("MCP server %q tool %q: %v", c.tool.Server, c.tool.Name, err))
}

// convert makes a tool's result readable for the model and keeps it for the program.
func (t *turn) convert(c *call, args json.RawMessage, res *mcpserver.Result) answer {
	t.s.named.addFrom(c.tool.Server, res)
	blocks := toolresult.Convert(t.ctx, c.tool.Server, c.tool.Name, res, &toolresult.ConvertOptions{Save: t.s.store.Save})
	content := transcript.ResultContent(toolresult.Fit(t.ctx, blocks, t.outputOptions(c.tool.Server, c.tool.Name, res.IsError, c.tool.MaxResultSize)))
	if res.IsError && t.s.finder.Unread(c.tool) && !toolset.FitsSchema(c.tool.InputSchema, args) {
		content = append(content, &agent.TextBlock{Text: toolset.SchemaHint(c.tool)})
	}
	if len(content) == 0 {
		content = noOutput(c)
	}
	return answer{
		result: &agent.ToolResultBlock{
			ToolUseID: c.use.ID, IsError: res.IsError, Content: content,
		},
		raw: rawResult(res),
	}
}

// noOutput stands for an empty result.
func noOutput(c *call) agent.Content {
	return agent.TextContent(fmt.Sprintf("(%s completed with no output)", c.use.Name))
}

// rawResult is a tool's own result in the form of the CLI: its blocks, or an object if there is
// more to it than blocks, or "Error: " and the text.
func rawResult(res *mcpserver.Result) json.RawMessage {
	if res.IsError {
		return transcript.Encode("Error: " + strings.ToValidUTF8(res.Text(), "\uFFFD"))
	}
	whole, err := res.MarshalJSON()
	if err != nil {
		return transcript.Encode("Error: " + err.Error())
	}
	var parts struct {
		Content           json.RawMessage `json:"content"`
		StructuredContent json.RawMessage `json:"structuredContent,omitempty"`
		Meta              json.RawMessage `json:"_meta,omitempty"`
	}
	if json.Unmarshal(whole, &parts) != nil || len(parts.Content) == 0 {
		return transcript.Encode([]string{})
	}
	if len(parts.StructuredContent) == 0 && len(parts.Meta) == 0 {
		return parts.Content
	}
	return transcript.Encode(parts)
}
