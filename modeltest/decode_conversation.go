package modeltest

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// conversation checks the blocks against their neighbours.
func (d *decoder) conversation() {
	msgs := d.r.Messages
	p := &path{name: "messages"}
	if len(msgs) == 0 {
		d.fail(p, "at least one message is required")
		return
	}
	if msgs[0].Role != "user" {
		d.fail(p, "first message must use the \"user\" role")
	}
	ids := make(map[string]bool, len(msgs)/2)
	for i, m := range msgs {
		d.notEmpty(p.at(i), m, i == len(msgs)-1)
		d.unique(i, ids)
		switch m.Role {
		case "user":
			d.results(i)
		case "assistant":
			d.answered(i)
			d.ending(i)
		case "system":
			d.midSystem(i)
		}
	}
	d.texts(&path{name: "system"}, d.r.System)
}

// notEmpty refuses empty messages and texts.
func (d *decoder) notEmpty(p *path, m Message, last bool) {
	empty := len(m.Content) == 0 || m.Content[0].wasString() && m.Content[0].Text == ""
	switch {
	case empty && m.Role == "user":
		d.fail(p, "user messages must have non-empty content")
	case m.Role == "user" && m.Content[0].wasString() && strings.TrimSpace(m.Content[0].Text) == "":
		d.fail(p.key("content"), "text content blocks must contain non-whitespace text")
	case empty && m.Role == "assistant" && !last:
		d.fail(p, "all messages must have non-empty content except for the optional final assistant message")
	case !empty:
		d.texts(p.key("content"), m.Content)
	}
}

// texts refuses text blocks without text, also inside tool results.
func (d *decoder) texts(p *path, blocks []Content) {
	for i := range blocks {
		c := &blocks[i]
		switch {
		case c.Type == "text" && c.wasString() && c.Text == "":
			// An empty string is no block at all: a tool result may be one.
		case c.Type == "text" && c.Text == "":
			d.fail(p.at(i), "text content blocks must be non-empty")
		case c.Type == "text" && strings.TrimSpace(c.Text) == "" && !c.wasString():
			d.fail(p.at(i), "text content blocks must contain non-whitespace text")
		case c.Type == "tool_result":
			d.texts(p.at(i).key("content"), c.Content)
		}
	}
}

// unique refuses a second tool call under the same id.
func (d *decoder) unique(i int, ids map[string]bool) {
	content := d.r.Messages[i].Content
	for j := range content {
		c := &content[j]
		if c.Type != "tool_use" {
			continue
		}
		if ids[c.ID] {
			d.fail((&path{name: "messages"}).at(i).key("content").at(j), "`tool_use` ids must be unique (found twice: %s)", c.ID)
		}
		ids[c.ID] = true
	}
}

// answered refuses tool calls without their results at the beginning of the
// next message.
func (d *decoder) answered(i int) {
	msgs := d.r.Messages
	answered := map[string]bool{}
	if i+1 < len(msgs) {
		for _, c := range leadingResults(msgs[i+1]) {
			answered[c.ToolUseID] = true
		}
	}
	var open []string
	for j := range msgs[i].Content {
		if c := &msgs[i].Content[j]; c.Type == "tool_use" && !answered[c.ID] {
			open = append(open, c.ID)
		}
	}
	if len(open) > 0 {
		d.fail((&path{name: "messages"}).at(i), "`tool_use` ids were found without `tool_result` blocks immediately after: %s. "+
			"Each `tool_use` block must have a corresponding `tool_result` block in the next message.", strings.Join(open, ", "))
	}
}

// leadingResults are the tool results that a user message begins with.
func leadingResults(m Message) []Content {
	if m.Role != "user" {
		return nil
	}
	n := 0
	for n < len(m.Content) && m.Content[n].Type == "tool_result" {
		n++
	}
	return m.Content[:n]
}

// results refuses tool results that answer no call of the message before, or
// answer one twice, or come late.
func (d *decoder) results(i int) {
	content := d.r.Messages[i].Content
	leading := len(leadingResults(d.r.Messages[i]))
	called, answered := d.called(i-1), map[string]bool{}
	at := func(j int) *path { return (&path{name: "messages"}).at(i).key("content").at(j) }
	for j := range content {
		c := &content[j]
		if c.Type != "tool_result" {
			continue
		}
		switch {
		case !called[c.ToolUseID]:
			d.fail(at(j), "unexpected `tool_use_id` found in `tool_result` blocks: %s. "+
				"Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", c.ToolUseID)
		case answered[c.ToolUseID]:
			d.fail(at(j), "each tool_use must have a single result. Found multiple `tool_result` blocks with id: %s", c.ToolUseID)
		case j >= leading:
			d.fail(at(j), "`tool_result` blocks must come before all other blocks of the message: %s", c.ToolUseID)
		}
		answered[c.ToolUseID] = true
	}
}

// called are the calls that message i makes, if it is an assistant's.
func (d *decoder) called(i int) map[string]bool {
	if i < 0 || d.r.Messages[i].Role != "assistant" {
		return nil
	}
	ids := map[string]bool{}
	content := d.r.Messages[i].Content
	for j := range content {
		if c := &content[j]; c.Type == "tool_use" {
			ids[c.ID] = true
		}
	}
	return ids
}

// ending checks how an assistant message ends.
func (d *decoder) ending(i int) {
	content := d.r.Messages[i].Content
	if len(content) == 0 {
		return
	}
	last := &content[len(content)-1]
	final := i == len(d.r.Messages)-1
	switch {
	case last.Type == "thinking" || last.Type == "redacted_thinking":
		d.fail((&path{name: "messages"}).at(i), "The final block in an assistant message cannot be `thinking`.")
	case final && last.Type == "text" && strings.TrimRight(last.Text, " \t\r\n") != last.Text:
		d.fail(&path{name: "messages"}, "final assistant content cannot end with trailing whitespace")
	}
}

// midSystem checks the place of a system message in the conversation.
func (d *decoder) midSystem(i int) {
	msgs := d.r.Messages
	p := (&path{name: "messages"}).at(i)
	if i == 0 {
		return // refused already: the first message is the user's
	}
	before := msgs[i-1]
	serverTool := before.Role == "assistant" && len(before.Content) > 0 &&
		slices.Contains([]string{"server_tool_use", "mcp_tool_use"}, before.Content[len(before.Content)-1].Type)
	switch {
	case withoutMidSystem(d.r.Model):
		d.fail(p.key("role"), "Input should be 'user' or 'assistant': %s takes no `system` messages", d.r.Model)
	case before.Role == "system":
		d.fail(p, "`system` messages must not follow each other")
	case before.Role != "user" && !serverTool:
		d.fail(p, "a `system` message must immediately follow a user message, or an assistant message that ends in a server tool use")
	case i+1 < len(msgs) && msgs[i+1].Role == "user":
		d.fail(p, "a `system` message must be the last one or be followed by an assistant message")
	}
}

// fourthGeneration matches the models of which only the later ones take system
// messages in the conversation: they came with Claude Opus 4.8.
var fourthGeneration = regexp.MustCompile(`^claude-(?:opus|sonnet|haiku)-4(?:-([0-9]{1,2}))?(?:-|$)`)

// withoutMidSystem says that a model of this name is known to take no system
// messages in the conversation.
func withoutMidSystem(model string) bool {
	if strings.HasPrefix(model, "claude-2") || strings.HasPrefix(model, "claude-3") {
		return true
	}
	found := fourthGeneration.FindStringSubmatch(model)
	if found == nil {
		return false
	}
	minor, err := strconv.Atoi(found[1])
	return err != nil || minor < 8
}
