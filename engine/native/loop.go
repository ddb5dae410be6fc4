package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/messages"
	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/permission"
)

// run is the session's goroutine: one turn after the other until the input ends, the session
// cannot go on, or Close.
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

// start waits for the servers as the first turn has to, and reports what is wrong with the rules. If the
// turn ends meanwhile, the next one starts anew.
func (s *session) start(t *turn, problems []permission.Problem) error {
	if err := t.firstWait(); err != nil || t.ctx.Err() != nil {
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

// firstWait waits for the session's own servers as the first turn has to, and of a shared host, which is
// waited for by whoever started it, for the one server that has the permission prompt tool. It returns
// early, without an error, when the turn ends.
func (t *turn) firstWait() (err error) {
	s := t.s
	s.mu.Lock()
	own := s.own
	s.mu.Unlock()
	if own != nil {
		err = own.WaitFirstTurn(t.ctx, mcphost.WaitInput{
			Named: s.opts.AllowedTools, HookServers: hookServers(s.settings.Hooks), PermissionPromptTool: s.opts.PermissionPromptTool,
			ToolSearchOff: s.searchOff(), ToolSearchSet: s.opts.ToolSearch != "", BaseURL: s.engine.opts.BaseURL,
		})
	}
	if name := s.opts.PermissionPromptTool; err == nil && name != "" && s.shared != nil {
		err = s.shared.ReadyFor(t.ctx, name)
	}
	if t.ctx.Err() != nil && s.life.Err() == nil {
		return nil
	}
	return err
}

// refreshTable brings the table up to date with what the servers offer.
func (s *session) refreshTable(ctx context.Context) {
	if s.table == nil || !s.table.Current(s.hosts(), s.permissions().Rules(permission.Deny), len(s.builtins())) {
		s.freshTable(ctx)
	}
}

// freshTable makes the table anew. If ctx ends meanwhile the tools that were not looked at are not in it, and it
// is made again when the next one is wanted.
func (s *session) freshTable(ctx context.Context) *toolset.Table {
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
	return s.table
}

// The most rounds in a row that lead nowhere.
const (
	maxMalformed = 3
	maxPaused    = 20
	maxGoneOn    = 25
)

// newTurn begins the turn of an input that was taken. It ends with [turn.end]; an interrupt that came
// before it has a turn ends it at once.
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

// end ends the turn, whose result is known. An interrupt that came after that, and after another input,
// is meant for the other's turn.
func (t *turn) end() {
	s := t.s
	s.mu.Lock()
	defer s.mu.Unlock()
	late := errors.Is(context.Cause(t.ctx), errInterrupted) && !t.over
	s.interrupt, s.busy = nil, false
	s.interrupted = late && len(s.inbox) > 0
	if t.clock != nil {
		t.clock.Stop()
	}
	t.cancel(nil)
}

// run answers the turn's input and returns its result; nil if the session was closed. A turn that ended
// before it began has its result at once.
func (t *turn) run(in *agent.Input) *agent.Result {
	s := t.s
	s.preferModel()
	s.refreshTable(t.ctx)
	s.greet()
	t.start, t.told = s.history.Position(), s.finder.Announced
	s.heard.turn = nil
	if t.ctx.Err() != nil {
		return t.tooLate(in)
	}
	s.reportRepairs()
	if why, reason := t.accept(in); why != "" {
		return t.result(agent.SubtypeErrorDuringExecution, reason, why)
	}
	if r := t.hookStopped(); r != nil {
		return r
	}
	for {
		if result := t.step(); result != nil || s.life.Err() != nil {
			if s.life.Err() != nil {
				return nil
			}
			return result
		}
	}
}

// greet opens a turn with the init message. What there was to say before the first one follows it.
func (s *session) greet() {
	s.emit(s.initMessage())
	s.greeted = true
	early := s.early
	s.early = nil
	for _, m := range early {
		s.emit(m)
	}
}

// accept takes an input into the conversation, unless a hook blocks it, or it is a command that cannot
// be carried out. It returns why it does not, and the reason of a turn that ends with that.
func (t *turn) accept(in *agent.Input) (why, reason string) {
	if in.UUID != "" {
		t.uuids = append(t.uuids, in.UUID)
	}
	if why := t.promptBlocked(in); why != "" {
		return why, agent.ReasonHookStopped
	}
	parts, why := t.expand(in)
	if why != "" {
		return why, agent.ReasonTurnSetupFailed
	}
	t.s.history.AddUser(parts...)
	t.s.replay(in, parts)
	for _, text := range t.s.startContext {
		t.s.tell(text)
	}
	t.s.startContext = nil
	t.addContext()
	return "", ""
}

// tooLate is the result of a turn that was interrupted before it began: the model reads of its input in the next.
func (t *turn) tooLate(in *agent.Input) *agent.Result {
	if in.UUID != "" {
		t.uuids = append(t.uuids, in.UUID)
	}
	parts := t.s.enter(t.ctx, in.Content)
	t.s.history.AddUser(parts...)
	t.s.replay(in, parts)
	return t.aborted(nil, agent.ReasonAbortedStreaming)
}

// step asks the model once and does what it says. It returns the result when the turn is over.
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
		return t.aborted(resp, agent.ReasonAbortedStreaming)
	case f != nil:
		return t.failed(f)
	}
	t.last = resp
	if resp.Stop == "refusal" {
		return t.refused(resp)
	}
	calls := t.take(resp)
	switch {
	case len(calls) > 0:
		return t.answerCalls(calls)
	case resp.Stop == "pause_turn" && t.paused < maxPaused:
		t.paused++
		return t.overTurns()
	}
	return t.finished(resp)
}

