package modeltest_test

import (
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sdk/tenon/internal/peers"
	"github.com/tenon-sdk/tenon/modeltest"
)

// claude runs the Claude Code CLI on a model, in a network that has nothing else,
// and returns the text of its result. What it sends that the API would refuse
// fails the test.
func claude(t *testing.T, m *modeltest.Model, args ...string) string {
	t.Helper()
	network := peers.NewLoopback(t)
	server := m.ServeOn(network.Listen(t))
	args = append([]string{"-p", "--output-format", "json", "--permission-mode", "bypassPermissions"}, args...)
	p := peers.Start(t, network.Wrap(peers.ClaudeCode(t, server.URL, args...)))
	if err := p.Wait(t); err != nil {
		t.Errorf("claude: %v\n%s", err, p.Output())
	}
	var result struct{ Result string }
	if err := json.Unmarshal([]byte(p.Output()), &result); err != nil {
		t.Fatalf("claude: %v\n%s", err, p.Output())
	}
	return result.Result
}

// everything is the configuration of an MCP server with tools of many kinds.
func everything(t *testing.T) string {
	t.Helper()
	c := peers.Everything(t, "stdio")
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"everything": map[string]any{"command": c.Path, "args": c.Args},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return string(config)
}

func TestClaudeCodeWorksOnAScript(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	note := filepath.Join(dir, "note.txt")
	if err := os.WriteFile(note, []byte("seven on shelf B3"), 0o600); err != nil {
		t.Fatal(err)
	}
	picture := filepath.Join(dir, "picture.png")
	f, err := os.Create(picture)
	if err != nil {
		t.Fatal(err)
	}
	if err := png.Encode(f, image.NewGray(image.Rect(0, 0, 30, 20))); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	read := func(path string) modeltest.Part {
		return modeltest.ToolUse("Read", map[string]string{"file_path": path})
	}
	m := modeltest.New(t,
		modeltest.Overloaded().Header("retry-after-ms", "1"),
		modeltest.Say(modeltest.Thinking("I read three files."), modeltest.Text("Reading."), read(note), read(picture), read(note+".gone")),
		modeltest.Say(modeltest.Thinking("Now a tool that is deferred."),
			modeltest.ToolUse("ToolSearch", `{"query":"select:mcp__everything__echo,mcp__everything__get-tiny-image"}`)),
		modeltest.Say(modeltest.ToolUse("mcp__everything__echo", `{"message":"hello"}`), modeltest.ToolUse("mcp__everything__get-tiny-image", nil)),
		modeltest.Say(modeltest.RawToolUse("mcp__everything__echo", `{"mess`)).Stop(modeltest.StopMaxTokens),
		modeltest.Func(func(r *modeltest.Request) modeltest.Turn { return modeltest.Text("It is all there.") }),
	)
	got := claude(t, m, "--mcp-config", everything(t), "--strict-mcp-config", "Look around.")
	if got != "It is all there." {
		t.Errorf("result %q", got)
	}
	last := m.Last()
	var texts []string
	errors := 0
	for _, use := range last.ToolUses() {
		r, ok := last.ToolResult(use.ID)
		if !ok {
			t.Errorf("no result for %s %s", use.Name, use.Input)
		}
		texts = append(texts, r.PlainText())
		if r.IsError {
			errors++
		}
	}
	all := strings.Join(texts, "\n")
	if !strings.Contains(all, "seven on shelf B3") || !strings.Contains(all, "Echo: hello") || errors == 0 {
		t.Errorf("%d errors, results:\n%s", errors, all)
	}
	for _, name := range []string{"mcp__everything__echo", "mcp__everything__get-tiny-image"} {
		if tool, ok := last.Tool(name); !ok || !tool.DeferLoading {
			t.Errorf("%s is not among the deferred tools of the last request: %v", name, last.ToolNames())
		}
	}
}

func TestClaudeCodeRecoversFromABrokenStream(t *testing.T) {
	t.Parallel()
	m := modeltest.New(t,
		modeltest.RateLimited(time.Second),
		modeltest.Say(modeltest.Text("half an ans").After(1, modeltest.Cut())),
		modeltest.Func(func(*modeltest.Request) modeltest.Turn { return modeltest.Text("whole") }),
	)
	if got := claude(t, m, "ping"); got != "whole" {
		t.Errorf("result %q", got)
	}
}

func TestClaudeCodeWorksOnTheOfflineModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "n.json"), []byte(`{"n": 41}`), 0o600); err != nil {
		t.Fatal(err)
	}
	m := modeltest.Offline()
	prompt := fmt.Sprintf("@Read {\"file_path\": %q} @Read {\"file_path\": %q}\n@mcp__everything__echo {\"message\": \"It said {{1}}\"}\n@nobody {}",
		filepath.Join(dir, "n.json"), filepath.Join(dir, "gone.json"))
	got := claude(t, m, "--mcp-config", everything(t), "--strict-mcp-config", prompt)
	for _, want := range []string{"Made offline, by no model", "(3 of 4)", `{"n": 41}`, "\nERROR: ", "\n3. mcp__everything__echo ", "\nEcho: It said ", "@nobody: there is no such tool"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	if m.Last() != nil || len(m.Violations()) != 0 {
		t.Error("the offline model keeps requests")
	}
}
