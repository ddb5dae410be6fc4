package transcript

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/internal/clip"
)

// Loaded describes how Options.History was loaded.
type Loaded struct {
	Repairs    []agent.HistoryRepair // the first maxRepairs
	Count      int                   // of all repairs
	Reported   bool                  // the program has received them
	origins    [][]int               // by entry and part: the index of the message in Options.History
	References []givenReference
	Size       int // of the messages, in bytes
	Resumed    bool
}

// Source returns the source of the session for hooks.
func (g *Loaded) Source() string {
	if g.Resumed {
		return "resume"
	}
	return "startup"
}

const (
	// maxRepairs bounds the repairs that are listed.
	maxRepairs = 100
	// maxSameID bounds the messages or results with the same ID that are compared.
	maxSameID = 100
	// maxReported bounds the messages that the report of a failure can apply to.
	maxReported = 1000
	// SyntheticModel is the model of messages that the engine makes in place of an answer.
	SyntheticModel = "<synthetic>"
	// TextModelRefused begins the report that the model refused to answer.
	TextModelRefused = "API Error: the model refused to answer. The turn was taken out of the conversation."
)

// Repair adds a repair of the message at an index.
func (g *Loaded) Repair(index int, kind, format string, args ...any) {
	if g.Count++; len(g.Repairs) < maxRepairs {
		g.Repairs = append(g.Repairs, agent.HistoryRepair{Index: index, Kind: kind, Detail: fmt.Sprintf(format, args...)})
	}
}

// A Loader makes a history from the messages of an earlier run.
type Loader struct {
	ctx context.Context // of loading
	Loaded
	history History
	models  []string // of the session

	items   []*item
	results []*givenResult
	next    map[string]int // the next suffix to try for an ID that is taken
}

// An item is a message of the history without results of calls.
type item struct {
	assistant bool
	response  [2]string // identifies the response that an assistant message is part of
	model     string
	parts     []draft
}

// A draft is a checked block.
type draft struct {
	Part
	index int
	// A call, which the loader owns, and its result. Nil if there is none.
	call   *agent.ToolUseBlock
	result *givenResult
	// The ID of a use of a server tool, or of the use that a result of such a tool answers.
	use, answers string
}

// A givenResult is a result of a call.
type givenResult struct {
	index   int
	after   int // the number of items before it
	block   *agent.ToolResultBlock
	names   []string // of the tools that it refers to
	refused string   // why the earlier run dropped it; empty if it did not
	used    bool
}

// Load makes a history from the messages of an earlier run. models are those of the session. If ctx ends,
// the result is not usable.
func Load(ctx context.Context, msgs []agent.Message, models ...string) (History, Loaded) {
	l := &Loader{ctx: ctx, models: models}
	for _, m := range l.choose(msgs) {
		if ctx.Err() != nil {
			break
		}
		l.add(m)
	}
	l.dropHalves()
	l.build()
	l.Size = l.history.Size()
	return l.history, l.Loaded
}

// A choice is a message of Options.History that may be part of the conversation.
type choice struct {
	index     int
	uuid      string
	content   agent.Content
	assistant *agent.Assistant // nil for a message of the user
	isReplay  bool
	dropped   bool
	refused   string          // why the API refused it, as last reported
	encoded   json.RawMessage // for sameMessage; nil until it is needed
}

// choices are the messages that were read so far.
type choices struct {
	all     []*choice
	byUUID  map[string][]*choice
	settled int // how many of all no later report applies to
}

func (cs *choices) add(c *choice) {
	cs.all = append(cs.all, c)
	if c.uuid != "" && len(cs.byUUID[c.uuid]) < maxSameID {
		cs.byUUID[c.uuid] = append(cs.byUUID[c.uuid], c)
	}
}

// choose returns the messages of the conversation, without those that were removed from it and without
// reports of the engine.
func (l *Loader) choose(msgs []agent.Message) []*choice {
	cs := &choices{byUUID: map[string][]*choice{}}
	for i, m := range msgs {
		switch m := m.(type) {
		case *agent.Assistant:
			switch {
			case m.ParentToolUseID != "":
			case m.Error != "":
				cs.remove(m.Supersedes, m.Text())
				if m.Error == "invalid_request" {
					cs.refuse(m.Text())
				}
			case m.Message.Model != SyntheticModel:
				cs.remove(m.Supersedes, "")
				cs.add(&choice{index: i, uuid: m.UUID, content: m.Message.Content, assistant: m})
			}
		case *agent.User:
			if m.ParentToolUseID == "" {
				cs.add(&choice{index: i, uuid: m.UUID, content: m.Message.Content, isReplay: m.IsReplay})
			}
		case *agent.Result:
			if !m.IsError {
				cs.settled = len(cs.all)
			}
		case *agent.Unknown:
			if m.Err != nil || m.Type == "assistant" || m.Type == "user" {
				l.Repair(i, agent.RepairMalformed, "a message of type %q that could not be read was left out: %v", clip.Text(m.Type, 40), m.Err)
			}
		}
	}
	l.dropDuplicates(cs.all)
	return slices.DeleteFunc(cs.all, func(c *choice) bool { return c.dropped && (c.refused == "" || c.assistant != nil) })
}