// take adds a response to the history and returns the calls in it.
func (t *turn) take(resp *messages.Response) []*call {
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
	t.s.keep()
	t.silence(resp)
	return calls
}

// silence is the message for a response in which nothing was said, if there is anything to learn from it:
// that it stands in the place of what broke off, or, for the whole conversation, that the API has
// accepted what was there before.
func (t *turn) silence(resp *messages.Response) {
	if len(t.supersedes) == 0 && (len(t.heard) > 0 || !t.s.opts.ReplayUserMessages) {
		return
	}
	m := t.assistant(resp, nil)
	m.Supersedes = t.supersedes
	t.supersedes, t.orphans = nil, nil
	t.s.heard.turn = append(t.s.heard.turn, m.UUID)
	t.s.emit(m)
}

var errCutOff = errors.New(textCutOff) //nolint:staticcheck // sentences that the model reads

// answerCalls runs the calls of a response and adds the answers to the conversation, with whatever
// else was said in the meantime.
func (t *turn) answerCalls(calls []*call) *agent.Result {
	t.paused = 0
	if t.spent() {
		t.stopped.Store(true)
	}
	answers := t.runCalls(calls, t.report)
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
		return t.aborted(nil, agent.ReasonAbortedTools)
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
	for _, in := range t.s.waiting() { // the model will be asked again, so they are for this turn
		if why, _ := t.accept(in); why != "" {
			t.s.warn("prompt_blocked", "%s", why)
		}
	}
	return t.hookStopped()
}

// report hands out the answer to a call.
func (t *turn) report(_ *call, a answer) {
	m := &agent.User{
		Message:       agent.UserMessage{Role: transcript.RoleUser, Content: agent.Content{a.result}},
		ToolUseResult: a.raw, Timestamp: now(), SessionID: t.s.opts.SessionID, UUID: uuid.NewString(),
	}
	t.s.emit(m)
	t.s.heard.add(m.UUID)
}

