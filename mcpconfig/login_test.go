package mcpconfig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenon-sdk/tenon/mcpauth"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// A secured is an MCP server that wants a login, with its authorization server,
// which registers no clients: only the configured client id gets in.
type secured struct {
	url string

	mu       sync.Mutex
	valid    string // the access token that is good now
	refresh  string // the refresh token that is good now
	n        int    // tokens issued
	renewals int
}

func newSecured(t *testing.T) *secured {
	t.Helper()
	s := &secured{}
	calc := mcpserver.New("calc", nil)
	mcpserver.MustAddTool(calc, &mcpserver.Tool{Name: "double", ReadOnly: true}, func(_ context.Context, in struct {
		N int `json:"n"`
	},
	) (string, error) {
		return fmt.Sprint(2 * in.N), nil
	})
	inner := mcpserver.NewHTTPHandler(calc, nil)
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		ok := s.valid != "" && r.Header.Get("Authorization") == "Bearer "+s.valid
		s.mu.Unlock()
		if !ok {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata="%s/metadata"`, s.url))
			http.Error(w, "a login is needed", http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	})
	mux.HandleFunc("/metadata", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(t, w, map[string]any{"resource": s.url + "/mcp", "authorization_servers": []string{s.url}})
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(t, w, map[string]any{
			"issuer": s.url, "authorization_endpoint": s.url + "/authorize", "token_endpoint": s.url + "/token",
			"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
		})
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) { s.token(t, w, r) })
	web := httptest.NewServer(mux)
	s.url = web.URL
	t.Cleanup(func() {
		if err := inner.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		web.CloseClientConnections()
		web.Close()
	})
	return s
}

// token issues tokens, each time with a refresh token that is good once.
func (s *secured) token(t *testing.T, w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	refused := r.FormValue("client_id") != "my-client"
	switch r.FormValue("grant_type") {
	case "authorization_code":
		refused = refused || r.FormValue("code") != "the-code"
	case "refresh_token":
		s.renewals++
		refused = refused || s.refresh == "" || r.FormValue("refresh_token") != s.refresh
	}
	if refused {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":"invalid_grant"}`))
		return
	}
	s.n++
	s.valid, s.refresh = fmt.Sprintf("access-%d", s.n), fmt.Sprintf("refresh-%d", s.n)
	writeJSON(t, w, map[string]any{"access_token": s.valid, "token_type": "Bearer", "expires_in": 3600, "refresh_token": s.refresh})
}

// expire makes the access token a thing of the past, and the refresh token too if renewable is false.
func (s *secured) expire(renewable bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.valid = ""
	if !renewable {
		s.refresh = ""
	}
}

func (s *secured) counts() (issued, renewals int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n, s.renewals
}

func writeJSON(t *testing.T, w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		t.Error(err)
	}
}

