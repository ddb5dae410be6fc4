package mcphost

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

// The process of a server does not inherit the credentials of the model. It gets those that its entry names, and all
// other variables, those of cloud providers too unless the model is there.
// fault A5
func TestModelCredentialsAreNotInherited(t *testing.T) {
	always := []string{
		"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_OAUTH_REFRESH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS",
		"ANTHROPIC_FOUNDRY_API_KEY", "ANTHROPIC_AWS_API_KEY", "ANTHROPIC_IDENTITY_TOKEN_FILE", "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR", "AWS_BEARER_TOKEN_BEDROCK",
	}
	never := []string{"ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "CLAUDE_CODE_MAX_OUTPUT_TOKENS", "AWS_REGION", "GITHUB_TOKEN", "MY_ANTHROPIC_API_KEY"}
	clouds := map[string]string{"CLAUDE_CODE_USE_BEDROCK": "AWS_SECRET_ACCESS_KEY", "CLAUDE_CODE_USE_VERTEX": "GOOGLE_APPLICATION_CREDENTIALS", "CLAUDE_CODE_USE_FOUNDRY": "AZURE_CLIENT_SECRET"}
	for _, name := range slices.Concat(always, never) {
		t.Setenv(name, "x")
	}
	for on, name := range clouds {
		t.Setenv(name, "x")
		t.Setenv(on, "")
	}
	has := func(env []string, name string) bool {
		return slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
	}
	env := childEnv(Stdio{Env: map[string]string{"ANTHROPIC_AUTH_TOKEN": "named"}}, os.LookupEnv)
	for _, name := range always {
		if has(env, name) != (name == "ANTHROPIC_AUTH_TOKEN") {
			t.Errorf("the process has %s: %v", name, has(env, name))
		}
	}
	for _, name := range never {
		if !has(env, name) {
			t.Errorf("the process has no %s", name)
		}
	}
	for on, name := range clouds {
		for value, withheld := range map[string]bool{"": false, "0": false, "False": false, "1": true, "true": true} {
			run := func(name string) (string, bool) { // the environment of a run
				if name == on {
					return value, true
				}
				return os.LookupEnv(name)
			}
			if got := has(childEnv(Stdio{}, run), name); got == withheld {
				t.Errorf("with %s=%s the process has %s: %v", on, value, name, got)
			}
		}
	}
	// An address is one if it holds one: that of the run, and that of the process, which servers would inherit.
	for address, want := range map[string]bool{"": false, "https://h:1/x": false, "https://u:p@h": true, "https://h/?key=k": true, "https://u:p@h\n": true} {
		run := func(string) (string, bool) { return address, true }
		if got := IsModelCredential("ANTHROPIC_VERTEX_BASE_URL", run); got != want {
			t.Errorf("an address %q of the run is a credential: %v", address, got)
		}
		t.Setenv("ANTHROPIC_BASE_URL", address)
		if got := has(childEnv(Stdio{}, func(string) (string, bool) { return "https://h", true }), "ANTHROPIC_BASE_URL"); got == want {
			t.Errorf("the process has the address %q: %v", address, got)
		}
	}
	t.Setenv("CLAUDE_CODE_USE_BEDROCK", "1")
	if !IsModelCredential("AWS_SECRET_ACCESS_KEY", nil) {
		t.Error("the environment of the process does not count")
	}
}

// A server whose configuration is faulty has a row with the reason from the start, is never connected, and changes by
// SetServers like all others.
// D110
func TestInvalidServer(t *testing.T) {
	reason := errors.New("the environment variable T is not set")
	bad := Invalid{Transport: TransportHTTP, Err: reason, Common: Common{Scope: "project", Required: true}}
	h := newHost(t, map[string]ServerConfig{"bad": bad, "none": Invalid{}})
	if err := h.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"bad": reason.Error(), "none": "cannot be used"} {
		s, ok := h.ServerStatus(name)
		if !ok || s.Status != StatusFailed || !strings.Contains(s.Error, want) || !s.NextAttempt.IsZero() || s.ToolCount != 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if s, _ := h.ServerStatus("bad"); s.Transport != TransportHTTP || s.Scope != "project" || !errors.Is(s.Err, reason) {
		t.Errorf("status %+v", s)
	}
	if err := h.WaitFirstTurn(t.Context(), WaitInput{}); err == nil || !strings.Contains(err.Error(), "bad") {
		t.Errorf("a required server that is faulty: %v", err)
	}
	if err := h.Reconnect(t.Context(), "bad"); !errors.Is(err, reason) {
		t.Errorf("a new attempt: %v", err)
	}
	same := Invalid{Transport: TransportHTTP, Err: errors.New(reason.Error()), Common: Common{Scope: "project", Required: true}}
	r, err := h.SetServers(t.Context(), map[string]ServerConfig{"bad": same, "new": Invalid{Err: reason}})
	if err != nil || !slices.Equal(r.Added, []string{"new"}) || !slices.Equal(r.Removed, []string{"none"}) || len(r.Changed) != 0 || !errors.Is(r.Errors["new"], reason) {
		t.Errorf("%+v, %v", r, err)
	}
}
