package native

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
	"github.com/tenon-sdk/tenon/permission"
)

// project makes a directory with files in it, whose names are paths, and returns it.
func project(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// served is the address of an MCP server with one tool, x, that echoes its arguments.
func served(t *testing.T) string {
	t.Helper()
	srv := mcpserver.New("files", nil)
	if err := srv.AddTool(&mcpserver.Tool{Name: "x", InputSchema: json.RawMessage(`{"type":"object"}`)}, echoArgs); err != nil {
		t.Fatal(err)
	}
	h := mcpserver.NewHTTPHandler(srv, nil)
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		if err := h.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		server.Close()
	})
	return server.URL
}

func initOf(t *testing.T, o *agent.Options) *agent.SystemInit {
	t.Helper()
	_, msgs := answered(t, modeltest.New(t, modeltest.Text("x")), o)
	return last[*agent.SystemInit](msgs)
}

// D07 D08: by default the servers of the project's .mcp.json are there, and without the source they
// are not; what the account has leaks into no run that does not ask for it (pain 40).
func TestProjectServers(t *testing.T) {
	url := served(t)
	dir := project(t, map[string]string{".mcp.json": `{"mcpServers": {"files": {"type": "http", "url": "` + url + `"}}}`})
	t.Setenv("HOME", project(t, map[string]string{".claude.json": `{"mcpServers": {"mine": {"type": "http", "url": "` + url + `"}}}`}))
	for _, tt := range []struct {
		name    string
		sources []agent.SettingSource
		strict  bool
		want    []string
	}{
		{"default", nil, false, []string{"files"}},
		{"project", []agent.SettingSource{agent.SourceProject}, false, []string{"files"}},
		{"without project", []agent.SettingSource{agent.SourceUser, agent.SourceLocal}, false, []string{"mine"}},
		{"all", []agent.SettingSource{agent.SourceUser, agent.SourceProject, agent.SourceLocal}, false, []string{"files", "mine"}},
		{"none", []agent.SettingSource{}, false, nil},
		{"strict", nil, true, nil},
	} {
		init := initOf(t, &agent.Options{Dir: dir, SettingSources: tt.sources, StrictMCPConfig: tt.strict, ToolSearch: "false", Env: map[string]string{"CLAUDE_CODE_MCP_STARTUP_WAIT_MS": "20000"}})
		var names []string
		for _, s := range init.MCPServers {
			names = append(names, s.Name)
			if want := map[string]string{"files": "project", "mine": "user"}[s.Name]; s.Status != "connected" || s.Source != want {
				t.Errorf("%s: server %+v", tt.name, s)
			}
		}
		if diff := cmp.Diff(tt.want, names); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
		if got := slices.Contains(init.Tools, "mcp__files__x"); got != slices.Contains(tt.want, "files") {
			t.Errorf("%s: tools %q", tt.name, init.Tools)
		}
	}
}

// What the program says itself wins over the files.
func TestOptionsWinOverFiles(t *testing.T) {
	dir := project(t, map[string]string{
		".mcp.json": `{"mcpServers": {"s": {"command": "/does/not/exist", "tools": [{"name": "a", "permission_policy": "always_deny"}]}}}`,
		".claude/settings.json": `{"permissions": {"allow": ["mcp__s__a"], "deny": ["mcp__s__b"], "ask": ["mcp__s__c"], "defaultMode": "plan"},
			"env": {"ANTHROPIC_MODEL": "from-a-file", "MAX_STRUCTURED_OUTPUT_RETRIES": 2}, "model": "opus"}`,
	})
	o := withTools(t, echoArgs, &mcpserver.Tool{Name: "a", ReadOnly: true}, &mcpserver.Tool{Name: "b"}, &mcpserver.Tool{Name: "c", ReadOnly: true})
	o.AllowedTools, o.Dir, o.ToolSearch, o.SettingSources = nil, dir, "false", []agent.SettingSource{agent.SourceProject}
	model := modeltest.New(t, modeltest.Say(modeltest.ToolUse("mcp__s__a", `{"n":1}`), modeltest.ToolUse("mcp__s__c", `{}`)), modeltest.Text("x"))
	r, msgs := answered(t, model, o)
	init := last[*agent.SystemInit](msgs)
	if len(init.MCPServers) != 1 || init.MCPServers[0].Status != "connected" || init.PermissionMode != "plan" || init.Model != "from-a-file" || slices.Contains(init.Tools, "mcp__s__b") {
		t.Errorf("init %+v", init)
	}
	if got := results(msgs); got[0].IsError || !got[1].IsError || len(r.PermissionDenials) != 1 {
		t.Errorf("results %+v and %+v", got[0], got[1])
	}
	o.PermissionMode, o.Model, o.Env = permission.ModeDontAsk, "chosen", map[string]string{"ANTHROPIC_MODEL": "other"}
	if init := initOf(t, o); init.PermissionMode != "dontAsk" || init.Model != "chosen" {
		t.Errorf("init %+v", init)
	}
	o.Model = ""
	if init := initOf(t, o); init.Model != "other" {
		t.Errorf("init has the model %q", init.Model)
	}
}