// overMalformed ends a turn in which the model cannot get a call out whole.
func (t *turn) overMalformed(calls []*call) *agent.Result {
	bad := !slices.ContainsFunc(calls, func(c *call) bool { return c.inputErr == nil })
	if !bad {
		t.malformed = 0
		return nil
	}
	if t.malformed++; t.malformed < maxMalformed {
		return nil
	}
	return t.result(agent.SubtypeErrorDuringExecution, agent.ReasonMalformedToolUse,
		fmt.Sprintf("The model made %d tool calls in a row with an input that could not be used.", t.malformed))
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

// finished is the result of a turn that the model ended.
func (t *turn) finished(resp *messages.Response) *agent.Result {
	switch resp.Stop {
	case "max_tokens":
		t.s.warn("max_tokens", "The answer was cut off at its limit of tokens (Options.MaxTokens).")
	case "model_context_window_exceeded":
		t.s.warn("context_window", "The answer was cut off: the conversation fills the model's context window.")
	case "pause_turn":
		return t.result(agent.SubtypeErrorDuringExecution, agent.ReasonModelError,
			fmt.Sprintf("The model paused %d times in a row.", maxPaused))
	}
	if t.s.output != nil && resp.Stop != "max_tokens" && resp.Stop != "model_context_window_exceeded" {
		return t.remind()
	}
	why := t.stopBlocked(resp.Text())
	if r := t.hookStopped(); r != nil {
		return r
	}
	if why == "" || t.ctx.Err() != nil {
		return t.result(agent.SubtypeSuccess, agent.ReasonCompleted, "")
	}
	if t.goneOn++; t.goneOn > maxGoneOn {
		return t.result(agent.SubtypeErrorDuringExecution, agent.ReasonStopHookPrevented, fmt.Sprintf("Stop hooks made the model go on %d times.", maxGoneOn))
	}
	t.s.tell(why)
	t.addContext()
	return t.overTurns()
}

// refused is the result of a turn whose answer the model refused. The API wants what led to it taken
// out of the conversation, or it goes on refusing.
func (t *turn) refused(resp *messages.Response) *agent.Result {
	t.s.rewind(t.start, t.told)
	t.s.accepted = t.start
	t.supersedes = append(t.supersedes, t.s.heard.turn...)
	t.s.heard = heard{}
	var details struct {
		Category    string `json:"category"`
		Explanation string `json:"explanation"`
	}
	_ = json.Unmarshal(resp.StopDetails, &details)
	text := transcript.TextModelRefused
	if details.Explanation != "" {
		text += " " + details.Explanation
	}
	t.s.note("model_refusal_no_fallback", struct {
		Model    string `json:"original_model"`
		Category string `json:"api_refusal_category,omitempty"`
		Content  string `json:"content"`
	}{resp.Model, details.Category, text})
	t.synthetic("invalid_request", text)
	r := t.result(agent.SubtypeSuccess, agent.ReasonModelError, "")
	r.IsError, r.Result = true, text
	return r
}

// failed is the result of a turn that ended with a failed request. If the API refused what is new
// in the conversation, that is taken out again, so that the conversation survives it.
func (t *turn) failed(f *messages.Failure) *agent.Result {
	if f.Status == 400 || f.Status == 413 {
		t.dropRefused(f)
	}
	t.synthetic(f.Kind, f.Text)
	reason := agent.ReasonAPIError
	if f.Status == 400 && strings.Contains(f.Text, "prompt is too long") {
		reason = agent.ReasonPromptTooLong
	}
	r := t.result(agent.SubtypeSuccess, reason, "")
	r.IsError, r.Result, r.APIErrorStatus = true, f.Text, f.Status
	return r
}

// dropRefused takes out of the conversation what the API has not accepted yet.
func (t *turn) dropRefused(f *messages.Failure) {
	h := &t.s.history
	t.s.rewind(t.s.accepted, t.s.finder.Accepted)
	t.supersedes = append(t.supersedes, t.s.heard.fresh...)
	t.s.heard.fresh = nil
	n := len(h.Entries)
	if n == 0 || len(h.Entries[n-1].Calls) == 0 {
		return
	}
	var parts []transcript.Part
	for _, id := range h.Entries[n-1].Calls {
		parts = append(parts, transcript.Part{Raw: transcript.Encode(&agent.ToolResultBlock{
			ToolUseID: id, IsError: true,
			Content: agent.TextContent(transcript.DroppedResult(f.Text)),
		})})
	}
	h.AddUser(parts...)
}

// aborted is the result of a turn that was interrupted, among tool calls or while the model spoke.
// resp is what had arrived of its response by then.
func (t *turn) aborted(resp *messages.Response, reason string) *agent.Result {
	if t.s.life.Err() != nil {
		return nil
	}
	text := "[Request interrupted by user]"
	if reason == agent.ReasonAbortedTools {
		text = "[Request interrupted by user for tool use]"
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
	t.over = true
	t.keepPartial(resp)
	t.s.remark(text)
	return t.result(subtype, reason, message)
}

// answerOrphans answers the calls that the program has heard of and the model has not: the response that
// made them did not come to its end.
func (t *turn) answerOrphans(text string) {
	for _, c := range t.orphans {
		t.report(c, errorAnswer(c, text))
	}
	t.orphans = nil
}

// keepPartial keeps what the program has heard of a response that was interrupted, and the text that
// had arrived beside that: its whole blocks, with an answer for each call. If nothing has come of this
// response, the one before it counts that broke off, since nothing has taken its place.
func (t *turn) keepPartial(resp *messages.Response) {
	current := resp
	resp = t.latest(resp)
	if resp == nil {
		return
	}
	if resp == current && len(resp.Blocks) == 0 {
		t.silence(resp)
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
			t.s.heard.add(m.UUID)
		}
	}
	t.s.history.AddAssistant(resp.Asked, parts, ids)
	t.s.keep()
	for _, c := range callsOf(resp) {
		a := errorAnswer(c, textInterrupted)
		t.report(c, a)
		answers = append(answers, a.part())
	}
	t.s.history.AddUser(answers...)
	t.orphans = nil
}

// latest is the response whose blocks the program has heard last: this one, or one before it that broke
// off; nil if there is none.
func (t *turn) latest(resp *messages.Response) *messages.Response {
	if resp != nil && resp.ID != "" && slices.ContainsFunc(resp.Blocks, func(b *messages.Block) bool {
		_, ok := b.Sent()
		return b.Done || ok && b.Kind == "text"
	}) {
		return resp
	}
	if len(t.supersedes) > 0 && t.broken != nil {
		t.supersedes = nil
		return t.broken
	}
	if resp != nil && resp.ID != "" {
		return resp
	}
	return nil
}

// synthetic emits the report of a failure in the place of an answer, and of what has been heard of one.
func (t *turn) synthetic(kind, text string) {
	supersedes := t.supersedes
	t.supersedes, t.orphans = nil, nil
	t.s.emit(&agent.Assistant{
		Supersedes: supersedes,
		Message: agent.APIMessage{
			ID: uuid.NewString(), Role: transcript.RoleAssistant, Model: "<synthetic>", StopReason: "stop_sequence",
			Content: agent.Content{&agent.TextBlock{Text: text}},
		},
		Error: kind, Timestamp: now(), SessionID: t.s.opts.SessionID, UUID: uuid.NewString(),
	})
}
