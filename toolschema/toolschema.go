// Package toolschema makes the copy of a tool that a model is shown.
//
// The Messages API refuses a whole request for one tool whose name, description or schema it
// does not accept. [ForModel] makes of any tool a copy that it does accept, says what it mended,
// and keeps the way back for the arguments; what cannot be mended comes back as a [Quarantine]
// with its reason. The tool that it is given is never modified, and equal input gives equal
// bytes.
//
//	m, q := toolschema.ForModel(toolschema.Tool{Server: "notion", Name: "search", InputSchema: raw}, nil)
//	if q != nil {
//		return q // leave this tool out, say why, keep its siblings
//	}
//	request.Tools = append(request.Tools, apiTool(m.Name, m.Description, m.InputSchema))
//	// later, when the model calls m.Name:
//	args = m.RestoreArgs(args)
//
// It works on anyone's tools: it knows no host and does no I/O.
package toolschema

import (
	"encoding/json"
	"errors"
)

// A Tool is a tool as its server lists it.
type Tool struct {
	// Server is the server's registration key. Empty for a tool that belongs to no MCP server.
	Server string
	// Name is the tool's own name.
	Name string
	// FullName is the name for the model before mending; empty means mcp__SERVER__NAME, or NAME
	// without a server, with every illegal character replaced by "_".
	FullName string
	// Description is the tool's description.
	Description string
	// InputSchema is the JSON Schema of the arguments; nil counts as missing.
	InputSchema json.RawMessage
}

// Options are the limits. The zero value, like a nil pointer, means the defaults.
type Options struct {
	// MaxName is the longest name, in bytes. Zero means 64; it is kept within 16 and 128.
	MaxName int
	// MaxDescription is the longest description, in characters, before the mark of truncation. Zero means 4096.
	MaxDescription int
}

// A Model is a tool as the model sees it. It is immutable and safe for concurrent use.
type Model struct {
	// Name is the name in the request.
	Name string
	// Description is never cut within a character.
	Description string
	// InputSchema is a JSON object whose root type is "object". The caller must not modify it.
	InputSchema json.RawMessage
	// Report lists what was mended, in a fixed order; empty if the tool was fine as it was.
	Report []Mend
}

// A Mend is one change that was made to a tool.
type Mend struct {
	// Path is the JSON pointer of the place in the original schema, or "name" or "description".
	Path string
	// Kind says what was mended, in a fixed vocabulary.
	Kind string
	// Detail says it in words.
	Detail string
}

// A Quarantine is a tool that cannot be shown to a model, and why.
type Quarantine struct {
	Server, Tool string
	// Reason says what is wrong and cannot be mended.
	Reason string
}

// Error tells which tool it is and why it is left out.
func (q *Quarantine) Error() string {
	return "tool " + q.Tool + " of server " + q.Server + " is left out: " + q.Reason
}

// ForModel makes the model's copy of t. Exactly one of the two is meaningful: with a Quarantine the Model is empty.
func ForModel(t Tool, o *Options) (Model, *Quarantine) {
	return Model{}, &Quarantine{Server: t.Server, Tool: t.Name, Reason: errors.New("not implemented yet").Error()}
}

// RestoreArgs turns arguments that the model wrote for the mended schema into the server's own
// shape. Arguments that it has nothing to restore in come back unchanged, byte for byte.
func (m Model) RestoreArgs(args json.RawMessage) json.RawMessage { return args }
