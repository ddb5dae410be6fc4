package modeltest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Offline returns a model that makes the tool calls written in the latest prompt. Each
//
//	@mcp__server__tool {"argument": "value"}
//
// in it is a tool call. The calls of a line are one turn; lines are successive turns. The name may
// be the end of a full name (tool, or server__tool) if only one tool has that end. The object may
// span lines.
//
// Calls are numbered from 1 in the order of the prompt. A string in an object can refer to the
// results of calls on earlier lines:
//
//	{{1}}              the text of the first call's result
//	{{1.shelf.0.id}}   a value in it, when the result is JSON; a string that is
//	                   nothing but this becomes the value with its JSON type
//	{{1.$}}            all of it as JSON
//	\{{1}}             no reference, but the text {{1}} ("\\{{1}}" in JSON)
//
// A call that cannot be made (an unknown tool, malformed JSON, a reference without a result) is
// left out; the others are made. The final answer repeats the results, lists the calls that were
// left out with the reasons, and says that no model wrote it. The answer to a prompt without calls
// describes how to write one.
//
// The model uses only the request, so it serves any number of conversations. Text beside tool
// results is added to the current prompt. The model is as strict as any [Model]. It keeps no
// requests.
func Offline() *Model {
	m := NewModel(&Options{KeepRequests: -1})
	m.Add(Func(func(r *Request) Turn { return planOf(r).turn(m) }))
	return m
}

// A plan is the latest prompt of a conversation with the calls made so far.
type plan struct {
	r     *Request
	calls []*offlineCall
	made  map[int]madeCall     // by number
	ids   map[string]int       // the numbers by the ids of the calls
	done  int                  // turns up to this one have been sent
	names map[string][2]string // what tool has found
}

// A madeCall is a call in the conversation.
type madeCall struct {
	use    Content
	result *Content // nil: none yet
}

// planOf returns the plan of a request's conversation.
func planOf(r *Request) *plan {
	p := &plan{r: r, made: map[int]madeCall{}, ids: map[string]int{}, names: map[string][2]string{}}
	text, from := latestPrompt(r)
	p.calls = parsePrompt(text, func(name string) bool { _, ok := r.Tool(name); return ok })
	for _, m := range r.Messages[from:] {
		for _, c := range m.Content {
			switch c.Type {
			case "tool_use":
				p.madeBy(c)
			case "tool_result":
				p.resultOf(c)
			}
		}
	}
	return p
}

// latestPrompt returns the text of the current prompt and the index of its first message. A prompt
// begins with the first user message after an answer without tool calls, or after an interruption.
// User text before the next such answer belongs to it.
func latestPrompt(r *Request) (text string, from int) {
	var b strings.Builder
	over := true // the next user message begins a prompt
	for i, m := range r.Messages {
		switch m.Role {
		case "assistant":
			over = len(ofType(m.Content, "tool_use")) == 0
		case "user":
			if over {
				b.Reset()
				from, over = i, false
			}
			said := saidIn(m)
			if at := strings.LastIndex(said, interrupted); at >= 0 {
				b.Reset()
				from = i + 1
				_, said, _ = strings.Cut(said[at:], "]")
			}
			if said != "" {
				b.WriteString(said + "\n")
			}
		}
	}
	return b.String(), min(from, len(r.Messages))
}

// interrupted is the beginning of the text by which hosts record an interruption.
const interrupted = "[Request interrupted by user"

var reminders = regexp.MustCompile(`(?s)<system-reminder>.*?(</system-reminder>\s*|$)`)

// saidIn returns the user's text in a message, without that of hosts.
func saidIn(m Message) string {
	var said []string
	for _, c := range ofType(m.Content, "text") {
		text := c.Text
		if strings.Contains(text, "<system-reminder>") {
			text = reminders.ReplaceAllString(text, "")
		}
		if strings.TrimSpace(text) != "" {
			said = append(said, text)
		}
	}
	return strings.Join(said, "\n")
}

// madeBy records a call of the conversation. Its ID ends in the number of the call. If it was
// rewritten, it counts as the first open call.
func (p *plan) madeBy(use Content) {
	number := 0
	if at := strings.LastIndex(use.ID, "_c"); at >= 0 {
		number, _ = strconv.Atoi(use.ID[at+2:]) // 0, which is no call, if it is no number
	}
	if number < 1 || number > len(p.calls) {
		open := slices.IndexFunc(p.calls, func(c *offlineCall) bool { _, made := p.made[c.number]; return c.wrong == "" && !made })
		if open < 0 {
			return
		}
		number = open + 1
	}
	p.made[number] = madeCall{use: use}
	p.ids[use.ID] = number
	p.done = max(p.done, p.calls[number-1].turn)
}

func (p *plan) resultOf(result Content) {
	if n, ok := p.ids[result.ToolUseID]; ok {
		p.made[n] = madeCall{use: p.made[n].use, result: &result}
	}
}

