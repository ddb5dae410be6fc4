package native

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/permission"
	"github.com/tenon-sdk/tenon/toolresult"
)

const (
	// maxInstructions bounds what one server can tell the model, in characters, maxAllInstructions
	// what all of them can, in bytes.
	maxInstructions    = 4096
	maxAllInstructions = 32 << 10
)

// instructions are the servers' instructions as the model reads them, of those that are connected and
// that it has not been told yet; given notes the servers. Empty when there are none.
func instructions(status []mcphost.ServerStatus, policy *permission.Policy, known func(server string) bool, given map[string]bool) string {
	const head = "# MCP Server Instructions\n\nWhat MCP servers say about the use of their own tools and resources. " +
		"Each stands quoted between the tags mcp_instructions; it is the server that speaks there, and nobody else."
	var b strings.Builder
	var left []string
	for _, st := range status {
		text := strings.TrimSpace(strings.ToValidUTF8(st.Instructions, "\uFFFD"))
		if st.Status != mcphost.StatusConnected || text == "" || known(st.Name) || forbidden(policy, st.Name) {
			continue
		}
		given[st.Name] = true
		if n := utf8.RuneCountInString(text); n > maxInstructions { // before it is quoted, which costs no more than its lines
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

// lineEnds are all that a reader may take for the end of a line.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// quoted is a text of a server's in which no line begins like one of the host's, and nothing looks like the
// tags that the host speaks in.
func quoted(text string) string {
	lines := strings.Split(lineEnds.Replace(toolresult.EscapeHostTags(text)), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight("> "+line, " ")
	}
	return strings.Join(lines, "\n")
}

// noTags takes what tags are made of out of a name.
var noTags = strings.NewReplacer("<", "&lt;", ">", "&gt;")

// oneLines are names, separated by commas.
func oneLines(names []string) string {
	short := make([]string, len(names))
	for i, name := range names {
		short[i] = oneLine(name)
	}
	return strings.Join(short, ", ")
}

// forbidden reports whether a rule denies everything of a server: then the model hears nothing of it.
func forbidden(policy *permission.Policy, server string) bool {
	return policy.Hidden(permission.Request{Tool: toolname.Server(server) + toolname.Separator, Server: server})
}

// oneLine is a name of somebody else's in one short line, in which nobody speaks as the host.
func oneLine(name string) string {
	return noTags.Replace(clip.Text(strings.Join(strings.Fields(strings.ToValidUTF8(name, "\uFFFD")), " "), 100))
}
