package mcpconfig

import (
	"context"
	"fmt"
	"maps"
	"os"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tenon-sdk/tenon/internal/skip"
	"github.com/tenon-sdk/tenon/mcpauth"
	"github.com/tenon-sdk/tenon/mcphost"
)

// helpers are what this test binary can play when it is started as a headersHelper.
var helpers = map[string]func(){
	"key": func() { fmt.Printf(`{"K": "%s"}`, os.Getenv("ANTHROPIC_API_KEY")) },
	"ok": func() {
		fmt.Printf(`{"Authorization": "Bearer t", "X-Name": %q, "X-URL": %q}`, os.Getenv("CLAUDE_CODE_MCP_SERVER_NAME"), os.Getenv("CLAUDE_CODE_MCP_SERVER_URL"))
	},
	"fails":     func() { fmt.Print(`{"A": "secret"}`); os.Exit(3) },
	"garbage":   func() { fmt.Print("secret") },
	"null":      func() { fmt.Print("null") },
	"numbers":   func() { fmt.Print(`{"A": 1}`) },
	"linebreak": func() { fmt.Print(`{"A": "secret\nB: x"}`) },
	"flood": func() {
		for {
			if _, err := fmt.Print(strings.Repeat("x", 1<<16)); err != nil {
				return
			}
		}
	},
	"hangs": func() {
		fmt.Print(strings.Repeat(" ", 1<<10))
		select {}
	},
}

func TestMain(m *testing.M) {
	if h := helpers[os.Getenv("MCPCONFIG_TEST_HELPER")]; h != nil {
		h()
		return
	}
	cache, err := os.MkdirTemp("", "mcpconfig")
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"XDG_CACHE_HOME", "LocalAppData"} { // for the locks
		if err := os.Setenv(name, cache); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(cache)
		os.Exit(code)
	}))
}

// headers runs a helper as a host would.
func headers(ctx context.Context, t *testing.T, helper string) (map[string]string, error) {
	t.Helper()
	if runtime.GOOS == "windows" {
		skip.For(t, skip.Platform, "the command is quoted for a Unix shell")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	e := Entry{Name: "web", Kind: HTTP, URL: "http://h/mcp", HeadersHelper: fmt.Sprintf("MCPCONFIG_TEST_HELPER=%s exec '%s'", helper, exe)}
	return e.ServerConfig().(mcphost.HTTP).HeadersFunc(ctx)
}

func TestHeadersHelper(t *testing.T) {
	got, err := headers(t.Context(), t, "ok")
	want := map[string]string{"Authorization": "Bearer t", "X-Name": "web", "X-URL": "http://h/mcp"}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if (Entry{Kind: HTTP}).ServerConfig().(mcphost.HTTP).HeadersFunc != nil {
		t.Error("an entry without helper has one")
	}
}

// A helper does not inherit the credentials of the model.
// fault A5
func TestHeadersHelperHasNoModelCredentials(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "sk-1")
	if got, err := headers(t.Context(), t, "key"); err != nil || got["K"] != "" {
		t.Errorf("the helper has the key: %q, %v", got, err)
	}
}

func TestHeadersHelperFails(t *testing.T) {
	for helper, want := range map[string]string{
		"fails": "exited with code 3", "garbage": "printed no JSON object of strings", "null": "printed no JSON object of strings",
		"numbers": "printed no JSON object of strings", "linebreak": "printed a header that cannot be sent", "flood": "printed more than",
	} {
		t.Run(helper, func(t *testing.T) {
			got, err := headers(t.Context(), t, helper)
			if err == nil || got != nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `"web"`) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, %v; want %q", got, err, want)
			}
		})
	}
}

func TestHeadersHelperEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := headers(ctx, t, "hangs"); err == nil {
		t.Error("got no error from a cancelled context")
	}
}

// A helper that stays the same leaves its server connected; another one connects it anew. // Pain 27
func TestChangedHeadersHelper(t *testing.T) {
	tokens := mcpauth.NewMemoryStore()
	read := func(helper string) map[string]mcphost.ServerConfig {
		cfg, problems := Parse(fmt.Appendf(nil, `{"mcpServers": {"web": {"type": "http", "url": "http://127.0.0.1:1/mcp", "headersHelper": %q}}}`, helper), nil)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		cfg.Tokens = tokens
		configs, _ := cfg.ServerConfigs()
		return configs
	}
	h, err := mcphost.New(&mcphost.Options{Servers: read("exit 1")})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	h.Start(t.Context())
	for _, tt := range []struct {
		helper  string
		changed int
	}{{"exit 1", 0}, {"exit 2", 1}, {"exit 2", 0}} {
		res, err := h.SetServers(t.Context(), read(tt.helper))
		if err != nil || len(res.Changed) != tt.changed {
			t.Errorf("%q: %+v, %v, want %d changed", tt.helper, res, err, tt.changed)
		}
	}
}
