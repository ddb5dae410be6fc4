package native

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/toolresult"
)

// The tools for resources, under the names that Claude Code gives them. The model has them from when a
// server with resources is connected.
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

// resourceServers are those, in the order of their names.
func (s *session) resourceServers() []resourceServer {
	var servers []resourceServer
	seen := map[string]bool{}
	for _, h := range s.hosts() {
		for _, st := range h.Status() {
			if !seen[st.Name] && st.Status == mcphost.StatusConnected && st.Capabilities != nil && st.Capabilities.Resources != nil && !forbidden(s.permissions(), st.Name) {
				servers = append(servers, resourceServer{h, st.Name})
			}
			seen[st.Name] = true
		}
	}
	slices.SortFunc(servers, func(a, b resourceServer) int { return strings.Compare(a.name, b.name) })
	return servers
}

// resourceServer finds a server by its name, as it is or as it stands in the names of tools.
func (s *session) resourceServer(name string) (resourceServer, error) {
	servers := s.resourceServers()
	var names []string
	for _, match := range []func(string) bool{
		func(n string) bool { return n == name },
		func(n string) bool { return toolname.Normalize(n) == strings.TrimPrefix(name, "mcp__") },
	} {
		for _, srv := range servers {
			if match(srv.name) {
				return srv, nil
			}
		}
	}
	for _, srv := range servers {
		names = append(names, srv.name)
	}
	return resourceServer{}, fmt.Errorf("Server %q not found. Available servers: %s", name, strings.Join(names, ", ")) //nolint:staticcheck // a sentence for the model, as Claude Code has it
}

// A listing is what one server has, or why that is not known.
type listing struct {
	items []json.RawMessage
}

// listResources answers a call of that tool.
func (t *turn) listResources(c *call, args json.RawMessage) answer {
	var in struct {
		Server string `json:"server"`
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return errorAnswer(c, "The input cannot be read: "+err.Error())
	}
	servers := t.s.resourceServers()
	if in.Server != "" {
		srv, err := t.s.resourceServer(in.Server)
		if err != nil {
			return errorAnswer(c, err.Error())
		}
		servers = []resourceServer{srv}
	}
	denied := map[string]string{}
	servers = slices.DeleteFunc(slices.Clone(servers), func(srv resourceServer) bool {
		why := ""
		if in.Server == "" { // else it was decided
			why = t.resourcesDenied(srv.name)
		}
		if why != "" {
			denied[srv.name] = why
		}
		return why != ""
	})
	listings := make([]listing, len(servers))
	var wg sync.WaitGroup
	for i, srv := range servers {
		wg.Go(func() { listings[i] = t.resourcesOf(srv) })
	}
	wg.Wait()
	if t.ctx.Err() != nil {
		return errorAnswer(c, textInterrupted)
	}
	var items []json.RawMessage
	for _, l := range listings {
		items = append(items, l.items...)
	}
	for _, name := range slices.Sorted(maps.Keys(denied)) {
		items = append(items, listingError(name, denied[name]))
	}
	if len(items) == 0 {
		return textAnswer(c, "No resources found.")
	}
	return t.fitAnswer(c, "resources", "list", []toolresult.Block{{Type: "text", Text: toolresult.EscapeHostTags(string(transcript.Encode(items)))}})
}

// resourcesOf lists what one server has. What cannot be listed is told of.
func (t *turn) resourcesOf(srv resourceServer) listing {
	var l listing
	failed := func(what string, err error) {
		l.items = append(l.items, listingError(srv.name, fmt.Sprintf("the %s could not be listed: %s", what, clip.Text(err.Error(), 500))))
	}
	resources, err := srv.host.Resources(t.ctx, srv.name)
	for _, r := range resources {
		t.s.named.add(srv.name, r.URI)
		l.items = append(l.items, withServer(srv.name, r.Resource))
	}
	if err != nil {
		failed("resources", err)
	}
	templates, err := srv.host.ResourceTemplates(t.ctx, srv.name)
	for _, r := range templates {
		l.items = append(l.items, withServer(srv.name, r.ResourceTemplate))
	}
	if err != nil {
		failed("resource templates", err)
	}
	return l
}

// listingError stands in a list for what is not in it.
func listingError(server, text string) json.RawMessage {
	return transcript.Encode(struct {
		Server string `json:"server"`
		Error  string `json:"error"`
	}{server, text})
}

// withServer is a server's own description of something, with the server's name and without what is
// for programs only.
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

// readResource answers a call of that tool.
func (t *turn) readResource(c *call, args json.RawMessage) answer {
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

// fitAnswer answers a call of one of the engine's own tools with what a server sent, within the limits
// of results.
func (t *turn) fitAnswer(c *call, server, what string, blocks []toolresult.Block) answer {
	content := transcript.ResultContent(toolresult.Fit(t.ctx, blocks, t.outputOptions(server, what, false, 0)))
	if len(content) == 0 {
		return textAnswer(c, "")
	}
	return answer{result: &agent.ToolResultBlock{ToolUseID: c.use.ID, Content: content}, raw: transcript.Encode(content)}
}
