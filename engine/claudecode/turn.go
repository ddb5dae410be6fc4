package claudecode

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/claudecode/event"
)

// Send sends an input.
func (s *session) Send(ctx context.Context, in *agent.Input) error {
	line := struct {
		Type    string `json:"type"`
		UUID    string `json:"uuid"`
		Message struct {
			Role    string        `json:"role"`
			Content agent.Content `json:"content"`
		} `json:"message"`
		Parent   *string `json:"parent_tool_use_id"`
		Verbatim bool    `json:"client_composed,omitempty"`
	}{Type: "user", UUID: cmp.Or(in.UUID, s.ids.next()), Verbatim: s.engine.opts.VerbatimPrompts}
	line.Message.Role, line.Message.Content = "user", in.Content
	if err := s.expect(line.UUID); err != nil {
		return err
	}
	if err := s.ch.send(ctx, &line); err != nil {
		s.takeBack(line.UUID)
		return err
	}
	return nil
}

// expect notes an input that is about to be sent.
func (s *session) expect(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.turn
	switch {
	case s.closed:
		return agent.ErrClosed
	case s.ended:
		return errors.New("claude-code: Send after EndInput")
	case s.opts.MaxQueuedInputs > 0 && len(t.waiting) >= s.opts.MaxQueuedInputs:
		return fmt.Errorf("claude-code: %w: %d of them: wait for a result, or raise Options.MaxQueuedInputs", agent.ErrTooManyInputs, len(t.waiting))
	}
	t.waiting[id] = true
	t.unplaced++
	if t.idle {
		t.idle, t.expected = false, id
	}
	s.startClock()
	s.used = true
	return nil
}

// takeBack forgets an input that could not be sent.
func (s *session) takeBack(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.turn
	delete(t.waiting, id)
	t.unplaced--
	if t.expected == id {
		t.idle, t.expected = true, ""
	}
	if len(t.waiting) == 0 {
		t.interruptNext = false
		t.stopClock()
	}
	s.endIfQuiet()
}

// EndInput ends the session once all inputs are answered.
func (s *session) EndInput() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return agent.ErrClosed
	}
	s.ended = true
	s.endIfQuiet()
	return nil
}

// endIfQuiet closes the CLI's stdin when no input will follow, every input is answered and the CLI is
// idle, background agents included: at the first result it would break the calls of those. The caller
// holds s.mu.
func (s *session) endIfQuiet() {
	if s.ended && s.turn.quiet() && !s.review.running {
		s.endStdin.Do(func() { close(s.closing) })
	}
}

// startClock starts the time of a turn unless one runs. The caller holds s.mu.
func (s *session) startClock() {
	limit := s.opts.TurnTimeout
	if limit <= 0 || s.turn.clock != nil {
		return
	}
	c := &turnClock{ended: make(chan struct{})}
	c.timer = time.AfterFunc(limit, func() { s.ch.spawn(func() { s.stopLateTurn(c) }) })
	s.turn.clock = c
}

// stopLateTurn interrupts a turn that takes too long. If the CLI does not end the turn, the session ends.
func (s *session) stopLateTurn(c *turnClock) {
	s.mu.Lock()
	c.late = s.turn.clock == c
	late := c.late
	s.mu.Unlock()
	if !late {
		return
	}
	ctx, cancel := context.WithTimeout(s.ch.ctx, s.engine.patience)
	defer cancel()
	if s.Interrupt(ctx) == nil {
		select {
		case <-c.ended:
			return
		case <-ctx.Done():
		}
	}
	if !s.alive() {
		return // the error of the session says why
	}
	err := fmt.Errorf("claude-code: the CLI %s did not end a turn that took longer than Options.TurnTimeout, %v", s.path, s.opts.TurnTimeout)
	if s.inbox.finish(err) {
		s.ch.cancel(err)
	}
}

// Interrupt stops the running turn, or the turn that the next input is about to begin. The CLI ignores
// an interrupt before a turn has begun, so this engine sends it again when the CLI runs the hooks on
// the input, before the model sees it.
func (s *session) Interrupt(ctx context.Context) error { return s.interrupt(ctx, nil, nil) }

func (s *session) interrupt(ctx context.Context, fields, receipt any) error {
	if s.isClosed() {
		return agent.ErrClosed
	}
	return s.ch.requestThen(ctx, "interrupt", fields, receipt, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.turn.interruptNext = !s.turn.running && len(s.turn.waiting) > 0
	})
}

// beginTurn is a hook of this engine on UserPromptSubmit.
func (s *session) beginTurn(ctx context.Context, _ json.RawMessage) (any, error) {
	s.mu.Lock()
	interrupted := s.turn.interruptNext
	s.turn.interruptNext, s.turn.running = false, true
	s.mu.Unlock()
	if interrupted {
		return nil, s.ch.request(ctx, "interrupt", nil, nil)
	}
	return nil, nil //nolint:nilnil // no output
}

