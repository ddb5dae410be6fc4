package claudecode

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"testing"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/claudecode/event"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// sessionOf returns a session with servers in this process and without a CLI.
func sessionOf(t *testing.T, o *agent.Options) *session {
	t.Helper()
	e := New(nil)
	e.callWait = 0
	s := connected(t, e, o)
	configs, err := s.servers.connect(t.Context(), o.MCPServers)
	if err != nil {
		t.Fatal(err)
	}
	s.servers.attach(configs)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// connected returns a session without a CLI.
func connected(t *testing.T, e *Engine, o *agent.Options) *session {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := newSession(e, o)
	s.connect(t.Context())
	return s
}

// line has the session handle a line of the CLI.
func (s *session) line(text string) {
	if l, err := event.Decode([]byte(text), s.opts.IncludePartialMessages); err == nil {
		s.ch.take(l, len(text))
	}
}

func inProcess(all map[string]mcpserver.Provider) *agent.Options {
	o := &agent.Options{MCPServers: map[string]mcphost.ServerConfig{}}
	for name, p := range all {
		o.MCPServers[name] = mcphost.InProcess(p)
	}
	return o
}

// untilListed waits until the CLI has a tool.
func untilListed(t *testing.T, c *agent.Client, server, tool string) {
	t.Helper()
	for {
		all, err := c.MCPStatus(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			if s.Name == server && slices.ContainsFunc(s.Tools, func(t mcphost.Tool) bool { return t.Name == tool }) {
				return
			}
		}
		runtime.Gosched()
	}
}

// taking is a server with tools of these schemas.
func taking(t *testing.T, schemas ...string) *mcpserver.Server {
	t.Helper()
	s := mcpserver.New("taking", nil)
	for i, schema := range schemas {
		addTaking(t, s, fmt.Sprintf("tool%d", i), schema)
	}
	return s
}

func addTaking(t *testing.T, s *mcpserver.Server, name, schema string) {
	t.Helper()
	err := s.AddTool(&mcpserver.Tool{Name: name, InputSchema: json.RawMessage(schema)}, func(_ context.Context, args json.RawMessage) (*mcpserver.Result, error) {
		return mcpserver.Text("got " + string(args)), nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

const (
	textTool   = `{"type":"object","properties":{"text":{"type":"string"}}}`
	numberTool = `{"type":"object","properties":{"id":{"type":"integer"}}}`
)
