package native

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/messages"
	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/toolresult"
)

// readTool reads and searches stored results. The model has it once there is a stored result.
const readTool = "ReadToolResult"

func newReadTool() *toolset.Tool {
	return toolset.Builtin(toolset.APITool{
		Name: readTool,
		Description: "Reads a tool result that was too large and has been saved to a file, in parts: by lines (offset and limit), " +
			"by a search (pattern), or within long lines (column). Lines and characters are counted from 1.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"path":{"type":"string","description":"the path of the file, as the result says it"},` +
			`"offset":{"type":"integer","minimum":1,"description":"the first line to read"},` +
			`"limit":{"type":"integer","minimum":1,"description":"how many lines, or matches, to return: 200 lines or 50 matches unless it is set"},` +
			`"column":{"type":"integer","minimum":1,"description":"the first character of each line, for files with long lines"},` +
			`"pattern":{"type":"string","description":"a regular expression (RE2): only lines that match are returned, and of long lines what is around each match"}},` +
			`"required":["path"]}`),
	}, true)
}

// readStored answers a call of readTool.
func (t *turn) readStored(c *call, args json.RawMessage) *answer {
	var in struct {
		Path string `json:"path"`
		toolresult.Query
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return errorAnswer(c, "The input cannot be read: "+err.Error())
	}
	if in.Path == "" {
		return errorAnswer(c, "path is missing: give the path that the result was saved to")
	}
	text, err := t.s.store.Read(t.ctx, in.Path, in.Query)
	if err != nil {
		return errorAnswer(c, err.Error())
	}
	return textAnswer(c, text)
}

// textAnswer answers a call of one of the engine's own tools with a text.
func textAnswer(c *call, text string) *answer {
	if transcript.IsBlank(text) {
		text = "(nothing but white space)"
	}
	return &answer{result: &agent.ToolResultBlock{ToolUseID: c.use.ID, Content: agent.TextContent(text)}, raw: transcript.Encode(text)}
}

// adoptResults lets the model read the stored results of an earlier run in [Options.ResultsDir] that a
// history names. A server cannot forge such a result: its own result would contain the file's name.
func (s *session) adoptResults(history []agent.Message) {
	for _, m := range history {
		u, ok := m.(*agent.User)
		if !ok {
			continue
		}
		for _, b := range u.Message.Content {
			r, ok := b.(*agent.ToolResultBlock)
			if !ok || r.IsError {
				continue
			}
			file := filepath.Base(toolresult.StoredPath(r.Text()))
			if !bytes.Contains(u.ToolUseResult, []byte(file)) && s.store.AdoptFrom(r.Text()) {
				s.stored.Store(true)
			}
		}
	}
}

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
			description := toolset.Unavailable
			if tl == nil || tl.Own {
				tl = nil
				gone = append(gone, name)
			} else {
				description = tl.Model.Description
			}
			words.WriteString(describe(name, description))
			if s.finder.Active {
				s.finder.Load(name, tl)
			}
		}
		p.Plain = transcript.EncodeBlock(&agent.ToolResultBlock{ToolUseID: ref.ID, Content: loadedContent(words.String())})
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
