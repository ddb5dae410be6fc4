package native

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/toolsearch"
)

const (
	// maxNames bounds the names of withheld tools in the system prompt, and in each later announcement.
	maxNames = toolsearch.DefaultSummary
	// maxGone bounds the names of removed tools in one announcement.
	maxGone = 1 << 10
)

// rewind removes what was added to the conversation since m. announced is what the model knew then.
func (s *session) rewind(m transcript.Position, announced *toolset.Announced) {
	s.history.Rewind(m)
	s.finder.Announced = announced
}

// markAccepted notes that the API has accepted the conversation.
func (s *session) markAccepted() {
	s.accepted = s.history.Position()
	s.finder.Accepted = s.finder.Announced
	s.delivered.fresh = nil
}

// introduce makes the parts of the system prompt about the servers, once, before the first turn. Later
// changes are announced in the conversation, so that the prompt stays the same.
func (s *session) introduce() {
	now := &toolset.Announced{Tools: map[string]bool{}, Instructions: map[string]bool{}}
	if text := instructions(s.serverStatus(), s.permissions(), nil, now.Instructions); text != "" {
		s.system = append(s.system, text)
	}
	if withheld := s.withheld(); len(withheld) > 0 {
		for _, t := range withheld {
			now.Tools[t.FullName] = true
		}
		s.system = append(s.system, namesIntro+toolsearch.Summary(withheld, maxNames))
	}
	s.finder.Announced, s.finder.Accepted = now, now
}

const namesIntro = "# Tools that have to be loaded\n\nBeside the tools that you have been given there are these. " +
	"Load what you need with " + toolset.SearchTool + " before you call it; where only servers and numbers are listed, search for what you need.\n\n"

// withheld returns the tools whose definitions the model has to load.
func (s *session) withheld() []toolsearch.Tool {
	if !s.finder.Active {
		return nil
	}
	var tools []toolsearch.Tool
	for _, tl := range s.table.Tools {
		if tl.Deferrable() {
			tools = append(tools, toolsearch.Tool{FullName: tl.Model.Name, Server: oneLine(tl.Server), Name: oneLine(tl.Name)})
		}
	}
	return tools
}

// announce tells the model before a request what has changed about the servers. If the conversation does
// not end with a message of the user, the announcement waits for a later request.
func (s *session) announce() {
	f, h := &s.finder, &s.history
	before, revision := f.Announced, s.revision()
	if n := len(h.Entries); n == 0 || h.Entries[n-1].Role != transcript.RoleUser || before.Table == s.table && before.Revision == revision {
		return
	}
	now := &toolset.Announced{Tools: map[string]bool{}, Instructions: map[string]bool{}, Table: s.table, Revision: revision}
	maps.Copy(now.Instructions, before.Instructions)
	var parts []string
	var fresh []toolsearch.Tool
	for _, t := range s.withheld() {
		now.Tools[t.FullName] = true
		if !before.Tools[t.FullName] {
			fresh = append(fresh, t)
		}
	}
	if len(fresh) > 0 {
		parts = append(parts, fmt.Sprintf("%d more tools can be loaded with %s now:\n%s", len(fresh), toolset.SearchTool, toolsearch.Summary(fresh, maxNames)))
	}
	gone := maps.Clone(before.Tools)
	maps.DeleteFunc(gone, func(name string, _ bool) bool { return now.Tools[name] })
	if len(gone) > 0 && f.Active {
		names := strings.Join(slices.Sorted(maps.Keys(gone)), ", ")
		parts = append(parts, fmt.Sprintf("%d tools are no longer available: %s", len(gone), clip.Text(names, maxGone)))
	}
	if text := instructions(s.serverStatus(), s.permissions(), before.Instructions, now.Instructions); text != "" {
		parts = append(parts, text)
	}
	if names := s.connecting(); len(names) > 0 && f.Active {
		now.Pending = fmt.Sprintf("These MCP servers are still connecting: %s. Their tools will appear shortly; %s waits for them.",
			clip.Text(oneLines(names), maxGone), toolset.SearchTool)
	}
	if now.Pending != "" && now.Pending != before.Pending {
		parts = append(parts, now.Pending)
	}
	if len(parts) > 0 {
		s.tell("<system-reminder>\n" + strings.Join(parts, "\n\n") + "\n</system-reminder>")
	}
	f.Announced = now
}
