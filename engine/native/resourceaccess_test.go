package native

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
	"github.com/tenon-sdk/tenon/permission"
)

// An overheard server notes the URIs that it is asked for.
type overheard struct {
	*mcpserver.Server
	mu   sync.Mutex
	uris []string
}

func (o *overheard) OpenSession(ctx context.Context, so *mcpserver.SessionOptions) (mcpserver.ServerSession, error) {
	s, err := o.Server.OpenSession(ctx, so)
	return &overheardSession{s, o}, err
}

func (o *overheard) asked() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.uris)
}

type overheardSession struct {
	mcpserver.ServerSession
	o *overheard
}

func (s *overheardSession) ReadResource(ctx context.Context, uri string) (*mcp.ReadResourceResult, error) {
	s.o.mu.Lock()
	s.o.uris = append(s.o.uris, uri)
	s.o.mu.Unlock()
	return s.ServerSession.ReadResource(ctx, uri)
}

// Resources follow the rules of their server, in every mode: what denies or asks about it holds for them.
//
// fault A7
func TestResourcesFollowTheRulesOfTheirServer(t *testing.T) {
	const read, list, listOne = `{"server":"library","uri":"book://1"}`, `{}`, `{"server":"library"}`
	modes := []permission.Mode{permission.ModeDefault, permission.ModePlan, permission.ModeAcceptEdits, permission.ModeBypassPermissions, permission.ModeDontAsk}
	for _, mode := range modes {
		for _, call := range [][2]string{{readResourceTool, read}, {listResourcesTool, list}, {listResourcesTool, listOne}} {
			t.Run(string(mode)+" "+call[0]+call[1], func(t *testing.T) {
				srv := &overheard{Server: library(t)}
				asked := 0
				o := &agent.Options{
					MCPServers: map[string]mcphost.ServerConfig{"library": mcphost.InProcess(srv)}, AskTools: []string{"mcp__library"}, PermissionMode: mode,
					CanUseTool: func(_ context.Context, r *agent.ToolRequest) (*permission.PromptResult, error) {
						asked++
						return agent.Deny("not now"), nil
					},
				}
				model := modeltest.New(t, modeltest.ToolUseID("toolu_1", call[0], call[1]), modeltest.Text("x"))
				_, msgs := answered(t, model, o)
				got := results(msgs)[0]
				switch {
				case mode == permission.ModeDontAsk && call[1] == list: // nothing is listed but why
					if asked != 0 || strings.Contains(got.Text(), "book://") || !strings.Contains(got.Text(), "don't ask mode") {
						t.Errorf("asked %d times: %s", asked, got.Text())
					}
				case mode == permission.ModeDontAsk:
					if asked != 0 || !got.IsError || !strings.Contains(got.Text(), "don't ask mode") {
						t.Errorf("asked %d times: %s", asked, got.Text())
					}
				case asked != 1 || !got.IsError || got.Text() != "not now":
					t.Errorf("asked %d times: %s", asked, got.Text())
				}
				if uris := srv.asked(); len(uris) > 0 {
					t.Errorf("the server was asked for %q", uris)
				}
			})
		}
	}
}

// A URI of the model's own making is sent to nobody. One that the server lists, that a template of it makes,
// or that a result of its tools links to, is read.
//
// fault A7
func TestURIsOfTheModelsOwnMaking(t *testing.T) {
	srv := &overheard{Server: library(t)}
	if err := srv.AddTool(&mcpserver.Tool{Name: "find", InputSchema: []byte(`{"type":"object"}`)}, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
		return &mcpserver.Result{Content: []mcp.Content{&mcp.ResourceLink{URI: "hidden://7", Name: "seven"}}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	o := &agent.Options{MCPServers: map[string]mcphost.ServerConfig{"library": mcphost.InProcess(srv)}, AllowedTools: []string{"mcp__library__find"}}
	read := func(uri string) modeltest.Part {
		return modeltest.ToolUse(readResourceTool, `{"server":"library","uri":"`+uri+`"}`)
	}
	model := modeltest.New(t,
		modeltest.Say(read("book://1"), read("page://17"), read("file:///etc/passwd"), read("book://1/../9"), read("page://a/b"), read("hidden://7"), read("page://"+strings.Repeat("x", maxURI))),
		modeltest.ToolUse("mcp__library__find", `{}`), read("hidden://7"), modeltest.Text("x"))
	_, msgs := answered(t, model, o)
	if diff := cmp.Diff([]string{"book://1", "page://17", "hidden://7"}, srv.asked()); diff != "" {
		t.Errorf("the server was asked for (-want +got):\n%s", diff)
	}
	for i, r := range results(msgs)[:7] {
		if refused := i >= 2; r.IsError != refused || refused && !strings.Contains(r.Text(), "was not asked for") {
			t.Errorf("read %d: %.300s", i, r.Text())
		}
	}
}
