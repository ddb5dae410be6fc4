package mcpserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpbridge"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// served is a server with what the serving tests need.
func served(t testing.TB) *mcpserver.Server {
	t.Helper()
	s := mcpserver.New("served", &mcpserver.Options{
		Version: "2.0.0", Instructions: "Be kind.", HasPrompts: true, HasResources: true,
		LookupEnv: func(string) (string, bool) { return "", false },
		Complete: func(_ context.Context, p *mcp.CompleteParams) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{p.Argument.Value + "!"}}}, nil
		},
	})
	type sumIn struct{ A, B int }
	err := errors.Join(
		mcpserver.AddTool(s, &mcpserver.Tool{Name: "sum", Description: "Add"},
			func(_ context.Context, in sumIn) (map[string]int, error) {
				return map[string]int{"sum": in.A + in.B}, nil
			}),
		s.AddTool(&mcpserver.Tool{Name: "fail"}, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
			return nil, errors.New("no luck")
		}),
		s.AddTool(&mcpserver.Tool{Name: "panic"}, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
			panic("secret")
		}),
		s.AddTool(&mcpserver.Tool{Name: "wait"}, func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}),
		s.AddTool(&mcpserver.Tool{Name: "id"}, func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
			r := mcpserver.RequestFrom(ctx)
			return mcpserver.Text(fmt.Sprintf("%s %s %v", r.RequestID, r.ProtocolVersion, r.Meta["k"])), nil
		}),
		s.AddTool(&mcpserver.Tool{Name: "tell"}, func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
			r := mcpserver.RequestFrom(ctx)
			return mcpserver.Text("told"), errors.Join(r.Progress(ctx, 1, 2, "half"), r.Log(ctx, "warning", "tell", "careful"))
		}),
		s.AddTool(&mcpserver.Tool{Name: "ask"}, func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
			answer, err := mcpserver.RequestFrom(ctx).Elicit(ctx, &mcp.ElicitParams{
				Message: "Name?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`),
			})
			if err != nil {
				return nil, err
			}
			return mcpserver.Text(fmt.Sprint(answer.Action, " ", answer.Content["name"])), nil
		}),
		s.AddRawTool(&mcpserver.Tool{Name: "extra"}, func(context.Context, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"content":[{"type":"text","text":"x"}],"vendor":{"deep":[1]}}`), nil
		}),
		// The library's validator does not survive this one: it must never see it.
		s.AddTool(&mcpserver.Tool{Name: "loop", InputSchema: json.RawMessage(`{"type":"object","$ref":"#"}`)},
			func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
				return mcpserver.Text("survived"), nil
			}),
		s.AddResource(&mcp.Resource{URI: "mem:a", Name: "a", MIMEType: "text/plain"}, func(context.Context) (*mcp.ReadResourceResult, error) {
			return mcpserver.TextResource("mem:a", "text/plain", "content of a"), nil
		}),
		s.AddResource(&mcp.Resource{URI: "mem:empty", Name: "empty"}, func(context.Context) (*mcp.ReadResourceResult, error) {
			return mcpserver.TextResource("mem:empty", "text/plain", ""), nil
		}),
		s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "mem:t/{x}", Name: "t"},
			func(_ context.Context, uri string, vars map[string]string) (*mcp.ReadResourceResult, error) {
				return mcpserver.TextResource(uri, "text/plain", "x="+vars["x"]), nil
			}),
		s.AddPrompt(&mcp.Prompt{Name: "hello", Arguments: []*mcp.PromptArgument{{Name: "who"}}},
			func(_ context.Context, args map[string]string) (*mcp.GetPromptResult, error) {
				return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{mcpserver.UserMessage("Hello " + args["who"])}}, nil
			}),
	)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A pipe is a client on the other end of ServeStdio.
type pipe struct {
	t     *testing.T
	in    *io.PipeWriter
	lines *bufio.Reader
	end   chan error
	stop  context.CancelFunc
}

func stdio(t *testing.T, s *mcpserver.Server, o mcpbridge.StdioOptions) *pipe {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	o.In, o.Out = in, out
	ctx, cancel := context.WithCancel(t.Context())
	p := &pipe{t: t, in: toServer, lines: bufio.NewReaderSize(fromServer, 1<<20), end: make(chan error, 1), stop: cancel}
	go func() {
		err := mcpbridge.ServeStdio(ctx, s, &o)
		_ = out.Close()
		p.end <- err
	}()
	t.Cleanup(func() {
		cancel()
		_ = toServer.Close()
		_ = fromServer.Close()
	})
	return p
}

func (p *pipe) send(lines ...string) {
	p.t.Helper()
	for _, line := range lines {
		if _, err := io.WriteString(p.in, line+"\n"); err != nil {
			p.t.Fatalf("writing %.80s: %v", line, err)
		}
	}
}

func (p *pipe) next() string {
	p.t.Helper()
	line, err := p.lines.ReadString('\n')
	if err != nil {
		p.t.Fatalf("reading: %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

func (p *pipe) expect(want string) {
	p.t.Helper()
	if got := p.next(); got != want {
		p.t.Errorf("got  %s\nwant %s", got, want)
	}
}

func (p *pipe) shake(version string) {
	p.t.Helper()
	p.send(
		`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"`+version+`","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	)
	if got := p.next(); !strings.Contains(got, `"protocolVersion":"`+version+`"`) || !strings.Contains(got, `"name":"served"`) {
		p.t.Fatalf("handshake: %s", got)
	}
}

