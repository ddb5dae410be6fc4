package native

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
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

// honoured names, for each option of a run, the test that shows that this engine heeds it.
var honoured = map[string]string{
	"Model":                  "TestModelAliases",
	"FallbackModel":          "TestFallbackModel",
	"SystemPrompt":           "systemPrompt",
	"AppendSystemPrompt":     "systemPrompt",
	"MaxTurns":               "maxTurns",
	"TurnTimeout":            "TestTurnTimeout",
	"MaxQueuedInputs":        "tooManyInputs",
	"MaxTokens":              "TestThinkingAndEffort",
	"MaxBudgetUSD":           "maxBudget",
	"Thinking":               "TestThinkingAndEffort",
	"Effort":                 "TestThinkingAndEffort",
	"Tools":                  "toolsWithoutAServer",
	"MCPServers":             "toolRoundTrip",
	"TrustFile":              "TestTrustFile",
	"SettingSources":         "TestProjectServers",
	"Settings":               "TestNamedSettings",
	"StrictMCPConfig":        "TestProjectServers",
	"AdditionalDirectories":  "TestAdditionalDirectoriesAreRoots",
	"Host":                   "TestSharedHost",
	"AllowedTools":           "allowedByRule",
	"DisallowedTools":        "disallowed",
	"AskTools":               "askBeatsAllow",
	"PermissionMode":         "bypass",
	"CanUseTool":             "callbackAllows",
	"PermissionPromptTool":   "promptTool",
	"MaxToolConcurrency":     "TestGroupsOfCalls",
	"ToolSearch":             "TestToolSearchSwitch",
	"OnElicitation":          "TestOnElicitation",
	"OutputSchema":           "structuredOutput",
	"IncludePartialMessages": "partialMessages",
	"Env":                    "TestEnvIsThatOfTheRun",
	"Dir":                    "TestProjectServers",
	"SessionID":              "sessionIDIsTheCallers",
	"History":                "TestHistory",
	"HistoryUsage":           "TestHistoryUsage",
	"ReplayUserMessages":     "replaysInputs",
	"Logger":                 "TestLoggerAndStderr",
	"Stderr":                 "TestLoggerAndStderr",
	"ConfigProblems":         "TestConfigProblemsAreShown",

	"Hooks.PreToolUse":         "preToolUse",
	"Hooks.PostToolUse":        "postToolUseChangesTheOutput",
	"Hooks.PostToolUseFailure": "postToolUseFailure",
	"Hooks.PostToolBatch":      "TestBatchAndRequestHooks",
	"Hooks.PermissionRequest":  "TestBatchAndRequestHooks",
	"Hooks.UserPromptSubmit":   "userPromptSubmit",
	"Hooks.Stop":               "stopMakesTheModelGoOn",
	"Hooks.SessionStart":       "TestSessionHooks",
	"Hooks.SessionEnd":         "TestSessionHooks",
	"Hooks.Notification":       "TestNotification",
}

// refused are the options that this engine cannot honour, with a value of each.
var refused = map[string]agent.Options{
	"Resume":            {Resume: agent.Resume{Latest: true}},
	"Hooks.PreCompact":  {Hooks: &agent.Hooks{PreCompact: []agent.Hook[agent.PreCompact, agent.PreCompactOutput]{{}}}},
	"Hooks.PostCompact": {Hooks: &agent.Hooks{PostCompact: []agent.Hook[agent.PostCompact, agent.HookOutput]{{}}}},
}

// No option is ever ignored: one that is new here has a test, or is refused by its name.
func TestEveryOptionIsHonouredOrRefused(t *testing.T) {
	left := map[string]bool{}
	for name := range honoured {
		left[name] = true
	}
	tests := sources(t)
	check := func(name string) {
		o, isRefused := refused[name]
		test := honoured[name]
		switch {
		case isRefused:
			_, err := testEngine(modeltest.New(t)).Open(t.Context(), &o)
			if ue := (*agent.UnsupportedError)(nil); !errors.As(err, &ue) || len(ue.Fields) != 1 || ue.Fields[0] != name {
				t.Errorf("with %s, Open returns %v", name, err)
			}
		case test == "":
			t.Errorf("nothing shows that %s is honoured, nor is it refused", name)
		case !strings.Contains(tests, "\nfunc "+test+"("):
			t.Errorf("%s is to be shown by %s, which there is not", name, test)
		}
		delete(left, name)
	}
	for f := range reflect.TypeFor[agent.Options]().Fields() {
		if f.Name != "Hooks" {
			check(f.Name)
		}
	}
	for f := range reflect.TypeFor[agent.Hooks]().Fields() {
		check("Hooks." + f.Name)
	}
	for name := range left {
		t.Errorf("there is no option %s", name)
	}
}

