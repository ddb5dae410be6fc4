package claudecode

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/internal/kit"
	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/toolresult"
	"github.com/tenon-sdk/tenon/toolschema"
)

// A guest is a server in this process as the CLI can take it. The CLI drops the whole tool list of
// a server for one malformed tool, drops others in silence, and loses parts of results; a guest
// mends the tools and reports those that it cannot mend, and puts results in a form that keeps
// everything.
type guest struct {
	mcpserver.Provider
	name string
	s    *session
	// alwaysLoad is the configuration's word on all tools of the server.
	alwaysLoad bool

	mu       sync.Mutex // guards the rest
	begun    int        // how many lists were begun
	listed   int        // which of them offered and problems are of
	offered  map[string]offer
	problems []agent.MCPServerError
}

// An offer is a tool under the name that the CLI is told.
type offer struct {
	name        string // the tool's own
	title       string
	annotations *mcp.ToolAnnotations // nil if there are none
	model       toolschema.Model
	schema      json.RawMessage // the tool's own
}

// readOnly reports whether the tool says that it changes nothing.
func (o offer) readOnly() bool { return o.annotations != nil && o.annotations.ReadOnlyHint }

// maxName is the longest full name that the CLI does not drop.
const maxName = 128

// OpenSession opens a session whose tools and results are mended.
func (g *guest) OpenSession(ctx context.Context, o *mcpserver.SessionOptions) (mcpserver.ServerSession, error) {
	var opts mcpserver.SessionOptions
	if o != nil {
		opts = *o
	}
	opts.Elicit = nil // the CLI answers no server in this process; the program does
	if ask := kit.Elicit(g.s.opts); ask != nil {
		opts.Elicit = func(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) { return ask(ctx, g.name, p) }
	}
	opts.OnFailure = g.failed
	ss, err := g.Provider.OpenSession(ctx, &opts)
	if err != nil {
		return nil, err
	}
	return &guestSession{ss, g}, nil
}

// timedOutKey is the key of a context's *bool that is set when a call ran over its time limit.
type timedOutKey struct{}

// failed is told of a call that ran over its time limit, or panicked.
func (g *guest) failed(ctx context.Context, f mcpserver.Failure) {
	log := g.s.opts.Logger
	if f.Timeout == 0 {
		log.ErrorContext(ctx, "panic in a server of this process", "server", g.name, "tool", f.Name, "panic", f.Panic, "stack", f.Stack)
		return
	}
	log.WarnContext(ctx, "call timed out in a server of this process", "server", g.name, "tool", f.Name, "limit", f.Timeout)
	if timedOut, ok := ctx.Value(timedOutKey{}).(*bool); ok {
		*timedOut = true
	}
}

// find returns the tool that the CLI calls by a full name.
func (g *guest) find(full string) (offer, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for alias, o := range g.offered {
		if toolname.Full(g.name, alias) == full {
			return o, true
		}
	}
	return offer{}, false
}

// own returns the name that a tool has on its server.
func (g *guest) own(alias string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if o, ok := g.offered[alias]; ok {
		return o.name
	}
	return alias
}

// faults are the tools that were left out.
func (g *guest) faults() []agent.MCPServerError {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.problems)
}

type guestSession struct {
	mcpserver.ServerSession
	g *guest
}

