package native

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tenon-sdk/tenon/agent"
)

// A givenReference is a result of the history that refers to tools.
type givenReference struct {
	entry, part int
	index       int
	id          string
	names       []string
}

var namedBlock = regexp.MustCompile(`(?:^|[^.\w])messages\.(\d+)\.content\.(\d+)\b`)

// replaceRefused replaces the block of a given message that the API names in an error by text, for a
// model that is sent the thoughts of the policy. It reports false if the error names no such block.
func (g *given) replaceRefused(h *history, refusal, model string, thoughts thoughtPolicy) (agent.HistoryRepair, bool) {
	var none agent.HistoryRepair
	m := namedBlock.FindStringSubmatch(refusal)
	if m == nil {
		return none, false
	}
	i, errEntry := strconv.Atoi(m[1])
	j, errPart := strconv.Atoi(m[2])
	if errEntry != nil || errPart != nil || i >= len(g.origins) || i >= len(h.entries) {
		return none, false
	}
	e := &h.entries[i]
	for k := range e.parts {
		if e.parts[k].thought && !thoughts.sends(e.model, model) {
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
			Detail: fmt.Sprintf("the API refused a %s block, and words stand for it from now on: %s", kind, clip(refusal, 300)),
		}, kind != ""
	}
	return none, false
}

const textRefused = "[This was left out of the history, because the API refused it]"

// replace puts words in the place of a block, and returns its kind; empty if that cannot be done.
func (g *given) replace(h *history, i, k int) string {
	p := &h.entries[i].parts[k]
	block := agent.DecodeBlock(p.raw)
	switch b := block.(type) {
	case *agent.ToolUseBlock: // it takes its result along
		if !g.replaceResult(h, i+1, b.ID) {
			return ""
		}
		e := &h.entries[i]
		e.calls = slices.DeleteFunc(slices.Clone(e.calls), func(id string) bool { return id == b.ID })
		*p = textPart(fmt.Sprintf("[A call of %s with the input %s]", b.Name, clip(string(b.Input), 2000)))
	case *agent.ToolResultBlock:
		text := b.Text()
		if text != "" {
			text += "\n"
		}
		words := &agent.ToolResultBlock{ToolUseID: b.ToolUseID, IsError: b.IsError, Content: agent.TextContent(text + textRefused)}
		encoded := encodeBlock(words)
		if strings.HasSuffix(text, textRefused+"\n") {
			return "" // it was not this that is wrong
		}
		*p = part{raw: encoded}
	default:
		words := textPart(textRefused)
		if string(words.raw) == string(p.raw) {
			return "" // it was not this that is wrong
		}
		*p = words
	}
	return blockKind(block)
}

// replaceResult makes a text of the result of a call that is no call any more. Results come first in a message.
func (g *given) replaceResult(h *history, i int, id string) bool {
	if i >= len(h.entries) || i >= len(g.origins) {
		return false
	}
	e := &h.entries[i]
	for k := range e.parts {
		r, ok := agent.DecodeBlock(e.parts[k].raw).(*agent.ToolResultBlock)
		if !ok || r.ToolUseID != id {
			continue
		}
		text := r.Text()
		if isBlank(text) {
			text = textRefused
		}
		end := k + 1 // behind the last result
		for end < len(e.parts) && resultBlock(agent.DecodeBlock(e.parts[end].raw)) != nil {
			end++
		}
		copy(e.parts[k:end-1], e.parts[k+1:end])
		e.parts[end-1] = textPart("[Its result: " + text + "]")
		return true
	}
	return false
}