// sources are the tests of this package and of the suite that it runs.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, pattern := range []string{"*_test.go", "../enginetest/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(data)
		}
	}
	return all.String()
}

// Auto mode needs a classifier that there is not: it is refused, wherever it is asked for, and a settings
// file that asks for it is told of.
//
// fault D8
func TestNoAutoMode(t *testing.T) {
	refused := func(where string, err error) {
		t.Helper()
		if ue := (*agent.UnsupportedError)(nil); !errors.As(err, &ue) || ue.Fields[0] != "PermissionMode" {
			t.Errorf("%s: %v", where, err)
		}
	}
	_, err := agent.Open(t.Context(), testEngine(modeltest.New(t)), &agent.Options{PermissionMode: permission.ModeAuto})
	refused("Open", err)
	o := withTools(t, echoArgs, &mcpserver.Tool{Name: "w"})
	o.AllowedTools, o.Settings = nil, `{"permissions":{"defaultMode":"auto"}}`
	o.CanUseTool = func(context.Context, *agent.ToolRequest) (*permission.PromptResult, error) {
		v := agent.Allow()
		v.UpdatedPermissions = []permission.Update{{Type: permission.SetMode, Mode: permission.ModeAuto, Destination: permission.DestinationSession}}
		return v, nil
	}
	c := open(t, modeltest.New(t, modeltest.ToolUse("mcp__s__w", `{}`), modeltest.Text("1"), modeltest.Text("2")), o)
	refused("SetPermissionMode", c.SetPermissionMode(t.Context(), permission.ModeAuto))
	_, msgs := say(t, c, "x")
	init := last[*agent.SystemInit](msgs)
	if init.PermissionMode != "default" || len(init.MCPServerErrors) != 1 || !strings.Contains(init.MCPServerErrors[0].Message, "classifier") {
		t.Errorf("init %+v", init)
	}
	if diff := cmp.Diff([]string{"permission_update"}, tags(msgs)); diff != "" {
		t.Error(diff)
	}
	if _, msgs := say(t, c, "y"); last[*agent.SystemInit](msgs).PermissionMode != "default" {
		t.Errorf("the mode became %s", last[*agent.SystemInit](msgs).PermissionMode)
	}
}

// The operator's log hears what a run survives; the lines of a server's stderr go to their own place.
func TestLoggerAndStderr(t *testing.T) {
	var log bytes.Buffer
	lines := make(chan string, 16)
	o := withTools(t, echoArgs, &mcpserver.Tool{Name: "w"})
	o.MCPServers["talker"] = mcphost.Stdio{Command: "sh", Args: []string{"-c", "echo I am here >&2; exit 3"}}
	o.AllowedTools = append(o.AllowedTools, "mcp__*")
	o.Logger = slog.New(slog.NewTextHandler(&lockedWriter{w: &log}, nil))
	o.Stderr = func(server, line string) { lines <- server + ": " + line }
	answered(t, modeltest.New(t, modeltest.Text("x")), o)
	if got := <-lines; got != "talker: I am here" {
		t.Errorf("stderr has %q", got)
	}
	if !strings.Contains(log.String(), "mcp__*") {
		t.Errorf("the log has %q", log.String())
	}
}

// What a server asks the user, the program answers.
func TestOnElicitation(t *testing.T) {
	o := withTools(t, func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
		res, err := mcpserver.RequestFrom(ctx).Elicit(ctx, &mcp.ElicitParams{Message: "Which shelf?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"shelf":{"type":"string"}}}`)})
		if err != nil {
			return nil, err
		}
		return mcpserver.Text(fmt.Sprint(res.Action, " ", res.Content["shelf"])), nil
	}, &mcpserver.Tool{Name: "w"})
	var asked string
	o.OnElicitation = func(_ context.Context, server string, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		asked = server + ": " + p.Message
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"shelf": "B7"}}, nil
	}
	_, msgs := answered(t, modeltest.New(t, modeltest.ToolUse("mcp__s__w", `{}`), modeltest.Text("x")), o)
	if got := results(msgs)[0]; got.IsError || got.Text() != "accept B7" || asked != "s: Which shelf?" {
		t.Errorf("asked %q, result %q", asked, got.Text())
	}
}

type lockedWriter struct {
	mu sync.Mutex
	w  *bytes.Buffer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// A server can be connected anew at any time.
func TestReconnect(t *testing.T) {
	c := open(t, modeltest.New(t, modeltest.ToolUse("mcp__s__w", `{"n":1}`), modeltest.Text("x")), withTools(t, echoArgs, &mcpserver.Tool{Name: "w"}))
	for range 2 {
		if err := c.ReconnectMCPServer(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
	}
	if _, msgs := say(t, c, "x"); results(msgs)[0].IsError {
		t.Errorf("got %+v", results(msgs)[0])
	}
}