// ListTools returns the tools that the CLI can take, under names that it takes.
func (ss *guestSession) ListTools(ctx context.Context) ([]*mcp.Tool, error) {
	g := ss.g
	g.mu.Lock()
	g.begun++
	turn := g.begun
	g.mu.Unlock()
	tools, err := ss.ServerSession.ListTools(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]*mcp.Tool, 0, len(tools))
	offered := map[string]offer{}
	var problems []agent.MCPServerError
	budget := &toolschema.Budget{}
	leaveOut := func(tool, why string) {
		problems = append(problems, agent.MCPServerError{Name: g.name, Type: "tool_left_out", Message: "tool " + quoted(tool) + " is left out: " + why})
	}
	if p, ok := g.Provider.(interface{ Rejected() []mcpserver.Rejection }); ok { // whatever logger the server has
		for _, r := range p.Rejected() {
			if r.Kind == mcpserver.KindTool {
				leaveOut(r.Name, r.Err.Error())
			}
		}
	}
	prefix := toolname.Server(g.name) + "__"
	servers := toolname.NewServers(serverNames(g.s.opts))
	alike := make(map[string]int, len(tools)) // how many tools have a name
	for _, t := range tools {
		alike[toolname.Normalize(t.Name)]++
	}
	for _, t := range tools {
		schema, err := json.Marshal(t.InputSchema)
		if err != nil {
			leaveOut(t.Name, err.Error())
			continue
		}
		full := "" // as its parts make it
		if normal := toolname.Normalize(t.Name); alike[normal] > 1 && normal != t.Name || servers.Unclear(g.name, t.Name) {
			full = toolname.FitHashed(g.name, t.Name, maxName)
		}
		m, q := toolschema.ForModel(ctx, toolschema.Tool{Server: g.name, Name: t.Name, FullName: full, Description: t.Description, InputSchema: schema}, &toolschema.Options{MaxName: maxName, Budget: budget})
		alias, fits := strings.CutPrefix(m.Name, prefix)
		switch {
		case q != nil:
			leaveOut(t.Name, q.Reason)
			continue
		case !fits || alias == "":
			leaveOut(t.Name, "with its server's name it is too long")
			continue
		}
		if first, taken := offered[alias]; taken {
			leaveOut(t.Name, "its name "+m.Name+" belongs to tool "+quoted(first.name))
			continue
		}
		offered[alias] = offer{t.Name, cmp.Or(t.Title, annotatedTitle(t.Annotations)), t.Annotations, m, schema}
		copied := *t
		copied.Name, copied.Description, copied.InputSchema = alias, m.Description, m.InputSchema
		if g.alwaysLoad {
			copied.Meta = alwaysLoaded(t.Meta)
		}
		out = append(out, &copied)
	}
	g.mu.Lock()
	before := g.problems
	if turn > g.listed { // a slow list does not undo a later one
		g.listed, g.offered, g.problems = turn, offered, problems
	}
	g.mu.Unlock()
	if p, ok := g.Provider.(*hostServer); ok && p.host == g.s.servers.ownHost {
		return out, nil // the host has logged them for this run
	}
	for _, p := range problems {
		if !slices.ContainsFunc(before, func(b agent.MCPServerError) bool { return b.Message == p.Message }) {
			g.s.opts.Logger.Warn("tool left out", "server", g.name, "reason", p.Message)
		}
	}
	return out, nil
}

func annotatedTitle(a *mcp.ToolAnnotations) string {
	if a == nil {
		return ""
	}
	return a.Title
}

// alwaysLoaded is a tool's metadata that has its definition sent with every request.
func alwaysLoaded(meta mcp.Meta) mcp.Meta {
	out := maps.Clone(meta)
	if out == nil {
		out = mcp.Meta{}
	}
	out["anthropic/alwaysLoad"] = true
	return out
}

func quoted(s string) string {
	out, err := json.Marshal(s)
	if err != nil {
		return s
	}
	return string(out)
}

// CallTool calls a tool by the name that the CLI was told.
func (ss *guestSession) CallTool(ctx context.Context, c mcpserver.Call) (*mcpserver.Result, error) {
	g := ss.g
	if r := g.refuseRounded(ctx, c); r != nil {
		return r, nil
	}
	g.mu.Lock()
	o, ok := g.offered[c.Name]
	g.mu.Unlock()
	if ok {
		c.Name, c.Arguments = o.name, o.model.RestoreArgs(c.Arguments)
	}
	timedOut := false
	r, err := ss.ServerSession.CallTool(context.WithValue(ctx, timedOutKey{}, &timedOut), c)
	if err != nil || r == nil {
		return r, err
	}
	r = g.shape(ctx, c, r)
	if timedOut && r.IsError {
		mayHaveRun := *r // it may be shared
		mayHaveRun.Content = append(slices.Clone(r.Content), &mcp.TextContent{Text: "The tool may have run."})
		r = &mayHaveRun
	}
	return r, nil
}

