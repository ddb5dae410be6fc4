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

// Loaded is what came of Options.History, beside the history itself.
type Loaded struct {
	Repairs    []agent.HistoryRepair
	Count      int     // of repairs, those beyond maxRepairs as well
	Reported   bool    // to the program
	origins    [][]int // of each part of each entry that was given, its message's index in Options.History
	References []givenReference
	Size       int // of the messages, in bytes
	Resumed    bool
}

// Source is where the session comes from, as hooks are told.
func (g *Loaded) Source() string {
	if g.Resumed {
		return "resume"
	}
	return "startup"
}

// maxRepairs bounds the repairs that are listed.
const maxRepairs = 100

func (g *Loaded) Repair(index int, kind, format string, args ...any) {
	if g.Count++; len(g.Repairs) < maxRepairs {
		g.Repairs = append(g.Repairs, agent.HistoryRepair{Index: index, Kind: kind, Detail: fmt.Sprintf(format, args...)})
	}
}

// A Loader makes a history of the messages of an earlier run.
type Loader struct {
	ctx context.Context // of loading
	Loaded
	history History
	models  []string // the session's, by their own names

	items   []*item
	results []*givenResult
	next    map[string]int // what to try next behind an ID that is taken
}

// An item is a message of the history while it is put together: the model's, or words of the user's.
type item struct {
	index     int // of its first message in Options.History
	assistant bool
	key       responseKey
	model     string
	parts     []draft // without the results of calls
}

// A responseKey is what the messages that hold one response have in common.
type responseKey struct{ message, request string }

// A draft is a block that was checked.
type draft struct {
	Part
	index int
	call  *agent.ToolUseBlock // nil unless it is a call
	// Of the blocks of tools that run with the model: the ID of a use, and that of the use which a result answers.
	use, answers string
}

// A givenResult is a result of a call.
type givenResult struct {
	index int
	after int // how many items were before it
	block *agent.ToolResultBlock
	names []string // of the tools that it refers to
	// refused is why the run that it is of dropped it; empty if it did not.
	refused string
	used    bool
}

// Load makes a history of what an earlier run said. models are those that the session asks. It ends early
// with ctx; what it returns is worth nothing then.
func Load(ctx context.Context, msgs []agent.Message, models ...string) (History, Loaded) {
	l := &Loader{ctx: ctx, models: models}
	for _, m := range l.choose(msgs) {
		if ctx.Err() != nil {
			break
		}
		l.take(m)
	}
	l.dropHalves()
	l.build()
	l.Size = l.history.Size()
	return l.history, l.Loaded
}

// A choice is a message of Options.History that has a say in the conversation.
type choice struct {
	index     int
	assistant *agent.Assistant // nil for the user's
	user      *agent.User
	dropped   bool
	refused   string          // why the API refused it, as the run reported it last
	encoded   json.RawMessage // for sameMessage; nil until it is needed
}

// choices are the messages that have been read so far.
type choices struct {
	all     []*choice
	byUUID  map[string][]*choice
	settled int // of all, those that no later report is about
}

func (cs *choices) add(c *choice) {
	cs.all = append(cs.all, c)
	if id := c.uuid(); id != "" && len(cs.byUUID[id]) < maxSameID {
		cs.byUUID[id] = append(cs.byUUID[id], c)
	}
}

const (
	// maxSameID bounds the messages, or the results, with one ID that are looked at.
	maxSameID = 100
	// maxReported bounds the messages that a report of a failure can be about.
	maxReported = 1000
)

func (c *choice) uuid() string {
	if c.assistant != nil {
		return c.assistant.UUID
	}
	return c.user.UUID
}

func (c *choice) content() agent.Content {
	if c.assistant != nil {
		return c.assistant.Message.Content
	}
	return c.user.Message.Content
}

