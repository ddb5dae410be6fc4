package mcphost

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// D72 D74 D75 D76: the five states, readable at any time; pending is no error,
// and failed and needs-auth are the servers that will not be usable.
func TestStatuses(t *testing.T) {
	release := make(chan struct{})
	slow := &rawHTTP{before: func(w http.ResponseWriter, r *http.Request, _ rawMsg) bool {
		<-release
		return false
	}}
	refuses := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusUnauthorized)
	})
	h := newHost(t, map[string]ServerConfig{
		"good": child("echo"), "dead": child("exit3"), "auth": HTTP{URL: serve(t, refuses).URL},
		"off": Stdio{Command: "x", Common: Common{Disabled: true}}, "slow": HTTP{URL: serve(t, slow).URL},
	})
	ready(t, h, "good", "dead", "auth", "off")
	get := func() map[string]string {
		m := map[string]string{}
		for _, s := range h.Status() {
			m[s.Name] = string(s.Status)
			if s.Status == StatusPending && s.Err != nil {
				t.Errorf("%s is pending with an error: %v", s.Name, s.Err)
			}
		}
		return m
	}
	want := map[string]string{"auth": "needs-auth", "dead": "failed", "good": "connected", "off": "disabled", "slow": "pending"}
	if diff := cmp.Diff(want, get()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var unusable []string
	for _, s := range h.Status() {
		if s.Status == StatusFailed || s.Status == StatusNeedsAuth {
			unusable = append(unusable, s.Name)
		}
	}
	if !slices.Equal(unusable, []string{"auth", "dead"}) {
		t.Errorf("unusable: %v", unusable)
	}
	close(release)
	connected(t, h, "slow")
}

// D68: a server that will need a login reads pending at first; polling tells.
// D67: the others work, and its tools are absent.
func TestPendingThenNeedsAuth(t *testing.T) {
	release := make(chan struct{})
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-release
		w.WriteHeader(http.StatusUnauthorized)
	})
	h := newHost(t, map[string]ServerConfig{"auth": HTTP{URL: serve(t, slow).URL}, "good": child("echo")})
	connected(t, h, "good")
	if s := status(t, h, "auth"); s.Status != StatusPending {
		t.Errorf("auth is %s", s.Status)
	}
	close(release)
	ready(t, h, "auth")
	if s := status(t, h, "auth"); s.Status != StatusNeedsAuth || !strings.Contains(s.Error, "log in") {
		t.Errorf("auth is %s: %s", s.Status, s.Error)
	}
	if got := toolNames(h.Tools()); !slices.Equal(got, []string{"mcp__good__echo"}) || text(t, h, "mcp__good__echo", `{}`) != "echo {}" {
		t.Errorf("tools: %v", got)
	}
}

// D54: in code, streamable HTTP is of the one type http.
func TestTransportNames(t *testing.T) {
	got := map[string]ServerConfig{"stdio": Stdio{}, "http": HTTP{}, "sse": SSE{}, "sdk": InProcess(nil)}
	for want, cfg := range got {
		if cfg.transport() != want {
			t.Errorf("%T is of type %q, want %q", cfg, cfg.transport(), want)
		}
	}
}
