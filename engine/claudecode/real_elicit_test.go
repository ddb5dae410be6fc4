package claudecode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/claudecode/event"
	"github.com/tenon-sdk/tenon/internal/peers"
	"github.com/tenon-sdk/tenon/mcpbridge"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

func init() {
	children["elicits"] = func() { _ = mcpbridge.ServeStdio(context.Background(), eliciting(), nil) }
}

// An elicits is the arguments of the tool "ask".
type elicits struct {
	Message string `json:"message"`
	URL     string `json:"url,omitempty"`
}

// eliciting is a server with a tool that asks the user and tells what it got.
func eliciting() *mcpserver.Server {
	s := mcpserver.New("eliciting", nil)
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "ask"}, func(ctx context.Context, in elicits) (string, error) {
		p := &mcp.ElicitParams{Message: in.Message, Mode: "url", URL: in.URL, ElicitationID: "e-1"}
		if in.URL == "" {
			p = &mcp.ElicitParams{Message: in.Message, RequestedSchema: json.RawMessage(`{"type":"object","properties":{"colour":{"type":"string"}}}`)}
		}
		res, err := mcpserver.RequestFrom(ctx).Elicit(ctx, p)
		if err != nil {
			return "", err
		}
		colour, _ := res.Content["colour"].(string)
		return strings.TrimSpace(res.Action + " " + colour), nil
	})
	return s
}

// oldEliciting is the same server on the TypeScript library, which asks as the protocol wants it up
// to 2025-11-25. It can withdraw a question, say that a link was used, and want one before the call.
const oldEliciting = `
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { UrlElicitationRequiredError } from '@modelcontextprotocol/sdk/types.js'
import { z } from 'zod'
const server = new McpServer({ name: 'old', version: '1' })
const text = (t) => ({ content: [{ type: 'text', text: t }] })
const requestedSchema = { type: 'object', properties: { colour: { type: 'string' } } }
server.registerTool('ask', { inputSchema: { message: z.string(), url: z.string().optional() } }, async ({ message, url }) => {
  if (message === 'required') throw new UrlElicitationRequiredError([{ mode: 'url', message, url, elicitationId: 'e-2' }])
  const withdraw = new AbortController()
  if (message === 'withdraw') setTimeout(() => withdraw.abort('no longer'), 300)
  const p = url ? { mode: 'url', message, url, elicitationId: 'e-1' } : { message, requestedSchema }
  try {
    const r = await server.server.elicitInput(p, { signal: withdraw.signal })
    if (url && r.action === 'accept') await server.server.createElicitationCompletionNotifier('e-1')()
    return text((r.action + ' ' + (r.content?.colour ?? '')).trim())
  } catch (e) {
    return text('failed: ' + e)
  }
})
await server.connect(new StdioServerTransport())
`

const anyLink = "https://h.example/form"

// elicitingServers are the same tool on a server in this process, on one that the CLI connects, on
// one that this process connects, and on one of the TypeScript library's that the CLI connects.
func elicitingServers(t *testing.T) map[string]mcphost.ServerConfig {
	t.Helper()
	child := mcphost.Stdio{Command: os.Args[0], Args: []string{"-test.run=none"}, Env: map[string]string{"CLAUDECODE_TEST_CHILD": "elicits"}}
	hosted := child
	hosted.Dir = t.TempDir()
	old := peers.Script(t, oldEliciting)
	return map[string]mcphost.ServerConfig{
		"own": mcphost.InProcess(eliciting()), "cli": child, "hosted": hosted,
		"old": mcphost.Stdio{Command: old.Path, Args: old.Args, Env: old.Env},
	}
}

var elicitingNames = []string{"own", "cli", "hosted", "old"}

// elicitTurns have the model call "ask" on each server with each message, and then say "done".
func elicitTurns(servers []string, messages ...string) []modeltest.Turn {
	var turns []modeltest.Turn
	for _, server := range servers {
		for _, message := range messages {
			in := elicits{Message: message}
			if message == "link" || message == "required" {
				in.URL = anyLink
			}
			turns = append(turns, modeltest.ToolUseID("toolu_"+server+"_"+message, "mcp__"+server+"__ask", in))
		}
	}
	return append(turns, modeltest.Text("done"))
}

// elicitAnswer does what the question says.
func elicitAnswer(p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	switch p.Message {
	case "accept":
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"colour": "blue"}}, nil
	case "nothing":
		return nil, nil
	case "error":
		return nil, errors.New("no screen")
	case "panic":
		panic("no screen")
	case "link":
		return &mcp.ElicitResult{Action: "accept"}, nil
	}
	return &mcp.ElicitResult{Action: p.Message}, nil
}

// What a server asks the user reaches the program, and the answer the server, wherever the server
// lives and however it asks; what the program does not answer is declined.
func TestRealElicitation(t *testing.T) {
	peers.ClaudePath(t)
	messages := []string{"accept", "decline", "cancel", "nothing", "error", "panic", "link"}
	m := modeltest.New(t, elicitTurns(elicitingNames, messages...)...)
	var mu sync.Mutex
	asked, hooked := map[string]*mcp.ElicitParams{}, map[string][]string{}
	hook := func(event string) EventHook {
		return EventHook{Event: event, Func: func(_ context.Context, raw json.RawMessage) (json.RawMessage, error) {
			var in struct {
				Server  string `json:"mcp_server_name"`
				Mode    string `json:"mode"`
				Message string `json:"message"`
				Action  string `json:"action"`
				Type    string `json:"notification_type"`
			}
			if err := json.Unmarshal(raw, &in); err != nil {
				return nil, err
			}
			mu.Lock()
			defer mu.Unlock()
			hooked[event] = append(hooked[event], strings.TrimSpace(in.Server+" "+in.Mode+in.Type+" "+in.Message+in.Action))
			return nil, nil
		}}
	}
	e, _ := realWith(t, m, &Options{EventHooks: []EventHook{hook("Elicitation"), hook("ElicitationResult"), hook("Notification")}})
	msgs, err := ask(t, e, &agent.Options{
		MCPServers: elicitingServers(t), AllowedTools: []string{"mcp__own", "mcp__cli", "mcp__hosted", "mcp__old"},
		OnElicitation: func(_ context.Context, server string, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			mu.Lock()
			asked[server+" "+p.Message] = p
			mu.Unlock()
			return elicitAnswer(p)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"accept": "accept blue", "decline": "decline", "cancel": "cancel", "nothing": "decline", "error": "decline", "panic": "decline", "link": "accept",
	}
	for _, server := range elicitingNames {
		for _, message := range messages {
			got, ok := m.Last().ToolResult("toolu_" + server + "_" + message)
			if !ok || got.PlainText() != want[message] {
				t.Errorf("%s, %s: the server got %s, want %q", server, message, got.Raw, want[message])
			}
			p := asked[server+" "+message]
			switch {
			case p == nil:
				t.Errorf("%s: the program was not asked %s", server, message)
			case message == "link":
				// In the protocol of 2026-07-28 the CLI does not pass the ID on.
				if p.Mode != "url" || p.URL != anyLink || p.RequestedSchema != nil || server != "cli" && p.ElicitationID != "e-1" {
					t.Errorf("%s asks by link %+v", server, p)
				}
			case p.Mode != "form" || p.URL != "" || !strings.Contains(fmt.Sprintf("%s", p.RequestedSchema), "colour"):
				t.Errorf("%s asks by form %+v", server, p)
			}
		}
	}
	// The CLI has hooks for the servers that it connects.
	var before, after []string
	for _, server := range []string{"cli", "old"} {
		for _, message := range messages {
			mode := "form"
			if message == "link" {
				mode = "url"
			}
			action, _, _ := strings.Cut(want[message], " ")
			before, after = append(before, server+" "+mode+" "+message), append(after, server+" "+mode+" "+action)
		}
	}
	if diff := cmp.Diff(map[string][]string{"Elicitation": before, "ElicitationResult": after}, map[string][]string{"Elicitation": hooked["Elicitation"], "ElicitationResult": hooked["ElicitationResult"]}); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
	if !slices.ContainsFunc(hooked["Notification"], func(s string) bool { return strings.HasPrefix(s, "elicitation_response") }) {
		t.Errorf("notifications: %q", hooked["Notification"])
	}
	if !slices.ContainsFunc(msgs, func(m agent.Message) bool {
		e, err := event.Of(m)
		done, ok := e.(*event.ElicitationComplete)
		return err == nil && ok && done.Server == "old" && done.ElicitationID == "e-1"
	}) {
		t.Error("nothing says that the link was used")
	}
}

// Where nobody can be asked, the CLI's servers are declined, and others are told so. The first call
// that wants a link is answered by the CLI's own text.
func TestRealElicitationWithoutAnyone(t *testing.T) {
	peers.ClaudePath(t)
	turns := elicitTurns(elicitingNames, "accept")
	m := modeltest.New(t, slices.Concat(elicitTurns([]string{"old"}, "required")[:1], turns)...)
	if _, err := ask(t, realCLI(t, m), &agent.Options{
		MCPServers: elicitingServers(t), AllowedTools: []string{"mcp__own", "mcp__cli", "mcp__hosted", "mcp__old"},
	}); err != nil {
		t.Fatal(err)
	}
	for _, server := range elicitingNames {
		got, _ := m.Last().ToolResult("toolu_" + server + "_accept")
		switch server {
		case "cli", "old":
			if got.PlainText() != "decline" || got.IsError {
				t.Errorf("%s got %s", server, got.Raw)
			}
		default:
			if text := got.PlainText(); !got.IsError || !strings.Contains(text, "not support") && !strings.Contains(text, "does not declare") {
				t.Errorf("%s got %s", server, got.Raw)
			}
		}
	}
	if got, _ := m.Last().ToolResult("toolu_old_required"); got.IsError || !strings.Contains(got.PlainText(), "decline") {
		t.Errorf("a link that is wanted before the call: %s", got.Raw)
	}
}

// A question that is withdrawn, by its server or because the turn is interrupted, ends the callback's context.
func TestRealElicitationWithdrawn(t *testing.T) {
	peers.ClaudePath(t)
	var turns []modeltest.Turn
	for _, server := range elicitingNames {
		turns = append(turns, elicitTurns([]string{server}, "wait")[0])
	}
	turns = append(turns, elicitTurns([]string{"old"}, "withdraw")...)
	m := modeltest.New(t, turns...)
	asked, ended := make(chan string), make(chan string, 1)
	c, err := agent.Open(t.Context(), realCLI(t, m), &agent.Options{
		MCPServers: elicitingServers(t), AllowedTools: []string{"mcp__own", "mcp__cli", "mcp__hosted", "mcp__old"},
		OnElicitation: func(ctx context.Context, server string, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			asked <- server
			<-ctx.Done()
			ended <- server
			return nil, context.Cause(ctx)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, server := range elicitingNames {
		if err := c.Send(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
		if got := <-asked; got != server {
			t.Fatalf("%s asks, want %s", got, server)
		}
		if err := c.Interrupt(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := <-ended; got != server {
			t.Errorf("%s's question ended", got)
		}
		if r := response(t, c); !errors.Is(r.Err(), agent.ErrInterrupted) {
			t.Errorf("%s: result %+v", server, r)
		}
	}
	if err := c.Send(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	<-asked
	<-ended
	if r := response(t, c); r.Result != "done" {
		t.Errorf("result %+v", r)
	}
	if got, _ := m.Last().ToolResult("toolu_old_withdraw"); !strings.Contains(got.PlainText(), "no longer") {
		t.Errorf("the server got %s", got.Raw)
	}
}

// A hook on Elicitation can keep a question from the program: it is declined then. What else such a
// hook says the CLI takes from the hooks of its settings alone.
func TestRealElicitationHooks(t *testing.T) {
	peers.ClaudePath(t)
	m := modeltest.New(t, elicitTurns([]string{"cli"}, "hook", "accept")...)
	e, _ := realWith(t, m, &Options{EventHooks: []EventHook{
		{Event: "Elicitation", Matcher: "cli", Func: func(_ context.Context, in json.RawMessage) (json.RawMessage, error) {
			if !strings.Contains(string(in), `"message":"hook"`) {
				return nil, nil
			}
			return json.RawMessage(`{"decision":"block","reason":"not now"}`), nil
		}},
	}})
	servers := elicitingServers(t)
	if _, err := ask(t, e, &agent.Options{
		MCPServers: map[string]mcphost.ServerConfig{"cli": servers["cli"]}, AllowedTools: []string{"mcp__cli"},
		OnElicitation: func(_ context.Context, _ string, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			if p.Message == "hook" {
				t.Error("the program was asked what a hook had answered")
			}
			return elicitAnswer(p)
		},
	}); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"toolu_cli_hook": "decline", "toolu_cli_accept": "accept blue"} {
		if got, _ := m.Last().ToolResult(id); got.PlainText() != want {
			t.Errorf("%s: the server got %s, want %q", id, got.Raw, want)
		}
	}
}
