package native

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/yosida95/uritemplate/v3"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/internal/kit"
	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/permission"
	"github.com/tenon-sdk/tenon/toolresult"
)

// The tools for resources, under the names of Claude Code. The model has them once a server with resources
// is connected.
const (
	listResourcesTool = "ListMcpResourcesTool"
	readResourceTool  = "ReadMcpResourceTool"
)

func newListResourcesTool() *toolset.Tool {
	return toolset.Builtin(toolset.APITool{
		Name: listResourcesTool,
		Description: "Lists the resources of the MCP servers, such as files, records and documents, and the templates that more of them " +
			"can be addressed by. Each has a server and a uri, or a uriTemplate to fill in, for " + readResourceTool + ".",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"server":{"type":"string","description":"list those of this server only"}}}`),
	}, false)
}

func newReadResourceTool() *toolset.Tool {
	return toolset.Builtin(toolset.APITool{
		Name:        readResourceTool,
		Description: "Reads a resource of an MCP server: one that " + listResourcesTool + " lists, or one that a template makes. Binary content is saved to a file.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"server":{"type":"string","description":"the server's name"},"uri":{"type":"string","description":"the resource's URI"}},"required":["server","uri"]}`),
	}, false)
}

// resourceServers returns the servers whose resources the model may read, sorted by name.
func (s *session) resourceServers() []hostedServer {
	return s.serversWith(func(c *mcp.ServerCapabilities) bool { return c.Resources != nil })
}

// builtins returns the engine's own tools that the session needs by now, beside the search.
func (s *session) builtins() []*toolset.Tool {
	has := func(name string) bool {
		return slices.ContainsFunc(s.ownTools, func(t *toolset.Tool) bool { return t.Name == name })
	}
	if !has(readTool) && s.stored.Load() {
		s.ownTools = append(s.ownTools, newReadTool())
	}
	if !has(readResourceTool) && len(s.resourceServers()) > 0 {
		s.ownTools = append(s.ownTools, newListResourcesTool(), newReadResourceTool())
	}
	return s.ownTools
}

// callOwn answers a call of one of the engine's own tools.
func (t *turn) callOwn(c *call, args json.RawMessage) *answer {
	switch c.tool.Name {
	case toolset.SearchTool:
		return t.searchTools(c, args)
	case listResourcesTool:
		return t.listResources(c, args)
	case readResourceTool:
		return t.readResource(c, args)
	}
	return t.readStored(c, args)
}

// resourceServer finds a server by its name or by its prefix in the names of tools.
func (s *session) resourceServer(name string) (hostedServer, error) {
	servers := s.resourceServers()
	for _, match := range []func(hostedServer) bool{
		func(srv hostedServer) bool { return srv.name == name },
		func(srv hostedServer) bool { return toolname.Normalize(srv.name) == strings.TrimPrefix(name, "mcp__") },
	} {
		if i := slices.IndexFunc(servers, match); i >= 0 {
			return servers[i], nil
		}
	}
	var names []string
	for _, srv := range servers {
		names = append(names, srv.name)
	}
	return hostedServer{}, fmt.Errorf("Server %q not found. Available servers: %s", name, strings.Join(names, ", ")) //nolint:staticcheck // a sentence for the model, as Claude Code has it
}

// listResources answers a call of the list tool.
func (t *turn) listResources(c *call, args json.RawMessage) *answer {
	var in struct {
		Server string `json:"server"`
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return errorAnswer(c, "The input cannot be read: "+err.Error())
	}
	servers := t.s.resourceServers()
	var denied []json.RawMessage
	if in.Server != "" { // permit has decided about it
		srv, err := t.s.resourceServer(in.Server)
		if err != nil {
			return errorAnswer(c, err.Error())
		}
		servers = []hostedServer{srv}
	} else {
		servers = slices.DeleteFunc(servers, func(srv hostedServer) bool {
			why := t.resourcesDenied(srv.name)
			if why != "" {
				denied = append(denied, listingError(srv.name, why))
			}
			return why != ""
		})
	}
	lists := make([][]json.RawMessage, len(servers))
	var wg sync.WaitGroup
	for i, srv := range servers {
		wg.Go(func() { lists[i] = t.resourcesOf(srv) })
	}
	wg.Wait()
	if t.ctx.Err() != nil {
		return errorAnswer(c, textInterrupted)
	}
	items := slices.Concat(append(lists, denied)...)
	if len(items) == 0 {
		return textAnswer(c, "No resources found.")
	}
	return t.fitAnswer(c, "resources", "list", []toolresult.Block{{Type: "text", Text: toolresult.EscapeHostTags(string(transcript.Encode(items)))}})
}

