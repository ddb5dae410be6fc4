package native

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/messages"
	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/internal/clip"
)

const (
	// maxQuarantines bounds how many tools are excluded from one request because the API refuses them.
	maxQuarantines = 8
	// overloadsToFallback is the number of overloads in a row after which a fallback model is used.
	overloadsToFallback = 3
)

// request makes a request and emits the response while it arrives. It retries failures that may pass. If
// the turn is cancelled, it returns what has arrived.
func (t *turn) request() (*messages.Response, *messages.Failure) {
	s := t.s
	var overloads, quarantines, policies, repairs, unreachable int
	t.asked++
	for attempt := 1; ; attempt++ {
		s.refreshTable(t.ctx)
		s.model = s.wantedModel()
		began := time.Now()
		t.sent = nil
		r := s.request()
		s.noteContext(r)
		resp, err := s.api.Send(t.ctx, r.Body(s.history.Trimmed()), t.sink(began))
		t.apiTime += time.Since(began)
		if resp != nil {
			resp.Asked = r.Model
			t.account(resp)
		}
		if err == nil || t.ctx.Err() != nil {
			return resp, nil
		}
		if len(t.sent) > 0 {
			t.supersedes = append(t.supersedes, t.sent...)
			t.broken = resp
		}
		t.orphans = append(t.orphans, callsOf(resp)...)
		f := messages.Classify(err)
		switch {
		case f.AboutReferences() && s.finder.Active && !s.plainly():
			s.api.Plain.Store(true)
			s.warn("tool_references", "The model's server takes no tool references, so found tools are described in words from now on: %s", clip.Text(f.Text, 300))
			continue
		case f.Tool >= 0 && quarantines < maxQuarantines && t.quarantine(f):
			quarantines++
			continue
		case f.AboutThinking() && policies < 2:
			policies++
			s.thoughts = (s.thoughts + 1) % (transcript.NoThoughts + 1)
			continue
		case repairs < maxQuarantines && s.mendGiven(f, r):
			repairs++
			continue
		}
		count(&overloads, f.Kind == "overloaded")
		count(&unreachable, f.Unreachable)
		if overloads >= overloadsToFallback && s.fallBack("is overloaded") || f.Status == http.StatusNotFound && s.fallBack("was not found") {
			overloads, unreachable, attempt = 0, 0, 0
			continue
		}
		if !t.again(f, attempt, unreachable) {
			return nil, f
		}
	}
}

// count counts failures in a row.
func count(n *int, failed bool) {
	if *n++; !failed {
		*n = 0
	}
}

// again waits before a failed request is retried. It reports false if the request must not be retried, or
// the turn was cancelled. unreachable is the number of failures in a row without a connection.
func (t *turn) again(f *messages.Failure, attempt, unreachable int) bool {
	limit := t.s.engine.maxRetries()
	if f.Unreachable {
		limit = min(limit, attempt+messages.UnreachableRetries-unreachable)
	}
	if !f.Passing || attempt > limit {
		return false
	}
	if f.After > messages.MaxRetryAfter {
		f.Text += fmt.Sprintf(" (the server asks to wait %v, which is too long)", f.After.Round(time.Second))
		return false
	}
	wait := messages.Backoff(attempt, f.After)
	var status *int // null without a response
	if f.Status != 0 {
		status = &f.Status
	}
	t.s.note("api_retry", map[string]any{
		"attempt": attempt, "max_retries": limit, "retry_delay_ms": wait.Milliseconds(), "error_status": status,
		"error": f.Kind, "error_message": clip.Text(f.Text, 500),
	})
	t.s.opts.Logger.Warn("request to the model failed, trying again", "session", t.s.opts.SessionID,
		"attempt", attempt, "wait", wait, "status", f.Status, "error", f.Text)
	select {
	case <-time.After(wait):
		return true
	case <-t.ctx.Done():
		return false
	}
}

// quarantine excludes the tool that the API refused from all requests.
func (t *turn) quarantine(f *messages.Failure) bool {
	s := t.s
	if s.definitions == nil || f.Tool >= len(s.definitions.Sent) || s.definitions.Sent[f.Tool] == nil {
		return false
	}
	tl := s.definitions.Sent[f.Tool]
	s.quarantined[tl.FullName] = "the API refused it: " + clip.Text(f.Text, 300)
	s.finder.Refused(tl.Model.Name)
	s.freshTable(t.ctx)
	s.warn("tool_quarantined", "Tool %s of MCP server %q is left out from now on, because the API refused it: %s", tl.Name, tl.Server, clip.Text(f.Text, 300))
	return true
}

