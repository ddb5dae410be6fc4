package native

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/permission"
	"github.com/tenon-sdk/tenon/toolschema"
)

// A tool is a tool that the model can call: one of a server, or one of the engine's own.
type tool struct {
	mcphost.Tool
	host  *mcphost.Host // nil for the engine's own
	model toolschema.Model
	own   bool // one of the engine's own, see turn.callOwn
}

// request is a call of the tool as the permission rules see it.
func (t *tool) request() permission.Request {
	return permission.Request{Tool: t.FullName, Server: t.Server, ToolName: t.Name, ReadOnly: t.ReadOnly}
}

// parallel reports whether calls of the tool may run together with others.
func (t *tool) parallel() bool {
	switch t.Meta[mcpserver.MetaConcurrency] {
	case "parallel":
		return true
	case "serial":
		return false
	}
	return t.ReadOnly
}

// A table is what the model can call at one moment. It is immutable, save for what it knows to be up to date.
type table struct {
	source   [][]mcphost.Tool       // what it was made from, host by host
	revision []uint64               // of the hosts then, or later without a difference
	tools    []*tool                // in the order of the request
	byName   map[string]*tool       // by the name that the model uses
	prompt   *tool                  // the permission prompt tool, which the model does not see
	leftOut  []mcphost.RejectedTool // what the engine cannot offer, with the reasons
	builtins int                    // what of the engine's own it was made with: see session.builtins
	denied   []string               // the rules that it was made with
	mended   map[toolKey]mending    // the model's copies of the hosts' tools
}

// names are the names of the tools, in the order of the request.
func (t *table) names() []string {
	names := make([]string, len(t.tools))
	for i, tool := range t.tools {
		names[i] = tool.model.Name
	}
	return names
}

// tableOptions are what a table depends on beside the hosts.
type tableOptions struct {
	policy      *permission.Policy
	servers     *permission.Servers
	promptTool  string
	quarantined map[string]string             // full name -> why
	builtins    []*tool                       // tools of the engine's own
	before      *table                        // what was made for its tools is made once; nil if there is none
	budgets     map[string]*toolschema.Budget // of the servers: set by newTable
}

// An apiTool is a tool in the form of the request.
type apiTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
	// DeferLoading keeps the definition from the model until a tool reference names it.
	DeferLoading bool `json:"defer_loading,omitempty"`
}

// newTable makes the table of what the hosts offer now. The hosts come in the order of precedence:
// where two offer a tool under one name, the first has it, and the other is reported.
func newTable(ctx context.Context, hosts []*mcphost.Host, o tableOptions) *table {
	t := &table{byName: map[string]*tool{}, mended: map[toolKey]mending{}}
	o.budgets = newBudgets()
	for _, h := range hosts {
		t.revision = append(t.revision, h.Revision()) // before the tools: it may be too old, and not too new
		offered := h.Tools()
		t.source = append(t.source, offered)
		for _, mt := range offered {
			t.add(ctx, &tool{Tool: mt, host: h}, o)
		}
	}
	for _, b := range o.builtins {
		t.add(ctx, b, o)
	}
	if ctx.Err() != nil {
		t.source = nil // it is never up to date
	}
	t.builtins, t.denied = len(o.builtins), o.policy.Rules(permission.Deny)
	t.sort()
	return t
}

// newBudgets are none yet: each server gets one.
func newBudgets() map[string]*toolschema.Budget { return map[string]*toolschema.Budget{} }

// A toolKey is a tool of a server.
type toolKey struct {
	host         *mcphost.Host
	server, name string
}

// A mending is a tool and the model's copy of it, or why there is none.
type mending struct {
	of    mcphost.Tool
	model toolschema.Model
	left  *toolschema.Quarantine
}

// mend makes the model's copy of a tool, or takes the one of the table before if the tool is still the same.
func (t *table) mend(ctx context.Context, host *mcphost.Host, mt mcphost.Tool, o tableOptions) (toolschema.Model, *toolschema.Quarantine) {
	key := toolKey{host, mt.Server, mt.Name}
	if o.before != nil {
		if m, ok := o.before.mended[key]; ok && m.of.FullName == mt.FullName && m.of.Description == mt.Description && bytes.Equal(m.of.InputSchema, mt.InputSchema) {
			t.mended[key] = m
			return m.model, m.left
		}
	}
	budget := o.budgets[mt.Server]
	if budget == nil {
		budget = &toolschema.Budget{}
		o.budgets[mt.Server] = budget
	}
	m, q := toolschema.ForModel(ctx, toolschema.Tool{
		Server: mt.Server, Name: mt.Name, FullName: mt.FullName,
		Description: mt.Description, InputSchema: mt.InputSchema,
	}, &toolschema.Options{Budget: budget})
	m = fenced(m)
	if ctx.Err() == nil {
		t.mended[key] = mending{mt, m, q}
	}
	return m, q
}

