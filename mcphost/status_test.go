package mcphost

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/mcpauth"
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

// D65: a store that cannot be read is a failure with its own words, not a missing login.
func TestUnreadableStore(t *testing.T) {
	dir := t.TempDir()
	store, err := mcpauth.NewDirStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	url := serve(t, &rawHTTP{}).URL
	auth, err := mcpauth.New(url, &mcpauth.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	keep := func(*mcpauth.Credentials) (*mcpauth.Credentials, error) {
		return &mcpauth.Credentials{AccessToken: "tok"}, nil
	}
	if err := store.Update(t.Context(), mcpauth.Key(url), keep); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	if err := os.WriteFile(files[0], []byte("{half"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := newHost(t, map[string]ServerConfig{"r": HTTP{URL: url, Auth: auth}, "good": child("echo")})
	ready(t, h)
	if s := status(t, h, "r"); s.Status != StatusFailed || !strings.HasPrefix(s.Error, "Couldn't read the stored credentials") {
		t.Errorf("%s: %s", s.Status, s.Error)
	}
	if got := text(t, h, "mcp__good__echo", `{}`); got != "echo {}" {
		t.Errorf("the other server: %q", got)
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
