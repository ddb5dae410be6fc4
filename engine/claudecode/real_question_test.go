package claudecode

import (
	"context"
	"os"
	"path/filepath"
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
	"github.com/tenon-sdk/tenon/permission"
)

func init() {
	children["annotated"] = func() { _ = mcpbridge.ServeStdio(context.Background(), annotated(), nil) }
}

// annotated is a server whose tools say what they do, with a page for hosts that show it.
func annotated() *mcpserver.Server {
	s := mcpserver.New("annotated", nil)
	yes, no := true, false
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "wipe", Title: "Wipe it all", Destructive: &yes, OpenWorld: &no}, func(context.Context, struct{}) (string, error) { return "wiped", nil })
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "look", Title: "Look around", ReadOnly: true}, func(context.Context, struct{}) (string, error) { return "seen", nil })
	if err := s.AddResource(&mcp.Resource{URI: "ui://page", Name: "page", MIMEType: "text/html;profile=mcp-app"}, func(context.Context) (*mcp.ReadResourceResult, error) {
		return mcpserver.TextResource("ui://page", "text/html;profile=mcp-app", "<p>hello</p>"), nil
	}); err != nil {
		panic(err)
	}
	return s
}

// annotatedChild is the same server, started by the CLI.
func annotatedChild() mcphost.Stdio {
	return mcphost.Stdio{Command: os.Args[0], Args: []string{"-test.run=none"}, Env: map[string]string{"CLAUDECODE_TEST_CHILD": "annotated"}}
}

// writeFiles puts files into a directory.
func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A question is all that a program is told of one but for its input.
type question struct {
	Server, Tool, Source, Title, Reason, Description, BlockedPath string
	ReadOnly, Destructive, ClosedWorld, FromAgent                 bool
	Suggestions                                                   string
}

func questionOf(r *agent.ToolRequest) question {
	q := question{
		Server: r.Server, Tool: r.Tool, Source: r.Source, Title: r.Title, Reason: r.Reason, Description: r.Description,
		BlockedPath: r.BlockedPath, ReadOnly: r.ReadOnly, FromAgent: r.AgentID != "",
	}
	if a := r.Annotations; a != nil {
		q.Destructive = a.DestructiveHint != nil && *a.DestructiveHint
		q.ClosedWorld = a.OpenWorldHint != nil && !*a.OpenWorldHint
		if a.ReadOnlyHint != r.ReadOnly {
			q.Tool += ", whose hints contradict each other"
		}
	}
	var kinds []string
	for _, u := range r.Suggestions {
		kinds = append(kinds, string(u.Type)+" "+string(u.Destination))
	}
	q.Suggestions = strings.Join(kinds, ", ")
	return q
}

