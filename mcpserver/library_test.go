package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpbridge"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// connect connects a client to a server of the library in memory.
func connect(t *testing.T, lib *mcp.Server, version string, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	near, far := mcp.NewInMemoryTransports()
	served, err := lib.Connect(t.Context(), far, nil)
	if err != nil {
		t.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, o).
		Connect(t.Context(), near, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = session.Close()
		_ = served.Wait()
	})
	return session
}

// The same server, as one of the official library: same name and version, tools,
// resources and prompts, now and later.
//
// R06 R07
func TestLibraryIsTheSameServer(t *testing.T) {
	s := served(t)
	defer s.Close()
	if first := s.Library(); first != s.Library() {
		t.Error("two calls, two servers")
	}
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			near, far := mcp.NewInMemoryTransports()
			session, err := s.Library().Connect(t.Context(), far, nil)
			if err != nil {
				t.Fatal(err)
			}
			exercise(t, s, version, near)
			_ = session.Wait()
		})
	}
}

// What the library's types cannot hold reaches the client all the same.
func TestLibraryLosesNothing(t *testing.T) {
	s := served(t)
	defer s.Close()
	if err := s.AddTool(&mcpserver.Tool{Name: "blank"}, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
		return mcpserver.Embedded(&mcp.ResourceContents{URI: "mem:blank"}), nil
	}); err != nil {
		t.Fatal(err)
	}
	for version, done := range map[string]string{"2025-11-25": "", "2026-07-28": `"resultType":"complete"`} {
		p := stdio(t, s, mcpbridge.StdioOptions{})
		meta := ""
		if done != "" {
			meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
		} else {
			p.shake(version)
		}
		for request, want := range map[string]string{
			`"method":"tools/call","params":{"name":"extra"` + meta + `}`:                 `"vendor":{"deep":[1]}`,
			`"method":"tools/call","params":{"name":"blank"` + meta + `}`:                 `"resource":{"uri":"mem:blank","text":""}`,
			`"method":"resources/read","params":{"uri":"mem:empty"` + meta + `}`:          `"contents":[{"uri":"mem:empty","mimeType":"text/plain","text":""}]`,
			`"method":"tools/list","params":{"x":1` + meta + `}`:                          `"inputSchema":{"type":"object","$ref":"#"}`,
			`"method":"resources/templates/list","params":{"x":1` + meta + `}`:            `"uriTemplate":"mem:t/{x}"`,
			`"method":"prompts/get","params":{"name":"hello","arguments":{}` + meta + `}`: `"messages":[{`,
		} {
			p.send(`{"jsonrpc":"2.0","id":1,` + request + `}`)
			if got := p.next(); !strings.Contains(got, want) || !strings.Contains(got, done) {
				t.Errorf("%s: %s\ngot  %s\nwant %s and %s", version, request, got, want, done)
			}
		}
		_ = p.in.Close()
		if err := <-p.end; err != nil {
			t.Error(err)
		}
	}
}

// A library server may get more from the library; what the server has stays.
func TestLibraryCanBeExtended(t *testing.T) {
	s := served(t)
	defer s.Close()
	mcp.AddTool(s.Library(), &mcp.Tool{Name: "more"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "more"}}}, nil, nil
	})
	session := connect(t, s.Library(), "2025-11-25", nil)
	if got := textOf(t, session, "more", struct{}{}, nil); got != "more" {
		t.Errorf("more: %s", got)
	}
	if got := textOf(t, session, "sum", map[string]int{"A": 1, "B": 1}, nil); got != `{"sum":2}` {
		t.Errorf("sum: %s", got)
	}
}

// Middleware and scheduling of the server hold for what comes through the library.
func TestLibraryKeepsThePair(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	s := mcpserver.New("s", &mcpserver.Options{Scheduling: mcpserver.Inline, Middleware: func(ctx context.Context, inv *mcpserver.Invocation, next func(context.Context) error) error {
		scheduling, _ := mcpserver.RequestFrom(ctx).Dispatch()
		mu.Lock()
		seen = append(seen, inv.Name+" "+scheduling.String())
		mu.Unlock()
		return next(ctx)
	}})
	defer s.Close()
	if err := s.AddTool(&mcpserver.Tool{Name: "t"}, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
		return mcpserver.Text("ok"), nil
	}); err != nil {
		t.Fatal(err)
	}
	textOf(t, connect(t, s.Library(), "2025-11-25", nil), "t", nil, nil)
	if diff := cmp.Diff([]string{"t inline"}, seen); diff != "" {
		t.Errorf("middleware (-want +got):\n%s", diff)
	}
}

// A closed server answers its library's clients, with an error.
func TestLibraryOfAClosedServer(t *testing.T) {
	s := served(t)
	session := connect(t, s.Library(), "2025-11-25", nil)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "sum", Arguments: map[string]int{"A": 1, "B": 2}}); !hasCode(err, -32000) {
		t.Errorf("got %v, want the code -32000", err)
	}
}

