package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/internal/kit"
	"github.com/tenon-sdk/tenon/engine/native/internal/messages"
	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/permission"
)

// run is the session's goroutine. It runs turns until the input ends, the session cannot go on, or Close.
func (s *session) run(problems []permission.Problem) {
	defer close(s.done)
	defer close(s.out)
	for {
		in := s.next()
		if in == nil || s.life.Err() != nil {
			return
		}
		t := s.newTurn()
		if !s.started {
			if s.err = s.start(t, problems); s.err != nil {
				t.end()
				return
			}
		}
		result := t.run(in)
		t.end()
		if result == nil {
			return // closed
		}
		s.emit(result)
	}
}

// start waits for the servers as the first turn does, and reports faulty rules. If the turn ends
// meanwhile, the next turn starts again.
func (s *session) start(t *turn, problems []permission.Problem) error {
	s.mu.Lock()
	own := s.own
	s.mu.Unlock()
	err := kit.WaitFirstTurn(t.ctx, own, s.opts, mcphost.WaitInput{
		HookServers: hookServers(s.settings.Hooks), ToolSearchOff: s.searchOff(), BaseURL: s.engine.opts.BaseURL,
	})
	switch {
	case t.ctx.Err() != nil && s.life.Err() == nil:
		return nil
	case err != nil || t.ctx.Err() != nil:
		return err
	}
	s.started = true
	s.refreshTable(t.ctx)
	s.settleReferences()
	s.introduce()
	if name := s.opts.PermissionPromptTool; name != "" && s.table.Prompt == nil {
		return fmt.Errorf("native: Options.PermissionPromptTool: there is no MCP tool %q; the tools are %q", name, s.table.Names())
	}
	for _, p := range problems {
		s.warn("permission_rule", "Permission rule: %s", p)
	}
	s.startContext = s.sessionStart()
	return nil
}

// refreshTable updates the table to what the servers offer.
func (s *session) refreshTable(ctx context.Context) {
	if s.table == nil || !s.table.Current(s.hosts(), s.permissions().Rules(permission.Deny), len(s.builtins())) {
		s.freshTable(ctx)
	}
}

// freshTable makes the table anew. If ctx ends meanwhile, the table is incomplete and the next refresh
// makes it again.
func (s *session) freshTable(ctx context.Context) {
	s.table = toolset.NewTable(ctx, s.hosts(), toolset.TableOptions{
		Policy: s.permissions(), Servers: s.knownServers(), PromptTool: s.opts.PermissionPromptTool, Quarantined: s.quarantined,
		Builtins: s.builtins(), Before: s.table,
	})
	s.settleSearch(s.table)
	s.mu.Lock()
	before := s.leftOut
	s.leftOut = s.table.LeftOut
	s.mu.Unlock()
	for _, r := range s.table.LeftOut { // the hosts log what they leave out
		if !slices.Contains(before, r) {
			s.opts.Logger.Warn("tool left out", "session", s.opts.SessionID, "server", r.Server, "tool", r.Name, "reason", r.Reason)
		}
	}
}

// Limits of unusable responses in a row.
const (
	maxMalformed = 3
	maxPaused    = 20
	maxContinued = 25
)