// fallBack switches to the next fallback model for the rest of the turn, if there is one.
func (s *session) fallBack(why string) bool {
	from := s.model
	s.mu.Lock()
	to := s.inForce() // the program may have chosen another one meanwhile
	for to == from && s.fallback < len(s.fallbacks) {
		s.fallback++
		to = s.inForce()
	}
	s.mu.Unlock()
	if to != from {
		s.warn("model_fallback", "Switched to %s for this turn because %s %s.", to, from, why)
	}
	return to != from
}

// request returns the next request without the conversation.
func (s *session) request() *messages.Request {
	r := &messages.Request{
		Model: s.model, MaxTokens: s.opts.MaxTokens, Plain: s.plainly(),
		Thoughts: s.thoughts,
	}
	if !s.engine.opts.DisablePromptCaching {
		r.Breakpoints = s.history.Breakpoints()
	}
	if s.prompt == nil {
		s.prompt = append([]json.RawMessage{}, messages.SystemBlocks(append([]string{s.opts.SystemPrompt, s.opts.AppendSystemPrompt}, s.system...)...)...)
	}
	r.System = messages.EncodeBlocks(s.prompt, r.Breakpoints.Prompt)
	r.Tools = s.tools(r.Plain, r.Breakpoints.Prompt && r.System == nil).JSON
	if r.MaxTokens == 0 {
		r.MaxTokens = messages.MaxTokensFor(s.model)
	}
	if th := s.opts.Thinking; th != nil {
		r.Thinking = transcript.Encode(struct {
			Type    string `json:"type"`
			Budget  int    `json:"budget_tokens,omitempty"`
			Display string `json:"display,omitempty"`
		}{th.Type, th.BudgetTokens, th.Display})
		if s.opts.MaxTokens == 0 && th.BudgetTokens >= r.MaxTokens {
			r.MaxTokens += th.BudgetTokens // the budget is part of it
		}
	}
	if s.opts.Effort != "" {
		r.Output = transcript.Encode(map[string]string{"effort": s.opts.Effort})
	}
	return r
}

// sink emits a response while it arrives.
func (t *turn) sink(began time.Time) messages.Sink {
	first := true
	return messages.Sink{
		Block: func(r *messages.Response, b *messages.Block) {
			if b.Kind == "tool_use" {
				b.ID = t.s.history.Identify(b.ID)
			}
			m := t.assistant(r, b)
			t.sent = append(t.sent, m.UUID)
			t.emitAssistant(m)
		},
		Event: func(r *messages.Response, raw []byte) {
			if !t.s.opts.IncludePartialMessages {
				return
			}
			e := &agent.StreamEvent{Event: bytes.Clone(raw), APIMessageID: r.ID, SessionID: t.s.opts.SessionID, UUID: uuid.NewString()}
			if first {
				e.TTFTMS = time.Since(began).Milliseconds()
				first = false
			}
			t.s.emit(e)
		},
	}
}

// assistant returns the message for a block of a response, or for no block if b is nil.
func (t *turn) assistant(r *messages.Response, b *messages.Block) *agent.Assistant {
	content := agent.Content{}
	if b != nil {
		content = append(content, b.Message())
	}
	return &agent.Assistant{
		Message: agent.APIMessage{
			ID: r.ID, Role: transcript.RoleAssistant, Model: r.Model, Content: content, Usage: r.Usage,
		},
		RequestID: r.RequestID, Timestamp: now(), SessionID: t.s.opts.SessionID, UUID: uuid.NewString(),
	}
}

// account adds the usage of a response, complete or not.
func (t *turn) account(r *messages.Response) {
	s := t.s
	s.noteCounted(r.Usage)
	messages.AddUsage(&t.usage, r.Usage)
	model := cmp.Or(r.Model, s.model)
	m := s.totals[model]
	m.InputTokens += r.Usage.InputTokens
	m.OutputTokens += r.Usage.OutputTokens
	m.CacheReadInputTokens += r.Usage.CacheReadInputTokens
	m.CacheCreationInputTokens += r.Usage.CacheCreationInputTokens
	if u := r.Usage.ServerToolUse; u != nil {
		m.WebSearchRequests += u.WebSearchRequests
	}
	price, ok := s.engine.priceOf(model)
	if !ok {
		price, ok = s.engine.priceOf(s.model) // a server may call the model by a name of its own
	}
	if ok {
		c := price.Cost(r.Usage)
		m.CostUSD += c
		s.cost += c
	}
	spec, _ := messages.SpecOf(model)
	m.ContextWindow, m.MaxOutputTokens = spec.ContextWindow, spec.MaxOutput
	s.totals[model] = m
}

