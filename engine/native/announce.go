package native

import (
	"fmt"
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
	// maxGone bounds the names of tools that went, in one announcement.
	maxGone = 1 << 10
)

// rewind forgets what the conversation has had since m, when the model knew of what told says.
func (s *session) rewind(m transcript.Position, told *toolset.Announced) {
	s.history.Rewind(m)
	s.finder.Announced = told
}

// keep notes that the API has taken the conversation as it is.
func (s *session) keep() {
	s.accepted = s.history.Position()
	s.finder.Accepted = s.finder.Announced
	s.heard.fresh = nil
}

// introduce makes the parts of the system prompt that tell of the servers. They are made once, before
// the first turn: what changes later is announced in the conversation, so that the prompt before it
// stays the same.
func (s *session) introduce() {
	now := &toolset.Announced{Tools: map[string]bool{}, Instructions: map[string]bool{}}
	status := s.serverStatus()
	if text := instructions(status, s.permissions(), func(server string) bool { return false }, now.Instructions); text != "" {
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

// withheld are the tools whose definitions the model does not have from the start.
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

// announce tells the model what has changed about the servers since it was last told. It is called
// before each request; a conversation that does not end with the user's words has to wait.
func (s *session) announce() {
	f, h := &s.finder, &s.history
	revision := s.revision()
	if n := len(h.Entries); n == 0 || h.Entries[n-1].Role != transcript.RoleUser || f.Announced.Table == s.table && f.Announced.Revision == revision {
		return
	}
	now := &toolset.Announced{Tools: map[string]bool{}, Instructions: map[string]bool{}, Table: s.table, Revision: revision}
	var parts []string
	withheld := s.withheld()
	var fresh []toolsearch.Tool
	for _, t := range withheld {
		now.Tools[t.FullName] = true
		if !f.Announced.Tools[t.FullName] {
			fresh = append(fresh, t)
		}
	}
	if len(fresh) > 0 {
		parts = append(parts, fmt.Sprintf("%d more tools can be loaded with %s now:\n%s", len(fresh), toolset.SearchTool, toolsearch.Summary(fresh, maxNames)))
	}
	if gone := missing(f.Announced.Tools, now.Tools); len(gone) > 0 && f.Active {
		parts = append(parts, fmt.Sprintf("%d tools are no longer available: %s", len(gone), clip.Text(strings.Join(gone, ", "), maxGone)))
	}
	for server := range f.Announced.Instructions {
		now.Instructions[server] = true
	}
	if text := instructions(s.serverStatus(), s.permissions(), func(server string) bool { return f.Announced.Instructions[server] }, now.Instructions); text != "" {
		parts = append(parts, text)
	}
	if now.Pending = s.pendingText(); now.Pending != "" && now.Pending != f.Announced.Pending {
		parts = append(parts, now.Pending)
	}
	if len(parts) > 0 {
		s.tell("<system-reminder>\n" + strings.Join(parts, "\n\n") + "\n</system-reminder>")
	}
	f.Announced = now
}

// pendingText tells of servers that are still connecting; empty when there are none, or no search.
func (s *session) pendingText() string {
	names := s.connecting()
	if len(names) == 0 || !s.finder.Active {
		return ""
	}
	return fmt.Sprintf("These MCP servers are still connecting: %s. Their tools will appear shortly; %s waits for them.",
		clip.Text(oneLines(names), maxGone), toolset.SearchTool)
}

// missing are the names that were there and are no longer, sorted.
func missing(before, now map[string]bool) []string {
	var gone []string
	for name := range before {
		if !now[name] {
			gone = append(gone, name)
		}
	}
	slices.Sort(gone)
	return gone
}
