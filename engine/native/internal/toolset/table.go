// Package toolset holds the tools that a model can call: the table of those that the servers offer, the
// search that loads withheld definitions, and the definitions of a request.
package toolset

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/permission"
	"github.com/tenon-sdk/tenon/toolresult"
	"github.com/tenon-sdk/tenon/toolschema"
)

// A Tool is a tool that the model can call: one of a server, or one of the engine's own.
type Tool struct {
	mcphost.Tool
	Host  *mcphost.Host // nil for the engine's own
	Model toolschema.Model
	Own   bool // one of the engine's own
}

// Request returns a call of the tool for the permission rules.
func (t *Tool) Request() permission.Request {
	return permission.Request{Tool: t.FullName, Server: t.Server, ToolName: t.Name, ReadOnly: t.ReadOnly}
}

// Parallel reports whether calls of the tool may run concurrently with others.
func (t *Tool) Parallel() bool {
	switch t.Meta[mcpserver.MetaConcurrency] {
	case "parallel":
		return true
	case "serial":
		return false
	}
	return t.ReadOnly
}

// A Table has the tools that the model can call at one moment. It is immutable, except for revision.
type Table struct {
	source   [][]mcphost.Tool       // the tools of each host that it was made from
	revision []uint64               // of the hosts when they had these tools
	Tools    []*Tool                // in the order of requests
	ByName   map[string]*Tool       // by the name for the model
	Prompt   *Tool                  // the permission prompt tool, which is hidden from the model
	LeftOut  []mcphost.RejectedTool // tools that cannot be used, with the reasons
	builtins int                    // the number of the engine's own tools
	denied   []string               // the deny rules that it was made with
	Mended   map[ToolKey]ModelCopy  // the model's copies of the hosts' tools
}

// Names returns the names of the tools in the order of requests.
func (t *Table) Names() []string {
	names := make([]string, len(t.Tools))
	for i, tl := range t.Tools {
		names[i] = tl.Model.Name
	}
	return names
}

// TableOptions configure a table.
type TableOptions struct {
	Policy      *permission.Policy
	Servers     *permission.Servers
	PromptTool  string
	Quarantined map[string]string             // reasons by full name
	Builtins    []*Tool                       // the engine's own
	Before      *Table                        // its copies of tools are used again; nil if there is none
	Budgets     map[string]*toolschema.Budget // by server; set by NewTable
}

// An APITool is a tool in the form of the request.
type APITool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
	// DeferLoading hides the definition from the model until a tool reference names it.
	DeferLoading bool `json:"defer_loading,omitempty"`
}

// NewTable returns a table of the current tools of hosts. Of two tools with one name, that of the first host
// is used and the other is left out.
func NewTable(ctx context.Context, hosts []*mcphost.Host, o TableOptions) *Table {
	t := &Table{ByName: map[string]*Tool{}, Mended: map[ToolKey]ModelCopy{}}
	o.Budgets = map[string]*toolschema.Budget{}
	for _, h := range hosts {
		t.revision = append(t.revision, h.Revision()) // before the tools: it must not be too new
		offered := h.Tools()
		t.source = append(t.source, offered)
		for _, mt := range offered {
			t.Add(ctx, &Tool{Tool: mt, Host: h}, o)
		}
	}
	for _, b := range o.Builtins {
		t.Add(ctx, b, o)
	}
	if ctx.Err() != nil {
		t.source = nil // it is never up to date
	}
	t.builtins, t.denied = len(o.Builtins), o.Policy.Rules(permission.Deny)
	t.Sort()
	return t
}

// A ToolKey is a tool of a server.
type ToolKey struct {
	host         *mcphost.Host
	server, name string
}

// A ModelCopy is a tool and the model's copy of it, or why there is none.
type ModelCopy struct {
	of    mcphost.Tool
	model toolschema.Model
	left  *toolschema.Quarantine
}