// remove drops the messages with these UUIDs. refused is the report of the reason, or "".
func (cs *choices) remove(uuids []string, refused string) {
	for _, id := range uuids {
		for _, c := range cs.byUUID[id] {
			c.dropped, c.refused = true, refused
		}
	}
}

// refuse applies a report that the API refused what was new in the conversation. It drops the inputs at the
// end that have no UUID; the report names the others. Results that were refused before get the new reason.
// A refusal of the model applies to one turn, which begins with one input.
func (cs *choices) refuse(why string) {
	byModel := strings.HasPrefix(why, TextModelRefused)
	inputs := true
	fresh := cs.all[max(cs.settled, len(cs.all)-maxReported):]
	for i, c := range slices.Backward(fresh) {
		if !c.dropped && c.assistant != nil {
			break
		}
		isResult := slices.ContainsFunc(c.content, func(b agent.Block) bool { _, ok := b.(*agent.ToolResultBlock); return ok })
		inputs = inputs && (c.dropped || c.uuid == "" && !isResult)
		switch {
		case inputs && !c.dropped:
			c.dropped, c.refused = true, why
			inputs = !byModel || slices.ContainsFunc(fresh[:i], func(c *choice) bool { return c.refused == why })
		case c.refused != "" && !byModel:
			c.refused = why
		}
	}
	if byModel {
		cs.settled = len(cs.all)
	}
}

// dropDuplicates drops the second of two messages that are the same, and an input that has a replay.
func (l *Loader) dropDuplicates(all []*choice) {
	first := map[string]*choice{}
	for _, c := range all {
		before := first[c.uuid]
		switch {
		case c.uuid == "" || c.dropped:
		case before == nil:
			first[c.uuid] = c
		case c.assistant == nil && before.assistant == nil && c.isReplay != before.isReplay:
			if c.isReplay {
				before, c = c, before
				first[c.uuid] = before
			}
			c.dropped = true
		case (c.assistant == nil) == (before.assistant == nil) && bytes.Equal(c.encode(), before.encode()):
			c.dropped = true
			l.Repair(c.index, agent.RepairDuplicate, "the message is there twice, and was left out the second time")
		}
	}
}

// encode returns the content that can be read.
func (c *choice) encode() json.RawMessage {
	if c.encoded == nil {
		var known agent.Content
		for _, b := range c.content {
			if b = Known(b); b != nil {
				known = append(known, b)
			}
		}
		c.encoded = Encode(known)
	}
	return c.encoded
}

// add adds a message to the items. An assistant message joins the item of its response. Results may come
// between two such messages, because some runs call tools while the response arrives.
func (l *Loader) add(c *choice) {
	var parts []draft
	for _, b := range c.content {
		if r := resultBlock(b); r != nil {
			block, names := l.resultContent(c.index, r)
			l.results = append(l.results, &givenResult{index: c.index, after: len(l.items), block: block, names: names, refused: c.refused})
			continue
		}
		if c.assistant != nil {
			if p, ok := l.assistantBlock(c.index, b); ok {
				parts = append(parts, p)
			}
		} else if !c.dropped {
			for _, b := range l.Readable(c.index, b, false) {
				parts = append(parts, draft{Part: Part{Raw: EncodeBlock(b)}, index: c.index})
			}
		}
	}
	it := &item{parts: parts}
	if m := c.assistant; m != nil {
		it.assistant, it.response, it.model = true, [2]string{m.Message.ID, m.RequestID}, l.modelOf(m.Message.Model)
		if n := len(l.items); n > 0 {
			last := l.items[n-1]
			answered := len(l.results) > 0 && l.results[len(l.results)-1].after == n
			if last.assistant && last.response == it.response && (m.Message.ID != "" || !answered) {
				last.parts = append(last.parts, parts...)
				return
			}
		}
	} else if len(c.content) == 0 {
		l.Repair(c.index, agent.RepairEmpty, "a message without content was left out")
	}
	if len(parts) > 0 {
		l.items = append(l.items, it)
	}
}

// modelOf returns the session's name of a model, for which servers may have other names.
func (l *Loader) modelOf(name string) string {
	for _, m := range l.models {
		if PlainModel(m) == PlainModel(name) {
			return m
		}
	}
	return name
}

