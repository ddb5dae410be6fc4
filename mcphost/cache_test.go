package mcphost

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tenon-sdk/tenon/mcpauth"
)

// D14: without a directory in the options the variable decides whether there is a cache, that of the options first.
func TestDiscoveryCacheByVariable(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // on Linux
	t.Setenv("HOME", t.TempDir())
	cfg := HTTP{URL: serve(t, &rawHTTP{}).URL}
	for _, tt := range []struct {
		process, own string
		set          bool // whether own is
		cached       bool
	}{
		{"1", "", false, false}, // there is nothing yet
		{"1", "", false, true},
		{"1", "0", true, false},
		{"", "", false, false},
		{"0", "1", true, true},
		{"true", "", false, false},
	} {
		t.Setenv("MCP_DISCOVERY_CACHE", tt.process)
		h := newHost(t, map[string]ServerConfig{"r": cfg}, func(o *Options) {
			if tt.set {
				o.Env = map[string]string{"MCP_DISCOVERY_CACHE": tt.own}
			}
		})
		ready(t, h)
		if s := status(t, h, "r"); s.Cached != tt.cached || (s.Status == StatusConnected) == tt.cached {
			t.Errorf("%+v: cached %v, %s", tt, s.Cached, s.Status)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}

// D12: what the first call sets going has the limit for connecting, all attempts together, whatever time the call has.
func TestFirstCallConnectsWithinTheLimit(t *testing.T) {
	var silent atomic.Bool
	raw := &rawHTTP{before: func(_ http.ResponseWriter, r *http.Request, _ rawMsg) bool {
		if silent.Load() {
			<-r.Context().Done()
		}
		return silent.Load()
	}}
	dir := t.TempDir()
	servers := map[string]ServerConfig{"r": HTTP{URL: serve(t, raw).URL}}
	h := newHost(t, servers, func(o *Options) { o.CacheDir = dir })
	connected(t, h)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	silent.Store(true)
	h = newHost(t, servers, func(o *Options) { o.CacheDir, o.Env = dir, map[string]string{"MCP_TIMEOUT": "200"} })
	ready(t, h)
	before := raw.count("POST initialize")
	var ce *ConnectError
	if _, err := h.Call(t.Context(), "mcp__r__echo", nil, nil); !errors.As(err, &ce) || !errors.Is(err, ErrTimeout) {
		t.Errorf("a call that cannot connect: %v; %s", err, dump(h))
	}
	if n := raw.count("POST initialize") - before; n > 1 || status(t, h, "r").Status != StatusFailed {
		t.Errorf("%d handshakes; %s", n, dump(h))
	}
}

// D12 D47: a host that has just been started has the tools from the cache, and the first turn does not wait for their
// server nor connect it.
func TestCachedToolsAreThereAtOnce(t *testing.T) {
	raw := &rawHTTP{}
	dir := t.TempDir()
	servers := map[string]ServerConfig{"r": HTTP{URL: serve(t, raw).URL, Common: Common{AlwaysLoad: true}}}
	withCache := func(o *Options) { o.CacheDir = dir }
	h := newHost(t, servers, withCache)
	connected(t, h)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	before := raw.count("POST initialize")
	for range 20 { // each time before the server's goroutine has run, most likely
		h := newHost(t, servers, withCache)
		if tools := h.Tools(); len(tools) != 1 {
			t.Fatalf("the tools are %v", toolNames(tools))
		}
		if err := h.WaitFirstTurn(soon(t), WaitInput{}); err != nil || status(t, h, "r").Status != StatusPending {
			t.Fatalf("the first turn: %v; %s", err, dump(h))
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := raw.count("POST initialize") - before; n != 0 {
		t.Errorf("%d handshakes", n)
	}
}

// One account never sees the list of another, whether it is told by a header, a login or a computed header.
// fault B17
func TestCachedListsBelongToAnAccount(t *testing.T) {
	raw := &rawHTTP{before: func(w http.ResponseWriter, r *http.Request, m rawMsg) bool {
		if m.Method != "tools/list" {
			return false
		}
		who := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer token-of-")
		answer(w, m.ID, `{"tools":[{"name":"of_`+who+`"}]}`)
		return true
	}}
	url := serve(t, raw).URL
	store := mcpauth.NewMemoryStore()
	login := func(who, refresh string) ServerConfig {
		t.Helper()
		auth, err := mcpauth.New(url, &mcpauth.Options{Store: store})
		if err != nil {
			t.Fatal(err)
		}
		keep := func(*mcpauth.Credentials) (*mcpauth.Credentials, error) {
			if who == "" {
				return nil, nil
			}
			return &mcpauth.Credentials{ServerURL: url, AccessToken: "token-of-" + who, RefreshToken: refresh}, nil
		}
		if err := store.Update(t.Context(), mcpauth.Key(url), keep); err != nil {
			t.Fatal(err)
		}
		return HTTP{URL: url, Auth: auth}
	}
	header := func(who string) ServerConfig {
		return HTTP{URL: url, Headers: map[string]string{"Authorization": "Bearer token-of-" + who}}
	}
	computed := func(who string) ServerConfig {
		return HTTP{URL: url, HeadersKey: "the same", HeadersFunc: func(context.Context) (map[string]string, error) {
			return map[string]string{"Authorization": "Bearer token-of-" + who}, nil
		}}
	}
	dir := t.TempDir()
	for i, tt := range []struct {
		cfg    func() ServerConfig
		tool   string
		cached bool
	}{
		{func() ServerConfig { return header("ann") }, "mcp__r__of_ann", false},
		{func() ServerConfig { return header("ann") }, "mcp__r__of_ann", true},
		{func() ServerConfig { return header("bob") }, "mcp__r__of_bob", false},
		{func() ServerConfig { return login("ann", "r1") }, "mcp__r__of_ann", false},
		{func() ServerConfig { return login("ann", "r1") }, "mcp__r__of_ann", true},
		{func() ServerConfig { return login("bob", "r2") }, "mcp__r__of_bob", false},
		{func() ServerConfig { return login("ann", "") }, "mcp__r__of_ann", false},
		{func() ServerConfig { return login("ann", "") }, "mcp__r__of_ann", true},
		{func() ServerConfig { return login("bob", "") }, "mcp__r__of_bob", false},
		{func() ServerConfig { return computed("ann") }, "mcp__r__of_ann", false},
		{func() ServerConfig { return computed("ann") }, "mcp__r__of_ann", false},
		{func() ServerConfig { return computed("bob") }, "mcp__r__of_bob", false},
	} {
		h := newHost(t, map[string]ServerConfig{"r": tt.cfg()}, func(o *Options) { o.CacheDir = dir })
		ready(t, h)
		s := status(t, h, "r")
		if names := toolNames(s.Tools); s.Cached != tt.cached || len(names) != 1 || names[0] != tt.tool {
			t.Errorf("%d: cached %v, %q, want %v, %s", i, s.Cached, names, tt.cached, tt.tool)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}
