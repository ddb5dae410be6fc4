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

// forbidden reports whether a rule denies everything of a server. The model does not learn of such a server.
func forbidden(policy *permission.Policy, server string) bool {
	return policy.Hidden(permission.Request{Tool: toolname.Server(server) + toolname.Separator, Server: server})
}

// oneLine returns a server's text as one short line without tags.
func oneLine(name string) string {
	return noTags.Replace(clip.Text(strings.Join(strings.Fields(strings.ToValidUTF8(name, "\uFFFD")), " "), 100))
}
