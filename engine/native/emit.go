package native

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
)

// delivered lists the UUIDs of messages of the conversation that the program has received or sent. If a
// failed request removes messages from the conversation, Supersedes names them.
type delivered struct {
	fresh []string // in the user's role, since the API last accepted the conversation
	turn  []string // in either role, since the turn began
}

func (d *delivered) add(id string) {
	if id != "" {
		d.fresh = append(d.fresh, id)
		d.turn = append(d.turn, id)
	}
}

// tell adds a text of the engine to the conversation. With ReplayUserMessages the program gets it as well.
func (s *session) tell(text string) {
	if s.opts.ReplayUserMessages {
		s.remark(text)
		return
	}
	s.history.AddUser(transcript.TextPart(text))
}

// remark adds a text of the engine to the conversation and gives it to the program.
func (s *session) remark(text string) {
	s.history.AddUser(transcript.TextPart(text))
	m := s.userMessage(agent.Content{&agent.TextBlock{Text: text}})
	m.IsSynthetic = true
	s.deliver(m)
}

// userMessage returns a message in the user's role.
func (s *session) userMessage(content agent.Content) *agent.User {
	return &agent.User{
		Message:   agent.UserMessage{Role: transcript.RoleUser, Content: content},
		Timestamp: now(), SessionID: s.opts.SessionID, UUID: uuid.NewString(),
	}
}

// deliver emits a message in the user's role that is part of the conversation.
func (s *session) deliver(m *agent.User) {
	s.emit(m)
	s.delivered.add(m.UUID)
}

// addInput adds an input to the conversation. With ReplayUserMessages the program gets it in the form for
// the model.
func (s *session) addInput(in *agent.Input, parts []transcript.Part) {
	s.history.AddUser(parts...)
	if !s.opts.ReplayUserMessages {
		s.delivered.add(in.UUID)
		return
	}
	content := make(agent.Content, len(parts))
	for i, p := range parts {
		content[i] = agent.DecodeBlock(p.Raw)
	}
	if len(parts) == 1 && len(in.Content) == 1 && bytes.Equal(parts[0].Raw, transcript.EncodeBlock(in.Content[0])) {
		content = in.Content // which may be one plain text
	}
	m := s.userMessage(content)
	m.IsReplay, m.UUID = true, cmp.Or(in.UUID, m.UUID)
	s.deliver(m)
}

// tagImageFitted is the tag of the message about an image of the program that was scaled down.
const tagImageFitted = "image_fitted"

// enter returns the program's content as it is sent, without empty blocks, with images that fit a request
// with many images, and with cache breakpoints apart, because a request can have only a few.
func (s *session) enter(ctx context.Context, content agent.Content) []transcript.Part {
	parts, notes := transcript.Enter(ctx, content)
	for _, note := range notes {
		s.inform(note, tagImageFitted)
	}
	return parts
}

// fail returns the result of a turn that ended with an error.
func (t *turn) fail(reason, message string) *agent.Result {
	return t.result(agent.SubtypeErrorDuringExecution, reason, message)
}

// result returns the turn's result. message is empty unless it is an error.
func (t *turn) result(subtype, reason, message string) *agent.Result {
	s := t.s
	for _, c := range t.orphans { // the program knows these calls, and the model does not
		t.report(errorAnswer(c, textBrokeOff))
	}
	t.orphans = nil
	r := &agent.Result{
		Subtype: subtype, IsError: subtype != agent.SubtypeSuccess, TerminalReason: reason,
		DurationMS: time.Since(t.began).Milliseconds(), DurationAPIMS: t.apiTime.Milliseconds(), NumTurns: t.asked,
		TotalCostUSD: s.cost, Usage: t.usage, ModelUsage: maps.Clone(s.totals),
		ResultIndex: s.results, QueuedTurnCount: s.queued(), UserMessageUUIDs: t.uuids,
		SessionID: s.opts.SessionID, UUID: uuid.NewString(),
	}
	s.results++
	t.mu.Lock()
	r.PermissionDenials = t.denials
	t.mu.Unlock()
	if t.last != nil {
		r.StopReason = agent.NullString(t.last.Stop)
		if subtype == agent.SubtypeSuccess {
			r.Result = t.last.Text()
		}
	}
	if message != "" {
		r.Errors = []string{message}
	}
	var unpriced []string // models without a known price, which the cost does not include
	for m, u := range s.totals {
		if _, ok := s.engine.priceOf(m); !ok && u.CostUSD == 0 {
			unpriced = append(unpriced, m)
		}
	}
	if slices.Sort(unpriced); unpriced != nil {
		r.Extra = agent.Fields{"unpriced_models": transcript.Encode(unpriced)}
	}
	return r
}

// initMessage returns the message that opens a turn.
func (s *session) initMessage() *agent.SystemInit {
	status := s.serverStatus()
	s.mu.Lock()
	model, mode := s.wantModel, s.policy.Mode()
	s.mu.Unlock()
	m := &agent.SystemInit{
		CWD: s.opts.Dir, SessionID: s.opts.SessionID, Tools: s.table.Names(), MCPServers: toolset.ServerRows(status),
		SlashCommands: s.commandNames(s.life, ""), Model: model, PermissionMode: string(mode), APIKeySource: s.api.KeySource, UUID: uuid.NewString(),
	}
	if s.output != nil {
		m.Tools = append(m.Tools, s.output.model.Name)
	}
	m.MCPServerErrors = slices.Concat(s.opts.ConfigProblems, toolset.RejectedTools(status))
	return m
}
