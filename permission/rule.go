package permission

import (
	"fmt"
	"strings"

	"github.com/tenon-sdk/tenon/internal/toolname"
)

// mcpPrefix is the beginning of the full name of an MCP tool.
const mcpPrefix = "mcp__"

// A Rule is a parsed rule. The zero Rule matches nothing.
type Rule struct {
	text     string
	behavior Behavior
	// arguments reports the form Tool(arguments), which matches no call.
	arguments bool
	glob      bool
	origin    Destination
}

// A RuleError is a rule that can match nothing, or more than its list permits.
type RuleError struct {
	// Rule is the text.
	Rule string
	// Message says what is wrong. Instead is a correction, or empty.
	Message, Instead string
}

// Error returns the rule, what is wrong and the correction.
func (e *RuleError) Error() string {
	s := fmt.Sprintf("permission rule %q: %s", e.Rule, e.Message)
	if e.Instead != "" {
		s += "; write " + e.Instead
	}
	return s
}

// ParseRule parses a rule of the list for b. An error is a [*RuleError]. The forms:
//
//	mcp__srv__tool    that tool; the server's part is the normalized key (my.server is my_server)
//	mcp__srv          every tool of that server
//	mcp__srv__*       the same
//	mcp__srv__pre*    the tools of that server whose names match; * stands for any characters
//	Name              a tool that is not MCP
//	Name(arguments)   accepted for tools that are not MCP, matches nothing: arguments are not compared
//
// [Servers] determines the server. An allow rule may have * only after a literal mcp__srv__, and
// covers only that server. In deny and ask rules * may be anywhere (mcp__*, *_delete) and matches
// the full name, and the rule covers everything that it could mean.
func ParseRule(s string, b Behavior) (Rule, error) {
	text := strings.TrimSpace(s)
	fail := func(instead, format string, args ...any) (Rule, error) {
		return Rule{}, &RuleError{Rule: s, Message: fmt.Sprintf(format, args...), Instead: instead}
	}
	switch b {
	case Allow, Deny, Ask:
	default:
		return fail("", "unknown behavior %q, want allow, deny or ask", b)
	}
	if text == "" {
		return fail("", "is empty")
	}
	if name, rest, ok := strings.Cut(text, "("); ok {
		switch {
		case !strings.HasSuffix(rest, ")"):
			return fail("", "has an opening bracket without the closing one at its end")
		case strings.HasPrefix(name, mcpPrefix):
			return fail(name, "the form Tool(arguments) never matches an MCP tool")
		}
		return Rule{text: text, behavior: b, arguments: true}, nil
	}
	r := Rule{text: text, behavior: b, glob: strings.Contains(text, "*")}
	literal := strings.ReplaceAll(text, "*", "")
	if norm := toolname.Normalize(literal); norm != literal {
		return fail(normalizeRule(text), "matches nothing: in a tool's name every character but A-Z a-z 0-9 _ - has become _")
	}
	if text == mcpPrefix {
		return fail("mcp__SERVER__*", "names no server")
	}
	if instead, ok := nearlyMCP(text); ok {
		return fail(instead, "matches nothing: the names of MCP tools begin with mcp__")
	}
	if b == Allow && r.glob {
		if m, instead := wideAllow(text); m != "" {
			return fail(instead, "%s", m)
		}
	}
	return r, nil
}

// wideAllow says what is wrong with an allow rule whose first * is not after a literal mcp__srv__.
func wideAllow(text string) (message, instead string) {
	head, _, _ := strings.Cut(text, "*")
	after, isMCP := strings.CutPrefix(head, mcpPrefix)
	switch {
	case isMCP && strings.Contains(after, "__"):
		return "", ""
	case isMCP && after != "" && text == head+"*":
		instead = mcpPrefix + strings.TrimRight(after, "_") + "__*"
	default:
		instead = "one rule mcp__SERVER__* for each server"
	}
	return "an allow rule may have * only after a literal mcp__SERVER__", instead
}

// nearlyMCP reports whether a name was probably meant to begin with mcp__.
func nearlyMCP(text string) (instead string, ok bool) {
	if len(text) < 4 || !strings.EqualFold(text[:3], "mcp") || strings.HasPrefix(text, mcpPrefix) {
		return "", false
	}
	rest := strings.TrimLeft(text[3:], "_-")
	if rest == text[3:] || rest == "" { // mcpcheck is a name like any other
		return "", false
	}
	return mcpPrefix + rest, true
}

// normalizeRule normalizes a rule except its stars.
func normalizeRule(text string) string {
	parts := strings.Split(text, "*")
	for i, p := range parts {
		parts[i] = toolname.Normalize(p)
	}
	return strings.Join(parts, "*")
}

// String returns the rule as it was written, without surrounding space.
func (r Rule) String() string { return r.text }

// A target is a call in the form that rules are compared with.
type target struct {
	tool string // as the model wrote it
	mcp  bool   // whether the server is known; the next ones are empty if not
	key  string // of the server
	// server is mcp__SERVER, name the tool's normalized name, full both.
	server, name, full string
	hash               string // what ends the names of this tool that were shortened, or made unlike another's
}

// isMCP reports whether the server of the call is known.
func (c Request) isMCP() bool {
	return c.Server != "" || c.Resource || strings.HasPrefix(c.Tool, mcpPrefix+toolname.Separator)
}

// targets returns what a call is: rules that cover one of them cover the call.
func (c Request) targets() []target {
	if !c.Resource {
		return []target{c.target()}
	}
	// A rule for the server covers its resources if it covers every tool, whatever its name.
	all := toolname.Server(c.Server) + toolname.Separator
	return []target{{tool: c.Tool}, {mcp: true, key: c.Server, server: toolname.Server(c.Server), tool: all, full: all}}
}

func (c Request) target() target {
	t := target{tool: c.Tool}
	if !c.isMCP() || c.Resource {
		return t
	}
	t.mcp, t.key, t.server, t.name = true, c.Server, toolname.Server(c.Server), toolname.Normalize(c.ToolName)
	t.full = t.server + toolname.Separator + t.name
	t.hash = toolname.Hash(c.Server, c.ToolName)
	return t
}

// called reports whether the tool has the name on its server or for the model.
func (t target) called(tool string) bool {
	return tool == t.name || t.tool == t.server+toolname.Separator+tool
}

// hashed reports whether a text is a name of the tool with its hash, which no other tool has.
func (t target) hashed(text string) bool {
	return t.mcp && strings.HasSuffix(text, t.hash) && (text == t.tool || text == t.full+t.hash)
}

// matchGlob reports whether s matches a pattern in which * stands for any characters or none.
func matchGlob(pattern, s string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == s
	}
	s, ok := strings.CutPrefix(s, head)
	if !ok {
		return false
	}
	for {
		part, tail, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(s, part)
		}
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s, rest = s[i+len(part):], tail
	}
}

// SplitList splits a command-line list of rules at commas and space outside of parentheses:
// "Read,Bash(git log:*) mcp__srv" has three rules.
func SplitList(s string) []string {
	var out []string
	depth, start := 0, 0
	add := func(end int) {
		if r := strings.TrimSpace(s[start:end]); r != "" {
			out = append(out, r)
		}
		start = end + 1
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c == '(':
			depth++
		case c == ')':
			depth = max(depth-1, 0)
		case depth == 0 && (c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r'):
			add(i)
		}
	}
	add(len(s))
	return out
}
