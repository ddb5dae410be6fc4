package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// none is an environment without variables.
func none(string) (string, bool) { return "", false }

// env is an environment of name, value, name, value.
func env(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

// newTestServer returns a server without an environment that is closed in the end.
func newTestServer(t testing.TB, o *Options) *Server {
	t.Helper()
	opts := Options{LookupEnv: none}
	if o != nil {
		opts = *o
		if opts.LookupEnv == nil {
			opts.LookupEnv = none
		}
	}
	s := New("test", &opts)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// addRaw adds a raw tool that takes any object.
func addRaw(t testing.TB, s *Server, name string, h RawHandler) {
	t.Helper()
	if err := s.AddTool(&Tool{Name: name}, h); err != nil {
		t.Fatal(err)
	}
}

// returns is a handler that returns always the same.
func returns(r *Result, err error) RawHandler {
	return func(context.Context, json.RawMessage) (*Result, error) { return r, err }
}

// callText calls a tool directly and returns its text and whether it failed.
func callText(t testing.TB, s *Server, name, args string) (text string, isError bool) {
	t.Helper()
	r, err := s.CallTool(t.Context(), name, json.RawMessage(args))
	if err != nil {
		t.Fatalf("CallTool(%s, %s): %v", name, args, err)
	}
	return r.Text(), r.IsError
}

// wantText calls a tool and compares.
func wantText(t testing.TB, s *Server, name, args, want string, wantError bool) {
	t.Helper()
	if got, isError := callText(t, s, name, args); got != want || isError != wantError {
		t.Errorf("%s(%s) = %q, error %v; want %q, error %v", name, args, got, isError, want, wantError)
	}
}

// wantFailure calls a tool that fails with a text that has all the parts.
func wantFailure(t testing.TB, s *Server, name, args string, parts ...string) {
	t.Helper()
	got, isError := callText(t, s, name, args)
	if !isError {
		t.Errorf("%s(%s) = %q, want a failure", name, args, got)
	}
	for _, part := range parts {
		if !strings.Contains(got, part) {
			t.Errorf("%s(%s) = %q, want a text with %q", name, args, got, part)
		}
	}
}

// jsonOf encodes a value.
func jsonOf(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A logBuffer is a logger's output.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logBuffer) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }
