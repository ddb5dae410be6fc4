package claudecode

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/internal/peers"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/modeltest"
)

// response reads one answer and returns its result.
func response(t *testing.T, c *agent.Client) *agent.Result {
	t.Helper()
	var last *agent.Result
	for m, err := range c.Response(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if r, ok := m.(*agent.Result); ok {
			last = r
		}
	}
	return last
}

// Every control request that this package has a method for is one that the real CLI knows.
func TestRealCLIKnowsEveryRequest(t *testing.T) {
	peers.ClaudePath(t)
	m := modeltest.New(t, modeltest.Text("done"))
	e, _ := realWith(t, m, &Options{FileCheckpoints: true, BuiltinTools: []string{"Read", "Edit", "Bash"}, AllowBypass: true})
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("contents\xff"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	client, err := agent.Open(t.Context(), e, &agent.Options{
		Dir: dir, SessionID: someID,
		MCPServers: map[string]mcphost.ServerConfig{"mine": mcphost.InProcess(echo(t)), "every": everything(t)},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c, ok := ControlOf(client)
	if !ok {
		t.Fatal("no control")
	}
	if i := c.Initialization(); i.Version == "" || len(i.Models) == 0 || len(i.Commands) == 0 || i.PID == 0 || len(i.OutputStyles) == 0 || i.Account.APIProvider == "" || len(i.Raw) == 0 {
		t.Errorf("initialization: %+v", i)
	}
	input := &agent.Input{Content: agent.TextContent("hi"), UUID: otherID}
	if err := client.SendInput(t.Context(), input); err != nil {
		t.Fatal(err)
	}
	if r := response(t, client); r == nil || r.Result != "done" {
		t.Fatalf("result %+v", r)
	}
	n := 1024
	for _, step := range []struct {
		name    string
		refused string // what the refusal says; empty if it is granted
		do      func(ctx context.Context) (got any, good bool, err error)
	}{
		{"Interrupt", "", func(ctx context.Context) (any, bool, error) {
			r, err := c.Interrupt(ctx, true)
			return r, r != nil && len(r.StillQueued) == 0, err
		}},
		{"CancelInput", "", func(ctx context.Context) (any, bool, error) {
			did, err := c.CancelInput(ctx, someID)
			return did, !did, err
		}},
		{"SetThinking", "", func(ctx context.Context) (any, bool, error) { return nil, true, c.SetThinking(ctx, &n, "omitted") }},
		{"SetMCPPermissionMode", "", func(ctx context.Context) (any, bool, error) {
			w, err := c.SetMCPPermissionMode(ctx, "nobody", "default")
			return w, w != "", err
		}},
		{"SetMCPPermissionMode back", "", func(ctx context.Context) (any, bool, error) {
			w, err := c.SetMCPPermissionMode(ctx, "mine", "")
			return w, w == "", err
		}},
		{"ApplySettings", "", func(ctx context.Context) (any, bool, error) {
			return nil, true, c.ApplySettings(ctx, map[string]json.RawMessage{"effortLevel": json.RawMessage(`"low"`)})
		}},
		{"UpdateSettings", "source", func(ctx context.Context) (any, bool, error) {
			return nil, true, c.UpdateSettings(ctx, "localSettings", map[string]string{"outputStyle": "default"})
		}},
		{"get_settings", "", func(ctx context.Context) (any, bool, error) {
			r, err := c.Request(ctx, "get_settings", nil)
			return r, strings.Contains(string(r), "effortLevel"), err
		}},
		{"list_permission_rules", "", func(ctx context.Context) (any, bool, error) {
			r, err := c.Request(ctx, "list_permission_rules", nil)
			return r, strings.Contains(string(r), `"state"`), err
		}},
		{"get_hooks_listing", "", func(ctx context.Context) (any, bool, error) {
			r, err := c.Request(ctx, "get_hooks_listing", nil)
			return r, json.Valid(r), err
		}},
		{"ContextEstimate", "", func(ctx context.Context) (any, bool, error) {
			u, err := c.ContextEstimate(ctx)
			return u, u != nil && u.MaxTokens > 0 && len(u.Categories) > 0 && u.Extra["memoryFiles"] != nil, err
		}},
		{"get_usage", "", func(ctx context.Context) (any, bool, error) {
			r, err := c.Request(ctx, "get_usage", map[string]bool{"skip_behaviors": true})
			return r, strings.Contains(string(r), "rate_limits_available"), err
		}},
		{"get_session_cost", "", func(ctx context.Context) (any, bool, error) {
			r, err := c.Request(ctx, "get_session_cost", nil)
			return r, json.Valid(r), err
		}},
		{"get_binary_version", "", func(ctx context.Context) (any, bool, error) {
			r, err := c.Request(ctx, "get_binary_version", nil)
			return r, strings.Contains(string(r), `"2.`), err
		}},
		{"list_models", "", func(ctx context.Context) (any, bool, error) {
			r, err := c.Request(ctx, "list_models", nil)
			return r, strings.Contains(string(r), "models"), err
		}},
		{"file_suggestions", "", func(ctx context.Context) (any, bool, error) {
			r, err := c.Request(ctx, "file_suggestions", map[string]string{"query": "a"})
			return r, json.Valid(r), err
		}},
		{"ReadFile", "", func(ctx context.Context) (any, bool, error) {
			f, err := c.ReadFile(ctx, "a.txt", 0)
			return f, f != nil && string(f.Contents) == "contents\xff" && filepath.IsAbs(f.Path) && !f.Truncated, err
		}},
		{"seed_read_state", "", func(ctx context.Context) (any, bool, error) {
			r, err := c.Request(ctx, "seed_read_state", map[string]any{"path": filepath.Join(dir, "a.txt"), "mtime": time.Now().UnixMilli()})
			return r, true, err
		}},
		{"RewindFiles", "", func(ctx context.Context) (any, bool, error) {
			r, err := c.RewindFiles(ctx, otherID, true)
			return r, r != nil && r.Possible, err
		}},
		{"StopTask", "", func(ctx context.Context) (any, bool, error) { return nil, true, c.StopTask(ctx, "nothing") }},
		{"BackgroundTasks", "", func(ctx context.Context) (any, bool, error) {
			did, err := c.BackgroundTasks(ctx, "toolu_none")
			return did, !did, err
		}},
		{"TaskOutput", "task", func(ctx context.Context) (any, bool, error) {
			o, err := c.TaskOutput(ctx, "nothing")
			return o, true, err
		}},
		{"ReloadPlugins", "", func(ctx context.Context) (any, bool, error) {
			r, err := c.ReloadPlugins(ctx, ReloadOptions{})
			return r, r != nil && len(r.Commands) > 0, err
		}},
		{"ReloadSkills", "", func(ctx context.Context) (any, bool, error) {
			r, err := c.ReloadSkills(ctx)
			return r, r != nil, err
		}},
		{"reload_output_styles", "", func(ctx context.Context) (any, bool, error) {
			r, err := c.Request(ctx, "reload_output_styles", nil)
			return r, strings.Contains(string(r), "available_output_styles"), err
		}},
		{"register_repo_root", "", func(ctx context.Context) (any, bool, error) {
			r, err := c.Request(ctx, "register_repo_root", map[string]any{"directory": filepath.Join(dir, "sub"), "reload_claude_md": true, "reload_plugins": true, "reload_skills": true})
			return r, true, err
		}},
		{"Rename", "", func(ctx context.Context) (any, bool, error) { return nil, true, c.Rename(ctx, "Another title") }},
		{"set_has_subscribers", "", func(ctx context.Context) (any, bool, error) {
			r, err := c.Request(ctx, "set_has_subscribers", map[string]bool{"has_subscribers": false})
			return r, true, err
		}},
		{"CallMCPTool", "", func(ctx context.Context) (any, bool, error) {
			r, err := c.CallMCPTool(ctx, "mcp__every__echo", json.RawMessage(`{"message":"over there"}`))
			return r, r != nil && len(r.Content) == 1 && strings.Contains(string(r.Content[0]), "over there"), err
		}},
		{"CallMCPTool of ours", "SDK", func(ctx context.Context) (any, bool, error) {
			r, err := c.CallMCPTool(ctx, "mcp__mine__echo", nil)
			return r, true, err
		}},
		{"mcp_read_resource", "resource", func(ctx context.Context) (any, bool, error) {
			r, err := c.Request(ctx, "mcp_read_resource", map[string]string{"serverName": "every", "uri": "ui://nothing"})
			return r, true, err
		}},
		{"Request", "unsupported", func(ctx context.Context) (any, bool, error) {
			r, err := c.Request(ctx, "make_coffee", nil)
			return r, true, err
		}},
	} {
		t.Run(step.name, func(t *testing.T) {
			got, good, err := step.do(t.Context())
			var ce *ControlError
			switch {
			case step.refused != "":
				if !errors.As(err, &ce) || !strings.Contains(strings.ToLower(ce.Message), strings.ToLower(step.refused)) || step.refused != "unsupported" && ce.Code == "unsupported_request" {
					t.Errorf("got %v, %v; want a refusal with %q", got, err, step.refused)
				}
			case err != nil:
				t.Errorf("refused: %v", err)
			case !good:
				t.Errorf("got %+v", got)
			}
		})
	}
}

// everything is the official demonstration server over stdio, started by the CLI.
func everything(t *testing.T) mcphost.ServerConfig {
	t.Helper()
	c := peers.Everything(t, "stdio")
	return mcphost.Stdio{Command: c.Path, Args: c.Args, Env: c.Env}
}

func TestControlOfAnotherEngine(t *testing.T) {
	e, o := fake("polite")
	c, err := agent.Open(t.Context(), e, o)
	if err != nil {
		t.Fatal(err)
	}
	control, ok := ControlOf(c)
	if !ok {
		t.Fatal("no control of our own session")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := control.ReloadSkills(t.Context()); !errors.Is(err, agent.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	other, err := agent.Open(t.Context(), elsewhere{e}, o)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, ok := ControlOf(other); ok {
		t.Error("a session of another kind has a control")
	}
}

// elsewhere is an engine whose sessions are not this package's.
type elsewhere struct{ agent.Engine }

func (e elsewhere) Open(ctx context.Context, o *agent.Options) (agent.Session, error) {
	s, err := e.Engine.Open(ctx, o)
	return struct{ agent.Session }{s}, err
}
