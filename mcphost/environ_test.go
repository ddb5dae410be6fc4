package mcphost

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
)

// Every variable that is read is either used or told of, with its name, its value and the remedy.
func TestEnvProblems(t *testing.T) {
	tests := []struct{ name, good, bad, remedy string }{
		{"MCP_TIMEOUT", "5000", "30s", "such as 30000"},
		{"MCP_TIMEOUT", " 5000 ", "0", "above 0"},
		{"MCP_TOOL_TIMEOUT", "1", "-1", "such as 600000"},
		{"MCP_TOOL_TIMEOUT", "1", "10m", "milliseconds"},
		{"CLAUDE_AGENT_TOOL_TIMEOUT", "0.5", "NaN", "seconds"},
		{"CLAUDE_AGENT_TOOL_TIMEOUT", "60", "60s", "seconds"},
		{"MCP_CONNECT_TIMEOUT_MS", "500", "5_000", "milliseconds"},
		{"CLAUDE_CODE_MCP_STARTUP_WAIT_MS", "0", "soon", "milliseconds"},
		{"CLAUDE_CODE_MCP_STARTUP_WAIT_MS", "2000", "99999999999999", "milliseconds"},
		{"MCP_CONNECTION_NONBLOCKING", "False", "no", "or 1"},
		{"MAX_MCP_OUTPUT_TOKENS", "100", "25k", "such as 25000"},
		{"ENABLE_TOOL_SEARCH", "auto:15", "auto:many", "auto:PERCENT"},
		{"ENABLE_TOOL_SEARCH", "TRUE", "yes", "true, false"},
		{"MCP_DISCOVERY_CACHE", "0", "true", "1 (on)"},
	}
	var checked []string
	for _, tt := range tests {
		checked = append(checked, tt.name)
		look := func(value string) []EnvProblem {
			return EnvProblems(func(name string) (string, bool) {
				if name == tt.name {
					return value, true
				}
				return "", false
			})
		}
		if p := slices.Concat(look(tt.good), look("")); len(p) > 0 {
			t.Errorf("%s=%s: %v", tt.name, tt.good, p)
		}
		p := look(tt.bad)
		if len(p) != 1 || p[0].Name != tt.name || p[0].Value != tt.bad {
			t.Fatalf("%s=%s: %v", tt.name, tt.bad, p)
		}
		if text := p[0].String(); !strings.Contains(text, tt.name+` is "`+tt.bad+`", want `) || !strings.Contains(text, tt.remedy) {
			t.Errorf("%s=%s: %s", tt.name, tt.bad, text)
		}
	}
	for _, r := range envRules {
		if !slices.Contains(checked, r.name) {
			t.Errorf("%s is not tested", r.name)
		}
	}
}

// A host logs them once, however many servers it has, and goes on with the defaults.
func TestHostLogsEnvProblems(t *testing.T) {
	var log syncBuffer
	h := newHost(t, map[string]ServerConfig{"a": InProcess(opensAfter(0)), "b": InProcess(opensAfter(0))}, func(o *Options) {
		o.Env = map[string]string{"MCP_TIMEOUT": "30s", "MCP_TOOL_TIMEOUT": "x"}
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	connected(t, h)
	if s := status(t, h, "a"); s.ConnectTimeout != DefaultConnectTimeout || s.CallTimeout <= 0 {
		t.Errorf("limits %v, %v", s.ConnectTimeout, s.CallTimeout)
	}
	for _, name := range []string{"MCP_TIMEOUT", "MCP_TOOL_TIMEOUT"} {
		if n := strings.Count(log.String(), "name="+name+" "); n != 1 {
			t.Errorf("%s stands %d times in\n%s", name, n, log.String())
		}
	}
}
