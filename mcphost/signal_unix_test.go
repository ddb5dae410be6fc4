//go:build unix

package mcphost

import (
	"errors"
	"syscall"
	"testing"
	"time"
)

// A server that is stopped shows it after a few calls that timed out; calls fail at once then, and work again when it goes
// on. The log has one record for each call, with who made it, and one for each change.
//
// fault G9
// fault G6
func TestStoppedServer(t *testing.T) {
	var log records
	h := newHost(t, map[string]ServerConfig{"s": child("echo"), "other": child("echo")}, func(o *Options) { o.Logger = log.logger() })
	connected(t, h)
	pid := status(t, h, "s").PID
	events := h.Watch(t.Context())
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	short := &CallOptions{Timeout: 50 * time.Millisecond, ToolUseID: "toolu_1", Session: "conversation-1"}
	h.conns["s"].dialer.limits.call = 200 * time.Millisecond // so that the ping does not take long
	for range DefaultBreakAfter {
		if _, err := h.Call(soon(t), "mcp__s__echo", nil, short); !errors.Is(err, ErrTimeout) {
			t.Errorf("a call to a stopped server: %v", err)
		}
	}
	until(t, events, "failed", func(e Event) bool {
		return e.Server == "s" && e.Status == StatusFailed && errors.Is(e.Err, ErrUnresponsive)
	})
	s := status(t, h, "s")
	if s.Status != StatusFailed || !errors.Is(s.Err, ErrUnresponsive) || s.ToolCount != 1 || s.NextAttempt.IsZero() {
		t.Errorf("%s with %d tools, next attempt %v: %s", s.Status, s.ToolCount, s.NextAttempt, s.Error)
	}
	var ce *CallError
	if _, err := h.Call(soon(t), "mcp__s__echo", nil, nil); !errors.As(err, &ce) || ce.Sent || !errors.Is(err, ErrUnresponsive) {
		t.Errorf("a call that should fail at once: %v", err)
	}
	if got := text(t, h, "mcp__other__echo", `{}`); got != "echo {}" {
		t.Errorf("the other server: %q", got)
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	until(t, events, "connected", func(e Event) bool { return e.Server == "s" && e.Status == StatusConnected })
	if got := text(t, h, "mcp__s__echo", `{}`); got != "echo {}" || status(t, h, "s").PID != pid {
		t.Errorf("afterwards: %q", got)
	}
	if got := log.with("call timed out", "server:s", "tool:echo", "tool_use_id:toolu_1", "session:conversation-1"); len(got) != DefaultBreakAfter {
		t.Errorf("%d records of calls that timed out: %v", len(got), log.all)
	}
	if got := log.with("answers nothing any more"); len(got) != 1 {
		t.Errorf("records of the server: %v", got)
	}
}