// refuseRounded refuses a call whose arguments hold an integer that the CLI may have rounded: the
// wrong record is worse than none. That comes up where no tool that the CLI was started with takes
// such integers, or the model's own text would be at hand, and in calls of subagents, whose stream the
// CLI does not repeat.
func (g *guest) refuseRounded(ctx context.Context, c mcpserver.Call) *mcpserver.Result {
	path, number := unsafeInteger(c.Arguments)
	if id, _ := c.Meta[toolUseIDKey].(string); number == "" || g.s.args.certain(id, c.Arguments) {
		return nil
	}
	g.s.opts.Logger.WarnContext(ctx, "claude-code: a call was refused, since the CLI may have rounded an integer in its arguments; "+
		"with Options.IncludePartialMessages, or if a tool that is there from the start takes such integers, they arrive as the model writes them, save from subagents",
		"server", g.name, "tool", g.own(c.Name), "argument", path, "number", number)
	return mcpserver.Errorf("The argument %s is %s, which may have lost digits on its way here: integers beyond %d are rounded. "+
		"The tool was not called. Give it as a string if the tool takes one.", path, number, maxSafeInteger)
}

// shape puts a result in a form of which the CLI shows the model everything that it can read: of an
// error result it takes nothing but the texts, and structured content takes the place of all texts,
// its numbers rounded.
func (g *guest) shape(ctx context.Context, c mcpserver.Call, r *mcpserver.Result) *mcpserver.Result {
	out := *r
	switch {
	case r.IsError:
		out.Content, out.StructuredContent = nil, nil
		for _, b := range toolresult.Convert(ctx, g.name, c.Name, r, nil) {
			out.Content = append(out.Content, &mcp.TextContent{Text: b.Text})
		}
	case len(r.StructuredContent) > 0 && !g.saysItAll(r):
		out.Content, out.StructuredContent = slices.Clone(r.Content), nil
		if !repeats(r) {
			out.Content = append(out.Content, &mcp.TextContent{Text: string(r.StructuredContent)})
		}
	default:
		return r
	}
	if id, ok := c.Meta[toolUseIDKey].(string); ok && !r.IsError {
		g.s.args.keepResult(id, r)
	}
	return &out
}

// saysItAll reports whether the structured content alone says what the result has to say.
func (g *guest) saysItAll(r *mcpserver.Result) bool {
	if !lossless(r.StructuredContent) {
		return false
	}
	for _, b := range r.Content {
		if t, ok := b.(*mcp.TextContent); !ok || !sameJSON(t.Text, r.StructuredContent) {
			return false
		}
	}
	return true
}

// repeats reports whether a text of the result is its structured content.
func repeats(r *mcpserver.Result) bool {
	return slices.ContainsFunc(r.Content, func(b mcp.Content) bool {
		t, ok := b.(*mcp.TextContent)
		return ok && sameJSON(t.Text, r.StructuredContent)
	})
}

// sameJSON reports whether a text is a value, which is valid JSON.
func sameJSON(text string, value json.RawMessage) bool {
	return text == string(value) || exactNumbers(json.RawMessage(text)) == exactNumbers(value)
}

// lossless reports whether JSON survives a trip through double floats.
func lossless(raw json.RawMessage) bool {
	if smallNumbers(raw) && json.Valid(raw) {
		return true
	}
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return false
	}
	back, err := json.Marshal(v)
	return err == nil && exactNumbers(raw) == exactNumbers(back)
}

// smallNumbers reports whether JSON has no numbers but integers of at most 15 digits, which a
// double float holds. It takes digits in texts for numbers, too.
func smallNumbers(raw json.RawMessage) bool {
	digits := 0
	for _, c := range raw {
		switch {
		case '0' <= c && c <= '9':
			if digits++; digits > 15 {
				return false
			}
		case digits > 0 && (c == '.' || c == 'e' || c == 'E'):
			return false
		default:
			digits = 0
		}
	}
	return true
}
