package native

import "github.com/tenon-sdk/tenon/agent"

// adoptResults lets the model go on reading the stored results that a given history names: those in
// [Options.ResultsDir], where an earlier run left them. With one of them the tool to read them is offered.
func (s *session) adoptResults(history []agent.Message) {
	for _, m := range history {
		u, ok := m.(*agent.User)
		if !ok {
			continue
		}
		for _, b := range u.Message.Content {
			if r, ok := b.(*agent.ToolResultBlock); ok && s.store.AdoptFrom(r.Text()) {
				s.stored.Store(true)
			}
		}
	}
}
