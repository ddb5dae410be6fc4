package transcript

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/internal/clip"
)

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