// What a stdio client must be able to rely on: noise is passed over, a broken or
// an overlong message costs itself only, ids come back byte for byte, a cancelled
// request is not answered.
func TestStdioSurvives(t *testing.T) {
	p := stdio(t, served(t), mcpbridge.StdioOptions{MaxLine: 10_000})
	p.shake("2025-11-25")
	p.send(`starting up...`, ``, "\ufeff"+`{"id":1.50,"method":"ping"}`+"\r")
	p.expect(`{"jsonrpc":"2.0","id":1.50,"result":{}}`)
	p.send(`{"id":2,"method":`)
	p.expect(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"invalid JSON"}}`)
	p.send(`{"id":3}`)
	p.expect(`{"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"invalid request: method is missing"}}`)
	p.send(`{"method":"tools/call","params":{"name":"sum","arguments":{"x":"` + strings.Repeat("x", 20_000) + `"}},"jsonrpc":"2.0","id":"big"}`)
	if got := p.next(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":"big","error":{"code":-32600,`) || !strings.Contains(got, "limit of 10000") {
		t.Errorf("an overlong message: %s", got)
	}
	p.send(`{"id":123456789012345678901234567890,"method":"tools/call","params":{"name":"id","_meta":{"k":"v"}}}`)
	p.expect(`{"jsonrpc":"2.0","id":123456789012345678901234567890,"result":{"content":[{"type":"text","text":"123456789012345678901234567890 2025-11-25 v"}],"isError":false}}`)
	p.send(
		`{"id":"w\u0031","method":"tools/call","params":{"name":"wait"}}`,
		`{"method":"notifications/cancelled","params":{"requestId":"w1"}}`,
		`{"id":null,"method":"ping"}`,
	)
	p.expect(`{"jsonrpc":"2.0","id":null,"result":{}}`)
	p.send(`[{"id":"a","method":"ping"},{"method":"notifications/x"}]`)
	p.expect(`[{"jsonrpc":"2.0","id":"a","result":{}}]`)
	p.send(`{"id":4,"method":"no/such"}`)
	if got := p.next(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":4,"error":{"code":-32601,`) {
		t.Errorf("an unknown method: %s", got)
	}
	p.send(`{"id":5,"method":"tools/call","params":{"name":"nobody"}}`)
	p.expect(`{"jsonrpc":"2.0","id":5,"error":{"code":-32601,"message":"Tool 'nobody' not found"}}`)
}

// Requests that are piped in, with the end of the input right behind them, are answered.
func TestStdioAnswersBeforeItEnds(t *testing.T) {
	p := stdio(t, served(t), mcpbridge.StdioOptions{})
	p.shake("2025-06-18")
	p.send(`{"id":1,"method":"tools/call","params":{"name":"sum","arguments":{"A":1,"B":2}}}`)
	_ = p.in.Close()
	if got := p.next(); !strings.Contains(got, `"sum":3`) {
		t.Errorf("got %s", got)
	}
	if err := <-p.end; err != nil {
		t.Errorf("ended with %v, want nil at the end of the input", err)
	}
}

// A call that goes on does not keep the server alive after the end of the input.
func TestStdioEndCancelsCalls(t *testing.T) {
	p := stdio(t, served(t), mcpbridge.StdioOptions{Grace: 10 * time.Millisecond})
	p.shake("2025-11-25")
	p.send(`{"id":1,"method":"tools/call","params":{"name":"wait"}}`)
	_ = p.in.Close()
	if err := <-p.end; err != nil {
		t.Errorf("ended with %v", err)
	}
}

// The context ends the serving while a call runs and the input stays open.
func TestStdioEndsWithItsContext(t *testing.T) {
	p := stdio(t, served(t), mcpbridge.StdioOptions{})
	p.shake("2025-11-25")
	p.send(`{"id":1,"method":"tools/call","params":{"name":"wait"}}`)
	p.stop()
	if err := <-p.end; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v, want context.Canceled", err)
	}
}

// Everything that a server has works through stdio, in both eras.
func TestStdioServesEverything(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			s := served(t)
			p := stdio(t, s, mcpbridge.StdioOptions{})
			exercise(t, s, version, &mcp.IOTransport{Reader: io.NopCloser(p.lines), Writer: p.in})
			if err := <-p.end; err != nil {
				t.Errorf("ended with %v", err)
			}
		})
	}
}

// A client to which nothing can be written any more is served no longer, though
// its input stays open.
func TestStdioEndsWhenNothingCanBeWritten(t *testing.T) {
	in, feed := io.Pipe()
	defer feed.Close()
	ended := make(chan error, 1)
	go func() {
		ended <- mcpbridge.ServeStdio(t.Context(), served(t), &mcpbridge.StdioOptions{In: in, Out: brokenPipe{}})
	}()
	if _, err := io.WriteString(feed, "{\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("ServeStdio returned no error")
		}
	case <-time.After(time.Minute):
		t.Fatal("ServeStdio goes on after its output has broken")
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