// choose chooses the messages that make up the conversation: without what was taken out of it again,
// and without the reports of the run.
func (l *Loader) choose(msgs []agent.Message) []*choice {
	cs := &choices{byUUID: map[string][]*choice{}}
	for i, m := range msgs {
		switch m := m.(type) {
		case *agent.Assistant:
			switch {
			case m.ParentToolUseID != "":
			case m.Error != "":
				cs.takeOut(m.Supersedes, m.Text())
				if m.Error == "invalid_request" {
					cs.refuse(m.Text())
				}
			case m.Message.Model == SyntheticModel:
			default:
				cs.takeOut(m.Supersedes, "")
				cs.add(&choice{index: i, assistant: m})
			}
		case *agent.User:
			if m.ParentToolUseID == "" {
				cs.add(&choice{index: i, user: m})
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
	l.once(cs.all)
	var chosen []*choice
	for _, c := range cs.all {
		if !c.dropped || c.refused != "" && c.user != nil {
			chosen = append(chosen, c)
		}
	}
	return chosen
}

// SyntheticModel is the model of messages that the run made in the place of an answer.
const SyntheticModel = "<synthetic>"

// takeOut takes out the messages with these UUIDs. refused is the report that says why, if one does.
func (cs *choices) takeOut(uuids []string, refused string) {
	for _, id := range uuids {
		for _, c := range cs.byUUID[id] {
			c.dropped, c.refused = true, refused
		}
	}
}

// refuse heeds the report that the API has refused what is new in the conversation. It takes out the
// inputs at its end; those with a UUID are named by the report if they are meant. Results that were
// refused before are refused for this reason now. What the model itself has refused is one turn, and
// only one input begins that.
func (cs *choices) refuse(why string) {
	byModel := strings.HasPrefix(why, TextModelRefused)
	inputs := true
	fresh := cs.all[max(cs.settled, len(cs.all)-maxReported):]
	for i, c := range slices.Backward(fresh) {
		if !c.dropped && c.assistant != nil {
			break
		}
		inputs = inputs && (c.dropped || c.user.UUID == "" && len(c.user.ToolResults()) == 0)
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

// once drops what is there twice: the same message with the same UUID, and an input beside its replay.
func (l *Loader) once(all []*choice) {
	first := map[string]*choice{}
	for _, c := range all {
		id := c.uuid()
		before := first[id]
		switch {
		case id == "" || c.dropped:
		case before == nil:
			first[id] = c
		case c.user != nil && before.user != nil && c.user.IsReplay != before.user.IsReplay:
			if c.user.IsReplay {
				before, c = c, before
				first[id] = before
			}
			c.dropped = true
		case sameMessage(before, c):
			c.dropped = true
			l.Repair(c.index, agent.RepairDuplicate, "the message is there twice, and was left out the second time")
		}
	}
}

// sameMessage reports whether two messages say the same.
func sameMessage(a, b *choice) bool {
	encoded := func(c *choice) json.RawMessage {
		if c.encoded == nil {
			var known agent.Content
			for _, b := range c.content() {
				if b = Known(b); b != nil {
					known = append(known, b)
				}
			}
			c.encoded = Encode(known)
		}
		return c.encoded
	}
	return (a.assistant == nil) == (b.assistant == nil) && bytes.Equal(encoded(a), encoded(b))
}

// take takes in one message.
func (l *Loader) take(c *choice) {
	if c.assistant != nil {
		l.takeAssistant(c.index, c.assistant)
		return
	}
	var parts []draft
	for _, b := range c.user.Message.Content {
		if r := resultBlock(b); r != nil {
			l.takeResult(c.index, r, c.refused)
			continue
		}
		if c.dropped {
			continue
		}
		for _, b := range l.Readable(c.index, b, false) {
			parts = append(parts, draft{Part: Part{Raw: EncodeBlock(b)}, index: c.index})
		}
	}
	if len(c.user.Message.Content) == 0 {
		l.Repair(c.index, agent.RepairEmpty, "a message without content was left out")
	}
	if len(parts) > 0 {
		l.items = append(l.items, &item{index: c.index, parts: parts})
	}
}

// takeAssistant takes in a message of the model's. It joins the item of the response that it is of,
// which may have results after it: some runs call tools while the model still speaks.
func (l *Loader) takeAssistant(index int, m *agent.Assistant) {
	key := responseKey{m.Message.ID, m.RequestID}
	var parts []draft
	for _, b := range m.Message.Content {
		if r := resultBlock(b); r != nil {
			l.takeResult(index, r, "")
			continue
		}
		if p, ok := l.assistantBlock(index, b); ok {
			parts = append(parts, p)
		}
	}
	if n := len(l.items); n > 0 && l.items[n-1].assistant && l.items[n-1].key == key && (key.message != "" || !l.answeredSince(n)) {
		l.items[n-1].parts = append(l.items[n-1].parts, parts...)
		return
	}
	if len(parts) > 0 {
		l.items = append(l.items, &item{index: index, assistant: true, key: key, model: l.modelOf(m.Message.Model), parts: parts})
	}
}

// answeredSince reports whether there are results behind the first n items.
func (l *Loader) answeredSince(n int) bool {
	return len(l.results) > 0 && l.results[len(l.results)-1].after == n
}

// modelOf is a model as the session calls it: servers have names of their own for the same.
func (l *Loader) modelOf(name string) string {
	for _, m := range l.models {
		if m == name || sameModel(m, name) {
			return m
		}
	}
	return name
}

func (l *Loader) takeResult(index int, r *agent.ToolResultBlock, refused string) {
	block, names := l.resultContent(index, r)
	l.results = append(l.results, &givenResult{index: index, after: len(l.items), block: block, names: names, refused: refused})
}

// dropHalves drops the use of a tool that runs with the model without its result, and the other way
// round: the API takes them in pairs. A use may be answered in the model's next message, if that has
// to wait for the results of other calls.
func (l *Loader) dropHalves() {
	open := map[string]bool{} // uses of the items that follow each other, without a result
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

const TextModelRefused = "API Error: the model refused to answer. The turn was taken out of the conversation."

// A givenReference is a result of the history that refers to tools.
type givenReference struct {
	Entry, Part int
	Index       int
	ID          string
	Names       []string
}

var namedBlock = regexp.MustCompile(`(?:^|[^.\w])messages\.(\d+)\.content\.(\d+)\b`)

// ReplaceRefused replaces the block of a given message that the API names in an error by text, for a
// model that is sent the thoughts of the policy. It reports false if the error names no such block.
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

const TextRefused = "[This was left out of the history, because the API refused it]"

// replace puts words in the place of a block, and returns its kind; empty if that cannot be done.
func (g *Loaded) replace(h *History, i, k int) string {
	p := &h.Entries[i].Parts[k]
	block := agent.DecodeBlock(p.Raw)
	switch b := block.(type) {
	case *agent.ToolUseBlock: // it takes its result along
		if !g.replaceResult(h, i+1, b.ID) {
			return ""
		}
		e := &h.Entries[i]
		e.Calls = slices.DeleteFunc(slices.Clone(e.Calls), func(id string) bool { return id == b.ID })
		*p = TextPart(fmt.Sprintf("[A call of %s with the input %s]", b.Name, clip.Text(string(b.Input), 2000)))
	case *agent.ToolResultBlock:
		text := b.Text()
		if text != "" {
			text += "\n"
		}
		words := &agent.ToolResultBlock{ToolUseID: b.ToolUseID, IsError: b.IsError, Content: agent.TextContent(text + TextRefused)}
		encoded := EncodeBlock(words)
		if strings.HasSuffix(text, TextRefused+"\n") {
			return "" // it was not this that is wrong
		}
		*p = Part{Raw: encoded}
	default:
		words := TextPart(TextRefused)
		if string(words.Raw) == string(p.Raw) {
			return "" // it was not this that is wrong
		}
		*p = words
	}
	return blockKind(block)
}

// replaceResult makes a text of the result of a call that is no call any more. Results come first in a message.
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
		end := k + 1 // behind the last result
		for end < len(e.Parts) && resultBlock(agent.DecodeBlock(e.Parts[end].Raw)) != nil {
			end++
		}
		copy(e.Parts[k:end-1], e.Parts[k+1:end])
		e.Parts[end-1] = TextPart("[Its result: " + text + "]")
		return true
	}
	return false
}
