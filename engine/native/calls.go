package native

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/messages"
	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/toolresult"
)

// callsOf returns the complete calls of a response.
func callsOf(r *messages.Response) []*call {
	var calls []*call
	for _, use := range r.Uses() {
		calls = append(calls, &call{use: use})
	}
	return calls
}

// misuse answers a call of a tool that does not exist or is hidden, in the form of the CLI.
func misuse(c *call, format string, args ...any) *answer {
	text := "<tool_use_error>Error: " + toolresult.EscapeHostTags(strings.ToValidUTF8(fmt.Sprintf(format, args...), "\uFFFD")) + "</tool_use_error>"
	return &answer{
		result: &agent.ToolResultBlock{ToolUseID: c.use.ID, Content: agent.TextContent(cutError(text)), IsError: true},
		raw:    transcript.Encode("Error: " + text),
	}
}

// runCalls runs the calls of one response and returns the answers in the order of the calls. Parallel calls
// that follow each other run concurrently, up to the limit; every other call waits for all before it. Each
// answer is reported as soon as all before it are.
func (t *turn) runCalls(calls []*call) []*answer {
	answers := make([]*answer, len(calls))
	for start := 0; start < len(calls); {
		end := start + 1
		if t.resolve(calls[start]) {
			for end < len(calls) && t.resolve(calls[end]) {
				end++
			}
		}
		t.runGroup(calls[start:end], answers[start:end])
		start = end
	}
	return answers
}

// resolve finds the call's tool and reports whether the call may run concurrently with others.
func (t *turn) resolve(c *call) bool {
	if c.tool == nil {
		c.tool = t.s.table.ByName[c.use.Name]
	}
	return c.tool != nil && c.tool.Parallel()
}

// runGroup runs calls concurrently.
func (t *turn) runGroup(calls []*call, answers []*answer) {
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
	for i := range calls {
		<-done[i]
		t.report(answers[i])
	}
	wg.Wait()
}

// runOne answers one call, whatever happens.
func (t *turn) runOne(c *call) (a *answer) {
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
			return missing
		}
	}
	return t.call(c)
}

// unmade answers a call that is not made because the turn is over.
func (t *turn) unmade(c *call) *answer {
	if t.ctx.Err() != nil {
		return errorAnswer(c, textInterrupted)
	}
	return errorAnswer(c, textStopped)
}

