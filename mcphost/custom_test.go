package mcphost

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// memoryServer has a tool echo, a tool ask that asks its user, a tool that panics and a resource.
func memoryServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "library", Version: "2"}, nil)
	schema := &jsonschema.Schema{Type: "object"}
	text := func(s string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
	}
	s.AddTool(&mcp.Tool{Name: "echo", InputSchema: schema}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(string(r.Params.Arguments)), nil
	})
	s.AddTool(&mcp.Tool{Name: "broken", InputSchema: schema}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		panic("oh no")
	})
	s.AddTool(&mcp.Tool{Name: "large", InputSchema: schema}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(strings.Repeat("x", 5000)), nil
	})
	s.AddTool(&mcp.Tool{Name: "hang", InputSchema: schema}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Message: "hanging"})
		if err != nil {
			return nil, err
		}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	s.AddResource(&mcp.Resource{URI: "mem://a", Name: "a"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "mem://a", Text: "of a"}}}, nil
	})
	return s
}

func TestServerOfTheLibraryInMemory(t *testing.T) {
	var log syncBuffer
	server := memoryServer()
	h := newHost(t, map[string]ServerConfig{"s": withLimit(InMemory(server), 4000)}, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	connected(t, h)
	st := status(t, h, "s")
	if st.Transport != TransportSDK || st.ToolCount != 4 || st.ServerInfo.Name != "library" {
		t.Errorf("status %+v", st)
	}
	res, err := h.Call(soon(t), "mcp__s__echo", []byte(`{"a":1}`), nil)
	if err != nil || res.Content[0].(*mcp.TextContent).Text != `{"a":1}` {
		t.Errorf("echo: %+v, %v", res, err)
	}
	if _, err := h.Call(soon(t), "mcp__s__broken", nil, nil); err == nil || !strings.Contains(err.Error(), "the server panicked while handling tools/call") || !strings.Contains(log.String(), "oh no") {
		t.Errorf("a panic: %v, logged %s", err, log.String())
	}
	if _, err := h.Call(soon(t), "mcp__s__large", nil, nil); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a large result: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = h.Call(ctx, "mcp__s__hang", nil, &CallOptions{OnProgress: func(Progress) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a call given up: %v", err)
	}
	if read, err := h.ReadResource(soon(t), "s", "mem://a"); err != nil || read.Contents[0].Text != "of a" {
		t.Errorf("resource: %+v, %v", read, err)
	}
	if r, err := h.SetServers(soon(t), map[string]ServerConfig{"s": withLimit(InMemory(server), 4000)}); err != nil || len(r.Changed) != 0 {
		t.Errorf("the same server again: %+v, %v", r, err)
	}
	server.AddTool(&mcp.Tool{Name: "more", InputSchema: &jsonschema.Schema{Type: "object"}}, nil)
	for ctx := soon(t); ; {
		if _, ok := h.Tool("mcp__s__more"); ok {
			break
		}
		select {
		case <-h.Watch(ctx):
		case <-ctx.Done():
			t.Fatal("the new tool does not show")
		}
	}
}

func withLimit(c Custom, n int) Custom {
	c.MaxMessageBytes = n
	return c
}

// What goes wrong in opening a transport of the program's own is the status of its server.
func TestTransportsThatDoNotOpen(t *testing.T) {
	h := newHost(t, map[string]ServerConfig{
		"none":   InMemory(nil),
		"nil":    Custom{Open: func(context.Context) (mcp.Transport, error) { return nil, nil }},
		"fails":  Custom{Open: func(context.Context) (mcp.Transport, error) { return nil, errors.New("no such device") }},
		"panics": Custom{Open: func(context.Context) (mcp.Transport, error) { panic("oh no") }},
	})
	ready(t, h)
	for name, want := range map[string]string{"none": "no server given", "nil": "it returned no transport", "fails": "no such device", "panics": "panicked"} {
		if st := status(t, h, name); st.Status != StatusFailed || !strings.Contains(st.Error, want) {
			t.Errorf("%s is %s: %s", name, st.Status, st.Error)
		}
	}
}
