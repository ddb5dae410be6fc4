package claudecode

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/internal/peers"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/modeltest"
)

// A rule for a tool that is not there is reported with the nearest name, once, whoever connects its server.
// Rules for tools that are denied, and for servers that may come later, are in order.
//
// fault D10
func TestRealMisspeltRules(t *testing.T) {
	m := modeltest.New(t, modeltest.Text("one"), modeltest.Text("two"))
	everything := peers.Everything(t, "stdio")
	log := &logBuffer{}
	c, err := agent.Open(t.Context(), realCLI(t, m), &agent.Options{
		MCPServers: map[string]mcphost.ServerConfig{
			"mine":       mcphost.InProcess(echo(t)),
			"everything": mcphost.Stdio{Command: everything.Path, Args: everything.Args, Env: everything.Env},
		},
		AllowedTools:    []string{"mcp__everythin", "mcp__mine__echoo", "mcp__mine__echo", "mcp__later__x", "Read"},
		AskTools:        []string{"mcp__everything__ecko"},
		DisallowedTools: []string{"mcp__everything__echo", "mcp__mine__ecko"},
		Env:             map[string]string{"CLAUDE_CODE_MCP_STARTUP_WAIT_MS": "20000"},
		Logger:          slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var got []string
	for range 2 {
		if err := c.Send(t.Context(), "hi"); err != nil {
			t.Fatal(err)
		}
		for msg, err := range c.Response(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			got = appendRuleProblem(t, got, msg)
		}
	}
	if err := c.EndInput(); err != nil {
		t.Fatal(err)
	}
	for msg, err := range c.Messages(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = appendRuleProblem(t, got, msg)
	}
	want := []string{`"mcp__everythin"`, `"mcp__everything__ecko"`, `"mcp__mine__echoo"`, `"mcp__mine__ecko"`}
	if len(got) != len(want) {
		t.Errorf("reported %q, want %q", got, want)
	}
	for _, rule := range want {
		i := slices.IndexFunc(got, func(text string) bool { return strings.Contains(text, rule) })
		if i < 0 || !strings.Contains(got[i], "write ") {
			t.Errorf("no report about %s with what to write in %q", rule, got)
		}
		if !strings.Contains(log.String(), strings.Trim(rule, `"`)) {
			t.Errorf("the log does not name %s", rule)
		}
	}
}

func appendRuleProblem(t *testing.T, got []string, msg agent.Message) []string {
	t.Helper()
	s, ok := msg.(*agent.System)
	if !ok || s.Subtype != "informational" {
		return got
	}
	var m struct{ Content, Tag string }
	if err := s.Decode(&m); err != nil {
		t.Fatal(err)
	}
	if m.Tag == "permission_rule" {
		got = append(got, m.Content)
	}
	return got
}

// A logBuffer is a buffer for several goroutines.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