// newTurn begins the turn of an input. An interrupt that came before the turn ends it at once.
func (s *session) newTurn() *turn {
	t := &turn{s: s, began: time.Now()}
	t.ctx, t.cancel = context.WithCancelCause(s.life)
	if limit := s.opts.TurnTimeout; limit > 0 {
		t.clock = time.AfterFunc(limit, func() { t.cancel(errTurnTimeout) })
	}
	if s.results == 0 {
		t.askedBefore = s.opts.HistoryUsage.Turns
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interrupt = t.cancel
	if s.interrupted {
		s.interrupted = false
		t.cancel(errInterrupted)
	}
	return t
}

// end ends a turn that has its result. An interrupt that came after the result, and after another input,
// applies to the turn of that input.
func (t *turn) end() {
	s := t.s
	s.mu.Lock()
	defer s.mu.Unlock()
	late := errors.Is(context.Cause(t.ctx), errInterrupted) && !t.aborted
	s.interrupt, s.busy = nil, false
	s.interrupted = late && len(s.inbox) > 0
	if t.clock != nil {
		t.clock.Stop()
	}
	t.cancel(nil)
}

// run answers the turn's input and returns the result, or nil if the session was closed.
func (t *turn) run(in *agent.Input) *agent.Result {
	s := t.s
	s.mu.Lock()
	s.fallback = 0
	s.mu.Unlock()
	s.refreshTable(t.ctx)
	s.greet()
	t.start, t.announced = s.history.Position(), s.finder.Announced
	s.delivered.turn = nil
	if in.UUID != "" {
		t.uuids = append(t.uuids, in.UUID)
	}
	if t.ctx.Err() != nil { // the model reads the input in the next turn
		s.addInput(in, s.enter(t.ctx, in.Content))
		return t.abort(nil, agent.ReasonAbortedStreaming)
	}
	s.reportRepairs()
	if why, reason := t.accept(in); why != "" {
		return t.fail(reason, why)
	}
	result := t.hookStopped()
	for result == nil && s.life.Err() == nil {
		result = t.step()
	}
	if s.life.Err() != nil {
		return nil
	}
	return result
}

// greet opens a turn with the init message. The messages that came before the first one follow it.
func (s *session) greet() {
	s.emit(s.initMessage())
	s.greeted = true
	early := s.early
	s.early = nil
	for _, m := range early {
		s.emit(m)
	}
}

// accept adds an input to the conversation, unless a hook blocks it, or it is a command that fails. In
// those cases it returns why, and the reason of a turn that ends with that.
func (t *turn) accept(in *agent.Input) (why, reason string) {
	if why := t.promptBlocked(in); why != "" {
		return why, agent.ReasonHookStopped
	}
	parts, why := t.expand(in)
	if why != "" {
		return why, agent.ReasonTurnSetupFailed
	}
	t.s.addInput(in, parts)
	for _, text := range t.s.startContext {
		t.s.tell(text)
	}
	t.s.startContext = nil
	t.addContext()
	return "", ""
}

// step makes one request to the model and runs its calls. It returns the result when the turn is over.
func (t *turn) step() *agent.Result {
	if r := t.overBudget(); r != nil {
		return r
	}
	t.s.refreshTable(t.ctx)
	t.s.reviewRules(t.ctx)
	t.s.announce()
	resp, f := t.request()
	switch {
	case t.ctx.Err() != nil:
		return t.abort(resp, agent.ReasonAbortedStreaming)
	case f != nil:
		return t.requestFailed(f)
	}
	t.last = resp
	if resp.Stop == "refusal" {
		return t.refused(resp)
	}
	calls := t.addResponse(resp)
	switch {
	case len(calls) > 0:
		return t.answerCalls(calls)
	case resp.Stop == "pause_turn" && t.paused < maxPaused:
		t.paused++
		return t.overTurns()
	}
	return t.finish(resp)
}

// addResponse adds a response to the history and returns its calls.
func (t *turn) addResponse(resp *messages.Response) []*call {
	var calls []*call
	var ids []string
	var parts []transcript.Part
	for i, b := range resp.Blocks {
		if p, ok := b.Sent(); ok {
			parts = append(parts, p)
		}
		if b.Kind != "tool_use" {
			continue
		}
		c := &call{use: b.Message().(*agent.ToolUseBlock)}
		_, c.inputErr = b.Arguments()
		if resp.Stop == "max_tokens" && i == len(resp.Blocks)-1 && (c.inputErr != nil || b.Input.Len() == 0) {
			c.inputErr = errCutOff
		}
		calls = append(calls, c)
		ids = append(ids, c.use.ID)
	}
	t.s.history.AddAssistant(resp.Asked, parts, ids)
	t.s.markAccepted()
	t.emitEmpty(resp)
	return calls
}

// emitEmpty emits a message for a response without content if the program needs one: to learn which
// messages it replaces or, with ReplayUserMessages, that the API has accepted the conversation.
func (t *turn) emitEmpty(resp *messages.Response) {
	if len(t.supersedes) > 0 || len(t.sent) == 0 && t.s.opts.ReplayUserMessages {
		t.emitAssistant(t.assistant(resp, nil))
	}
}

// emitAssistant emits a message of the model, in place of those of responses that broke off.
func (t *turn) emitAssistant(m *agent.Assistant) {
	m.Supersedes = t.supersedes
	t.supersedes, t.orphans = nil, nil
	t.s.emit(m)
	t.s.delivered.turn = append(t.s.delivered.turn, m.UUID)
}

var errCutOff = errors.New(textCutOff) //nolint:staticcheck // sentences that the model reads

// answerCalls runs the calls of a response and adds the answers, and inputs that have arrived meanwhile,
// to the conversation.
func (t *turn) answerCalls(calls []*call) *agent.Result {
	t.paused = 0
	if t.spent() {
		t.stopped.Store(true)
	}
	answers := t.runCalls(calls)
	var parts []transcript.Part
	for _, a := range answers {
		parts = append(parts, a.part())
	}
	t.s.history.AddUser(parts...)
	for _, a := range answers { // results come first in a message
		if a.after != "" {
			t.s.tell(a.after)
		}
	}
	if t.ctx.Err() != nil {
		return t.abort(nil, agent.ReasonAbortedTools)
	}
	t.postToolBatch(calls, answers)
	t.addContext()
	for _, over := range []func() *agent.Result{
		t.hookStopped, t.overOutput, t.overBudget, func() *agent.Result { return t.overMalformed(calls) }, t.overTurns,
	} {
		if r := over(); r != nil {
			return r
		}
	}
	for _, in := range t.s.waiting() { // this turn goes on with them
		if in.UUID != "" {
			t.uuids = append(t.uuids, in.UUID)
		}
		if why, _ := t.accept(in); why != "" {
			t.s.warn("prompt_blocked", "%s", why)
		}
	}
	return t.hookStopped()
}

// report emits the answer to a call.
func (t *turn) report(a *answer) {
	m := t.s.userMessage(agent.Content{a.result})
	m.ToolUseResult = a.raw
	t.s.deliver(m)
}

// overMalformed ends a turn in which the model makes only unusable calls.
func (t *turn) overMalformed(calls []*call) *agent.Result {
	if slices.ContainsFunc(calls, func(c *call) bool { return c.inputErr == nil }) {
		t.malformed = 0
		return nil
	}
	if t.malformed++; t.malformed < maxMalformed {
		return nil
	}
	return t.fail(agent.ReasonMalformedToolUse, fmt.Sprintf("The model made %d tool calls in a row with an input that could not be used.", t.malformed))
}

func (t *turn) overTurns() *agent.Result {
	if limit := t.s.opts.MaxTurns; limit > 0 && t.askedBefore+t.asked >= limit {
		return t.result(agent.SubtypeErrorMaxTurns, agent.ReasonMaxTurns, fmt.Sprintf("Reached maximum number of turns (%d)", limit))
	}
	return nil
}

// spent reports whether the session's budget is used up.
func (t *turn) spent() bool {
	limit := t.s.opts.MaxBudgetUSD
	return limit > 0 && t.s.cost >= limit
}

func (t *turn) overBudget() *agent.Result {
	if !t.spent() {
		return nil
	}
	return t.result(agent.SubtypeErrorMaxBudget, agent.ReasonBudgetExhausted, fmt.Sprintf("Reached maximum budget ($%v)", t.s.opts.MaxBudgetUSD))
}

// finish ends a turn whose last response has no calls, or has the model go on.
func (t *turn) finish(resp *messages.Response) *agent.Result {
	cutOff := true
	switch resp.Stop {
	case "max_tokens":
		t.s.warn("max_tokens", "The answer was cut off at its limit of tokens (Options.MaxTokens).")
	case "model_context_window_exceeded":
		t.s.warn("context_window", "The answer was cut off: the conversation fills the model's context window.")
	case "pause_turn":
		return t.fail(agent.ReasonModelError, fmt.Sprintf("The model paused %d times in a row.", maxPaused))
	default:
		cutOff = false
	}
	if t.s.output != nil && !cutOff {
		return t.remind()
	}
	why := t.stopBlocked(resp.Text())
	if r := t.hookStopped(); r != nil {
		return r
	}
	if why == "" || t.ctx.Err() != nil {
		return t.result(agent.SubtypeSuccess, agent.ReasonCompleted, "")
	}
	if t.continued++; t.continued > maxContinued {
		return t.fail(agent.ReasonStopHookPrevented, fmt.Sprintf("Stop hooks made the model go on %d times.", maxContinued))
	}
	t.s.tell(why)
	t.addContext()
	return t.overTurns()
}

// refused ends a turn in which the model refused to answer. The turn is removed from the conversation:
// otherwise the API refuses later requests as well.
func (t *turn) refused(resp *messages.Response) *agent.Result {
	t.s.rewind(t.start, t.announced)
	t.s.accepted = t.start
	t.supersedes = append(t.supersedes, t.s.delivered.turn...)
	t.s.delivered = delivered{}
	var details struct {
		Category    string `json:"category"`
		Explanation string `json:"explanation"`
	}
	_ = json.Unmarshal(resp.StopDetails, &details)
	text := strings.TrimSpace(transcript.TextModelRefused + " " + details.Explanation)
	t.s.note("model_refusal_no_fallback", struct {
		Model    string `json:"original_model"`
		Category string `json:"api_refusal_category,omitempty"`
		Content  string `json:"content"`
	}{resp.Model, details.Category, text})
	return t.resultAsAnswer("invalid_request", agent.ReasonModelError, text)
}

// requestFailed ends a turn with the failure of a request. If the API refused the request, what it has not
// accepted is removed from the conversation, so that later requests can succeed.
func (t *turn) requestFailed(f *messages.Failure) *agent.Result {
	if f.Status == http.StatusBadRequest || f.Status == http.StatusRequestEntityTooLarge {
		t.dropRefused(f)
	}
	reason := agent.ReasonAPIError
	if f.Status == http.StatusBadRequest && strings.Contains(f.Text, "prompt is too long") {
		reason = agent.ReasonPromptTooLong
	}
	r := t.resultAsAnswer(f.Kind, reason, f.Text)
	r.APIErrorStatus = f.Status
	return r
}

// dropRefused removes from the conversation what the API has not accepted. Calls whose results are
// removed get an error as their result.
func (t *turn) dropRefused(f *messages.Failure) {
	h := &t.s.history
	t.s.rewind(t.s.accepted, t.s.finder.Accepted)
	t.supersedes = append(t.supersedes, t.s.delivered.fresh...)
	t.s.delivered.fresh = nil
	if len(h.Entries) == 0 {
		return
	}
	var parts []transcript.Part
	for _, id := range h.Entries[len(h.Entries)-1].Calls {
		parts = append(parts, transcript.ErrorResult(id, transcript.DroppedResult(f.Text)))
	}
	h.AddUser(parts...)
}

// abort ends a turn that was interrupted, during tool calls or a request. resp is the part of the response
// that has arrived.
func (t *turn) abort(resp *messages.Response, reason string) *agent.Result {
	if t.s.life.Err() != nil {
		return nil
	}
	text := "[Request interrupted by user]"
	if reason == agent.ReasonAbortedTools {
		text = textInterrupted
	}
	subtype, message := agent.SubtypeErrorDuringExecution, "The turn was interrupted."
	switch cause := context.Cause(t.ctx); {
	case errors.Is(cause, errDenied):
		message = "The turn was stopped by a denied permission."
	case errors.Is(cause, errTurnTimeout):
		subtype, reason = agent.SubtypeErrorTurnTimeout, agent.ReasonTurnTimeout
		message = fmt.Sprintf("The turn was stopped because it took longer than %v (Options.TurnTimeout).", t.s.opts.TurnTimeout)
		text = "[Request stopped: it took too long]"
	}
	t.aborted = true
	t.keepPartial(resp)
	t.s.remark(text)
	return t.result(subtype, reason, message)
}

// keepPartial keeps the part of an interrupted response that the program has received, and unfinished
// text. Calls in it are answered by errors.
func (t *turn) keepPartial(current *messages.Response) {
	resp := t.latest(current)
	if resp == nil {
		return
	}
	if resp == current && len(resp.Blocks) == 0 {
		t.emitEmpty(resp)
	}
	var parts, answers []transcript.Part
	var ids []string
	for _, b := range resp.Blocks {
		p, ok := b.Sent()
		if !ok || !b.Done && b.Kind != "text" {
			continue
		}
		parts = append(parts, p)
		if b.Kind == "tool_use" {
			ids = append(ids, b.ID)
		}
		if !b.Done {
			m := t.assistant(resp, b)
			m.Aborted = true
			m.Supersedes, t.supersedes = t.supersedes, nil
			t.s.emit(m)
			t.s.delivered.add(m.UUID)
		}
	}
	t.s.history.AddAssistant(resp.Asked, parts, ids)
	t.s.markAccepted()
	for _, c := range callsOf(resp) {
		a := errorAnswer(c, textInterrupted)
		t.report(a)
		answers = append(answers, a.part())
	}
	t.s.history.AddUser(answers...)
	t.orphans = nil
}

// latest returns the response whose blocks the program has received last: the current one or, if it has
// none, the one before it that broke off. It returns nil if there is neither.
func (t *turn) latest(current *messages.Response) *messages.Response {
	if current != nil && current.ID == "" {
		current = nil
	}
	hasContent := current != nil && slices.ContainsFunc(current.Blocks, func(b *messages.Block) bool {
		_, ok := b.Sent()
		return b.Done || ok && b.Kind == "text"
	})
	if !hasContent && len(t.supersedes) > 0 && t.broken != nil {
		t.supersedes = nil
		return t.broken
	}
	return current
}

// resultAsAnswer returns a result with an error text, after an assistant message with it.
func (t *turn) resultAsAnswer(kind, reason, text string) *agent.Result {
	supersedes := t.supersedes
	t.supersedes, t.orphans = nil, nil
	t.s.emit(&agent.Assistant{
		Supersedes: supersedes,
		Message: agent.APIMessage{
			ID: uuid.NewString(), Role: transcript.RoleAssistant, Model: transcript.SyntheticModel, StopReason: "stop_sequence",
			Content: agent.Content{&agent.TextBlock{Text: text}},
		},
		Error: kind, Timestamp: now(), SessionID: t.s.opts.SessionID, UUID: uuid.NewString(),
	})
	r := t.result(agent.SubtypeSuccess, reason, "")
	r.IsError, r.Result = true, text
	return r
}