// handleLine handles a line that is not part of the control protocol.
func (s *session) handleLine(l *event.Line, size int) {
	switch {
	case l.Mirror != nil:
		s.mirror(l.Mirror.Path, l.Mirror.Entries)
		return
	case l.ToolInput != nil:
		s.inputs.add(l.ToolInput)
	}
	if l.Message == nil && l.Lifecycle == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.Lifecycle != nil {
		if state := l.Lifecycle.State; state == "completed" || state == "cancelled" {
			delete(s.turn.waiting, l.Lifecycle.UUID)
		}
	} else if s.follow(l) {
		s.inbox.put(l.Message, size)
	}
	if s.turn.quiet() {
		s.turn.stopClock()
	}
	s.endIfQuiet()
}

// follow updates the state of the session, and changes a message to what package agent documents. It
// reports whether the program gets the message. The caller holds s.mu.
func (s *session) follow(l *event.Line) bool {
	t := &s.turn
	switch m := l.Message.(type) {
	case *agent.SystemInit:
		s.servers.correct(m.MCPServers)
		m.MCPServerErrors = slices.Concat(m.MCPServerErrors, s.opts.ConfigProblems, s.servers.problems())
		t.idle, t.expected, t.running = false, "", true
		s.reported = reported{SessionID: m.SessionID, CWD: m.CWD, PermissionMode: m.PermissionMode}
		s.reviewRules()
	case *agent.Assistant:
		s.followAssistant(m)
	case *agent.User:
		t.empty.addUser(m)
		for _, r := range m.ToolResults() {
			if result := s.inputs.result(r.ToolUseID); result != nil {
				m.ToolUseResult = result
			}
			s.inputs.setOpen(r.ToolUseID, false)
			s.inbox.forget(r.ToolUseID)
		}
	case *agent.Result:
		s.followResult(m)
	}
	switch e := l.Event.(type) {
	case *event.SessionState:
		t.idle, t.expected = e.State == "idle", ""
		return !e.HostOnly
	case *event.Status: // "requesting" belongs to the stream, which may be there for the inputs alone
		return s.opts.IncludePartialMessages || e.Status != "requesting" || e.PermissionMode != ""
	}
	return true
}

// followAssistant counts a message of the model and restores the inputs of its calls.
func (s *session) followAssistant(m *agent.Assistant) {
	if m.ParentToolUseID == "" {
		s.turn.responses[m.Message.ID] = true
		s.turn.empty.awaited = false
	}
	for _, u := range m.ToolUses() {
		switch {
		case m.ParentToolUseID != "":
			s.inputs.setOpen(u.ID, true)
		case u.Name == outputTool:
			s.inputs.gaveOutput(u.ID)
		}
		u.Input = s.inputs.complete(u.ID, u.Input)
	}
}

// followResult ends a turn. The CLI's num_turns includes messages of the user, and its list of inputs
// includes those to which the program gave no UUID.
func (s *session) followResult(m *agent.Result) {
	t := &s.turn
	if t.results++; t.results == 1 {
		close(s.answered)
	}
	for _, id := range m.UserMessageUUIDs {
		delete(t.waiting, id)
	}
	m.UserMessageUUIDs = slices.DeleteFunc(m.UserMessageUUIDs, s.ids.has)
	if len(m.UserMessageUUIDs) == 0 {
		m.UserMessageUUIDs = nil
	}
	m.NumTurns = len(t.responses) + t.empty.total(m)
	m.StructuredOutput = s.inputs.restoreOutput(m.StructuredOutput)
	if m.StructuredOutput != nil && sameRounded(json.RawMessage(m.Result), m.StructuredOutput) {
		m.Result = string(m.StructuredOutput)
	}
	s.judge(m)
	t.running, t.interruptNext, t.stopped = false, false, ""
	t.stopClock()
	if len(t.waiting) > 0 {
		s.startClock()
	}
	clear(t.responses)
	t.empty = emptyResponses{awaited: true}
	s.inputs.endTurn()
}

// judge makes an error of the result of a turn that took too long, that a hook stopped, or that has no
// structured output, where the CLI reports an interruption or a success.
func (s *session) judge(m *agent.Result) {
	fail := func(subtype, reason, text string) {
		m.Subtype, m.TerminalReason, m.IsError, m.Result, m.Errors = subtype, reason, true, "", []string{text}
	}
	aborted := m.TerminalReason == agent.ReasonAbortedTools
	clock, stopped := s.turn.clock, s.turn.stopped
	switch {
	case clock != nil && clock.late && (aborted || m.TerminalReason == agent.ReasonAbortedStreaming):
		fail(agent.SubtypeErrorTurnTimeout, agent.ReasonTurnTimeout,
			fmt.Sprintf("The turn was stopped because it took longer than %v (Options.TurnTimeout).", s.opts.TurnTimeout))
	case stopped != "" && aborted: // the hook's denial interrupted the turn
		m.TerminalReason, m.Errors = agent.ReasonHookStopped, []string{stopped}
	case m.Subtype != agent.SubtypeSuccess || m.IsError:
	case stopped != "" && m.NumTurns == 0, m.TerminalReason == agent.ReasonHookStopped:
		fail(agent.SubtypeErrorDuringExecution, agent.ReasonHookStopped, cmp.Or(stopped, "a hook stopped the turn"))
	case s.opts.OutputSchema != nil && m.StructuredOutput == nil:
		fail(agent.SubtypeErrorStructuredOutput, agent.ReasonStructuredOutput, "the model gave no output that matches the schema")
	}
}

