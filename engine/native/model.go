package native

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/messages"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/internal/clip"
)

const (
	// maxQuarantines bounds how many tools are taken out of one request because the API refuses them.
	maxQuarantines = 8
	// overloadsToFallback is after how many overloads in a row the fallback model takes over.
	overloadsToFallback = 3
)

// request asks the model for the next message and hands out what it says while it arrives. It tries
// again what failed for a passing reason. When the turn was cancelled it returns what has arrived.
func (t *turn) request() (*messages.Response, *messages.Failure) {
	s := t.s
	overloads, quarantines, rethoughts, mended, unreachable := 0, 0, 0, 0, 0
	t.asked++
	for attempt := 1; ; attempt++ {
		s.refreshTable(t.ctx)
		s.chooseModel()
		began := time.Now()
		t.heard = nil
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
		if len(t.heard) > 0 {
			t.supersedes = append(t.supersedes, t.heard...)
			t.broken = resp
		}
		t.orphans = append(t.orphans, callsOf(resp)...)
		f := messages.Classify(err)
		if f.AboutReferences() && s.finder.Active && !s.plainly() {
			s.api.Plain.Store(true)
			s.warn("tool_references", "The model's server takes no tool references, so found tools are described in words from now on: %s", clip.Text(f.Text, 300))
			continue
		}
		if f.Tool >= 0 && quarantines < maxQuarantines && t.quarantine(f) {
			quarantines++
			continue
		}
		if f.AboutThinking() && rethoughts < 2 {
			rethoughts++
			s.thoughts = (s.thoughts + 1) % (transcript.NoThoughts + 1)
			continue
		}
		if mended < maxQuarantines && s.mendGiven(f, r) {
			mended++
			continue
		}
		if f.Kind == "overloaded" {
			overloads++
		} else {
			overloads = 0
		}
		if overloads >= overloadsToFallback && s.fallBack("is overloaded") || f.Status == http.StatusNotFound && s.fallBack("was not found") {
			overloads, attempt = 0, 0
			continue
		}
		if f.Unreachable {
			unreachable++
		} else {
			unreachable = 0
		}
		if !t.again(f, attempt, unreachable) {
			return nil, f
		}
	}
}

// again decides whether a failed request is made once more, and waits until it is time. unreachable counts
// the failures in a row in which there was no connection. It reports false when the turn was cancelled meanwhile.
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
	t.s.note("api_retry", retryNote{attempt, limit, wait.Milliseconds(), nullInt(f.Status), f.Kind, clip.Text(f.Text, 500)})
	t.s.opts.Logger.Warn("request to the model failed, trying again", "session", t.s.opts.SessionID,
		"attempt", attempt, "wait", wait, "status", f.Status, "error", f.Text)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-t.ctx.Done():
		return false
	}
}

// retryNote is the payload of an api_retry message.
type retryNote struct {
	Attempt    int     `json:"attempt"`
	MaxRetries int     `json:"max_retries"`
	DelayMS    int64   `json:"retry_delay_ms"`
	Status     nullInt `json:"error_status"`
	Error      string  `json:"error"`
	// Message is what people read of the failure.
	Message string `json:"error_message"`
}

// A nullInt is null in JSON when it is 0.
type nullInt int

// MarshalJSON implements json.Marshaler.
func (n nullInt) MarshalJSON() ([]byte, error) {
	if n == 0 {
		return []byte("null"), nil
	}
	return json.Marshal(int(n))
}

// quarantine takes the tool that a refused request names out of this and all later requests.
func (t *turn) quarantine(f *messages.Failure) bool {
	s := t.s
	if s.offer == nil || f.Tool >= len(s.offer.Sent) || s.offer.Sent[f.Tool] == nil {
		return false
	}
	tl := s.offer.Sent[f.Tool]
	s.quarantined[tl.FullName] = "the API refused it: " + clip.Text(f.Text, 300)
	s.finder.Refused(tl.Model.Name)
	s.freshTable(t.ctx)
	s.warn("tool_quarantined", "Tool %s of MCP server %q is left out from now on, because the API refused it: %s", tl.Name, tl.Server, clip.Text(f.Text, 300))
	return true
}

// chooseModel takes the model for the next request.
func (s *session) chooseModel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model = s.inForce()
}

// fallBack switches to the next fallback model for the rest of the turn, if there is one.
func (s *session) fallBack(why string) bool {
	from := s.model
	to, ok := s.nextModel(from)
	if ok {
		s.warn("model_fallback", "Switched to %s for this turn because %s %s.", to, from, why)
	}
	return ok
}

func (s *session) nextModel(from string) (to string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if to = s.inForce(); to != from {
		return to, true // the program has chosen another one meanwhile
	}
	for s.fallback < len(s.fallbacks) {
		s.fallback++
		if to = s.inForce(); to != from {
			return to, true
		}
	}
	return "", false
}

// preferModel goes back from a fallback model to the one that was asked for.
func (s *session) preferModel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fallback = 0
}

// request is what the next request has beside the conversation.
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
		r.Output = transcript.Encode(struct {
			Effort string `json:"effort"`
		}{s.opts.Effort})
	}
	return r
}

// sink hands out a response while it arrives and notes the messages that it was handed out in.
func (t *turn) sink(began time.Time) messages.Sink {
	first := true
	return messages.Sink{
		Block: func(r *messages.Response, b *messages.Block) {
			if b.Kind == "tool_use" {
				b.ID = t.s.history.Identify(b.ID)
			}
			m := t.assistant(r, b)
			m.Supersedes = t.supersedes
			t.supersedes, t.orphans = nil, nil
			t.heard = append(t.heard, m.UUID)
			t.s.emit(m)
			t.s.heard.turn = append(t.s.heard.turn, m.UUID)
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

// assistant is the message for one block of a response; nil stands for none at all.
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

// account adds up what a response used, one that broke off too.
func (t *turn) account(r *messages.Response) {
	s := t.s
	s.noteCounted(r.Usage)
	messages.AddUsage(&t.usage, r.Usage)
	model := r.Model
	if model == "" {
		model = s.model
	}
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
