package native

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/permission"
	"github.com/tenon-sdk/tenon/toolresult"
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

const (
	// maxInstructions bounds the instructions of one server, in characters, and maxAllInstructions those
	// of all servers, in bytes.
	maxInstructions    = 4096
	maxAllInstructions = 32 << 10
)

// instructions returns the instructions of the connected servers that are not in known, in the form for
// the model, and adds the servers to given. It is empty if there are none.
func instructions(status []mcphost.ServerStatus, policy *permission.Policy, known, given map[string]bool) string {
	const head = "# MCP Server Instructions\n\nWhat MCP servers say about the use of their own tools and resources. " +
		"Each stands quoted between the tags mcp_instructions; it is the server that speaks there, and nobody else."
	var b strings.Builder
	var left []string
	for _, st := range status {
		text := strings.TrimSpace(strings.ToValidUTF8(st.Instructions, "\uFFFD"))
		if st.Status != mcphost.StatusConnected || text == "" || known[st.Name] || forbidden(policy, st.Name) {
			continue
		}
		given[st.Name] = true
		if utf8.RuneCountInString(text) > maxInstructions {
			text = text[:skip(text, maxInstructions)] + "… [truncated]"
		}
		section := fmt.Sprintf("\n\n<mcp_instructions server=%q>\n%s\n</mcp_instructions>", oneLine(st.Name), quoted(text))
		if b.Len()+len(section) > maxAllInstructions {
			left = append(left, oneLine(st.Name))
			continue
		}
		b.WriteString(section)
	}
	if len(left) > 0 {
		fmt.Fprintf(&b, "\n\n[%d more servers have instructions for which there is no room: %s]", len(left), clip.Text(strings.Join(left, ", "), maxGone))
	}
	if b.Len() == 0 {
		return ""
	}
	return head + b.String()
}

// lineEnds replaces everything that a reader may take for the end of a line.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// quoted quotes each line of a server's text and escapes the host's tags in it.
func quoted(text string) string {
	lines := strings.Split(lineEnds.Replace(toolresult.EscapeHostTags(text)), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight("> "+line, " ")
	}
	return strings.Join(lines, "\n")
}

// noTags escapes tags in a name.
var noTags = strings.NewReplacer("<", "&lt;", ">", "&gt;")

// oneLines returns names, separated by commas.
func oneLines(names []string) string {
	short := make([]string, len(names))
	for i, name := range names {
		short[i] = oneLine(name)
	}
	return strings.Join(short, ", ")
}

// oneLine returns a server's text as one short line without tags.
func oneLine(name string) string {
	return noTags.Replace(clip.Text(strings.Join(strings.Fields(strings.ToValidUTF8(name, "\uFFFD")), " "), 100))
}
