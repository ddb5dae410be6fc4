package modeltest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Limits on what the offline model's answer repeats.
const (
	maxOfflineResult = 8 << 10  // bytes of one result
	maxOfflineAnswer = 64 << 10 // bytes of the answer before the rest is left out
	maxOfflineTools  = 50       // names of tools
	maxOfflineWrong  = 50       // calls that could not be made
)

const offlineHead = "Made offline, by no model: "

// answer is the final answer to a prompt.
func (p *plan) answer() string {
	if len(p.calls) == 0 {
		return p.howTo()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%sthe calls that the prompt spells out were made as they stand (%d of %d).\n", offlineHead, len(p.made), len(p.calls))
	var wrong []string
	for _, c := range p.calls {
		made, ok := p.made[c.number]
		if !ok {
			wrong = append(wrong, fmt.Sprintf("%d. %s: @%s: %s", c.number, c.place(), c.name, p.reason(c)))
			continue
		}
		if b.Len() > maxOfflineAnswer {
			fmt.Fprintf(&b, "\n%d. %s: left out here, the answer is long enough\n", c.number, made.use.Name)
			continue
		}
		made.write(&b, c.number)
	}
	if len(wrong) > 0 {
		b.WriteString("\nNot made:\n")
		for _, line := range firstOfMany(wrong, maxOfflineWrong) {
			b.WriteString(cut(line, 600) + "\n")
		}
		b.WriteString("\n" + p.toolList())
	}
	return strings.TrimRight(b.String(), "\n")
}

// reason is why a call was not made.
func (p *plan) reason(c *offlineCall) string {
	if _, _, wrong := p.ready(c); wrong != "" {
		return wrong
	}
	return "it could not be made at its turn"
}

// write reads the result of a call back.
func (m madeCall) write(b *strings.Builder, number int) {
	fmt.Fprintf(b, "\n%d. %s %s", number, m.use.Name, cut(string(m.use.Input), 300))
	switch {
	case m.result == nil:
		b.WriteString("\n(no result)\n")
		return
	case m.result.IsError:
		b.WriteString("\nERROR: ")
	default:
		b.WriteString("\n")
	}
	lines := make([]string, 0, len(m.result.Content))
	for _, c := range m.result.Content {
		lines = append(lines, c.describe())
	}
	text := strings.TrimSpace(strings.Join(lines, "\n"))
	if text == "" {
		text = "(empty)"
	}
	b.WriteString(cut(text, maxOfflineResult) + "\n")
}

// describe is a block as text.
func (c Content) describe() string {
	switch c.Type {
	case "text":
		return c.Text
	case "tool_reference":
		return "[tool " + c.ToolName + "]"
	case "image", "document":
		var head struct {
			Source struct {
				MediaType string `json:"media_type"`
				Data      string `json:"data"`
				URL       string `json:"url"`
			} `json:"source"`
		}
		err := json.Unmarshal(c.Raw, &head)
		switch {
		case err == nil && head.Source.Data != "":
			return fmt.Sprintf("[%s: %s, %d bytes]", c.Type, head.Source.MediaType, len(head.Source.Data)*3/4)
		case err == nil && head.Source.URL != "":
			return fmt.Sprintf("[%s: %s]", c.Type, cut(head.Source.URL, 300))
		}
	}
	return "[" + c.Type + "]"
}

// howTo is the answer to a prompt without calls.
func (p *plan) howTo() string {
	example := "mcp__server__tool"
	if names := p.callable(); len(names) > 0 {
		example = names[0]
	}
	return offlineHead + `this is the offline model, which only makes the tool calls that a prompt spells out, and there are none in this one.

Write each call as the tool's name with an @ in front and a JSON object of its arguments behind:

  @` + example + ` {"argument": "value"}

Calls on one line go out together; each line is a turn of its own. In later lines, "{{1}}" stands for the text of the first call's result, and "{{1.name}}" for a value in it when it is JSON.

` + p.toolList()
}

// toolList names the tools that can be called.
func (p *plan) toolList() string {
	names := p.callable()
	if len(names) == 0 {
		return "There are no tools."
	}
	return "Tools: " + strings.Join(firstOfMany(names, maxOfflineTools), ", ") + "."
}

// callable are the names of the tools, those of servers first, also of those whose definitions are withheld.
func (p *plan) callable() []string {
	var servers, others []string
	for _, name := range p.r.knownNames() {
		switch {
		case strings.HasPrefix(name, "mcp__"):
			servers = append(servers, name)
		case name != "DeferredToolPlaceholder": // the native engine's, which cannot be called
			others = append(others, name)
		}
	}
	return append(servers, others...)
}
