package native

import (
	"encoding/json"
	"slices"

	"github.com/tenon-sdk/tenon/agent"
)

// stored is a conversation as a program keeps it: written as JSON and read again.
func (s *scene) stored(msgs []agent.Message) []agent.Message {
	var out []agent.Message
	for _, m := range msgs {
		line, err := json.Marshal(m)
		if err != nil {
			s.t.Fatalf("seed %d: %v", s.seed, err)
		}
		again, err := agent.DecodeMessage(line)
		if err != nil {
			s.t.Fatalf("seed %d: %v", s.seed, err)
		}
		out = append(out, again)
	}
	return out
}

// damaged is what is left of a conversation that was not kept well.
func (s *scene) damaged(msgs []agent.Message) []agent.Message {
	msgs = s.stored(msgs)
	if s.n(3) == 0 { // a program that keeps what was said, and nothing else
		msgs = slices.DeleteFunc(msgs, func(m agent.Message) bool {
			_, said := m.(*agent.Assistant)
			_, heard := m.(*agent.User)
			return !said && !heard
		})
	}
	for range s.n(8) {
		if len(msgs) == 0 {
			break
		}
		i, j := s.n(len(msgs)), s.n(len(msgs))
		switch s.one(3, 2, 2, 1, 1, 4, 2) {
		case 0:
			msgs = slices.Delete(msgs, i, i+1)
		case 1:
			msgs = slices.Insert(msgs, j, msgs[i])
		case 2:
			msgs[i], msgs[j] = msgs[j], msgs[i]
		case 3:
			msgs = msgs[:i]
		case 4:
			msgs = msgs[i:]
		case 5:
			msgs[i] = s.corrupt(msgs[i])
		case 6:
			msgs = slices.Insert(msgs, i, agent.Message(&agent.User{Message: agent.UserMessage{Content: agent.TextContent([]string{"by hand", "", " "}[s.n(3)])}}))
		}
	}
	return msgs
}

// corrupt changes one thing in a message.
func (s *scene) corrupt(m agent.Message) agent.Message {
	line, err := json.Marshal(m)
	var tree map[string]any
	if err != nil || json.Unmarshal(line, &tree) != nil {
		s.t.Fatalf("seed %d: %s: %v", s.seed, line, err)
	}
	content := tree
	if message, ok := tree["message"].(map[string]any); ok && s.n(5) > 0 {
		content = message
	}
	s.spoil(content, 0)
	line, err = json.Marshal(tree)
	if err != nil {
		s.t.Fatal(err)
	}
	again, err := agent.DecodeMessage(line)
	if err != nil {
		s.t.Fatal(err)
	}
	return again
}

var garbage = []any{
	nil, true, 7.0, "", " ", "x y/z", "toolu_1", "text", "tool_use", "tool_result", "image", "document", "server_tool_use", "tool_reference",
	map[string]any{},
	[]any{},
	[]any{nil},
	[]any{map[string]any{"type": "text"}},
	map[string]any{"type": "text", "text": "more"},
	[]any{map[string]any{"type": "image", "source": map[string]any{"type": "base64", "media_type": "image/png", "data": "AAAA"}}},
	[]any{map[string]any{"type": "tool_reference", "tool_name": "mcp__s__read"}, map[string]any{"type": "tool_reference", "tool_name": "gone"}},
	[]any{map[string]any{"type": "document", "source": map[string]any{"type": "text", "media_type": "text/plain", "data": ""}}},
}

// spoil puts garbage somewhere into a tree of JSON. It leaves thoughts alone: whether their signature
// fits them only the API can tell.
func (s *scene) spoil(tree any, depth int) any {
	if depth > 0 && s.n(4) == 0 {
		return garbage[s.n(len(garbage))]
	}
	switch t := tree.(type) {
	case map[string]any:
		if t["type"] == "thinking" {
			return t
		}
		var names []string
		for name := range t {
			names = append(names, name)
		}
		slices.Sort(names)
		if len(names) == 0 {
			return t
		}
		name := names[s.n(len(names))]
		switch s.n(6) {
		case 0:
			delete(t, name)
		case 1:
			t["surprise"] = garbage[s.n(len(garbage))]
		case 2:
			t["cache_control"] = map[string]any{"type": "ephemeral"}
		default:
			t[name] = s.spoil(t[name], depth+1)
		}
		return t
	case []any:
		if len(t) > 0 {
			i := s.n(len(t))
			t[i] = s.spoil(t[i], depth+1)
		}
		return t
	}
	return garbage[s.n(len(garbage))]
}
