package mcphost

import (
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// What a server repeats of a secret in an error of its tools/list, its instructions, the names and faults of its tools
// shows nowhere.
// fault C6
func TestSecretsInTheListOfTools(t *testing.T) {
	const secret = "tok_live_8f3A9c1D2e77Qx"
	var log syncBuffer
	failing := &rawHTTP{before: func(w http.ResponseWriter, _ *http.Request, m rawMsg) bool {
		switch m.Method {
		case "tools/list":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"no list for %s","data":{"auth":"%s"}}}`,
				m.ID, secret, base64.StdEncoding.EncodeToString([]byte("Bearer "+secret)))
			return true
		}
		return false
	}}
	odd := &rawHTTP{tools: `[{"name":"` + secret + strings.Repeat("x", maxToolName) + `"},{"name":"ok ` + secret + `","inputSchema":7}]`}
	headers := map[string]string{"Authorization": "Bearer " + secret}
	h := newHost(t, map[string]ServerConfig{
		"failing": HTTP{URL: serve(t, failing).URL, Headers: headers}, "odd": HTTP{URL: serve(t, odd).URL, Headers: headers},
	}, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	ready(t, h)
	s := status(t, h, "failing")
	if want := `tools/list: no list for ***; data: {"auth":"***`; !strings.HasPrefix(s.Error, want) {
		t.Errorf("got %s", s.Error)
	}
	if s := status(t, h, "odd"); len(s.Rejected) != 2 || !strings.HasPrefix(s.Rejected[1].Name, "ok ***") {
		t.Errorf("rejected: %+v", s.Rejected)
	}
	for _, s := range h.Status() {
		if text := fmt.Sprintf("%+v %v", s, s.Err); strings.Contains(text, "8f3A9c") || strings.Contains(text, "OGYzQTlj") {
			t.Errorf("shown: %s", text)
		}
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if strings.Contains(log.String(), "8f3A9c") {
		t.Errorf("logged: %s", log.String())
	}
}

// The beginning of an error's data is in its text, bounded and masked; who asks for the code still finds it.
// fault B8
func TestErrorData(t *testing.T) {
	m := newMasker(Stdio{Env: map[string]string{"API_KEY": "letmein99"}, CleanEnv: true})
	for data, want := range map[string]string{
		``:                                    "calling: Internal error",
		`null`:                                "calling: Internal error",
		`"the table is locked"`:               "calling: Internal error; data: the table is locked",
		`{"why":"letmein99"}`:                 `calling: Internal error; data: {"why":"***"}`,
		`"` + strings.Repeat("x", 9000) + `"`: "calling: Internal error; data: " + strings.Repeat("x", errorDataHead) + "…",
	} {
		err := maskError(m, fmt.Errorf("calling: %w", &jsonrpc.Error{Code: -32603, Message: "Internal error", Data: []byte(data)}))
		var rpc *jsonrpc.Error
		if err.Error() != want || !errors.As(err, &rpc) || rpc.Code != -32603 {
			t.Errorf("%.30s: %v", data, err)
		}
		if again := maskError(m, err); again.Error() != want {
			t.Errorf("wrapped twice: %v", again)
		}
	}
	h := newHost(t, map[string]ServerConfig{"s": HTTP{URL: serve(t, &rawHTTP{call: func(w http.ResponseWriter, _ *http.Request, m rawMsg) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"Internal error","data":{"detail":"the table is locked"}}}`, m.ID)
	}}).URL}})
	connected(t, h)
	_, err := h.Call(soon(t), "mcp__s__echo", nil, nil)
	const want = `MCP server "s", tool "echo": Internal error; data: {"detail":"the table is locked"}`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// The arguments of a program, and what it inherits.
func TestSecretsOfPrograms(t *testing.T) {
	t.Setenv("TENON_TEST_API_KEY", "inherited-one")
	t.Setenv("TENON_TEST_MODE", "inherited-mode")
	args := []string{"--token=letmein", "--password", "hunter2", "--max-tokens", "25000", "--mode", "production", "MY_KEY=sesame1", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "./data"}
	said := strings.Join(args, " ") + " inherited-one inherited-mode"
	m := newMasker(Stdio{Command: "x", Args: args})
	want := "--token=*** --password *** --max-tokens 25000 --mode production MY_KEY=*** *** ./data *** inherited-mode"
	if got := m.Hide(said); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	clean := newMasker(Stdio{Command: "x", CleanEnv: true})
	if got := clean.Hide(said); !slices.Equal(strings.Fields(got), strings.Fields(said)) {
		t.Errorf("of a server with an environment of its own: %s", got)
	}
}

// A program that shows configurations masks them as the host does.
func TestMaskSecrets(t *testing.T) {
	tests := []struct {
		config     ServerConfig
		text, want string
	}{
		{Stdio{Args: []string{"--token=letmein", "--mode", "production"}}, `["--token=letmein","--mode","production"]`, `["--token=***","--mode","production"]`},
		{Stdio{Env: map[string]string{"API_KEY": "letmein"}}, "the key letmein", "the key ***"},
		{HTTP{URL: "https://jane:letmein@example.com/mcp"}, "https://jane:letmein@example.com/mcp", "https://jane:***@example.com/mcp"},
		{SSE{Headers: map[string]string{"Authorization": "Bearer letmein"}}, "Bearer letmein", "***"},
	}
	for _, tt := range tests {
		if got := MaskSecrets(tt.config, tt.text); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}