// sort brings the tools into the order of the request.
func (t *table) sort() {
	slices.SortStableFunc(t.tools, func(a, b *tool) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.model.Name), strings.ToLower(b.model.Name)), cmp.Compare(a.model.Name, b.model.Name))
	})
}

func (t *table) add(ctx context.Context, tl *tool, o tableOptions) {
	if o.promptTool != "" && o.servers.Names(o.promptTool, tl.request()) {
		t.prompt = tl
		return
	}
	if o.policy.Hidden(tl.request()) {
		return
	}
	leave := func(format string, args ...any) {
		t.leftOut = append(t.leftOut, mcphost.RejectedTool{Server: tl.Server, Name: tl.Name, Reason: fmt.Sprintf(format, args...)})
	}
	if why, ok := o.quarantined[tl.FullName]; ok {
		leave("%s", why)
		return
	}
	if tl.own {
		if first := t.byName[tl.FullName]; first != nil {
			leave("it is the engine's own, and its name belongs to tool %q of server %q", first.Name, first.Server)
			return
		}
		t.take(tl)
		return
	}
	m, q := t.mend(ctx, tl.host, tl.Tool, o)
	if ctx.Err() != nil {
		return // the table is made again
	}
	if q != nil {
		leave("%s", q.Reason)
		return
	}
	tl.model = m
	if first := t.byName[m.Name]; first != nil {
		leave("its name %s belongs to tool %q of server %q", m.Name, first.Name, first.Server)
		return
	}
	t.take(tl)
}

func (t *table) take(tl *tool) {
	t.byName[tl.model.Name] = tl
	t.tools = append(t.tools, tl)
}

// current reports whether the hosts, and the engine, still offer what the table was made from.
func (t *table) current(hosts []*mcphost.Host, denied []string, builtins int) bool {
	if len(hosts) != len(t.source) || builtins != t.builtins || !slices.Equal(denied, t.denied) {
		return false
	}
	for i, h := range hosts {
		now := h.Revision()
		if now == t.revision[i] {
			continue
		}
		if !slices.EqualFunc(h.Tools(), t.source[i], sameTool) {
			return false
		}
		t.revision[i] = now
	}
	return true
}

// sameTool reports whether a host's record of a tool is the very same as before.
func sameTool(a, b mcphost.Tool) bool {
	return a.FullName == b.FullName && a.Description == b.Description && a.ReadOnly == b.ReadOnly && a.AlwaysLoad == b.AlwaysLoad &&
		len(a.InputSchema) == len(b.InputSchema) && (len(a.InputSchema) == 0 || &a.InputSchema[0] == &b.InputSchema[0])
}

// serverOf finds the server that a tool's full name would belong to, among those that match.
func serverOf(hosts []*mcphost.Host, name string, match func(mcphost.ServerStatus) bool) (*mcphost.Host, mcphost.ServerStatus, bool) {
	for _, h := range hosts {
		for _, s := range h.Status() {
			if strings.HasPrefix(name, toolname.Server(s.Name)+"__") && match(s) {
				return h, s, true
			}
		}
	}
	return nil, mcphost.ServerStatus{}, false
}

// typeToolLeftOut is the type of the errors of init that are about one tool.
const typeToolLeftOut = "tool_left_out"

// serverRows are the rows of the init message.
func serverRows(status []mcphost.ServerStatus) []agent.MCPServer {
	rows := make([]agent.MCPServer, len(status))
	for i, s := range status {
		rows[i] = agent.MCPServer{Name: s.Name, Status: string(s.Status), Source: sourceOf(s)}
	}
	return rows
}

// sourceOf says where a server was defined; in the caller's code unless its configuration says otherwise.
func sourceOf(s mcphost.ServerStatus) string {
	switch {
	case s.Transport == mcphost.TransportSDK:
		return mcphost.TransportSDK
	case s.Source != "":
		return s.Source
	}
	return "dynamic"
}

// rejectedTools reports the tools that had to be left out, by the hosts and by the engine.
func rejectedTools(status []mcphost.ServerStatus) []agent.MCPServerError {
	var errs []agent.MCPServerError
	for _, s := range status {
		for _, r := range s.Rejected {
			errs = append(errs, agent.MCPServerError{Name: s.Name, Type: typeToolLeftOut, Message: fmt.Sprintf("tool %q is left out: %s", r.Name, r.Reason)})
		}
	}
	return errs
}

// builtin makes one of the engine's own tools. All of them only read. Calls of it run one by one, on
// the session's goroutine.
func builtin(def apiTool, alwaysLoad bool) *tool {
	return &tool{
		Tool: mcphost.Tool{
			FullName: def.Name, LongName: def.Name, Name: def.Name, Description: def.Description, InputSchema: def.InputSchema,
			ReadOnly: true, AlwaysLoad: alwaysLoad, Meta: map[string]any{mcpserver.MetaConcurrency: "serial"},
		},
		model: toolschema.Model{Name: def.Name, Description: def.Description, InputSchema: def.InputSchema},
		own:   true,
	}
}