// await looks for a tool that is not in the table, and waits for its server if that is connecting. It
// answers the call if there is no such tool.
func (t *turn) await(c *call) *answer {
	hosts := t.s.hosts()
	name := c.use.Name
	for range 2 { // now, and once its server has connected
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
		return errorAnswer(c, textInterrupted)
	}
	if r, ok := t.s.requestOf(name); ok && t.s.permissions().Hidden(r) {
		return misuse(c, "%s", t.s.permissions().Decide(r).Message)
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

// call asks for permission and calls the tool.
func (t *turn) call(c *call) *answer {
	args := c.tool.Model.RestoreArgs(c.use.Input)
	args, denied := t.permit(c, args)
	if denied != nil {
		return denied
	}
	if t.ctx.Err() != nil || t.stopped.Load() {
		return t.unmade(c)
	}
	began := time.Now()
	var a *answer
	if c.tool.Own {
		a = t.callOwn(c, args)
	} else {
		a = t.callServer(c, args)
	}
	return t.postToolUse(c, args, time.Since(began), a)
}

func (t *turn) callServer(c *call, args json.RawMessage) *answer {
	res, err := c.tool.Host.CallServer(t.ctx, c.tool.Server, c.tool.Name, args, &mcphost.CallOptions{ToolUseID: c.use.ID, Session: t.s.opts.SessionID})
	switch {
	case t.ctx.Err() != nil:
		return errorAnswer(c, textInterrupted)
	case err != nil:
		return failedCall(c, err)
	}
	return t.convert(c, args, res)
}

const textNoTool = "No such tool available: %s"

// failedCall answers a call that has no result.
func failedCall(c *call, err error) *answer {
	ce, isCall := errors.AsType[*mcphost.CallError](err)
	switch {
	case errors.Is(err, mcphost.ErrUnknownTool), errors.Is(err, mcphost.ErrUnknownServer):
		return misuse(c, textNoTool, c.use.Name)
	case isCall:
		return errorAnswer(c, ce.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return errorAnswer(c, fmt.Sprintf("MCP server %q tool %q timed out", c.tool.Server, c.tool.Name))
	}
	return errorAnswer(c, fmt.Sprintf("MCP server %q tool %q: %v", c.tool.Server, c.tool.Name, err))
}

// convert answers a call with the tool's result, in the forms for the model and the program.
func (t *turn) convert(c *call, args json.RawMessage, res *mcpserver.Result) *answer {
	t.s.named.addFrom(c.tool.Server, res)
	blocks := toolresult.Convert(t.ctx, c.tool.Server, c.tool.Name, res, &toolresult.ConvertOptions{Save: t.s.store.Save})
	content := transcript.ResultContent(toolresult.Fit(t.ctx, blocks, t.outputOptions(c.tool.Server, c.tool.Name, res.IsError, c.tool.MaxResultSize)))
	if res.IsError && t.s.finder.Unread(c.tool) && !toolset.FitsSchema(c.tool.InputSchema, args) {
		content = append(content, &agent.TextBlock{Text: toolset.SchemaHint(c.tool)})
	}
	if len(content) == 0 {
		content = noOutput(c)
	}
	return &answer{result: &agent.ToolResultBlock{ToolUseID: c.use.ID, IsError: res.IsError, Content: content}, raw: rawResult(res)}
}

// noOutput stands for an empty result.
func noOutput(c *call) agent.Content {
	return agent.TextContent(fmt.Sprintf("(%s completed with no output)", c.use.Name))
}

// rawResult returns a tool's own result in the form of the CLI: its blocks, an object if it has more than
// blocks, or "Error: " and the text.
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

// countReach is the multiple of the limit up to which the API counts a text.
const countReach = 4

// outputOptions returns the limits of a result. declared is the tool's own limit in characters.
func (t *turn) outputOptions(server, tool string, isError bool, declared int) *toolresult.FitOptions {
	limits := toolresult.LimitsFromEnv(t.s.env.lookup)
	return &toolresult.FitOptions{
		Limits: limits, IsError: isError, Declared: declared, ReadTool: readTool,
		Store: func(text string) (string, error) {
			path, err := t.s.store.StoreText(server, tool, text)
			if err != nil {
				t.s.opts.Logger.Warn("a result could not be stored", "server", server, "tool", tool, "error", err)
				return "", err
			}
			t.s.stored.Store(true)
			return path, nil
		},
		CountTokens: func(ctx context.Context, text string) (int, error) {
			estimate := utf8.RuneCountInString(text) / toolset.CharsPerToken
			if estimate > countReach*cmp.Or(limits.Tokens, toolresult.DefaultTokens) {
				return estimate, nil
			}
			return t.s.api.CountTokens(ctx, t.s.model, text)
		},
	}
}

// fitContent fits content of a hook to the limits of results.
func (t *turn) fitContent(c *call, content agent.Content) agent.Content {
	var blocks []toolresult.Block
	var others agent.Content
	total := 0
	for _, b := range content {
		if t, ok := b.(*agent.TextBlock); ok {
			blocks = append(blocks, toolresult.Block{Type: "text", Text: t.Text})
			total += len(t.Text)
			continue
		}
		blocks = append(blocks, toolresult.Block{Type: "image"}) // whatever it is
		others = append(others, b)
	}
	if total <= toolresult.DefaultChars && t.s.env.get("MAX_MCP_OUTPUT_TOKENS") == "" {
		return content
	}
	fitted := toolresult.Fit(t.ctx, blocks, t.outputOptions("hook", c.use.Name, false, 0))
	if len(fitted) == len(blocks) && &fitted[0] == &blocks[0] {
		return content
	}
	var out agent.Content
	for _, b := range fitted {
		switch {
		case b.Type == "image":
			out, others = append(out, others[0]), others[1:]
		case !transcript.IsBlank(b.Text):
			out = append(out, &agent.TextBlock{Text: b.Text})
		}
	}
	return out
}