// Pain 17, 19: a configuration with oauth runs on the login that was made for it in a shell: the token is used and
// renewed, over every reading of the configuration, and without one the server is in needs-auth with the reason.
// D63 D64
func TestLoginOfAConfiguration(t *testing.T) {
	s := newSecured(t)
	lookup := env("XDG_CONFIG_HOME", t.TempDir())
	read := func() *Config {
		t.Helper()
		cfg, problems := Parse(fmt.Appendf(nil, `{"mcpServers": {"calc": {"type": "http", "url": "%s/mcp", "oauth": {"clientId": "my-client"}}}}`, s.url),
			&ParseOptions{LookupEnv: lookup})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		return cfg
	}
	servers := func() map[string]mcphost.ServerConfig {
		t.Helper()
		configs, problems := read().ServerConfigs()
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		return configs
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	h := startHost(ctx, t, servers())
	wantStatus(t, h, mcphost.StatusNeedsAuth, "no stored login")
	var need *mcpauth.NeedsAuthError
	if _, err := h.Call(ctx, "mcp__calc__double", nil, nil); !errors.As(err, &need) || need.Reason != mcpauth.ReasonNoCredentials {
		t.Errorf("a call without a login: %v", err)
	}

	// The login, as tenon mcp login makes it.
	store, err := mcpauth.UserStore(lookup)
	if err != nil {
		t.Fatal(err)
	}
	auth, err := read().Servers["calc"].Authenticator(&mcpauth.Options{
		Store: store, RedirectURL: "http://localhost:1/callback",
		Authorize: func(_ context.Context, r *mcpauth.AuthorizationRequest) (*mcpauth.AuthorizationResponse, error) {
			return &mcpauth.AuthorizationResponse{Code: "the-code", State: r.State}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := auth.Login(ctx); err != nil {
		t.Fatal(err)
	}

	if err := h.Reconnect(ctx, "calc"); err != nil {
		t.Fatalf("after the login: %v", err)
	}
	call := func(h *mcphost.Host) {
		t.Helper()
		res, err := h.Call(ctx, "mcp__calc__double", []byte(`{"n":21}`), nil)
		if err != nil || res.Text() != "42" {
			t.Errorf("got %v, %v", res, err)
		}
	}
	call(h)
	s.expire(true)
	call(h) // refused once, renewed, made again: nobody notices
	wantStatus(t, h, mcphost.StatusConnected, "")
	if res, err := h.SetServers(ctx, servers()); err != nil || len(res.Changed)+len(res.Added)+len(res.Removed) > 0 {
		t.Errorf("the same configuration, read again: %+v, %v", res, err)
	}

	second := startHost(ctx, t, servers())
	call(second)
	if issued, renewals := s.counts(); issued != 2 || renewals != 1 {
		t.Errorf("%d tokens issued, %d renewals; want 2 and 1: the second run uses the renewed one", issued, renewals)
	}

	s.expire(false)
	if _, err := second.Call(ctx, "mcp__calc__double", []byte(`{"n":1}`), nil); !errors.As(err, &need) || need.Reason != mcpauth.ReasonRefreshRefused {
		t.Errorf("with a login that cannot be renewed: %v", err)
	}
	for range second.Watch(ctx) {
		if st, _ := second.ServerStatus("calc"); st.Status == mcphost.StatusNeedsAuth {
			break
		}
	}
	wantStatus(t, second, mcphost.StatusNeedsAuth, "refused to renew")
}

// A run that is to use nobody's login gets none, and an Authorization header needs none.
func TestLoginIsLeftAlone(t *testing.T) {
	lookup := env("XDG_CONFIG_HOME", t.TempDir())
	cfg, _ := Parse([]byte(`{"mcpServers": {
		"own": {"type": "http", "url": "http://localhost:1/mcp", "headers": {"authorization": "Bearer x"}, "oauth": {"clientId": "x"}},
		"sse": {"type": "sse", "url": "http://localhost:1/sse"}, "files": {"command": "x"}}}`), &ParseOptions{LookupEnv: lookup})
	cfg.Tokens = mcpauth.NewMemoryStore()
	configs, problems := cfg.ServerConfigs()
	if configs["own"].(mcphost.HTTP).Auth != nil {
		t.Error("an entry with an Authorization header got a login")
	}
	if len(problems) != 1 || problems[0].Path != "mcpServers.own.oauth" || !strings.Contains(problems[0].String(), "Authorization header, which is used instead") {
		t.Errorf("problems %v, want one about oauth beside a header", problems)
	}
	auth := configs["sse"].(mcphost.SSE).Auth
	if _, err := auth.Credentials(t.Context()); !errors.Is(err, mcpauth.ErrNotFound) {
		t.Errorf("a store of its own has %v", err)
	}
}

func startHost(ctx context.Context, t *testing.T, servers map[string]mcphost.ServerConfig) *mcphost.Host {
	t.Helper()
	h, err := mcphost.New(&mcphost.Options{Servers: servers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	h.Start(ctx)
	if err := h.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	return h
}

func wantStatus(t *testing.T, h *mcphost.Host, want mcphost.Status, reason string) {
	t.Helper()
	s, _ := h.ServerStatus("calc")
	if s.Status != want || !strings.Contains(s.Error, reason) {
		t.Errorf("the server is %s (%s), want %s (%s)", s.Status, s.Error, want, reason)
	}
}

// A server without TLS that is not on this machine is used without a login; one with oauth says why that does nothing.
// fault C4
func TestNoLoginWithoutTLS(t *testing.T) {
	cfg, _ := Parse([]byte(`{"mcpServers": {
		"lan": {"type": "http", "url": "http://192.0.2.1/mcp"},
		"own": {"type": "http", "url": "http://localhost:1/mcp"},
		"oauth": {"type": "http", "url": "http://192.0.2.1/mcp", "oauth": {"clientId": "x"}}}}`), &ParseOptions{File: "f"})
	cfg.Tokens = mcpauth.NewMemoryStore()
	configs, problems := cfg.ServerConfigs()
	for name, login := range map[string]bool{"lan": false, "own": true, "oauth": false} {
		if c, ok := configs[name].(mcphost.HTTP); !ok || (c.Auth != nil) != login {
			t.Errorf("%s: got %+v, want a login: %v", name, configs[name], login)
		}
	}
	const want = "does nothing: mcpauth: no token is sent there: http://192.0.2.1/mcp is neither https nor on this machine"
	if len(problems) != 1 || problems[0].Server != "oauth" || problems[0].Message != want {
		t.Errorf("got %v, want one problem: %s", problems, want)
	}
}
