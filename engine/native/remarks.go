package native

import (
	"bytes"
	"context"

	"github.com/google/uuid"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
)

// heard are the UUIDs of the messages in which the program has heard the conversation, or has said its
// part of it: of a failure that takes something out of the conversation it hears which ones are meant.
type heard struct {
	fresh []string // in the user's role, since the API has accepted the conversation
	turn  []string // in either role, since the turn began
}

func (h *heard) add(id string) {
	if id == "" {
		return
	}
	h.fresh = append(h.fresh, id)
	h.turn = append(h.turn, id)
}

// tell tells the model something of the run's own. The program hears of it if it wants the whole conversation.
func (s *session) tell(text string) {
	s.history.AddUser(transcript.TextPart(text))
	if s.opts.ReplayUserMessages {
		s.emitRemark(text)
	}
}

// remark tells both something of the run's own.
func (s *session) remark(text string) {
	s.history.AddUser(transcript.TextPart(text))
	s.emitRemark(text)
}

func (s *session) emitRemark(text string) {
	m := &agent.User{
		Message:     agent.UserMessage{Role: transcript.RoleUser, Content: agent.Content{&agent.TextBlock{Text: text}}},
		IsSynthetic: true, Timestamp: now(), SessionID: s.opts.SessionID, UUID: uuid.NewString(),
	}
	s.emit(m)
	s.heard.add(m.UUID)
}

// replay is the echo of an input that has become part of the conversation, in the form in which the model reads it.
func (s *session) replay(in *agent.Input, parts []transcript.Part) {
	if !s.opts.ReplayUserMessages {
		s.heard.add(in.UUID)
		return
	}
	content := make(agent.Content, len(parts))
	for i, p := range parts {
		content[i] = agent.DecodeBlock(p.Raw)
	}
	if len(parts) == 1 && len(in.Content) == 1 && bytes.Equal(parts[0].Raw, transcript.EncodeBlock(in.Content[0])) {
		content = in.Content // which may be one plain text
	}
	m := &agent.User{
		Message: agent.UserMessage{Role: transcript.RoleUser, Content: content}, IsReplay: true,
		Timestamp: now(), SessionID: s.opts.SessionID, UUID: in.UUID,
	}
	if m.UUID == "" {
		m.UUID = uuid.NewString()
	}
	s.emit(m)
	s.heard.add(m.UUID)
}

// enter makes the blocks of the program's content as they are sent, without those that hold nothing. Every
// later request has to be one that the API takes: images are brought within the limits of a request with
// many images, and breakpoints of the cache are kept apart, since a request has only so many.
func (s *session) enter(ctx context.Context, content agent.Content) []transcript.Part {
	parts, notes := transcript.Enter(ctx, content)
	for _, note := range notes {
		s.inform(note, tagImageFitted)
	}
	return parts
}

// tagImageFitted marks the message about an image of the program's that was scaled down.
const tagImageFitted = "image_fitted"