// turn returns the next turn: the calls of the next line that has some, or the final answer.
func (p *plan) turn(m *Model) Turn {
	var parts []Part
	for i, c := range p.calls {
		if len(parts) > 0 && c.turn != p.calls[i-1].turn {
			break
		}
		if c.turn <= p.done {
			continue
		}
		if name, input, wrong := p.ready(c); wrong == "" {
			parts = append(parts, ToolUseID(m.offlineID(p.r, c.number), name, input))
		}
	}
	if len(parts) > 0 {
		return Say(parts...)
	}
	return Text(p.answer())
}

// offlineID returns an ID that contains the number of the call.
func (m *Model) offlineID(r *Request, number int) string {
	for {
		id := fmt.Sprintf("%s_c%d", m.nextID("toolu", &m.calls), number)
		if !r.hasCall(id) {
			return id
		}
	}
}

// ready returns a call as it can be made now, or why not.
func (p *plan) ready(c *offlineCall) (name string, input json.RawMessage, wrong string) {
	if c.wrong != "" {
		return "", nil, c.wrong
	}
	name, wrong = p.tool(c.name)
	if wrong != "" {
		return "", nil, wrong
	}
	input, wrong = refer(c.input, func(n int) (*Content, string) { return p.resultFor(c, n) })
	return name, input, wrong
}

// resultFor returns the result of call n for call c.
func (p *plan) resultFor(c *offlineCall, n int) (*Content, string) {
	made, ok := p.made[n]
	switch {
	case n < 1 || n > len(p.calls):
		return nil, fmt.Sprintf("there is no call %d", n)
	case n == c.number:
		return nil, fmt.Sprintf("call %d is this call itself", n)
	case p.calls[n-1].turn == c.turn:
		return nil, fmt.Sprintf("call %d is on the same line, where its result is not there yet", n)
	case n > c.number:
		return nil, fmt.Sprintf("call %d comes later", n)
	case !ok || made.result == nil:
		return nil, fmt.Sprintf("call %d was not made", n)
	case made.result.IsError:
		return nil, fmt.Sprintf("call %d failed", n)
	}
	return made.result, ""
}

// tool returns the full name of the tool that a prompt names, or why there is none.
func (p *plan) tool(written string) (full, wrong string) {
	if f, ok := p.names[written]; ok {
		return f[0], f[1]
	}
	full, wrong = p.findTool(written)
	p.names[written] = [2]string{full, wrong}
	return full, wrong
}

func (p *plan) findTool(written string) (full, wrong string) {
	if p.r.toolChoice() == "none" {
		return "", "the request forbids tool calls"
	}
	if _, ok := p.r.Tool(written); ok {
		return written, ""
	}
	var ends []string
	for _, name := range p.r.knownNames() {
		if strings.HasSuffix(name, "__"+written) {
			ends = append(ends, name)
		}
	}
	switch {
	case len(ends) == 1:
		return ends[0], ""
	case len(ends) > 1:
		return "", fmt.Sprintf("several tools have names that end so: %s", strings.Join(firstOfMany(ends, 20), ", "))
	case p.announced(written) || p.searchable(written):
		return written, ""
	}
	return "", "there is no such tool"
}

// searchable reports whether a full name may be that of a tool that the host does not list, since
// there are too many.
func (p *plan) searchable(name string) bool {
	_, ok := p.r.Tool("ToolSearch")
	return ok && strings.HasPrefix(name, "mcp__")
}

var fullName = regexp.MustCompile(`\bmcp__[A-Za-z0-9_-]+`)

// knownNames returns the names of the request's tools, and of deferred ones as far as the host
// lists them in full.
func (r *Request) knownNames() []string {
	names := slices.Clone(r.ToolNames())
	texts := []string{r.SystemText()}
	for _, m := range r.Messages {
		if m.Role == "user" {
			texts = append(texts, reminders.FindAllString(joinTexts(m.Content), -1)...)
		}
	}
	for _, text := range texts {
		for _, name := range fullName.FindAllString(text, -1) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// announced reports whether the host's text lists a full name, as it does for tools whose
// definitions are loaded by a search.
func (p *plan) announced(name string) bool {
	if !strings.HasPrefix(name, "mcp__") {
		return false
	}
	if hasWord(p.r.SystemText(), name) {
		return true
	}
	for _, m := range p.r.Messages {
		text := joinTexts(m.Content)
		switch m.Role {
		case "user":
			text = strings.Join(reminders.FindAllString(text, -1), "\n")
		case "assistant":
			continue
		}
		if hasWord(text, name) {
			return true
		}
	}
	return false
}

// hasWord reports whether text has word, not as part of a longer name.
func hasWord(text, word string) bool {
	for at := strings.Index(text, word); at >= 0; {
		end := at + len(word)
		if (at == 0 || !isNameByte(text[at-1])) && (end == len(text) || !isNameByte(text[end])) {
			return true
		}
		next := strings.Index(text[end:], word)
		if next < 0 {
			return false
		}
		at = end + next
	}
	return false
}
