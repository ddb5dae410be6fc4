package native

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
)

const (
	// maxQuarantines bounds how many tools are taken out of one request because the API refuses them.
	maxQuarantines = 8
	// overloadsToFallback is after how many overloads in a row the fallback model takes over.
	overloadsToFallback = 3
)

// request asks the model for the next message and hands out what it says while it arrives. It tries
// again what failed for a passing reason. When the turn was cancelled it returns what has arrived.
func (t *turn) request() (*response, *failure) {
	s := t.s
	overloads, quarantines, rethoughts, mended, unreachable := 0, 0, 0, 0, 0
	t.asked++
	for attempt := 1; ; attempt++ {
		s.refreshTable(t.ctx)
		s.chooseModel()
		began := time.Now()
		t.heard = nil
		r := s.request()
		body, messages := r.body(s.history.Trimmed())
		s.noteContext(r, messages)
		resp, err := s.api.send(t.ctx, body, t.sink(began))
		t.apiTime += time.Since(began)
		if resp != nil {
			resp.asked = r.model
			t.account(resp)
		}
		if err == nil || t.ctx.Err() != nil {
			return resp, nil
		}
		if len(t.heard) > 0 {
			t.supersedes = append(t.supersedes, t.heard...)
			t.broken = resp
		}
		t.orphans = append(t.orphans, resp.calls()...)
		f := classify(err)
		if f.aboutReferences() && s.finder.active && !s.plainly() {
			s.api.plain.Store(true)
			s.warn("tool_references", "The model's server takes no tool references, so found tools are described in words from now on: %s", transcript.Clip(f.text, 300))
			continue
		}
		if f.tool >= 0 && quarantines < maxQuarantines && t.quarantine(f) {
			quarantines++
			continue
		}
		if f.aboutThinking() && rethoughts < 2 {
			rethoughts++
			s.thoughts = (s.thoughts + 1) % (transcript.NoThoughts + 1)
			continue
		}
		if mended < maxQuarantines && s.mendGiven(f, r) {
			mended++
			continue
		}
		if f.kind == "overloaded" {
			overloads++
		} else {
			overloads = 0
		}
		if overloads >= overloadsToFallback && s.fallBack("is overloaded") || f.status == http.StatusNotFound && s.fallBack("was not found") {
			overloads, attempt = 0, 0
			continue
		}
		if f.unreachable {
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
func (t *turn) again(f *failure, attempt, unreachable int) bool {
	limit := t.s.engine.maxRetries()
	if f.unreachable {
		limit = min(limit, attempt+unreachableRetries-unreachable)
	}
	if !f.passing || attempt > limit {
		return false
	}
	if f.after > maxRetryAfter {
		f.text += fmt.Sprintf(" (the server asks to wait %v, which is too long)", f.after.Round(time.Second))
		return false
	}
	wait := backoff(attempt, f.after)
	t.s.note("api_retry", retryNote{attempt, limit, wait.Milliseconds(), nullInt(f.status), f.kind, transcript.Clip(f.text, 500)})
	t.s.opts.Logger.Warn("request to the model failed, trying again", "session", t.s.opts.SessionID,
		"attempt", attempt, "wait", wait, "status", f.status, "error", f.text)
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
func (t *turn) quarantine(f *failure) bool {
	s := t.s
	if s.offer == nil || f.tool >= len(s.offer.sent) || s.offer.sent[f.tool] == nil {
		return false
	}
	tl := s.offer.sent[f.tool]
	s.quarantined[tl.FullName] = "the API refused it: " + transcript.Clip(f.text, 300)
	s.finder.refused(tl.model.Name)
	s.freshTable(t.ctx)
	s.warn("tool_quarantined", "Tool %s of MCP server %q is left out from now on, because the API refused it: %s", tl.Name, tl.Server, transcript.Clip(f.text, 300))
	return true
}

// chooseModel takes the model for the next request.
func (s *session) chooseModel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model = s.inForce()
}

// inForce is the model of the next request. Called with mu held.
func (s *session) inForce() string {
	if s.fallback > 0 {
		return s.fallbacks[s.fallback-1]
	}
	return s.wantModel
}

// fallbackModels are the models of a list that is separated by commas.
func fallbackModels(list string) []string {
	var models []string
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			models = append(models, modelOf(name))
		}
	}
	return models
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
func (s *session) request() *request {
	r := &request{
		model: s.model, maxTokens: s.opts.MaxTokens, plain: s.plainly(),
		thoughts: s.thoughts,
	}
	if !s.engine.opts.DisablePromptCaching {
		r.marks = s.history.Breakpoints()
	}
	if s.prompt == nil {
		s.prompt = append([]json.RawMessage{}, systemBlocks(append([]string{s.opts.SystemPrompt, s.opts.AppendSystemPrompt}, s.system...)...)...)
	}
	r.system = encodeBlocks(s.prompt, r.marks.Prompt)
	r.tools = s.tools(r.plain, r.marks.Prompt && r.system == nil).json
	if r.maxTokens == 0 {
		r.maxTokens = maxTokensFor(s.model)
	}
	if th := s.opts.Thinking; th != nil {
		r.thinking = transcript.Encode(struct {
			Type    string `json:"type"`
			Budget  int    `json:"budget_tokens,omitempty"`
			Display string `json:"display,omitempty"`
		}{th.Type, th.BudgetTokens, th.Display})
		if s.opts.MaxTokens == 0 && th.BudgetTokens >= r.maxTokens {
			r.maxTokens += th.BudgetTokens // the budget is part of it
		}
	}
	if s.opts.Effort != "" {
		r.output = transcript.Encode(struct {
			Effort string `json:"effort"`
		}{s.opts.Effort})
	}
	return r
}

// sink hands out a response while it arrives and notes the messages that it was handed out in.
func (t *turn) sink(began time.Time) sink {
	first := true
	return sink{
		block: func(r *response, b *block) {
			if b.kind == "tool_use" {
				b.id = t.s.history.Identify(b.id)
			}
			m := t.assistant(r, b)
			m.Supersedes = t.supersedes
			t.supersedes, t.orphans = nil, nil
			t.heard = append(t.heard, m.UUID)
			t.s.emit(m)
			t.s.heard.turn = append(t.s.heard.turn, m.UUID)
		},
		event: func(r *response, raw []byte) {
			if !t.s.opts.IncludePartialMessages {
				return
			}
			e := &agent.StreamEvent{Event: bytes.Clone(raw), APIMessageID: r.id, SessionID: t.s.opts.SessionID, UUID: uuid.NewString()}
			if first {
				e.TTFTMS = time.Since(began).Milliseconds()
				first = false
			}
			t.s.emit(e)
		},
	}
}

// assistant is the message for one block of a response; nil stands for none at all.
func (t *turn) assistant(r *response, b *block) *agent.Assistant {
	content := agent.Content{}
	if b != nil {
		content = append(content, b.message())
	}
	return &agent.Assistant{
		Message: agent.APIMessage{
			ID: r.id, Role: transcript.RoleAssistant, Model: r.model, Content: content, Usage: r.usage,
		},
		RequestID: r.requestID, Timestamp: now(), SessionID: t.s.opts.SessionID, UUID: uuid.NewString(),
	}
}

// account adds up what a response used, one that broke off too.
func (t *turn) account(r *response) {
	s := t.s
	s.noteCounted(r.usage)
	addUsage(&t.usage, r.usage)
	model := r.model
	if model == "" {
		model = s.model
	}
	m := s.totals[model]
	m.InputTokens += r.usage.InputTokens
	m.OutputTokens += r.usage.OutputTokens
	m.CacheReadInputTokens += r.usage.CacheReadInputTokens
	m.CacheCreationInputTokens += r.usage.CacheCreationInputTokens
	if u := r.usage.ServerToolUse; u != nil {
		m.WebSearchRequests += u.WebSearchRequests
	}
	price, ok := s.engine.priceOf(model)
	if !ok {
		price, ok = s.engine.priceOf(s.model) // a server may call the model by a name of its own
	}
	if ok {
		c := price.cost(r.usage)
		m.CostUSD += c
		s.cost += c
	}
	spec, _ := specOf(model)
	m.ContextWindow, m.MaxOutputTokens = spec.contextWindow, spec.maxOutput
	s.totals[model] = m
}
