package native

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/tenon-sdk/tenon/agent"
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
	s.history.addUser(textPart(text))
	if s.opts.ReplayUserMessages {
		s.emitRemark(text)
	}
}

// remark tells both something of the run's own.
func (s *session) remark(text string) {
	s.history.addUser(textPart(text))
	s.emitRemark(text)
}

func (s *session) emitRemark(text string) {
	m := &agent.User{
		Message:     agent.UserMessage{Role: roleUser, Content: agent.Content{&agent.TextBlock{Text: text}}},
		IsSynthetic: true, Timestamp: now(), SessionID: s.opts.SessionID, UUID: uuid.NewString(),
	}
	s.emit(m)
	s.heard.add(m.UUID)
}

// replay is the echo of an input that has become part of the conversation, in the form in which the model reads it.
func (s *session) replay(in *agent.Input, parts []part) {
	if !s.opts.ReplayUserMessages {
		s.heard.add(in.UUID)
		return
	}
	content := make(agent.Content, len(parts))
	for i, p := range parts {
		content[i] = agent.DecodeBlock(p.raw)
	}
	if len(parts) == 1 && len(in.Content) == 1 && bytes.Equal(parts[0].raw, encodeBlock(in.Content[0])) {
		content = in.Content // which may be one plain text
	}
	m := &agent.User{
		Message: agent.UserMessage{Role: roleUser, Content: content}, IsReplay: true,
		Timestamp: now(), SessionID: s.opts.SessionID, UUID: in.UUID,
	}
	if m.UUID == "" {
		m.UUID = uuid.NewString()
	}
	s.emit(m)
	s.heard.add(m.UUID)
}

// droppedResult answers a call whose result the API refused.
func droppedResult(why string) string {
	return "The result of this tool call was dropped because the API refused it: " + clip(why, 500)
}

// encodeBlock encodes a block in the one form that it keeps: what the program hears of it, writes as
// JSON and gives back in [agent.Options.History] encodes as the same bytes.
func encodeBlock(b agent.Block) json.RawMessage {
	switch t := b.(type) {
	case *agent.TextBlock:
		if !utf8.ValidString(t.Text) {
			valid := *t
			valid.Text = strings.ToValidUTF8(t.Text, "\uFFFD")
			b = &valid
		}
	case *agent.UnknownBlock:
		b = agent.DecodeBlock(encode(t)) // it may be of a kind that is known
	}
	return canonical(encode(b))
}

// canonical gives JSON text the escapes that json.Marshal gives it, and takes away those of U+FFFD.
func canonical(raw json.RawMessage) json.RawMessage {
	if bytes.ContainsAny(raw, "<>&") || bytes.Contains(raw, []byte("\u2028")) || bytes.Contains(raw, []byte("\u2029")) {
		var b bytes.Buffer
		json.HTMLEscape(&b, raw)
		raw = b.Bytes()
	}
	if !bytes.Contains(raw, []byte(`\ufffd`)) && !bytes.Contains(raw, []byte(`\uFFFD`)) {
		return raw
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		switch {
		case raw[i] != '\\' || i+1 >= len(raw):
			out = append(out, raw[i])
		case i+6 <= len(raw) && bytes.EqualFold(raw[i:i+6], []byte(`\ufffd`)) && raw[i+1] == 'u':
			out = append(out, "\uFFFD"...)
			i += 5
		default:
			out = append(out, raw[i], raw[i+1])
			i++
		}
	}
	return out
}

// trimmed is the history as it is sent: the API refuses one that ends with white space of the model's,
// which a response that is gone on with may do.
func (h *history) trimmed() *history {
	n := len(h.entries)
	if n == 0 || h.entries[n-1].role != roleAssistant {
		return h
	}
	last := h.entries[n-1]
	text, ok := agent.DecodeBlock(last.parts[len(last.parts)-1].raw).(*agent.TextBlock)
	if !ok || strings.TrimRight(text.Text, " \t\r\n") == text.Text {
		return h
	}
	text.Text = strings.TrimRight(text.Text, " \t\r\n")
	last.parts = slices.Clone(last.parts)
	last.parts[len(last.parts)-1].raw = encodeBlock(text)
	sent := &history{entries: slices.Clone(h.entries), ids: h.ids}
	sent.entries[n-1] = last
	return sent
}
