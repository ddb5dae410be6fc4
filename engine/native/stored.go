package native

import (
	"bytes"
	"encoding/json"
	"path/filepath"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
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
func (t *turn) readStored(c *call, args json.RawMessage) answer {
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
func textAnswer(c *call, text string) answer {
	if transcript.IsBlank(text) {
		text = "(nothing but white space)"
	}
	return answer{result: &agent.ToolResultBlock{ToolUseID: c.use.ID, Content: agent.TextContent(text)}, raw: transcript.Encode(text)}
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
