package native

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/messages"
	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/internal/clip"
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
	if g.Reported || g.Count == 0 {
		return
	}
	g.Reported = true
	s.noteRepairs(g.Count, g.Repairs)
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

// settleReferences loads the tools that the history refers to, now that it is known which there are. A
// tool that there is not stays as a name that cannot be called: the API refuses references to nothing.
func (s *session) settleReferences() {
	for _, ref := range s.given.References {
		p := &s.history.Entries[ref.Entry].Parts[ref.Part]
		var words strings.Builder
		var gone []string
		for _, name := range ref.Names {
			tl := s.table.ByName[name]
			what := toolset.Unavailable
			if tl != nil && !tl.Own {
				what = clip.Text(toolset.FirstLine(tl.Model.Description), 200)
			} else {
				tl = nil
				gone = append(gone, name)
			}
			fmt.Fprintf(&words, "%s: %s\n", name, what)
			if s.finder.Active {
				s.finder.Load(name, tl)
			}
		}
		p.Plain = transcript.EncodeBlock(&agent.ToolResultBlock{ToolUseID: ref.ID, Content: agent.TextContent("These tools are loaded and can be called now:\n" + strings.TrimSpace(words.String()))})
		if !s.finder.Active {
			p.Raw, p.Plain = p.Plain, nil
			s.given.Repair(ref.Index, agent.RepairReference, "references to tools became words, since there is no tool search: %s", clip.Text(strings.Join(ref.Names, ", "), 200))
		} else if len(gone) > 0 {
			s.given.Repair(ref.Index, agent.RepairReference, "tools that are referred to are not there: %s", clip.Text(strings.Join(gone, ", "), 200))
		}
	}
	s.given.References = nil
}

// mendGiven replaces a block of the given history that the API has refused by text, whatever the API
// has against it: the conversation would never be accepted again. It reports whether there was one.
func (s *session) mendGiven(f *messages.Failure, r *messages.Request) bool {
	if f.Status != http.StatusBadRequest {
		return false
	}
	repair, ok := s.given.ReplaceRefused(&s.history, f.Text, r.Model, r.Thoughts)
	if ok {
		s.noteRepairs(1, []agent.HistoryRepair{repair})
	}
	return ok
}