// turnState is where the turns of a session are. The session's mutex guards it.
type turnState struct {
	waiting map[string]bool // inputs that have no end yet, by UUID
	// unplaced is how many inputs were sent. Only a result says what became of one that the CLI does
	// not report by its UUID.
	unplaced int
	results  int
	idle     bool // the CLI waits for input
	// expected is the input for which idle is false while the CLI has reported nothing itself.
	expected string
	running  bool // the CLI has begun a turn that has no result
	// interruptNext is set if the CLI was asked to interrupt a turn before it had begun it.
	interruptNext bool
	clock         *turnClock      // nil without a turn or a limit
	responses     map[string]bool // IDs of the model's messages in this turn
	empty         emptyResponses
	stopped       string // why a hook ended the turn
}

func newTurnState() turnState {
	return turnState{waiting: map[string]bool{}, idle: true, responses: map[string]bool{}, empty: emptyResponses{awaited: true}}
}

// allAnswered reports whether no input waits for a result. A session that had inputs has a result.
func (t *turnState) allAnswered() bool {
	return len(t.waiting) == 0 && (t.results > 0 || t.unplaced == 0)
}

// quiet reports whether the CLI is idle and no input waits.
func (t *turnState) quiet() bool { return t.idle && len(t.waiting) == 0 }

// A ruleReview finds rules for tools that do not exist, which the CLI does not report.
type ruleReview struct {
	done     bool // there is nothing more to find
	running  bool // the CLI must not end yet
	reported map[string]bool
}

// A turnClock bounds the time of a turn.
type turnClock struct {
	timer *time.Timer
	ended chan struct{} // closed when the turn has ended
	late  bool          // the turn took too long and is interrupted
}

// stopClock ends the time of a turn.
func (t *turnState) stopClock() {
	if t.clock == nil {
		return
	}
	t.clock.timer.Stop()
	close(t.clock.ended)
	t.clock = nil
}

// emptyResponses counts the model's messages in a turn that the CLI does not show: messages without
// visible content, and one that was interrupted before it had any. The counter goes by what the CLI
// says to the model next. The model's stream would mislead: a message that is requested again after
// its stream broke is in it twice, and one that was interrupted before it began is not in it.
type emptyResponses struct {
	awaited bool // a message of the model is next
	n       int
}

// retries are the beginnings of what the CLI says to the model after a message that it does not show.
// It may say the same after one that it shows.
var retries = []string{
	"[Your previous response had no visible output.", "Output token limit hit", "Your response above was ",
	"Stop hook feedback", "[structured-output-enforce]", "Your tool call was malformed", "The previous response failed ",
}

// addUser adds a message to the model.
func (e *emptyResponses) addUser(m *agent.User) {
	if m.ParentToolUseID != "" {
		return
	}
	text := m.Message.Content.Text()
	retried := m.IsSynthetic && slices.ContainsFunc(retries, func(r string) bool { return strings.HasPrefix(text, r) })
	if retried && e.awaited {
		e.n++
	}
	e.awaited = e.awaited || retried || len(m.ToolResults()) > 0
}

// total returns the number of empty responses in the turn of a result. The CLI says nothing after the
// last response of a turn.
func (e *emptyResponses) total(r *agent.Result) int {
	last := false
	switch r.TerminalReason {
	case agent.ReasonAbortedStreaming:
		last = true
	case agent.ReasonCompleted, agent.ReasonStopHookPrevented:
		// A turn without a request to the model is a success, too. Its num_turns is at most 1.
		last = r.Subtype != agent.SubtypeSuccess || r.NumTurns > 1 && r.StructuredOutput == nil
	case agent.ReasonBudgetExhausted:
		last = r.StopReason != "" && r.StopReason != "tool_use" // else the turn ended before the next request
	}
	if last && e.awaited {
		return e.n + 1
	}
	return e.n
}

// inputIDs makes UUIDs for inputs that have none. Those of a session have the same beginning.
type inputIDs struct {
	first uuid.UUID
	n     atomic.Uint32
}

func newInputIDs() *inputIDs { return &inputIDs{first: uuid.New()} }

func (u *inputIDs) next() string {
	id := u.first
	binary.BigEndian.PutUint32(id[12:], u.n.Add(1))
	return id.String()
}

// has reports whether next returned the ID.
func (u *inputIDs) has(id string) bool {
	got, err := uuid.Parse(id)
	return err == nil && [12]byte(got[:12]) == [12]byte(u.first[:12])
}
