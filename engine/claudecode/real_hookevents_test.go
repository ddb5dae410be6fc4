package claudecode

import (
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/internal/peers"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/modeltest"
	"github.com/tenon-sdk/tenon/permission"
)

// neverCalled are the events that no callback hears of, with the reason; docs/parity.md has the same.
var neverCalled = map[string]string{
	"Setup":        "the CLI runs it before it takes callbacks: hooks of its settings are run",
	"TeammateIdle": "the CLI has no teammates when a program drives it: an agent with a name is a subagent",
}

// watchedHooks are hooks of the CLI's own on the events that it does not watch for callbacks alone.
const watchedHooks = `{"hooks":{
	"FileChanged":[{"matcher":"watched.txt","hooks":[{"type":"command","command":"true"}]}],
	"CwdChanged":[{"hooks":[{"type":"command","command":"true"}]}]}}`

// eventLog notes which events hooks were called on, with their inputs.
type eventLog struct {
	mu     sync.Mutex
	inputs map[string][]json.RawMessage
	first  map[string]chan struct{} // closed by the first
}

// hooks are hooks on all events that note their inputs; say answers in place of nothing.
func (l *eventLog) hooks(events []string, say map[string]string) []EventHook {
	l.inputs, l.first = map[string][]json.RawMessage{}, map[string]chan struct{}{}
	var hooks []EventHook
	for _, event := range events {
		l.first[event] = make(chan struct{})
		h := EventHook{Event: event, Func: func(_ context.Context, in json.RawMessage) (json.RawMessage, error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			if len(l.inputs[event]) == 0 {
				close(l.first[event])
			}
			l.inputs[event] = append(l.inputs[event], in)
			return json.RawMessage(say[event]), nil
		}}
		if event == "FileChanged" {
			h.Matcher = "watched.txt" // here a list of files
		}
		hooks = append(hooks, h)
	}
	return hooks
}

