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

// benign are the kinds of repairs that undisturbed runs need as well: the API sometimes returns what it
// does not accept.
var benign = []string{agent.RepairEmpty, agent.RepairThought, agent.RepairRenamed}

// repairNote is the payload of the message that reports repairs.
type repairNote struct {
	informational
	Count   int                   `json:"count"`
	Repairs []agent.HistoryRepair `json:"repairs"`
}

// reportRepairs reports once what was changed about Options.History.
func (s *session) reportRepairs() {
	if g := &s.given; !g.Reported && g.Count > 0 {
		g.Reported = true
		s.noteRepairs(g.Count, g.Repairs)
	}
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

// settleReferences loads the tools that the history refers to. A tool that does not exist gets a definition
// that cannot be called, because the API refuses references to unknown tools.
func (s *session) settleReferences() {
	for _, ref := range s.given.References {
		p := &s.history.Entries[ref.Entry].Parts[ref.Part]
		var words strings.Builder
		var gone []string
		for _, name := range ref.Names {
			tl := s.table.ByName[name]
			what := toolset.Unavailable
			if tl == nil || tl.Own {
				tl = nil
				gone = append(gone, name)
			} else {
				what = clip.Text(toolset.FirstLine(tl.Model.Description), 200)
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

// mendGiven replaces a block of the given history that the API refused by text. It reports whether there
// was one.
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
