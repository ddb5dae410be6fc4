package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tenon-sdk/tenon/agent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestHooks(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "")
	t.Chdir(t.TempDir()) // no configuration files
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if first, _, _ := strings.Cut(out.String(), "\n"); !strings.Contains(first, "offline model") {
		t.Errorf("the first line does not say that it is offline: %s", first)
	}
	for _, want := range []string{
		"result notes/deploy.txt: deploy with the key [a key] on Fridays\n",
		"/etc/passwd is not a note",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	for _, not := range []string{"sk-live", "/etc/passwd: deploy"} {
		if strings.Contains(out.String(), not) {
			t.Errorf("%q is in\n%s", not, out.String())
		}
	}
}

// What the guard cannot read it does not let through.
func TestGuardFailsClosed(t *testing.T) {
	in := &agent.PreToolUse{}
	in.ToolInput = json.RawMessage(`{"path": 7}`)
	if out, err := guard(context.Background(), in); err == nil {
		t.Errorf("a path that is a number: %+v, want an error", out)
	}
}
