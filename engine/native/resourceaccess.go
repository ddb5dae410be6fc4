package native

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/yosida95/uritemplate/v3"

	"github.com/tenon-sdk/tenon/engine/internal/kit"
	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/permission"
)

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