// dropHalves removes uses of server tools without results and results without uses, because the API accepts
// only pairs. The result of a use may be in the next message of the model, after the results of other calls.
func (l *Loader) dropHalves() {
	open := map[string]bool{} // uses without a result in consecutive items
	answered := map[string]bool{}
	for i, it := range l.items {
		if !it.assistant {
			continue
		}
		for _, p := range it.parts {
			if p.use != "" {
				open[p.use] = true
			}
			if p.answers != "" && open[p.answers] {
				answered[p.answers] = true
				delete(open, p.answers)
			}
		}
		ends := i+1 == len(l.items) || !l.items[i+1].assistant
		if ends && !slices.ContainsFunc(it.parts, func(p draft) bool { return p.call != nil }) {
			clear(open)
		}
	}
	for _, it := range l.items {
		seen := map[string]bool{}
		it.parts = slices.DeleteFunc(it.parts, func(p draft) bool {
			id := p.use + p.answers
			half := id != "" && (!answered[id] || seen[p.use+"\n"+p.answers])
			seen[p.use+"\n"+p.answers] = true
			if half {
				l.Repair(p.index, agent.RepairMalformed, "the use of a server tool without its result, or the other way round, was left out: %s", clip.Text(id, 100))
			}
			return half
		})
	}
}

// A givenReference is a result of the given history that refers to tools.
type givenReference struct {
	Entry, Part int
	Index       int
	ID          string
	Names       []string
}

var namedBlock = regexp.MustCompile(`(?:^|[^.\w])messages\.(\d+)\.content\.(\d+)\b`)

// ReplaceRefused replaces the block of the given history that an error of the API names by a text. model and
// thoughts are those of the request. It reports false if the error names no such block.
func (g *Loaded) ReplaceRefused(h *History, refusal, model string, thoughts ThoughtPolicy) (agent.HistoryRepair, bool) {
	var none agent.HistoryRepair
	m := namedBlock.FindStringSubmatch(refusal)
	if m == nil {
		return none, false
	}
	i, errEntry := strconv.Atoi(m[1])
	j, errPart := strconv.Atoi(m[2])
	if errEntry != nil || errPart != nil || i >= len(g.origins) || i >= len(h.Entries) {
		return none, false
	}
	e := &h.Entries[i]
	for k := range e.Parts {
		if e.Parts[k].Thought && !thoughts.sends(e.model, model) {
			continue
		}
		if j--; j >= 0 {
			continue
		}
		if k >= len(g.origins[i]) {
			return none, false // it came later
		}
		kind := g.replace(h, i, k)
		return agent.HistoryRepair{
			Index: g.origins[i][k], Kind: agent.RepairRefused,
			Detail: fmt.Sprintf("the API refused a %s block, and words stand for it from now on: %s", kind, clip.Text(refusal, 300)),
		}, kind != ""
	}
	return none, false
}

// TextRefused stands for a block that the API refused.
const TextRefused = "[This was left out of the history, because the API refused it]"

// replace replaces a block by a text and returns its kind, or "" if that is not possible.
func (g *Loaded) replace(h *History, i, k int) string {
	p := &h.Entries[i].Parts[k]
	block := agent.DecodeBlock(p.Raw)
	switch b := block.(type) {
	case *agent.ToolUseBlock: // its result is replaced as well
		if !g.replaceResult(h, i+1, b.ID) {
			return ""
		}
		e := &h.Entries[i]
		e.Calls = slices.DeleteFunc(slices.Clone(e.Calls), func(id string) bool { return id == b.ID })
		*p = TextPart(fmt.Sprintf("[A call of %s with the input %s]", b.Name, clip.Text(string(b.Input), 2000)))
	case *agent.ToolResultBlock:
		text := b.Text()
		if strings.HasSuffix(text, TextRefused) {
			return "" // replaced before
		}
		text = strings.TrimPrefix(text+"\n"+TextRefused, "\n")
		*p = Part{Raw: EncodeBlock(&agent.ToolResultBlock{ToolUseID: b.ToolUseID, IsError: b.IsError, Content: agent.TextContent(text)})}
	default:
		text := TextPart(TextRefused)
		if bytes.Equal(text.Raw, p.Raw) {
			return "" // replaced before
		}
		*p = text
	}
	return blockKind(block)
}

// replaceResult replaces the result of a call by a text, after the other results of the message.
func (g *Loaded) replaceResult(h *History, i int, id string) bool {
	if i >= len(h.Entries) || i >= len(g.origins) {
		return false
	}
	e := &h.Entries[i]
	for k := range e.Parts {
		r, ok := agent.DecodeBlock(e.Parts[k].Raw).(*agent.ToolResultBlock)
		if !ok || r.ToolUseID != id {
			continue
		}
		text := r.Text()
		if IsBlank(text) {
			text = TextRefused
		}
		end := k + 1 // after the last result
		for end < len(e.Parts) && resultBlock(agent.DecodeBlock(e.Parts[end].Raw)) != nil {
			end++
		}
		copy(e.Parts[k:end-1], e.Parts[k+1:end])
		e.Parts[end-1] = TextPart("[Its result: " + text + "]")
		return true
	}
	return false
}
