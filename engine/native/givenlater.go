package native

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tenon-sdk/tenon/agent"
)

// benign are the kinds of repairs that the history of an undisturbed run has as well: what the API
// sometimes says, and does not take back.
var benign = []string{agent.RepairEmpty, agent.RepairThought, agent.RepairRenamed}

// repairNote is the payload of the message that reports repairs.
type repairNote struct {
	informational
	Count   int                   `json:"count"`
	Repairs []agent.HistoryRepair `json:"repairs"`
}

// reportRepairs reports, once, what was changed about Options.History.
func (s *session) reportRepairs() {
	g := &s.given
	if g.reported || g.count == 0 {
		return
	}
	g.reported = true
	s.noteRepairs(g.count, g.repairs)
}

func (s *session) noteRepairs(count int, repairs []agent.HistoryRepair) {
	level, kinds := "notice", map[string]int{}
	for _, r := range repairs {
		if !slices.Contains(benign, r.Kind) {
			level = "warning"
		}
		kinds[r.Kind]++
		s.opts.Logger.Debug("history repaired", "session", s.opts.SessionID, "index", r.Index, "kind", r.Kind, "detail", r.Detail)
	}
	first := repairs[0]
	text := fmt.Sprintf("The history was changed in %d places, so that the model can be sent it. The first: History[%d]: %s.", count, first.Index, first.Detail)
	if level == "warning" {
		s.opts.Logger.Warn(text, "session", s.opts.SessionID, "kinds", kinds)
	}
	s.note("informational", repairNote{informational{Content: text, Level: level, Tag: agent.TagHistoryRepaired}, count, repairs})
}

// A givenReference is a result of the history that refers to tools.
type givenReference struct {
	entry, part int
	index       int
	id          string
	names       []string
}

// settleReferences loads the tools that the history refers to, now that it is known which there are. A
// tool that there is not stays as a name that cannot be called: the API refuses references to nothing.
func (s *session) settleReferences() {
	for _, ref := range s.given.references {
		p := &s.history.entries[ref.entry].parts[ref.part]
		var words strings.Builder
		var gone []string
		for _, name := range ref.names {
			tl := s.table.byName[name]
			what := unavailable
			if tl != nil && tl.run == nil {
				what = clip(firstLine(tl.model.Description), 200)
			} else {
				tl = nil
				gone = append(gone, name)
			}
			fmt.Fprintf(&words, "%s: %s\n", name, what)
			if s.finder.active {
				s.finder.recall(name, tl)
			}
		}
		p.plain = encodeBlock(&agent.ToolResultBlock{ToolUseID: ref.id, Content: agent.TextContent("These tools are loaded and can be called now:\n" + strings.TrimSpace(words.String()))})
		if !s.finder.active {
			p.raw, p.plain = p.plain, nil
			s.given.repair(ref.index, agent.RepairReference, "references to tools became words, since there is no tool search: %s", clip(strings.Join(ref.names, ", "), 200))
		} else if len(gone) > 0 {
			s.given.repair(ref.index, agent.RepairReference, "tools that are referred to are not there: %s", clip(strings.Join(gone, ", "), 200))
		}
	}
	s.given.references = nil
}

const unavailable = "This tool is not available."

// recall loads a tool that an earlier run had loaded. Nil stands for one that there is not.
func (f *finder) recall(name string, tl *tool) {
	if tl != nil {
		f.load(tl)
		return
	}
	f.add(&loadedTool{def: stub(name)})
}

var namedBlock = regexp.MustCompile(`(?:^|[^.\w])messages\.(\d+)\.content\.(\d+)\b`)

// mendGiven puts words in the place of a block of the given history that the API has refused, whatever
// it has against it: the conversation would never be accepted again. It reports whether there was one.
func (s *session) mendGiven(f *failure, r *request) bool {
	m := namedBlock.FindStringSubmatch(f.text)
	if m == nil || f.status != http.StatusBadRequest {
		return false
	}
	i, errEntry := strconv.Atoi(m[1])
	j, errPart := strconv.Atoi(m[2])
	if errEntry != nil || errPart != nil || i >= len(s.given.origins) || i >= len(s.history.entries) {
		return false
	}
	e := &s.history.entries[i]
	for k := range e.parts {
		if e.parts[k].thought && !r.thoughts.sends(e.model, r.model) {
			continue
		}
		if j--; j >= 0 {
			continue
		}
		if k >= len(s.given.origins[i]) {
			return false // it came later
		}
		kind := s.replaceGiven(i, k)
		if kind == "" {
			return false
		}
		s.noteRepairs(1, []agent.HistoryRepair{{
			Index: s.given.origins[i][k], Kind: agent.RepairRefused,
			Detail: fmt.Sprintf("the API refused a %s block, and words stand for it from now on: %s", kind, clip(f.text, 300)),
		}})
		return true
	}
	return false
}

const textRefused = "[This was left out of the history, because the API refused it]"

// replaceGiven puts words in the place of a block, and returns its kind; empty if that cannot be done.
func (s *session) replaceGiven(i, k int) string {
	p := &s.history.entries[i].parts[k]
	block := agent.DecodeBlock(p.raw)
	switch b := block.(type) {
	case *agent.ToolUseBlock: // it takes its result along
		if !s.replaceResult(i+1, b.ID) {
			return ""
		}
		e := &s.history.entries[i]
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
func (s *session) replaceResult(i int, id string) bool {
	if i >= len(s.history.entries) || i >= len(s.given.origins) {
		return false
	}
	e := &s.history.entries[i]
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
