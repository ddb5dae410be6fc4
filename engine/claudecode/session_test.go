package claudecode

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/internal/skip"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/permission"
)

func init() { children["fake"] = fakeMain }

// fake returns an engine on a scripted CLI and options that choose its mode.
func fake(mode string) (*Engine, *agent.Options) {
	e := New(&Options{Path: os.Args[0], ExtraArgs: []string{"-test.run=none"}})
	e.callWait = 0 // it shows no calls
	return e,
		&agent.Options{Env: map[string]string{"CLAUDECODE_TEST_CHILD": "fake", "CLAUDECODE_TEST_MODE": mode}}
}

func echo(t *testing.T) *mcpserver.Server {
	t.Helper()
	s := mcpserver.New("echo", nil)
	type in struct {
		Text string `json:"text"`
	}
	if err := mcpserver.AddTool(s, &mcpserver.Tool{Name: "echo"}, func(_ context.Context, a in) (string, error) { return a.Text + " yourself", nil }); err != nil {
		t.Fatal(err)
	}
	return s
}

func ask(t *testing.T, e agent.Engine, o *agent.Options) (msgs []agent.Message, err error) {
	t.Helper()
	for m, merr := range agent.Query(limited(t, "the run's end"), e, "hi", o) {
		if merr != nil {
			return msgs, merr
		}
		msgs = append(msgs, m)
	}
	return msgs, nil
}

// A server in this process is announced as kind sdk, with no command and no address, and what the
// CLI says to it goes through the bridge and back. // B01 B02 B03 B04
func TestInProcessServerOverTheControlProtocol(t *testing.T) {
	e, o := fake("polite")
	o.MCPServers = map[string]mcphost.ServerConfig{"mine": mcphost.InProcess(echo(t))}
	msgs, err := ask(t, e, o)
	if err != nil {
		t.Fatal(err)
	}
	r, ok := msgs[len(msgs)-1].(*agent.Result)
	if !ok {
		t.Fatalf("the last message is %T", msgs[len(msgs)-1])
	}
	if !strings.Contains(r.Result, `"sdkMcpServers":["mine"]`) || strings.Contains(r.Result, `"mcpServers":`) {
		t.Errorf("announced as %s", r.Result)
	}
	if !strings.Contains(r.Result, "hello yourself") {
		t.Errorf("the tool's answer is missing: %s", r.Result)
	}
	for _, m := range msgs {
		if s, ok := m.(*agent.System); ok && s.Subtype == "session_state_changed" {
			t.Error("a state that only we asked for reached the program")
		}
	}
}

// External servers, and their secrets, go over stdin and not into the arguments. // F38
func TestSecretsAreNotInTheArguments(t *testing.T) {
	o := &agent.Options{
		SystemPrompt: strings.Repeat("long ", 12_000),
		MCPServers: map[string]mcphost.ServerConfig{
			"web": mcphost.HTTP{URL: "https://u:s3cret@h.example/mcp", Headers: map[string]string{"Authorization": "Bearer t0ken"}},
			"cmd": mcphost.Stdio{Command: "x", Env: map[string]string{"KEY": "k3y"}},
		},
	}
	for range 30_000 {
		o.AllowedTools = append(o.AllowedTools, "mcp__web__a_tool")
		o.DisallowedTools = append(o.DisallowedTools, "mcp__web__b_tool")
		o.AskTools = append(o.AskTools, "mcp__web__c_tool")
		o.AdditionalDirectories = append(o.AdditionalDirectories, "/a/folder")
	}
	o.OutputSchema = json.RawMessage(`{"type":"object","description":"` + strings.Repeat("x", 200_000) + `"}`)
	line := strings.Join(args(&Options{}, o, false), " ")
	if len(line) > 8000 {
		t.Errorf("%d characters of arguments", len(line))
	}
	for _, secret := range []string{"s3cret", "t0ken", "k3y"} {
		if strings.Contains(line, secret) {
			t.Errorf("%q is in the arguments", secret)
		}
	}
}