// Every event that the CLI has calls the hooks of a program, with the event's name and subject in
// the input; where it does not, the reason is known. A failed call has its duration.
//
// fault G13
func TestRealHookEvents(t *testing.T) {
	peers.ClaudePath(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	writeFiles(t, dir, map[string]string{
		"CLAUDE.md": "Be kind.", "watched.txt": "w", "sub/x.txt": "x", "tree/x.txt": "x", ".claude/settings.json": "{}",
		".claude/commands/pack.md": "---\ndescription: Pack it\n---\nPack !`echo packed` $ARGUMENTS",
	})
	events := typescriptNames(t)["Hook events"]
	var seen eventLog
	type in = map[string]any
	bash := func(command string) modeltest.Part {
		return modeltest.ToolUse("Bash", in{"command": command, "description": "Does it"})
	}
	// until waits for a hook in the middle of a turn.
	until := func(event string) modeltest.Part {
		return modeltest.Pause(func(ctx context.Context) error {
			select {
			case <-seen.first[event]:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}
	m := reviewing(t, []modeltest.Turn{
		modeltest.ToolUse("mcp__cli__ask", elicits{Message: "accept"}),
		modeltest.ToolUse("Read", in{"file_path": filepath.Join(dir, "missing.txt")}),
		callReviewer("review", false),
		modeltest.ToolUse("EnterWorktree", in{"name": "tree"}),
		modeltest.ToolUse("ExitWorktree", in{"action": "remove", "discard_changes": true}),
		bash("echo more >> watched.txt; echo '{\"x\":1}' > .claude/settings.json"),
		modeltest.Say(until("FileChanged"), until("ConfigChange"), bash("cd sub")),
		modeltest.Text("done"),
		modeltest.ToolUse("TaskCreate", in{"subject": "S", "description": "D"}),
		modeltest.ToolUse("TaskUpdate", in{"taskId": "1", "status": "completed"}),
		modeltest.Text("packed"),
		// Compaction and a change of the model cost requests of their own.
		modeltest.Func(func(r *modeltest.Request) modeltest.Turn {
			_, tried := r.ToolResult("toolu_auto")
			switch text := r.LastUserText(); {
			case strings.Contains(text, "fail now"):
				return modeltest.Fail(400, "invalid_request_error", "no")
			case strings.Contains(text, "in auto mode") && !tried:
				return modeltest.ToolUseID("toolu_auto", "Bash", in{"command": "curl http://127.0.0.1:9/", "description": "Calls"})
			}
			return modeltest.Text("All of it.")
		}),
	}, []modeltest.Turn{modeltest.Text("reviewed")})
	e, _ := realWith(t, m, &Options{
		BuiltinTools: []string{"default"}, Agents: reviewer(), Settings: json.RawMessage(watchedHooks), ExtraArgs: []string{"--init"},
		EventHooks: seen.hooks(events, map[string]string{"WorktreeCreate": `{"systemMessage":"` + filepath.ToSlash(filepath.Join(dir, "tree")) + `"}`}),
	})
	child := elicitingServers(t)["cli"]
	c, err := agent.Open(t.Context(), e, &agent.Options{
		Model: "claude-haiku-4-5", // which has the task tools
		Dir:   dir, SettingSources: []agent.SettingSource{agent.SourceProject}, MCPServers: map[string]mcphost.ServerConfig{"cli": child},
		CanUseTool: func(context.Context, *agent.ToolRequest) (*permission.PromptResult, error) { return agent.Allow(), nil },
		OnElicitation: func(_ context.Context, _ string, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return elicitAnswer(p)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	say := func(text string) {
		t.Helper()
		if err := c.Send(t.Context(), text); err != nil {
			t.Fatal(err)
		}
		response(t, c)
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	say("go")
	control, _ := ControlOf(c)
	_, err = control.Request(t.Context(), "register_repo_root", map[string]any{"directory": filepath.Join(dir, "sub"), "reload_claude_md": true, "reload_plugins": true, "reload_skills": true})
	do(err)
	say("/pack well")
	say("/compact")
	say("fail now")
	say("/clear")
	do(c.SetModel(t.Context(), "opus")) // which has the mode
	do(c.SetPermissionMode(t.Context(), permission.ModeAuto))
	say("in auto mode")
	do(c.Close())

	never := slices.Sorted(maps.Keys(neverCalled))
	var missing []string
	for _, event := range events {
		inputs := seen.inputs[event]
		if len(inputs) == 0 {
			missing = append(missing, event)
			continue
		}
		var input struct {
			Event   string `json:"hook_event_name"`
			Session string `json:"session_id"`
		}
		if err := json.Unmarshal(inputs[0], &input); err != nil || input.Event != event || input.Session == "" {
			t.Errorf("%s: input %s, %v", event, inputs[0], err)
		}
	}
	slices.Sort(missing)
	if diff := cmp.Diff(never, missing); diff != "" {
		t.Errorf("events without a call (-known +found):\n%s", diff)
	}
	subjects := map[string]string{
		"SubagentStart": `"agent_type":"reviewer"`, "SubagentStop": `"last_assistant_message":"reviewed"`, "PermissionDenied": `"permission_mode":"auto"`,
		"TaskCreated": `"task_subject":"S"`, "TaskCompleted": `"task_id":"1"`, "ConfigChange": `"source":"project_settings"`, "InstructionsLoaded": `"memory_type":"Project"`,
		"CwdChanged": `"new_cwd":"` + filepath.ToSlash(filepath.Join(dir, "sub")) + `"`, "FileChanged": `"event":"change"`, "DirectoryAdded": `"source":"register_repo_root"`,
		"MessageDisplay": `"final":true`, "PreSkillShellCommand": `"command_name":"pack"`, "UserPromptExpansion": `"command_args":"well"`, "StopFailure": `"error":"`,
		"PreModelSwitch": `"requested_model":"opus"`, "PostModelSwitch": `"source":"sdk"`, "WorktreeCreate": `"name":"tree"`, "WorktreeRemove": `"worktree_path":"`,
		"SessionStart": `"source":"compact"`, "SessionEnd": `"reason":"clear"`, "Notification": `"notification_type":"elicitation_response"`, "PostToolUseFailure": `"duration_ms":`,
		"PreCompact": `"trigger":"manual"`, "PostCompact": `"compact_summary":"`, "PermissionRequest": `"tool_name":"mcp__cli__ask"`,
	}
	for event, want := range subjects {
		if inputs := seen.inputs[event]; len(inputs) > 0 && !contains(inputs[0], want) {
			t.Errorf("%s: no %s in %s", event, want, inputs[0])
		}
	}
}