// resourcesOf lists the resources and templates of a server, and errors.
func (t *turn) resourcesOf(srv hostedServer) (items []json.RawMessage) {
	note := func(what string, err error) {
		if err != nil {
			items = append(items, listingError(srv.name, fmt.Sprintf("the %s could not be listed: %s", what, clip.Text(err.Error(), 500))))
		}
	}
	resources, err := srv.host.Resources(t.ctx, srv.name)
	for _, r := range resources {
		t.s.named.add(srv.name, r.URI)
		items = append(items, withServer(srv.name, r.Resource))
	}
	note("resources", err)
	templates, err := srv.host.ResourceTemplates(t.ctx, srv.name)
	for _, r := range templates {
		items = append(items, withServer(srv.name, r.ResourceTemplate))
	}
	note("resource templates", err)
	return items
}

// listingError is an item of a list for a server that is not in it.
func listingError(server, text string) json.RawMessage {
	return transcript.Encode(map[string]string{"server": server, "error": text})
}

// withServer returns a server's description of a resource with the server's name, and without the members
// that are not for models.
func withServer(server string, v any) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(transcript.Encode(v), &fields) != nil || fields == nil {
		fields = map[string]json.RawMessage{}
	}
	delete(fields, "icons")
	delete(fields, "_meta")
	fields["server"] = transcript.Encode(server)
	return transcript.Encode(fields)
}

// readResource answers a call of the read tool.
func (t *turn) readResource(c *call, args json.RawMessage) *answer {
	var in struct {
		Server string `json:"server"`
		URI    string `json:"uri"`
	}
	switch err := json.Unmarshal(args, &in); {
	case err != nil:
		return errorAnswer(c, "The input cannot be read: "+err.Error())
	case in.Server == "" || in.URI == "":
		return errorAnswer(c, "server and uri are both needed: "+listResourcesTool+" lists them")
	}
	srv, err := t.s.resourceServer(in.Server)
	if err != nil {
		return errorAnswer(c, err.Error())
	}
	if why := t.s.uncovered(t.ctx, srv, in.URI); why != "" && t.ctx.Err() == nil {
		return errorAnswer(c, fmt.Sprintf("Resource %s of server %q was not asked for: %s.", clip.Text(in.URI, 300), srv.name, why))
	}
	res, err := srv.host.ReadResource(t.ctx, srv.name, in.URI)
	switch {
	case t.ctx.Err() != nil:
		return errorAnswer(c, textInterrupted)
	case err != nil:
		return errorAnswer(c, fmt.Sprintf("Resource %s of server %q could not be read: %s", clip.Text(in.URI, 300), srv.name, err))
	}
	wrapped := &mcpserver.Result{}
	for _, r := range res.Contents {
		if r != nil && r.URI == "" { // some servers leave it out
			named := *r
			named.URI = in.URI
			r = &named
		}
		if r != nil {
			wrapped.Content = append(wrapped.Content, &mcp.EmbeddedResource{Resource: r})
		}
	}
	if len(wrapped.Content) == 0 {
		return textAnswer(c, fmt.Sprintf("Resource %s of server %q is empty.", clip.Text(in.URI, 300), srv.name))
	}
	blocks := toolresult.Convert(t.ctx, srv.name, "resource", wrapped, &toolresult.ConvertOptions{Save: t.s.store.Save})
	return t.fitAnswer(c, srv.name, "resource", blocks)
}

// fitAnswer answers a call of one of the engine's own tools with content of a server, within the limits of
// results.
func (t *turn) fitAnswer(c *call, server, what string, blocks []toolresult.Block) *answer {
	content := transcript.ResultContent(toolresult.Fit(t.ctx, blocks, t.outputOptions(server, what, false, 0)))
	if len(content) == 0 {
		return textAnswer(c, "")
	}
	return &answer{result: &agent.ToolResultBlock{ToolUseID: c.use.ID, Content: content}, raw: transcript.Encode(content)}
}