// A schema from outside that the library's validator does not survive never gets
// there: not as the schema of a question to the user either.
func TestElicitationSchemasAreChecked(t *testing.T) {
	s := mcpserver.New("s", nil)
	defer s.Close()
	for name, schema := range map[string]string{
		"loop":   `{"type":"object","$ref":"#"}`,
		"nested": strings.Repeat(`{"type":"object","properties":{"a":`, 30) + `{"type":"string"}` + strings.Repeat("}}", 30),
	} {
		if err := s.AddTool(&mcpserver.Tool{Name: name}, func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
			_, err := mcpserver.RequestFrom(ctx).Elicit(ctx, &mcp.ElicitParams{Message: "?", RequestedSchema: json.RawMessage(schema)})
			return nil, err
		}); err != nil {
			t.Fatal(err)
		}
	}
	session := connect(t, s.Library(), "2025-11-25", &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return nil, errors.New("the client was asked")
		},
	})
	for _, name := range []string{"loop", "nested"} {
		if got := textOf(t, session, name, nil, nil); !strings.HasPrefix(got, "elicitation schema: ") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A client that declared nothing is not asked.
func TestLibraryClientsAreAskedForWhatTheyHave(t *testing.T) {
	s := mcpserver.New("s", nil)
	defer s.Close()
	asks := map[string]func(context.Context, *mcpserver.Request) error{
		"elicit": func(ctx context.Context, r *mcpserver.Request) error {
			_, err := r.Elicit(ctx, &mcp.ElicitParams{Message: "?"})
			return err
		},
		"sample": func(ctx context.Context, r *mcpserver.Request) error {
			_, err := r.Sample(ctx, &mcp.CreateMessageParams{})
			return err
		},
		"roots": func(ctx context.Context, r *mcpserver.Request) error {
			_, err := r.ListRoots(ctx)
			return err
		},
	}
	for name, ask := range asks {
		if err := s.AddTool(&mcpserver.Tool{Name: name}, func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
			return mcpserver.Text("asked"), ask(ctx, mcpserver.RequestFrom(ctx))
		}); err != nil {
			t.Fatal(err)
		}
	}
	old := connect(t, s.Library(), "2025-11-25", &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	modern := connect(t, s.Library(), "2026-07-28", &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	for name := range asks {
		if got := textOf(t, old, name, nil, nil); !strings.Contains(got, "not support") {
			t.Errorf("%s: %s", name, got)
		}
		if _, err := modern.CallTool(t.Context(), &mcp.CallToolParams{Name: name}); !hasCode(err, mcp.CodeMissingRequiredClientCapabilities) {
			t.Errorf("%s in 2026-07-28: %v", name, err)
		}
	}
	rich := connect(t, s.Library(), "2025-11-25", &mcp.ClientOptions{
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: "hi"}}, nil
		},
	})
	for _, name := range []string{"sample", "roots"} {
		if got := textOf(t, rich, name, nil, nil); got != "asked" {
			t.Errorf("%s of a client that has it: %s", name, got)
		}
	}
}

// The library's own errors keep their codes.
func TestLibraryErrors(t *testing.T) {
	s := served(t)
	defer s.Close()
	if err := s.AddResource(&mcp.Resource{URI: "mem:bad", Name: "bad"}, func(context.Context) (*mcp.ReadResourceResult, error) {
		return nil, errors.New("bad sector")
	}); err != nil {
		t.Fatal(err)
	}
	session := connect(t, s.Library(), "2025-11-25", nil)
	_, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "mem:bad"})
	if !hasCode(err, jsonrpc.CodeInternalError) || !strings.HasSuffix(err.Error(), "bad sector") {
		t.Errorf("a reader's error: %v", err)
	}
}

// A client that gives a call up ends its handler's context, through every transport.
func TestCancellationReachesHandlers(t *testing.T) {
	transports := map[string]func(t *testing.T, s *mcpserver.Server) mcp.Transport{
		"library": func(t *testing.T, s *mcpserver.Server) mcp.Transport {
			near, far := mcp.NewInMemoryTransports()
			session, err := s.Library().Connect(t.Context(), far, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = session.Wait() })
			return near
		},
		"stdio": func(t *testing.T, s *mcpserver.Server) mcp.Transport {
			p := stdio(t, s, mcpbridge.StdioOptions{})
			return &mcp.IOTransport{Reader: io.NopCloser(p.lines), Writer: p.in}
		},
		"HTTP": func(t *testing.T, s *mcpserver.Server) mcp.Transport {
			_, url := web(t, s, nil)
			return &mcp.StreamableClientTransport{Endpoint: url}
		},
	}
	for name, transport := range transports {
		for _, version := range []string{"2025-11-25", "2026-07-28"} {
			t.Run(name+" "+version, func(t *testing.T) {
				s := mcpserver.New("s", nil)
				t.Cleanup(func() { _ = s.Close() })
				started, ended := make(chan struct{}), make(chan struct{})
				if err := s.AddTool(&mcpserver.Tool{Name: "watch"}, func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
					close(started)
					<-ctx.Done()
					close(ended)
					return nil, ctx.Err()
				}); err != nil {
					t.Fatal(err)
				}
				session, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil).
					Connect(t.Context(), transport(t, s), &mcp.ClientSessionOptions{ProtocolVersion: version})
				if err != nil {
					t.Fatal(err)
				}
				defer session.Close()
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					<-started
					cancel()
				}()
				if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "watch"}); !errors.Is(err, context.Canceled) {
					t.Errorf("the call: %v", err)
				}
				<-ended
			})
		}
	}
}
