package transcript

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/internal/clip"
)

// Texts in place of what is missing in a history.
const (
	TextNoBeginning = "[The beginning of this conversation is missing]"
	TextUnanswered  = "[The conversation was interrupted before this tool call had a result]"
)

// build makes the history of the items, with the answers to the calls after each assistant message.
func (l *Loader) build() {
	l.match()
	for k, it := range l.items {
		if !it.assistant {
			l.addUser(it.parts...)
			continue
		}
		parts := it.parts
		for n := len(parts); n > 0 && parts[n-1].Thought; n-- {
			l.Repair(parts[n-1].index, agent.RepairThought, "a thought at the end of a message was left out")
			parts = parts[:n-1]
		}
		l.addAssistant(it.model, parts)
		for _, p := range parts {
			if p.call != nil {
				l.addAnswer(k, p)
			}
		}
	}
	for _, r := range l.results {
		if r.used || r.refused != "" {
			continue
		}
		kind, what := agent.RepairOrphan, "there is no call"
		if l.history.ids[r.block.ToolUseID] {
			kind, what = agent.RepairDuplicate, "there is another one for the call"
		}
		l.Repair(r.index, kind, "a tool result was left out, because %s: %s", what, clip.Text(r.block.ToolUseID, 100))
	}
}

// match finds the result of each call: the next one with its ID after it, or one before it.
func (l *Loader) match() {
	calls := map[string][]int{} // the items that have a call with this ID
	for k, it := range l.items {
		for _, p := range it.parts {
			if p.call != nil {
				calls[p.call.ID] = append(calls[p.call.ID], k)
			}
		}
	}
	byID := map[string][]*givenResult{}
	for _, r := range l.results {
		byID[r.block.ToolUseID] = append(byID[r.block.ToolUseID], r)
	}
	for k, it := range l.items {
		for i := range it.parts {
			d := &it.parts[i]
			if d.call == nil {
				continue
			}
			id := d.call.ID
			calls[id] = calls[id][1:]
			last := len(l.items)
			if len(calls[id]) > 0 {
				last = calls[id][0]
			}
			for len(byID[id]) > 0 && byID[id][0].used {
				byID[id] = byID[id][1:]
			}
			if d.result = pick(byID[id][:min(len(byID[id]), maxSameID)], k, last); d.result != nil {
				d.result.used = true
			}
			if name := l.freeID(id); name != id {
				l.Repair(d.index, agent.RepairRenamed, "a tool call's ID that is taken or not allowed was changed: %q is %q now", clip.Text(id, 100), name)
				d.call.ID = name
				d.Raw = EncodeBlock(d.call)
				if d.result != nil {
					d.result.block.ToolUseID = name
				}
			}
		}
	}
}

// pick returns the result for a call in item k. Results after item last belong to a later call with the same
// ID. Results that the API refused come last.
func pick(results []*givenResult, k, last int) *givenResult {
	for _, wanted := range []func(r *givenResult) bool{
		func(r *givenResult) bool { return r.after > k && r.after <= last && r.refused == "" },
		func(r *givenResult) bool { return r.after <= k && r.refused == "" },
		func(r *givenResult) bool { return r.after > k && r.after <= last },
	} {
		if i := slices.IndexFunc(results, func(r *givenResult) bool { return !r.used && wanted(r) }); i >= 0 {
			return results[i]
		}
	}
	return nil
}

// freeID returns an ID that the API accepts and no other call has. Equal histories get equal IDs.
func (l *Loader) freeID(id string) string {
	clean := cmp.Or(legal(id), "toolu")
	name := clean
	if l.history.ids == nil {
		l.history.ids, l.next = map[string]bool{}, map[string]int{}
	}
	for n := max(2, l.next[clean]); l.history.ids[name]; n++ {
		name, l.next[clean] = fmt.Sprintf("%s_%d", clean, n), n+1
	}
	l.history.ids[name] = true
	return name
}

// addAnswer adds the answer to a call in item k.
func (l *Loader) addAnswer(k int, p draft) {
	r, errorText := p.result, ""
	switch {
	case r == nil:
		errorText = TextUnanswered
		l.Repair(p.index, agent.RepairUnanswered, "a tool call without a result was answered with an error: %s", clip.Text(p.call.ID, 100))
	case r.refused != "":
		errorText = DroppedResult(r.refused)
	case r.after != k+1:
		l.Repair(r.index, agent.RepairMoved, "a tool result was moved to its call: %s", clip.Text(p.call.ID, 100))
	}
	if errorText != "" {
		l.addUser(draft{Part: ErrorResult(p.call.ID, errorText), index: p.index})
		return
	}
	l.addUser(draft{Part: Part{Raw: EncodeBlock(r.block)}, index: r.index})
	if len(r.names) > 0 {
		e := len(l.history.Entries) - 1
		l.References = append(l.References, givenReference{
			Entry: e, Part: len(l.history.Entries[e].Parts) - 1, Index: r.index, ID: r.block.ToolUseID, Names: r.names,
		})
	}
}

func (l *Loader) addUser(parts ...draft) {
	l.history.AddUser(rawParts(parts)...)
	l.note(parts)
}

func (l *Loader) addAssistant(model string, parts []draft) {
	if len(parts) == 0 {
		return
	}
	if len(l.history.Entries) == 0 {
		l.Repair(parts[0].index, agent.RepairBeginning, "the conversation begins with the model's words: %q was put before them", TextNoBeginning)
		l.addUser(draft{Part: TextPart(TextNoBeginning), index: parts[0].index})
	}
	var ids []string
	for _, p := range parts {
		if p.call != nil {
			ids = append(ids, p.call.ID)
		}
	}
	l.history.AddAssistant(model, rawParts(parts), ids)
	l.note(parts)
}

// note records the origins of the latest parts of the history.
func (l *Loader) note(parts []draft) {
	if len(parts) == 0 {
		return
	}
	if len(l.origins) < len(l.history.Entries) {
		l.origins = append(l.origins, nil)
	}
	last := &l.origins[len(l.origins)-1]
	for _, p := range parts {
		*last = append(*last, p.index)
	}
}

func rawParts(drafts []draft) []Part {
	parts := make([]Part, len(drafts))
	for i, d := range drafts {
		parts[i] = d.Part
	}
	return parts
}

// ErrorResult returns a result with an error text.
func ErrorResult(id, text string) Part {
	return Part{Raw: EncodeBlock(&agent.ToolResultBlock{ToolUseID: id, IsError: true, Content: agent.TextContent(text)})}
}

// DroppedResult answers a call whose result the API refused.
func DroppedResult(why string) string {
	return "The result of this tool call was dropped because the API refused it: " + clip.Text(why, 500)
}