// mend returns the model's copy of a tool. If the tool has not changed, the copy is that of the table before.
func (t *Table) mend(ctx context.Context, host *mcphost.Host, mt mcphost.Tool, o TableOptions) (toolschema.Model, *toolschema.Quarantine) {
	key := ToolKey{host, mt.Server, mt.Name}
	if o.Before != nil {
		if m, ok := o.Before.Mended[key]; ok && m.of.FullName == mt.FullName && m.of.Description == mt.Description && bytes.Equal(m.of.InputSchema, mt.InputSchema) {
			t.Mended[key] = m
			return m.model, m.left
		}
	}
	budget := o.Budgets[mt.Server]
	if budget == nil {
		budget = &toolschema.Budget{}
		o.Budgets[mt.Server] = budget
	}
	m, q := toolschema.ForModel(ctx, toolschema.Tool{
		Server: mt.Server, Name: mt.Name, FullName: mt.FullName,
		Description: mt.Description, InputSchema: mt.InputSchema,
	}, &toolschema.Options{Budget: budget})
	m = fenced(m)
	if ctx.Err() == nil {
		t.Mended[key] = ModelCopy{mt, m, q}
	}
	return m, q
}

// Sort sorts the tools in the order of requests.
func (t *Table) Sort() {
	slices.SortStableFunc(t.Tools, func(a, b *Tool) int {
		x, y := a.Model.Name, b.Model.Name
		return cmp.Or(cmp.Compare(strings.ToLower(x), strings.ToLower(y)), cmp.Compare(x, y))
	})
}

// Add adds a tool, unless it is hidden, unusable, or has the name of another.
func (t *Table) Add(ctx context.Context, tl *Tool, o TableOptions) {
	switch {
	case o.PromptTool != "" && o.Servers.Names(o.PromptTool, tl.Request()):
		t.Prompt = tl
		return
	case o.Policy.Hidden(tl.Request()):
		return
	}
	reason := o.Quarantined[tl.FullName]
	if reason == "" && !tl.Own {
		m, q := t.mend(ctx, tl.Host, tl.Tool, o)
		switch {
		case ctx.Err() != nil:
			return // the table is made again
		case q != nil:
			reason = q.Reason
		}
		tl.Model = m
	}
	if first := t.ByName[tl.Model.Name]; reason == "" && first != nil {
		reason = fmt.Sprintf("its name %s belongs to tool %q of server %q", tl.Model.Name, first.Name, first.Server)
		if tl.Own {
			reason = fmt.Sprintf("it is the engine's own, and its name belongs to tool %q of server %q", first.Name, first.Server)
		}
	}
	if reason != "" {
		t.LeftOut = append(t.LeftOut, mcphost.RejectedTool{Server: tl.Server, Name: tl.Name, Reason: reason})
		return
	}
	t.Take(tl)
}

// Take adds a tool as it is.
func (t *Table) Take(tl *Tool) {
	t.ByName[tl.Model.Name] = tl
	t.Tools = append(t.Tools, tl)
}

// Current reports whether the table has the current tools of the hosts and the engine.
func (t *Table) Current(hosts []*mcphost.Host, denied []string, builtins int) bool {
	if len(hosts) != len(t.source) || builtins != t.builtins || !slices.Equal(denied, t.denied) {
		return false
	}
	for i, h := range hosts {
		now := h.Revision()
		if now != t.revision[i] && !slices.EqualFunc(h.Tools(), t.source[i], sameTool) {
			return false
		}
		t.revision[i] = now
	}
	return true
}

// sameTool reports whether a tool of a host has not changed.
func sameTool(a, b mcphost.Tool) bool {
	return a.FullName == b.FullName && a.Description == b.Description && a.ReadOnly == b.ReadOnly && a.AlwaysLoad == b.AlwaysLoad &&
		len(a.InputSchema) == len(b.InputSchema) && (len(a.InputSchema) == 0 || &a.InputSchema[0] == &b.InputSchema[0])
}

