package mcphost

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenon-sdk/tenon/mcpauth"
	"github.com/tenon-sdk/tenon/mcphost/internal/transport"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// Pain 20: a configured Authorization header, static or computed, is what the server gets, whatever login is stored;
// nothing is discovered, and if the server refuses it the server is failed and not in want of a login.
func TestConfiguredHeaderWins(t *testing.T) {
	raw := &rawHTTP{}
	raw.before = func(w http.ResponseWriter, r *http.Request, _ rawMsg) bool {
		if got := r.Header.Get("Authorization"); got != "Bearer configured" {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="/.well-known/oauth-protected-resource"`)
			http.Error(w, "who are you", http.StatusUnauthorized)
			return true
		}
		return false
	}
	seen := map[string]bool{}
	web := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw.mu.Lock()
		seen[r.URL.Path] = true
		raw.mu.Unlock()
		raw.ServeHTTP(w, r)
	}))
	url := web.URL + "/mcp"
	store := mcpauth.NewMemoryStore()
	keep := func(*mcpauth.Credentials) (*mcpauth.Credentials, error) {
		return &mcpauth.Credentials{AccessToken: "stored"}, nil
	}
	if err := store.Update(t.Context(), mcpauth.Key(url), keep); err != nil {
		t.Fatal(err)
	}
	auth, err := mcpauth.New(url, &mcpauth.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	computed := func(v string) HeadersFunc {
		return func(context.Context) (map[string]string, error) { return map[string]string{"authorization": v}, nil }
	}
	h := newHost(t, map[string]ServerConfig{
		"static":   HTTP{URL: url, Auth: auth, Headers: map[string]string{"Authorization": "Bearer configured"}},
		"computed": HTTP{URL: url, Auth: auth, HeadersFunc: computed("Bearer configured")},
		"wrong":    HTTP{URL: url, Auth: auth, Headers: map[string]string{"Authorization": "Bearer wrong"}},
		"miscount": HTTP{URL: url, Auth: auth, HeadersFunc: computed("Bearer wrong")},
	})
	ready(t, h)
	for name, want := range map[string]Status{"static": StatusConnected, "computed": StatusConnected, "wrong": StatusFailed, "miscount": StatusFailed} {
		s := status(t, h, name)
		if s.Status != want || want == StatusFailed && !strings.Contains(s.Error, "rejected the configured Authorization header") {
			t.Errorf("%s is %s: %s", name, s.Status, s.Error)
		}
	}
	raw.mu.Lock()
	defer raw.mu.Unlock()
	if len(seen) != 1 || !seen["/mcp"] {
		t.Errorf("asked for %v", seen)
	}
}

// Pain 22: no layer has a limit of its own: neither the caller's client, nor the connecting of the server.
func TestNoHiddenLimits(t *testing.T) {
	release := make(chan struct{})
	raw := &rawHTTP{}
	raw.call = func(w http.ResponseWriter, r *http.Request, m rawMsg) {
		waitFor(r, release)
		answerText(w, m.ID, "late")
	}
	const impatient = 50 * time.Millisecond
	connecting := 10 * time.Second
	h := newHost(t, map[string]ServerConfig{
		"r": HTTP{URL: serve(t, raw).URL, HTTPClient: &http.Client{Timeout: impatient, Transport: &http.Transport{DisableKeepAlives: true}}, Common: Common{ConnectTimeout: connecting}},
	})
	connected(t, h)
	time.AfterFunc(4*impatient, func() { close(release) })
	if got := text(t, h, "mcp__r__echo", `{}`); got != "late" {
		t.Errorf("got %q", got)
	}
}

// Pain 23: a call that nobody bounds ends after ten minutes; one that is to have no limit has none, however long a
// person takes.
func TestCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := opensAfter(0)
		p.call = func(ctx context.Context, _ mcpserver.Call) (*mcpserver.Result, error) {
			if !transport.Sleep(ctx, 24*time.Hour) {
				return nil, ctx.Err()
			}
			return mcpserver.Text("a person has answered"), nil
		}
		h := newHost(t, map[string]ServerConfig{"p": InProcess(p), "free": InProcessServer{Provider: p, Common: Common{CallTimeout: NoTimeout}}})
		if err := h.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := h.Call(t.Context(), "mcp__p__t", nil, nil); !errors.Is(err, ErrTimeout) || time.Since(began) != DefaultCallTimeout {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		for full, o := range map[string]*CallOptions{"mcp__p__t": {Timeout: NoTimeout}, "mcp__free__t": nil} {
			if res, err := h.Call(t.Context(), full, nil, o); err != nil || res.Text() != "a person has answered" {
				t.Errorf("%s: %v, %v", full, res, err)
			}
		}
		if s := status(t, h, "p"); s.CallTimeout != DefaultCallTimeout {
			t.Errorf("the limit in force is %v", s.CallTimeout)
		}
		h.Close()
	})
}
