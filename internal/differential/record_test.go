package differential

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/modeltest"
)

// A record is what can be seen of a run from outside, without what differs from run to run.
type record struct {
	mu     sync.Mutex
	values map[string]string
	counts map[string]int
}

func newRecord() *record { return &record{values: map[string]string{}, counts: map[string]int{}} }

// set notes one fact.
func (r *record) set(key, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.values[key] = fmt.Sprintf(format, args...)
}

// add notes the next fact of a kind.
func (r *record) add(kind, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.values[fmt.Sprintf("%s %d", kind, r.counts[kind])] = fmt.Sprintf(format, args...)
	r.counts[kind]++
}

// hear notes a message.
func (r *record) hear(m agent.Message) {
	switch m := m.(type) {
	case *agent.SystemInit:
		var servers []string
		for _, s := range m.MCPServers {
			servers = append(servers, s.Name+"="+s.Status+"/"+s.Source)
		}
		r.add("heard init servers", "%q", servers)
		r.add("heard init tools", "%q", ours(m.Tools))
		r.add("heard init mode", "%s", m.PermissionMode)
		for _, e := range m.MCPServerErrors {
			r.add("heard init error", "%s %s", e.Name, e.Type)
		}
	case *agent.Assistant:
		r.add("heard assistant", "%s error=%s aborted=%v parent=%s", blocks(m.Message.Content), m.Error, m.Aborted, m.ParentToolUseID)
	case *agent.User:
		r.add("heard user", "%s", blocks(m.Message.Content))
	case *agent.System:
		if !slices.Contains([]string{"status", "commands_changed", "session_title_changed"}, m.Subtype) {
			r.add("heard system", "%s", m.Subtype)
		}
	case *agent.StreamEvent:
		if text := m.TextDelta(); text != "" {
			r.add("heard delta", "%s", text)
		}
	case *agent.Unknown:
		r.add("heard unknown", "%s", m.Type)
	case *agent.Result:
		r.hearResult(m)
	}
}

func (r *record) hearResult(m *agent.Result) {
	r.add("result", "%s error=%v", m.Subtype, m.IsError)
	r.add("result text", "%s", scrub(m.Result))
	r.add("result turns", "%d", m.NumTurns)
	r.add("result stop", "%s", m.StopReason)
	r.add("result reason", "%s", m.TerminalReason)
	r.add("result status", "%d", m.APIErrorStatus)
	r.add("result output", "%s", canonical(m.StructuredOutput))
	r.add("result inputs", "%q", m.UserMessageUUIDs)
	var denials []string
	for _, d := range m.PermissionDenials {
		denials = append(denials, d.ToolName+" "+d.ToolUseID+" "+canonical(d.ToolInput))
	}
	r.add("result denials", "%q", denials)
	r.add("result errors", "%d", len(m.Errors))
}

// fail notes how a run ended.
func (r *record) fail(err error) {
	var re *agent.ResultError
	switch {
	case err == nil:
		r.set("error", "none")
	case errors.As(err, &re):
		r.set("error", "result turns=%v budget=%v interrupted=%v", errors.Is(err, agent.ErrMaxTurns), errors.Is(err, agent.ErrMaxBudget), errors.Is(err, agent.ErrInterrupted))
	default:
		r.set("error", "%v", err)
	}
}

// sent notes what the model was asked: the conversation as it stands in the last request, and the tools.
func (r *record) sent(requests []*modeltest.Request) {
	r.set("sent requests", "%d", len(requests))
	if len(requests) == 0 {
		return
	}
	last := requests[len(requests)-1]
	for _, t := range last.Tools {
		if strings.HasPrefix(t.Name, "mcp__") {
			r.set("sent tool "+t.Name, "%s %s", t.Description, canonical(t.InputSchema))
		}
	}
	for _, m := range last.Messages {
		if m.Role == "system" {
			continue // the engine's own words
		}
		for _, c := range m.Content {
			if text := sentBlock(c); text != "" {
				r.add("sent "+m.Role, "%s", text)
			}
		}
	}
}