// Nothing that is left out of a file is left out in silence, and the rest of it holds.
func TestFaultySettings(t *testing.T) {
	dir := project(t, map[string]string{
		".claude/settings.local.json": `{"permissions": {"allow": ["mcp__s__w", 7], "defaultMode": "yolo"}, "env": {"X": [1]},
			"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "true"}]}], "Elsewhere": [{"hooks": [{"type": "mcp_tool", "server": "s", "tool": "w"}]}]}}`,
		".claude/settings.json": `{"permissions": `,
	})
	o := withTools(t, echoArgs, &mcpserver.Tool{Name: "w"})
	o.AllowedTools, o.Dir, o.SettingSources = nil, dir, []agent.SettingSource{agent.SourceProject, agent.SourceLocal}
	_, msgs := answered(t, modeltest.New(t, modeltest.ToolUse("mcp__s__w", `{}`), modeltest.Text("x")), o)
	if got := results(msgs); got[0].IsError {
		t.Errorf("the good rule does not hold: %+v", got[0])
	}
	var all []string
	for _, e := range last[*agent.SystemInit](msgs).MCPServerErrors {
		all = append(all, e.Message)
	}
	for _, want := range []string{"settings.json", "allow[1]", "defaultMode", "env.X", `"command"`, "Elsewhere"} {
		if !slices.ContainsFunc(all, func(m string) bool { return strings.Contains(m, want) }) {
			t.Errorf("nothing is said of %s: %q", want, all)
		}
	}
}

// The program decides about each file of a checkout, whatever sources it names, by the bytes that are used.
// fault A1
func TestTrustFile(t *testing.T) {
	text := `{"permissions": {"allow": ["mcp__s__w"]}}`
	dir := project(t, map[string]string{".claude/settings.json": text, ".mcp.json": `{"mcpServers": {}}`})
	for _, trust := range []bool{true, false} {
		for _, sources := range [][]agent.SettingSource{nil, {agent.SourceProject}} {
			asked := map[string]string{}
			o := withTools(t, echoArgs, &mcpserver.Tool{Name: "w"})
			o.AllowedTools, o.Dir, o.SettingSources = nil, dir, sources
			o.TrustFile = func(file string, contents []byte) bool {
				asked[file] = string(contents)
				return trust
			}
			_, msgs := answered(t, modeltest.New(t, modeltest.ToolUse("mcp__s__w", `{}`), modeltest.Text("x")), o)
			if got := results(msgs)[0]; got.IsError == trust {
				t.Errorf("trusted: %v, sources %q: %+v", trust, sources, got)
			}
			want := map[string]string{filepath.Join(dir, ".claude", "settings.json"): text, filepath.Join(dir, ".mcp.json"): `{"mcpServers": {}}`}
			if diff := cmp.Diff(want, asked); diff != "" {
				t.Errorf("trusted: %v, sources %q: %s", trust, sources, diff)
			}
		}
	}
}