// ServerOf returns the server of a tool by its full name, among those that match.
func ServerOf(hosts []*mcphost.Host, name string, match func(mcphost.ServerStatus) bool) (*mcphost.Host, mcphost.ServerStatus, bool) {
	for _, h := range hosts {
		for _, s := range h.Status() {
			if strings.HasPrefix(name, toolname.Server(s.Name)+"__") && match(s) {
				return h, s, true
			}
		}
	}
	return nil, mcphost.ServerStatus{}, false
}

// ServerRows returns the servers for the init message.
func ServerRows(status []mcphost.ServerStatus) []agent.MCPServer {
	rows := make([]agent.MCPServer, len(status))
	for i, s := range status {
		rows[i] = agent.MCPServer{Name: s.Name, Status: string(s.Status), Source: SourceOf(s)}
	}
	return rows
}

// SourceOf returns where a server was defined. "dynamic" is the program's code.
func SourceOf(s mcphost.ServerStatus) string {
	switch {
	case s.Transport == mcphost.TransportSDK:
		return mcphost.TransportSDK
	case s.Source != "":
		return s.Source
	}
	return "dynamic"
}

// RejectedTools returns the tools that the hosts and the engine have left out.
func RejectedTools(status []mcphost.ServerStatus) []agent.MCPServerError {
	var errs []agent.MCPServerError
	for _, s := range status {
		for _, r := range s.Rejected {
			errs = append(errs, agent.MCPServerError{Name: s.Name, Type: "tool_left_out", Message: fmt.Sprintf("tool %q is left out: %s", r.Name, r.Reason)})
		}
	}
	return errs
}

// Builtin returns one of the engine's own tools. They only read, and their calls do not run concurrently.
func Builtin(def APITool, alwaysLoad bool) *Tool {
	return &Tool{
		Tool: mcphost.Tool{
			FullName: def.Name, LongName: def.Name, Name: def.Name, Description: def.Description, InputSchema: def.InputSchema,
			ReadOnly: true, AlwaysLoad: alwaysLoad, Meta: map[string]any{mcpserver.MetaConcurrency: "serial"},
		},
		Model: toolschema.Model{Name: def.Name, Description: def.Description, InputSchema: def.InputSchema},
		Own:   true,
	}
}

// fenced escapes the host's tags in the texts of a tool, so that a server cannot speak as the host. Values
// in the schema that arguments are compared with stay.
func fenced(m toolschema.Model) toolschema.Model {
	m.Description = toolresult.EscapeHostTags(m.Description)
	m.InputSchema = EscapeJSON(m.InputSchema, false)
	return m
}

// EscapeJSON escapes the host's tags in all strings of a JSON value, or only in the descriptive texts of a
// schema.
func EscapeJSON(raw json.RawMessage, all bool) json.RawMessage {
	if !json.Valid(raw) || !bytes.Contains(transcript.Compact(raw), []byte("<")) {
		return raw
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return raw
	}
	changed := false
	if v = escapeTags(v, all, &changed); !changed {
		return raw
	}
	return transcript.Encode(v)
}

func escapeTags(v any, isText bool, changed *bool) any {
	switch v := v.(type) {
	case string:
		if escaped := toolresult.EscapeHostTags(v); isText && escaped != v {
			*changed = true
			return escaped
		}
	case []any:
		for i := range v {
			v[i] = escapeTags(v[i], isText, changed)
		}
	case map[string]any:
		for name, inner := range v {
			v[name] = escapeTags(inner, isText || isForReaders(name, inner), changed)
		}
	}
	return v
}

// isForReaders reports whether a keyword of a schema is descriptive. A property may have the same name.
func isForReaders(name string, v any) bool {
	switch v.(type) {
	case string:
		return slices.Contains([]string{"title", "description", "$comment", "default"}, name)
	case []any:
		return name == "examples"
	}
	return false
}
