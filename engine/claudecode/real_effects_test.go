package claudecode

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/claudecode/event"
	"github.com/tenon-sdk/tenon/internal/peers"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/modeltest"
	"github.com/tenon-sdk/tenon/permission"
)

// contains reports whether JSON has a text in it.
func contains(raw json.RawMessage, text string) bool { return strings.Contains(string(raw), text) }

// opened is a conversation with the control of its CLI.
func opened(t *testing.T, e agent.Engine, o *agent.Options) (*agent.Client, *Control) {
	t.Helper()
	c, err := agent.Open(t.Context(), e, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	control, ok := ControlOf(c)
	if !ok {
		t.Fatal("no control")
	}
	return c, control
}

// tellAll sends an input and returns the result and what else was heard.
func tellAll(t *testing.T, c *agent.Client, in *agent.Input) (*agent.Result, []any) {
	t.Helper()
	if err := c.SendInput(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	var last *agent.Result
	var events []any
	for m, err := range c.Response(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if r, ok := m.(*agent.Result); ok {
			last = r
		}
		if e, err := event.Of(m); err != nil {
			t.Error(err)
		} else if e != nil {
			events = append(events, e)
		}
	}
	return last, events
}

// What is set while a session runs is so in the next request, and in what the CLI says of itself.
func TestRealSettersHaveEffect(t *testing.T) {
	peers.ClaudePath(t)
	m := modeltest.New(t, modeltest.Func(func(r *modeltest.Request) modeltest.Turn {
		if _, called := r.ToolResult("toolu_1"); !called && strings.Contains(r.LastUserText(), "fourth") {
			return modeltest.ToolUseID("toolu_1", "mcp__mine__echo", map[string]string{"text": "x"})
		}
		return modeltest.Text("done") // a change of the model costs a request of its own
	}))
	e, _ := realWith(t, m, &Options{AllowBypass: true})
	c, control := opened(t, e, &agent.Options{
		Model: "claude-sonnet-4-5", Dir: t.TempDir(), SettingSources: []agent.SettingSource{agent.SourceLocal, agent.SourceUser, agent.SourceProject},
		MCPServers: map[string]mcphost.ServerConfig{"mine": mcphost.InProcess(echo(t))},
	})
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	say := func(text string) string {
		t.Helper()
		tellAll(t, c, agent.Text(text))
		return string(m.Last().Body)
	}
	say("first")
	if m.Last().Model != "claude-sonnet-4-5" {
		t.Errorf("model %q", m.Last().Model)
	}
	budget := 4096
	do(control.SetThinking(t.Context(), &budget, ""))
	do(c.SetModel(t.Context(), "claude-haiku-4-5"))
	if body := say("second"); m.Last().Model != "claude-haiku-4-5" || !strings.Contains(body, `"budget_tokens":4096`) {
		t.Errorf("model %q; thinking %s", m.Last().Model, m.Last().Field("thinking"))
	}
	none := 0
	do(control.SetThinking(t.Context(), &none, ""))
	if say("third"); strings.Contains(string(m.Last().Field("thinking")), "budget_tokens") {
		t.Errorf("thinking %s", m.Last().Field("thinking"))
	}
	do(c.SetPermissionMode(t.Context(), permission.ModeBypassPermissions))
	say("fourth")
	if r, ok := m.Last().ToolResult("toolu_1"); !ok || !strings.HasPrefix(r.PlainText(), "x yourself") {
		t.Errorf("in the mode that asks nothing the call got %s", r.Raw)
	}
	do(control.Rename(t.Context(), "A name of ours"))
	do(control.ApplySettings(t.Context(), map[string]json.RawMessage{"permissions": json.RawMessage(`{"deny":["mcp__mine__echo"]}`)}))
	rules, err := control.Request(t.Context(), "list_permission_rules", nil)
	if err != nil || !contains(rules, "mcp__mine__echo") {
		t.Errorf("rules %s, %v", rules, err)
	}
	do(control.UpdateSettings(t.Context(), "localSettings", map[string]string{"outputStyle": "Explanatory"}))
	settings, err := control.Request(t.Context(), "get_settings", nil)
	if err != nil || !contains(settings, "Explanatory") {
		t.Errorf("settings %s, %v", settings, err)
	}
}

// An input that waits can be taken back, alone or with an interrupt; one that does not wait cannot.
func TestRealInputsAreTakenBack(t *testing.T) {
	peers.ClaudePath(t)
	gate := modeltest.NewGate()
	m := modeltest.New(t, modeltest.Say(modeltest.Text("slow").After(0, modeltest.Hold(gate))), modeltest.Text("next"))
	e, _ := realWith(t, m, &Options{})
	c, control := opened(t, e, &agent.Options{})
	ids := []string{someID, otherID, "00000000-0000-4000-8000-00000000000a"}
	for i, id := range ids {
		if err := c.SendInput(t.Context(), &agent.Input{Content: agent.TextContent("input " + id), UUID: id}); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			<-gate.Reached()
		}
	}
	if did, err := control.CancelInput(t.Context(), ids[1]); !did || err != nil {
		t.Errorf("taking back what waits: %t, %v", did, err)
	}
	if did, err := control.CancelInput(t.Context(), ids[0]); did || err != nil {
		t.Errorf("taking back what runs: %t, %v", did, err)
	}
	receipt, err := control.Interrupt(t.Context(), true)
	if err != nil || !slices.Equal(receipt.Cancelled, ids[2:]) || len(receipt.StillQueued) != 0 {
		t.Errorf("receipt %+v, %v", receipt, err)
	}
	if r := response(t, c); r.Err() == nil {
		t.Errorf("result %+v", r)
	}
	gate.Open()
	if r, _ := tellAll(t, c, agent.Text("go on")); r.Result != "next" {
		t.Errorf("result %+v", r)
	}
	for _, id := range ids[1:] {
		if strings.Contains(string(m.Last().Body), id) {
			t.Errorf("the model was sent %s, which was taken back", id)
		}
	}
}

// Tasks in the background are shown, read and stopped; a command in the foreground goes there.
func TestRealTasks(t *testing.T) {
	peers.ClaudePath(t)
	m := modeltest.New(t,
		modeltest.ToolUseID("toolu_1", "Bash", map[string]any{"command": "echo begun; while true; do sleep 0.1; done", "description": "Runs", "run_in_background": true}),
		modeltest.Text("started"),
		modeltest.ToolUseID("toolu_2", "Bash", map[string]any{"command": "touch running; while true; do sleep 0.1; done", "description": "Runs on"}),
		modeltest.Func(func(r *modeltest.Request) modeltest.Turn { return modeltest.Text("heard") }))
	e, _ := realWith(t, m, &Options{BuiltinTools: []string{"Bash"}, TaskStops: true})
	dir := t.TempDir()
	c, control := opened(t, e, &agent.Options{Dir: dir, AllowedTools: []string{"Bash"}})
	_, events := tellAll(t, c, agent.Text("go"))
	var task string
	for _, e := range events {
		if e, ok := e.(*event.TaskStarted); ok {
			task = e.TaskID
		}
	}
	for {
		out, err := control.TaskOutput(t.Context(), task)
		if err != nil {
			t.Fatal(err)
		}
		if out.Output == "begun\n" && out.TotalBytes == 6 && !out.Truncated {
			break
		}
	}
	if err := control.StopTask(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	if err := c.Send(t.Context(), "again"); err != nil {
		t.Fatal(err)
	}
	stopped, moved := false, false
	for m, err := range c.Messages(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if r, ok := m.(*agent.Result); ok && moved {
			if r.Err() != nil || !stopped {
				t.Errorf("result %+v, stopped %t", r, stopped)
			}
			return
		}
		switch e, _ := event.Of(m); e := e.(type) {
		case *event.TaskNotification:
			stopped = stopped || e.TaskID == task && e.Status == "stopped"
		case *event.TaskStarted:
			if e.ToolUseID != "toolu_2" {
				continue
			}
			did, err := control.BackgroundTasks(t.Context(), "toolu_2")
			if err != nil || !did {
				t.Fatalf("moved to the background: %t, %v", did, err)
			}
			moved = true
		}
	}
}

// Files that the model has changed are put back as they were.
func TestRealFilesAreRewound(t *testing.T) {
	peers.ClaudePath(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "a.txt")
	writeFiles(t, dir, map[string]string{"a.txt": "before"})
	m := modeltest.New(t,
		modeltest.ToolUse("Read", map[string]any{"file_path": path}),
		modeltest.ToolUse("Edit", map[string]any{"file_path": path, "old_string": "before", "new_string": "after"}),
		modeltest.Text("done"))
	e, _ := realWith(t, m, &Options{BuiltinTools: []string{"Read", "Edit"}, FileCheckpoints: true})
	c, control := opened(t, e, &agent.Options{Dir: dir, PermissionMode: permission.ModeAcceptEdits})
	tellAll(t, c, &agent.Input{Content: agent.TextContent("edit it"), UUID: otherID})
	contents := func(want string) {
		t.Helper()
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("the file has %q, %v, want %q", got, err, want)
		}
	}
	contents("after")
	r, err := control.RewindFiles(t.Context(), otherID, true)
	if err != nil || !r.Possible || !slices.Equal(r.FilesChanged, []string{path}) || r.Insertions != 1 || r.Deletions != 1 {
		t.Errorf("dry run: %+v, %v", r, err)
	}
	contents("after")
	if r, err = control.RewindFiles(t.Context(), otherID, false); err != nil || !r.Possible {
		t.Errorf("rewound: %+v, %v", r, err)
	}
	contents("before")
}

// Servers that the CLI has connected are called and read without the model, and plugins and skills
// that came later are there after a reload.
func TestRealReloads(t *testing.T) {
	peers.ClaudePath(t)
	m := modeltest.New(t, modeltest.Text("one"))
	dir := t.TempDir()
	e, _ := realWith(t, m, &Options{BuiltinTools: []string{"Skill"}})
	c, control := opened(t, e, &agent.Options{
		Dir: dir, MCPServers: map[string]mcphost.ServerConfig{"cli": annotatedChild()}, SettingSources: []agent.SettingSource{agent.SourceProject},
	})
	tellAll(t, c, agent.Text("go"))
	page, err := control.Request(t.Context(), "mcp_read_resource", map[string]string{"serverName": "cli", "uri": "ui://page"})
	if err != nil || !contains(page, "<p>hello</p>") && !contains(page, `\u003cp\u003ehello`) {
		t.Errorf("page %s, %v", page, err)
	}
	called, err := control.CallMCPTool(t.Context(), "mcp__cli__look", nil)
	if err != nil || len(called.Content) != 1 || !contains(called.Content[0], "seen") {
		t.Errorf("called: %+v, %v", called, err)
	}
	plugin := t.TempDir()
	writeFiles(t, plugin, map[string]string{".claude-plugin/plugin.json": `{"name":"box","version":"1.0.0"}`, "commands/pack.md": "---\ndescription: Pack it\n---\nPack it."})
	reloaded, err := control.ReloadPlugins(t.Context(), ReloadOptions{Add: []Plugin{{Path: plugin}}})
	if err != nil {
		t.Fatal(err)
	}
	var plugins, commands []string
	for _, p := range reloaded.Plugins {
		plugins = append(plugins, p.Name)
	}
	for _, c := range reloaded.Commands {
		commands = append(commands, c.Name)
	}
	if !slices.Contains(plugins, "box") || !slices.Contains(commands, "box:pack") || reloaded.ErrorCount != 0 || reloaded.Held {
		t.Errorf("plugins %q, commands %q, %d errors", plugins, commands, reloaded.ErrorCount)
	}
	writeFiles(t, dir, map[string]string{".claude/skills/fold/SKILL.md": "---\nname: fold\ndescription: Folds it\n---\nFold it.", ".claude/output-styles/terse.md": "---\nname: Terse\ndescription: Short\n---\nBe short."})
	skills, err := control.ReloadSkills(t.Context())
	if err != nil || !slices.ContainsFunc(skills, func(c event.Command) bool { return c.Name == "fold" }) {
		t.Errorf("skills: %+v, %v", skills, err)
	}
	styles, err := control.Request(t.Context(), "reload_output_styles", nil)
	if err != nil || !contains(styles, "Terse") {
		t.Errorf("styles: %s, %v", styles, err)
	}
}