// tokensOf estimates the tokens of JSON or text by its bytes.
func tokensOf(bytes int) int64 { return int64(bytes+3) / 4 }

// noteContext records the parts of the next request for ContextUsage.
func (s *session) noteContext(r *messages.Request) {
	sent := s.definitions.Sent
	loaded := func(tl *toolset.Tool) bool { return slices.Contains(sent, tl) }
	s.mu.Lock()
	defer s.mu.Unlock()
	s.context = &contextState{model: r.Model, table: s.table, loaded: loaded, system: len(r.System), messages: s.history.Size()}
}

// noteCounted records the API's count of the latest request.
func (s *session) noteCounted(u agent.Usage) {
	total := u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens + u.OutputTokens
	if total == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	state := *s.context
	state.counted = total
	s.context = &state
}

// ContextUsage returns the parts of the latest request, or of the first one if there was none.
func (s *session) ContextUsage(ctx context.Context) (*agent.ContextUsage, error) {
	if s.life.Err() != nil {
		return nil, agent.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	state := s.context
	s.mu.Unlock()
	if state == nil {
		state = s.firstContext(ctx)
	}
	return state.usage(s.output.tools()), nil
}

// firstContext returns the parts of the first request as it would be now.
func (s *session) firstContext(ctx context.Context) *contextState {
	t := toolset.NewTable(ctx, s.hosts(), toolset.TableOptions{Policy: s.permissions(), Servers: s.knownServers(), PromptTool: s.opts.PermissionPromptTool})
	search := !s.searchOff() && s.finder.Mode.Searches(t.DeferrableSize(), s.wantedModel())
	return &contextState{
		model: s.wantedModel(), table: t, loaded: func(tl *toolset.Tool) bool { return !search || !tl.Deferrable() },
		system: len(messages.EncodeBlocks(messages.SystemBlocks(s.opts.SystemPrompt, s.opts.AppendSystemPrompt), false)), messages: s.given.Size,
	}
}

// usage returns the usage by category. The part of the API's count that exceeds the estimates of the rest
// is the conversation.
func (c *contextState) usage(own []toolset.APITool) *agent.ContextUsage {
	u := &agent.ContextUsage{Model: c.model}
	var mcpTokens, deferred, ownTokens int64
	for _, t := range c.table.Tools {
		n, loaded := tokensOf(len(transcript.Encode(t.Definition()))), c.loaded(t)
		switch {
		case t.Own:
			ownTokens += n
			continue
		case loaded:
			mcpTokens += n
		default:
			deferred += n
		}
		u.MCPTools = append(u.MCPTools, agent.ContextTool{Name: t.Model.Name, ServerName: t.Server, Tokens: n, IsLoaded: loaded})
	}
	slices.SortStableFunc(u.MCPTools, func(a, b agent.ContextTool) int { return cmp.Compare(a.ServerName, b.ServerName) })
	for _, t := range own {
		ownTokens += tokensOf(len(transcript.Encode(t)))
	}
	system, conversation := tokensOf(c.system), tokensOf(c.messages)
	u.TotalTokens = system + ownTokens + mcpTokens + conversation
	if c.counted > 0 {
		u.TotalTokens = c.counted
		conversation = max(0, c.counted-system-ownTokens-mcpTokens)
	}
	u.Categories = []agent.ContextCategory{
		{ID: agent.ContextSystemPrompt, Name: "System prompt", Tokens: system, Kind: "used"},
		{ID: agent.ContextSystemTools, Name: "System tools", Tokens: ownTokens, Kind: "used"},
		{ID: agent.ContextMCPTools, Name: "MCP tools", Tokens: mcpTokens, Kind: "used"},
		{ID: agent.ContextMessages, Name: "Messages", Tokens: conversation, Kind: "used"},
	}
	if deferred > 0 {
		u.Categories = append(u.Categories, agent.ContextCategory{
			ID: agent.ContextMCPToolsDeferred, Name: "MCP tools (deferred)", Tokens: deferred, Kind: "deferred",
		})
	}
	if spec, ok := messages.SpecOf(c.model); ok {
		u.MaxTokens = spec.ContextWindow
		u.Percentage = float64(u.TotalTokens) * 100 / float64(u.MaxTokens)
		u.Categories = append(u.Categories, agent.ContextCategory{
			ID: agent.ContextFree, Name: "Free space", Tokens: max(0, u.MaxTokens-u.TotalTokens), Kind: "free",
		})
	}
	return u
}