// resourceRequest returns a read of a server's resources for the permission rules. Rules for the server,
// mcp__SERVER or mcp__SERVER__*, apply to its resources as to its tools.
func resourceRequest(server string, hook permission.Behavior, reason string) permission.Request {
	return permission.Request{
		Tool: toolname.Server(server) + toolname.Separator + readResourceTool, Server: server, ToolName: readResourceTool,
		ReadOnly: true, Hook: hook, HookReason: reason,
	}
}

// decideOwn decides a call of one of the engine's own tools. For resources the rules about the server apply
// as well, in every mode.
func (t *turn) decideOwn(c *call, args json.RawMessage, r permission.Request) permission.Decision {
	p := t.s.permissions()
	d := ownTools(p.Decide(r))
	servers, named := t.resourceSubjects(c, args)
	for _, srv := range servers {
		of := ownTools(p.Decide(resourceRequest(srv.name, r.Hook, r.HookReason)))
		if of.Behavior == permission.Deny && !named {
			continue // it is left out of the list
		}
		if kit.Stricter(d.Behavior, of.Behavior) != d.Behavior {
			d = of
		}
	}
	return d
}

// resourceSubjects returns the servers whose resources a call reads. named reports that the call names one.
func (t *turn) resourceSubjects(c *call, args json.RawMessage) (servers []hostedServer, named bool) {
	if c.tool.Name != listResourcesTool && c.tool.Name != readResourceTool {
		return nil, false
	}
	var in struct {
		Server string `json:"server"`
	}
	_ = json.Unmarshal(args, &in)
	if in.Server == "" && c.tool.Name == listResourcesTool {
		return t.s.resourceServers(), false
	}
	srv, err := t.s.resourceServer(in.Server)
	if err != nil {
		return nil, true // the call says so
	}
	return []hostedServer{srv}, true
}

// resourcesDenied returns why the resources of a server are denied, or "".
func (t *turn) resourcesDenied(server string) string {
	if d := ownTools(t.s.permissions().Decide(resourceRequest(server, "", ""))); d.Behavior == permission.Deny {
		return d.Message
	}
	return ""
}

// uncovered returns why a resource must not be requested: the server has neither named its URI nor a
// template that matches it. It is empty if it may. The URI is not sent to the server for that.
func (s *session) uncovered(ctx context.Context, srv hostedServer, uri string) string {
	if len(uri) > maxURI {
		return fmt.Sprintf("the URI has %d bytes, %d are allowed", len(uri), maxURI)
	}
	if s.named.has(srv.name, uri) {
		return ""
	}
	resources, errList := srv.host.Resources(ctx, srv.name)
	for _, r := range resources {
		s.named.add(srv.name, r.URI)
		if r.URI == uri {
			return ""
		}
	}
	templates, errTemplates := srv.host.ResourceTemplates(ctx, srv.name)
	for _, r := range templates {
		if ctx.Err() != nil {
			break
		}
		if coveredBy(r.URITemplate, uri) {
			return ""
		}
	}
	why := "neither its list of resources nor a template of it covers this URI. " + listResourcesTool + " has both"
	if err := cmp.Or(errList, errTemplates); err != nil {
		why += fmt.Sprintf(" (they could not be listed whole: %s)", clip.Text(err.Error(), 300))
	}
	return why
}

// coveredBy reports whether a URI template matches a URI.
func coveredBy(template, uri string) bool {
	if len(template) > maxURITemplate {
		return false
	}
	parsed, err := uritemplate.New(template)
	return err == nil && parsed.Regexp().MatchString(uri)
}

// ownTools allows calls of the engine's own tools that no rule or hook decides, because they only read what
// the program has given to the session.
func ownTools(d permission.Decision) permission.Decision {
	if d.Reason == permission.ReasonUnsettled || d.Reason == permission.ReasonMode {
		return permission.Decision{Behavior: permission.Allow, Reason: permission.ReasonUnsettled}
	}
	return d
}