// Nothing of the account gets into a run that does not ask for it, and nothing of the machine into
// one that wants none.
func TestSourcesOfConfiguration(t *testing.T) {
	for _, tt := range []struct {
		name   string
		o      agent.Options
		source string
		strict bool
	}{
		{"default", agent.Options{}, "--setting-sources=", false},
		{"none", agent.Options{SettingSources: []agent.SettingSource{}}, "--setting-sources=", true},
		{"settings without servers", agent.Options{StrictMCPConfig: true}, "--setting-sources=", true},
		{"all", agent.Options{SettingSources: []agent.SettingSource{agent.SourceUser, agent.SourceProject, agent.SourceLocal}}, "--setting-sources=user,project,local", false},
	} {
		line := args(&Options{}, &tt.o, false)
		if !slices.Contains(line, tt.source) || slices.Contains(line, "--strict-mcp-config") != tt.strict {
			t.Errorf("%s: got %q, want %q and strict %v", tt.name, line, tt.source, tt.strict)
		}
	}
}

func TestArgs(t *testing.T) {
	tests := []struct {
		name string
		e    Options
		o    agent.Options
		want []string
	}{
		{"model", Options{}, agent.Options{Model: "m", FallbackModel: "f", Effort: "low"}, []string{"--model=m", "--fallback-model=f", "--effort=low"}},
		{"limits", Options{}, agent.Options{MaxTurns: 3, MaxBudgetUSD: 0.25}, []string{"--max-turns=3", "--max-budget-usd=0.25"}},
		{"rules", Options{}, agent.Options{AllowedTools: []string{"a", "b"}, DisallowedTools: []string{"c"}, AskTools: []string{"d"}}, []string{"--allowedTools=a,b", "--initialize-fields=settings,disallowedTools"}},
		{"bypass", Options{}, agent.Options{PermissionMode: permission.ModeBypassPermissions}, []string{"--permission-mode=bypassPermissions", "--allow-dangerously-skip-permissions"}},
		{"callback", Options{}, agent.Options{CanUseTool: func(context.Context, *agent.ToolRequest) (*permission.PromptResult, error) { return nil, nil }}, []string{"--permission-prompt-tool=stdio"}},
		{"prompt tool", Options{}, agent.Options{PermissionPromptTool: "mcp__a__b"}, []string{"--permission-prompt-tool=mcp__a__b"}},
		{"thinking budget", Options{}, agent.Options{Thinking: &agent.Thinking{Type: "enabled", BudgetTokens: 2048}}, []string{"--max-thinking-tokens=2048"}},
		{"thinking", Options{}, agent.Options{Thinking: &agent.Thinking{Type: "adaptive", Display: "omitted"}}, []string{"--thinking=adaptive", "--thinking-display=omitted"}},
		{"output", Options{}, agent.Options{OutputSchema: json.RawMessage(`{"type":"object"}`), IncludePartialMessages: true}, []string{"--include-partial-messages"}},
		{"own tools", Options{BuiltinTools: []string{"Read", "Bash"}, ExtraArgs: []string{"--debug"}}, agent.Options{SettingSources: []agent.SettingSource{"user", "project"}}, []string{"--tools=Read,Bash", "--setting-sources=user,project", "--debug"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := args(&tt.e, &tt.o, tt.o.IncludePartialMessages)
			for _, want := range tt.want {
				found := false
				for _, a := range got {
					found = found || a == want
				}
				if !found {
					t.Errorf("no %q in %q", want, got)
				}
			}
		})
	}
}

func TestDyingCLI(t *testing.T) {
	for mode, want := range map[string]string{
		"dies-at-start":      "bad config",
		"dies-at-initialize": "gone at initialize",
		"dies-in-turn":       "out of memory",
	} {
		t.Run(mode, func(t *testing.T) {
			e, o := fake(mode)
			_, err := ask(t, e, o)
			var pe *ProcessError
			if !errors.As(err, &pe) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want a ProcessError with %q", err, want)
			}
		})
	}
}

