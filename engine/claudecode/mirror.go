package claudecode

import (
	"encoding/json"

	"github.com/tenon-sdk/tenon/agent"
)

// mirror hands what the CLI has written to its transcripts to the program. Nobody else sees it.
func (s *session) mirror(line json.RawMessage) {
	f := s.engine.opts.Mirror
	if f == nil {
		return
	}
	var m struct {
		Path    string            `json:"filePath"`
		Entries []json.RawMessage `json:"entries"`
	}
	if err := json.Unmarshal(line, &m); err != nil {
		s.noise(line)
		return
	}
	if _, err := contained(s, "Mirror", func() (agent.Message, error) { f(m.Path, m.Entries); return nil, nil }); err != nil {
		s.opts.Logger.Warn("claude-code: Mirror failed", "path", m.Path, "error", err)
	}
}