func TestNamedSettings(t *testing.T) {
	dir := project(t, map[string]string{"mine.json": `{"permissions": {"allow": ["mcp__s__w"]}}`})
	for _, settings := range []string{"mine.json", filepath.Join(dir, "mine.json"), `{"permissions": {"allow": ["mcp__s__w"]}}`} {
		o := withTools(t, echoArgs, &mcpserver.Tool{Name: "w"})
		o.AllowedTools, o.Dir, o.Settings, o.SettingSources = nil, dir, settings, []agent.SettingSource{}
		_, msgs := answered(t, modeltest.New(t, modeltest.ToolUse("mcp__s__w", `{}`), modeltest.Text("x")), o)
		if got := results(msgs); got[0].IsError {
			t.Errorf("%s: %+v", settings, got[0])
		}
	}
	for _, settings := range []string{"absent.json", `{"permissions":`, `{`} {
		_, err := collect(t, t.Context(), testEngine(modeltest.New(t)), "x", &agent.Options{Dir: dir, Settings: settings})
		if oe := (*agent.OptionError)(nil); !errors.As(err, &oe) || oe.Field != "Settings" {
			t.Errorf("%s: %v", settings, err)
		}
	}
}

func TestAdditionalDirectoriesAreRoots(t *testing.T) {
	var uris []string
	o := withTools(t, func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
		roots, err := mcpserver.RequestFrom(ctx).ListRoots(ctx)
		for _, r := range roots {
			uris = append(uris, filepath.Base(r.URI))
		}
		return mcpserver.Text("ok"), err
	}, &mcpserver.Tool{Name: "w"})
	o.Dir = project(t, map[string]string{".claude/settings.json": `{"permissions": {"additionalDirectories": ["third"]}}`})
	o.SettingSources = []agent.SettingSource{agent.SourceProject}
	o.AdditionalDirectories = []string{"first", filepath.Join(t.TempDir(), "second")}
	_, msgs := answered(t, modeltest.New(t, modeltest.ToolUse("mcp__s__w", `{}`), modeltest.Text("x")), o)
	if diff := cmp.Diff([]string{filepath.Base(o.Dir), "first", "second", "third"}, uris); diff != "" {
		t.Errorf("%s\n%+v", diff, results(msgs)[0])
	}
}

// D101: the environment of a run, and of its settings, is that of this run alone.
func TestEnvIsThatOfTheRun(t *testing.T) {
	t.Setenv("ANTHROPIC_MODEL", "of-the-process")
	for _, tt := range []struct {
		o    agent.Options
		want string
	}{
		{agent.Options{Env: map[string]string{"ANTHROPIC_MODEL": "of-one-run"}}, "of-one-run"},
		{agent.Options{Settings: `{"env": {"ANTHROPIC_MODEL": "of-the-settings"}}`}, "of-the-settings"},
		{agent.Options{Settings: `{"env": {"ANTHROPIC_MODEL": "of-the-settings"}}`, Env: map[string]string{"ANTHROPIC_MODEL": "of-one-run"}}, "of-one-run"},
		{agent.Options{}, "of-the-process"},
	} {
		if got := initOf(t, &tt.o).Model; got != tt.want {
			t.Errorf("the model is %q, want %q", got, tt.want)
		}
	}
}

// The limit of a call, too, is that of the run's environment, or of its settings. // D92 D101
func TestCallLimitIsThatOfTheRun(t *testing.T) {
	t.Setenv("MCP_TOOL_TIMEOUT", "30000")
	hangs := func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	for want, change := range map[string]func(*agent.Options){
		"timed out after 150ms":     func(o *agent.Options) { o.Env = map[string]string{"MCP_TOOL_TIMEOUT": "150"} },
		"timed out after 160ms":     func(o *agent.Options) { o.Settings = `{"env": {"MCP_TOOL_TIMEOUT": "160"}}` },
		"timed out after 1 seconds": func(o *agent.Options) { o.Env = map[string]string{"CLAUDE_AGENT_TOOL_TIMEOUT": "0"} },
	} {
		o := withTools(t, hangs, &mcpserver.Tool{Name: "w"})
		change(o)
		_, msgs := answered(t, modeltest.New(t, modeltest.ToolUse("mcp__s__w", `{}`), modeltest.Text("x")), o)
		if got := results(msgs)[0]; !got.IsError || !strings.Contains(got.Text(), want) {
			t.Errorf("got %q, want %q", got.Text(), want)
		}
	}
}

func TestModelAliases(t *testing.T) {
	for name, want := range map[string]string{"opus": "claude-opus-5-5", "Sonnet": "claude-sonnet-5-5", "claude-opus-4-6": "claude-opus-4-6", "default": DefaultModel} {
		if got := initOf(t, &agent.Options{Model: name}).Model; got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}
