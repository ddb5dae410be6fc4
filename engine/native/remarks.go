package native

import (
	"bytes"
	"cmp"
	"context"

	"github.com/google/uuid"

	"github.com/tenon-sdk/tenon/agent"
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

// addInput adds an input to the conversation. With ReplayUserMessages the program gets it as the model reads it.
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