// A CLI that answers nothing and ignores the end of its input costs no more than its limits.
func TestDeafCLI(t *testing.T) {
	e, o := fake("deaf")
	ctx, cancel := context.WithCancelCause(t.Context())
	gaveUp := errors.New("enough")
	go func() {
		// Open has started the child by the time that it waits for the answer.
		cancel(gaveUp)
	}()
	_, err := agent.Open(ctx, e, o)
	if !errors.Is(err, gaveUp) && !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// Lines that make no sense, kinds that nobody knows and answers to nothing do not end a run. // F30
func TestNoiseAndUnknownMessages(t *testing.T) {
	e, o := fake("noise")
	msgs, err := ask(t, e, o)
	if err != nil {
		t.Fatal(err)
	}
	var unknown, system bool
	for _, m := range msgs {
		switch m := m.(type) {
		case *agent.Unknown:
			unknown = unknown || m.Type == "rate_limit_event" && strings.Contains(string(m.Raw), `"limit":1`)
		case *agent.System:
			system = system || m.Subtype == "brand_new"
		}
	}
	if !unknown || !system {
		t.Errorf("unknown message passed on: %t, unknown system message: %t", unknown, system)
	}
}

func TestRefusedControlRequest(t *testing.T) {
	e, o := fake("polite")
	c, err := agent.Open(t.Context(), e, o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	err = c.SetPermissionMode(t.Context(), permission.ModePlan)
	var ce *ControlError
	if !errors.As(err, &ce) || ce.Code != "invalid_mode" {
		t.Errorf("got %v", err)
	}
}

func TestPendingRequestsEndWithTheCLI(t *testing.T) {
	e, o := fake("dies-at-mcp_status")
	c, err := agent.Open(t.Context(), e, o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.MCPStatus(t.Context())
	var pe *ProcessError
	if !errors.As(err, &pe) || !strings.Contains(pe.Stderr, "gone at mcp_status") {
		t.Errorf("got %v", err)
	}
}

func TestNotFoundSaysWhereItLooked(t *testing.T) {
	empty := t.TempDir()
	t.Chdir(empty)
	_, err := find("", "", []string{"PATH=" + empty, "HOME=" + empty})
	var nf *NotFoundError
	if err == nil {
		skip.For(t, skip.OwnCLI, "this machine has a CLI at one of the system's places, which no environment hides")
	}
	if !errors.As(err, &nf) || !strings.Contains(err.Error(), empty) || !strings.Contains(err.Error(), "Options.Path") {
		t.Errorf("got %v", err)
	}
	if _, err := find("./nothing-here", "", nil); !errors.As(err, &nf) || nf.Path == "" {
		t.Errorf("a path that is wrong: %v", err)
	}
}

// A program that runs inside of a CLI starts another one all the same.
func TestNestingMarkersAreRemoved(t *testing.T) {
	t.Setenv("CLAUDECODE", "1")
	t.Setenv("KEPT", "yes")
	env := strings.Join(environ(map[string]string{"ADDED": "x"}), "\n")
	if strings.Contains(env, "CLAUDECODE=") || !strings.Contains(env, "KEPT=yes") || !strings.Contains(env, "ADDED=x") {
		t.Errorf("environment:\n%s", env)
	}
}

// A variable that the CLI is too old for is not ignored in silence, whether it is the run's or the process's. // D30
func TestOldCLIIsWarnedAboutOnce(t *testing.T) {
	const name = "CLAUDE_CODE_MCP_STARTUP_WAIT_MS"
	for whose, set := range map[string]func(o *agent.Options){
		"the run's":     func(o *agent.Options) { o.Env[name] = "0" },
		"the process's": func(*agent.Options) { t.Setenv(name, "0") },
	} {
		e, o := fake("old")
		var log strings.Builder
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		set(o)
		if _, err := ask(t, e, o); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(log.String(), name+" has no effect"); n != 1 || !strings.Contains(log.String(), "2.1.274") {
			t.Errorf("%s: %d warnings:\n%s", whose, n, log.String())
		}
	}
}

func TestOlderThan(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{{"2.1.273", "2.1.274", true}, {"2.1.274", "2.1.274", false}, {"2.2.0", "2.1.274", false}, {"1.9.9 (beta)", "2.1.274", true}, {"odd", "2.1.274", false}} {
		if got := olderThan(tt.a, tt.b); got != tt.want {
			t.Errorf("olderThan(%q, %q) = %t", tt.a, tt.b, got)
		}
	}
}

// A CLI that lives on without reading holds up nobody who has something to tell it.
func TestRequestsEndWhenTheCLITakesNoInput(t *testing.T) {
	e, o := fake("closes-stdin")
	e.grace = 50 * time.Millisecond
	c, err := agent.Open(t.Context(), e, o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Send(t.Context(), "hi"); err != nil {
		t.Fatal(err)
	}
	for _, err := range c.Messages(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		break // it has closed its input
	}
	if err := c.Interrupt(t.Context()); err == nil || !strings.Contains(err.Error(), "takes no more input") {
		t.Errorf("an interrupt: %v", err)
	}
	if err := c.Send(t.Context(), "more"); err == nil || !strings.Contains(err.Error(), "takes no more input") {
		t.Errorf("more input: %v", err)
	}
}