// A question tells of a call what the CLI says and what is known of the tool, wherever its server
// lives: titles, hints, the path that is in the way, the reason, the subagent, what would settle it.
func TestRealQuestions(t *testing.T) {
	peers.ClaudePath(t)
	dir, outside := t.TempDir(), t.TempDir()
	secret, fresh := filepath.Join(outside, "secret.txt"), filepath.Join(outside, "new.txt")
	writeFiles(t, outside, map[string]string{"secret.txt": "s"})
	type in = map[string]any
	m := reviewing(t, []modeltest.Turn{
		modeltest.ToolUseID("read", "Read", in{"file_path": secret}),
		modeltest.ToolUseID("write", "Write", in{"file_path": fresh, "content": "x"}),
		modeltest.ToolUseID("cat", "Bash", in{"command": "cat " + secret, "description": "Reads it"}),
		modeltest.ToolUseID("own", "mcp__own__wipe", nil),
		modeltest.ToolUseID("cli", "mcp__cli__wipe", nil),
		modeltest.ToolUseID("clilook", "mcp__cli__look", nil),
		modeltest.ToolUseID("hosted", "mcp__hosted__look", nil),
		callReviewer("review", false),
		modeltest.Text("done"),
	}, []modeltest.Turn{modeltest.ToolUseID("sub", "mcp__own__wipe", nil), modeltest.Text("reviewed")})
	e, _ := realWith(t, m, &Options{BuiltinTools: []string{"Read", "Write", "Bash", "Agent"}, Agents: reviewer()})
	hosted := annotatedChild()
	hosted.Dir = t.TempDir()
	var mu sync.Mutex
	asked, agents := map[string]question{}, map[string]bool{}
	msgs, err := ask(t, e, &agent.Options{
		Dir:        dir,
		MCPServers: map[string]mcphost.ServerConfig{"own": mcphost.InProcess(annotated()), "cli": annotatedChild(), "hosted": hosted},
		CanUseTool: func(_ context.Context, r *agent.ToolRequest) (*permission.PromptResult, error) {
			mu.Lock()
			defer mu.Unlock()
			asked[r.ToolUseID] = questionOf(r)
			agents[r.AgentID] = true
			return agent.Allow(), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	const outOfBounds, rule = "Path is outside allowed working directories", "addRules localSettings"
	want := map[string]question{
		"read":    {Title: "Read", Reason: outOfBounds, Description: secret, Suggestions: "addRules session"},
		"write":   {Title: "Write", Reason: outOfBounds, Description: fresh, Suggestions: "setMode session, addDirectories session"},
		"cat":     {Title: "Bash", Description: "Reads it", BlockedPath: secret, Suggestions: rule + ", addRules session"},
		"own":     {Server: "own", Tool: "wipe", Source: "sdk", Title: "Wipe it all", Destructive: true, ClosedWorld: true, Suggestions: rule},
		"cli":     {Server: "cli", Tool: "wipe", Source: "dynamic", Title: "Wipe", Destructive: true, Suggestions: rule},
		"clilook": {Server: "cli", Tool: "look", Source: "dynamic", Title: "Look", ReadOnly: true, Suggestions: rule},
		"hosted":  {Server: "hosted", Tool: "look", Source: "sdk", Title: "Look around", ReadOnly: true, Suggestions: rule},
		"sub":     {Server: "own", Tool: "wipe", Source: "sdk", Title: "Wipe it all", Destructive: true, ClosedWorld: true, FromAgent: true, Suggestions: rule},
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("questions (-want +got):\n%s", diff)
	}
	if !slices.ContainsFunc(msgs, func(m agent.Message) bool {
		e, err := event.Of(m)
		started, ok := e.(*event.TaskStarted)
		return err == nil && ok && agents[started.TaskID] && started.SubagentType == "reviewer"
	}) {
		t.Errorf("no task has the ID of the subagent that asks: %v", agents)
	}
}

// A hook on Notification is told of a question while it is open; what it has for the model goes in
// with the results, what it has for the user is a message, and it can end the turn.
func TestRealNotificationOfAQuestion(t *testing.T) {
	peers.ClaudePath(t)
	m := modeltest.New(t, modeltest.ToolUse("mcp__own__look", nil), modeltest.Text("done"), modeltest.ToolUse("mcp__own__look", nil), modeltest.Text("more"))
	told := make(chan agent.Notification, 1)
	out := &agent.HookOutput{AdditionalContext: "a person was told", SystemMessage: "look up"}
	hook := func(matcher string) agent.Hook[agent.Notification, agent.HookOutput] {
		return agent.Hook[agent.Notification, agent.HookOutput]{Matcher: matcher, Func: func(_ context.Context, in *agent.Notification) (*agent.HookOutput, error) {
			told <- *in
			return out, nil
		}}
	}
	c, err := agent.Open(t.Context(), realCLI(t, m), &agent.Options{
		MCPServers: map[string]mcphost.ServerConfig{"own": mcphost.InProcess(annotated())},
		CanUseTool: func(context.Context, *agent.ToolRequest) (*permission.PromptResult, error) {
			if in := <-told; in.Type != "permission_prompt" || in.HookEventName != "Notification" || !strings.Contains(in.Message, "mcp__own__look") || in.SessionID == "" {
				t.Errorf("the hook was told %+v", in)
			}
			return agent.Allow(), nil
		},
		Hooks: &agent.Hooks{Notification: []agent.Hook[agent.Notification, agent.HookOutput]{hook("permission_.*"), hook("idle_prompt")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Send(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	var informed []string
	for msg, err := range c.Response(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if e, err := event.Of(msg); err == nil {
			if e, ok := e.(*event.Informational); ok {
				informed = append(informed, e.Content)
			}
		}
	}
	if !slices.Equal(informed, []string{"look up"}) {
		t.Errorf("the user was told %q", informed)
	}
	if body := string(m.Last().Body); strings.Count(body, "a person was told") != 1 {
		t.Errorf("the model was not told once: %s", body)
	}
	out = &agent.HookOutput{Stop: true, StopReason: "enough"}
	if err := c.Send(t.Context(), "again"); err != nil {
		t.Fatal(err)
	}
	if r := response(t, c); r.Err() == nil || len(m.Requests()) != 3 {
		t.Errorf("a hook that ends the turn: %+v after %d requests", r, len(m.Requests()))
	}
}

// Hooks on the start and the end of a session are called when its conversation is made shorter or
// cleared, too, and what they say then reaches the model. Those on compacting are called before and after.
//
// fault D8
func TestRealConversationBeginsAnew(t *testing.T) {
	peers.ClaudePath(t)
	m := modeltest.New(t, modeltest.Text("one"), modeltest.Text("<summary>All of it.</summary>"), modeltest.Text("two"), modeltest.Text("three"))
	var mu sync.Mutex
	var heard []string
	note := func(event, subject, text string) *agent.HookOutput {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, event+" "+subject)
		return &agent.HookOutput{AdditionalContext: text}
	}
	c, err := agent.Open(t.Context(), realCLI(t, m), &agent.Options{Dir: t.TempDir(), Hooks: &agent.Hooks{
		SessionStart: []agent.Hook[agent.SessionStart, agent.HookOutput]{{Func: func(_ context.Context, in *agent.SessionStart) (*agent.HookOutput, error) {
			return note("start", in.Source, "begun by "+in.Source), nil
		}}, {Matcher: "resume", Func: func(context.Context, *agent.SessionStart) (*agent.HookOutput, error) {
			return note("start", "of another kind", ""), nil
		}}},
		SessionEnd: []agent.Hook[agent.SessionEnd, agent.HookOutput]{{Func: func(_ context.Context, in *agent.SessionEnd) (*agent.HookOutput, error) {
			return note("end", in.Reason, ""), nil
		}}},
		PreCompact: []agent.Hook[agent.PreCompact, agent.PreCompactOutput]{{Matcher: "manual", Func: func(_ context.Context, in *agent.PreCompact) (*agent.PreCompactOutput, error) {
			note("before compacting", in.Trigger+" "+string(in.CustomInstructions), "")
			return nil, nil
		}}},
		PostCompact: []agent.Hook[agent.PostCompact, agent.HookOutput]{{Func: func(_ context.Context, in *agent.PostCompact) (*agent.HookOutput, error) {
			return note("after compacting", in.Trigger+" "+in.Summary, ""), nil
		}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, text := range []string{"first", "/compact keep names", "second", "/clear", "third"} {
		if err := c.Send(t.Context(), text); err != nil {
			t.Fatal(err)
		}
		response(t, c)
		switch body := string(m.Last().Body); text {
		case "second":
			if !strings.Contains(body, "begun by compact") {
				t.Errorf("after compacting the model was sent %s", body)
			}
		case "third":
			if !strings.Contains(body, "begun by clear") || strings.Contains(body, "first") {
				t.Errorf("after clearing the model was sent %s", body)
			}
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"start startup", "before compacting manual keep names", "start compact", "after compacting manual All of it.",
		"end clear", "start clear", "end other",
	}
	got := slices.Clone(heard)
	for i, s := range got {
		got[i] = strings.ReplaceAll(strings.ReplaceAll(s, "<summary>", ""), "</summary>", "")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
}