// sentBlock is a block of a request; empty for what an engine adds of its own.
func sentBlock(c modeltest.Content) string {
	switch c.Type {
	case "text":
		if text := scrub(c.Text); text != "" {
			return "text " + text
		}
		return ""
	case "tool_use":
		return "call " + c.ID + " " + c.Name + " " + canonical(c.Input)
	case "tool_result":
		var parts []string
		for _, in := range c.Content {
			if part := sentBlock(in); part != "" {
				parts = append(parts, part)
			}
		}
		return fmt.Sprintf("answer %s error=%v %s", c.ToolUseID, c.IsError, join(parts))
	case "thinking":
		return "thought " + c.Thinking
	case "image":
		return "image " + mediaType(c.Raw)
	}
	return c.Type
}

func mediaType(raw json.RawMessage) string {
	var i struct {
		Source agent.ImageSource `json:"source"`
	}
	if json.Unmarshal(raw, &i) != nil {
		return "?"
	}
	return i.Source.MediaType
}

func blocks(content agent.Content) string {
	var parts []string
	for _, b := range content {
		switch b := b.(type) {
		case *agent.TextBlock:
			parts = append(parts, "text "+scrub(b.Text))
		case *agent.ThinkingBlock:
			parts = append(parts, "thought "+b.Thinking)
		case *agent.ToolUseBlock:
			parts = append(parts, "call "+b.ID+" "+b.Name+" "+canonical(b.Input))
		case *agent.ToolResultBlock:
			parts = append(parts, fmt.Sprintf("answer %s error=%v %s", b.ToolUseID, b.IsError, blocks(b.Content)))
		case *agent.ImageBlock:
			parts = append(parts, "image "+b.Source.MediaType)
		case *agent.UnknownBlock:
			parts = append(parts, "block "+b.Type)
		}
	}
	return join(parts)
}

// join makes one line of blocks. Texts that follow each other read as one.
func join(parts []string) string {
	return strings.ReplaceAll(strings.Join(parts, " | "), " | text ", " ")
}

var path = regexp.MustCompile(`/[^\s\])"']*/[^\s\])"']*`)

// reminder is what an engine tells the model beside what was said.
var reminder = regexp.MustCompile(`(?s)<system-reminder>.*?</system-reminder>`)

// scrub takes reminders and paths out of a text, makes one line of it and shortens it.
func scrub(text string) string {
	text = strings.Join(strings.Fields(reminder.ReplaceAllString(text, "")), " ")
	text = path.ReplaceAllString(text, "PATH")
	if len(text) > 400 {
		text = fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:400], ""), len(text))
	}
	return text
}

// canonical is JSON in one form, numbers by their digits.
func canonical(raw json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return string(raw)
	}
	out, err := json.Marshal(v)
	if err != nil {
		return string(raw)
	}
	return string(out)
}

func ours(names []string) []string {
	var found []string
	for _, n := range names {
		if strings.HasPrefix(n, "mcp__") {
			found = append(found, n)
		}
	}
	slices.Sort(found)
	return found
}

// A finding is a fact that the engines do not agree on.
type finding struct{ key, native, cli string }

// compare returns what differs, in the order of the keys.
func compare(native, cli *record) []finding {
	keys := map[string]bool{}
	for k := range native.values {
		keys[k] = true
	}
	for k := range cli.values {
		keys[k] = true
	}
	var found []finding
	for k := range keys {
		n, inNative := native.values[k]
		c, inCLI := cli.values[k]
		if !inNative {
			n = "(nothing)"
		}
		if !inCLI {
			c = "(nothing)"
		}
		if n != c {
			found = append(found, finding{k, n, c})
		}
	}
	slices.SortFunc(found, func(a, b finding) int { return strings.Compare(a.key, b.key) })
	return found
}
