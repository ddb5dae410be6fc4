package native

import (
	"bytes"
	"path/filepath"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/toolresult"
)

// adoptResults lets the model go on reading the stored results that a given history names: those in
// [Options.ResultsDir], where an earlier run left them. With one of them the tool to read them is offered. What
// a server said in the words in which the host tells of a stored result leads nowhere: its own result has the name.
func (s *session) adoptResults(history []agent.Message) {
	for _, m := range history {
		u, ok := m.(*agent.User)
		if !ok {
			continue
		}
		for _, b := range u.Message.Content {
			r, ok := b.(*agent.ToolResultBlock)
			if !ok || r.IsError {
				continue
			}
			file := filepath.Base(toolresult.StoredPath(r.Text()))
			if !bytes.Contains(u.ToolUseResult, []byte(file)) && s.store.AdoptFrom(r.Text()) {
				s.stored.Store(true)
			}
		}
	}
}
