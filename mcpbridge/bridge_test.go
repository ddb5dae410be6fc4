package mcpbridge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpbridge"
	"github.com/tenon-sdk/tenon/mcpserver"
)

func handle(t testing.TB, b *mcpbridge.Bridge, raw string) string {
	t.Helper()
	reply, err := b.Handle(t.Context(), json.RawMessage(raw))
	if err != nil {
		t.Fatalf("Handle(%.200s): %v", raw, err)
	}
	return string(reply)
}

func newBridge(t testing.TB, server mcpserver.Provider, o *mcpbridge.Options) *mcpbridge.Bridge {
	t.Helper()
	b := mcpbridge.New(server, o)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return b
}

// B14
func TestNewWithoutServerPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("New(nil) did not panic")
		}
	}()
	mcpbridge.New(nil, nil)
}

// A text in, a text out, through the same path as raw JSON; a Go map goes in by
// being encoded and comes out by being decoded.
//
// R38 R39
func TestTextAndMapGoTheSameWay(t *testing.T) {
	b := newBridge(t, bare(t, nil), nil)
	text := `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2}}}`
	var asMap map[string]any
	if err := json.Unmarshal([]byte(text), &asMap); err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(asMap)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(handle(t, b, text), handle(t, b, string(encoded))); diff != "" {
		t.Errorf("replies differ (-text +map):\n%s", diff)
	}
	var reply struct {
		Result struct {
			StructuredContent map[string]int `json:"structuredContent"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(handle(t, b, text)), &reply); err != nil || reply.Result.StructuredContent["sum"] != 3 {
		t.Errorf("got %+v, %v", reply, err)
	}
}

// The limit in force can be read.
//
// B16 B17 B18 B19 B20 B28
func TestTimeoutInForce(t *testing.T) {
	env := func(pairs ...string) func(string) (string, bool) {
		return func(name string) (string, bool) {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1], true
				}
			}
			return "", false
		}
	}
	const tool, mcpTool = "CLAUDE_AGENT_TOOL_TIMEOUT", "MCP_TOOL_TIMEOUT"
	tests := []struct {
		name   string
		bridge time.Duration
		server time.Duration
		env    func(string) (string, bool)
		want   time.Duration
	}{
		{"nothing set", 0, 0, noEnv, 60 * time.Second},
		{"the bridge's beats all", 7 * time.Second, 8 * time.Second, env(tool, "9", mcpTool, "10000"), 7 * time.Second},
		{"the bridge's is not clamped", 600 * time.Second, 0, env(tool, "9"), 600 * time.Second},
		{"the bridge says none", mcpserver.NoTimeout, 8 * time.Second, env(tool, "9"), mcpserver.NoTimeout},
		{"the server's beats the environment", 0, 8 * time.Second, env(tool, "9"), 8 * time.Second},
		{"the variable", 0, 0, env(tool, "9", mcpTool, "10000"), 9 * time.Second},
		{"the variable below its range", 0, 0, env(tool, "0"), time.Second},
		{"the variable above its range", 0, 0, env(tool, "9999"), 300 * time.Second},
		{"the variable is no number", 0, 0, env(tool, "soon"), 60 * time.Second},
		{"the other variable", 0, 0, env(mcpTool, "10000"), 10 * time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := bare(t, &mcpserver.Options{Timeout: test.server, LookupEnv: test.env})
			b := newBridge(t, s, &mcpbridge.Options{ToolTimeout: test.bridge})
			if got := b.Timeout(); got != test.want {
				t.Errorf("Timeout() = %v, want %v", got, test.want)
			}
		})
	}
}

// A call that lasts longer than the limit in force is answered in-band when the
// limit is over, not earlier and not later.
//
// B16 B18 B20
func TestTimeoutIsKept(t *testing.T) {
	for _, limit := range []time.Duration{time.Second, 90 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			b := mcpbridge.New(bare(t, nil), &mcpbridge.Options{ToolTimeout: limit})
			defer b.Close()
			start := time.Now()
			got := handle(t, b, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait"}}`)
			if took := time.Since(start); took != limit || !strings.Contains(got, `"isError":true`) {
				t.Errorf("after %v: %s; want an error result after %v", took, got, limit)
			}
		})
	}
}

// Handlers get a context that ends with the limit, the cancellation, the caller's
// context and the bridge.
//
// B15
func TestHandlersGetAContext(t *testing.T) {
	type ending struct {
		name string
		end  func(cancel context.CancelFunc, b *mcpbridge.Bridge)
	}
	for _, e := range []ending{
		{"the caller's context", func(cancel context.CancelFunc, _ *mcpbridge.Bridge) { cancel() }},
		{"a cancellation", func(_ context.CancelFunc, b *mcpbridge.Bridge) {
			_, _ = b.Handle(t.Context(), json.RawMessage(`{"method":"notifications/cancelled","params":{"requestId":1}}`))
		}},
		{"Close", func(_ context.CancelFunc, b *mcpbridge.Bridge) { _ = b.Close() }},
		{"the limit", func(context.CancelFunc, *mcpbridge.Bridge) { time.Sleep(time.Hour) }},
	} {
		t.Run(e.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ended := make(chan error, 1)
				s := mcpserver.New("s", &mcpserver.Options{LookupEnv: noEnv})
				if err := s.AddTool(&mcpserver.Tool{Name: "t"}, func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
					<-ctx.Done()
					ended <- ctx.Err()
					return nil, ctx.Err()
				}); err != nil {
					t.Fatal(err)
				}
				b := mcpbridge.New(s, nil)
				defer b.Close()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				done := make(chan struct{})
				go func() {
					defer close(done)
					_, err := b.Handle(ctx, json.RawMessage(`{"id":1,"method":"tools/call","params":{"name":"t"}}`))
					if (err != nil) != (ctx.Err() != nil) {
						t.Errorf("Handle: %v", err)
					}
				}()
				synctest.Wait()
				e.end(cancel, b)
				if err := <-ended; err == nil {
					t.Error("the handler's context did not end")
				}
				<-done
			})
		})
	}
}

// A caller whose context ends gets its error, at once, even if the handler heeds nothing.
func TestCallerIsNotHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := mcpserver.New("s", &mcpserver.Options{LookupEnv: noEnv})
		if err := s.AddTool(&mcpserver.Tool{Name: "deaf"}, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
			<-release
			return mcpserver.Text("too late"), nil
		}); err != nil {
			t.Fatal(err)
		}
		b := mcpbridge.New(s, nil)
		defer b.Close()
		defer close(release)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		reply, err := b.Handle(ctx, json.RawMessage(`{"id":1,"method":"tools/call","params":{"name":"deaf"}}`))
		if !errors.Is(err, context.DeadlineExceeded) || reply != nil || time.Since(start) != time.Second {
			t.Errorf("got %s, %v after %v", reply, err, time.Since(start))
		}
	})
}

// Nothing waits for a slow call: not a ping, not another call, not a list.
//
// B22 R45 R65
func TestSlowCallDelaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mcpbridge.New(full(t, nil), nil)
		defer b.Close()
		slow := make(chan string, 3)
		for i := range 3 {
			go func() {
				reply, _ := b.Handle(t.Context(), json.RawMessage(fmt.Sprintf(`{"id":%d,"method":"tools/call","params":{"name":"wait"}}`, i)))
				slow <- string(reply)
			}()
		}
		synctest.Wait()
		start := time.Now()
		for _, raw := range []string{
			`{"id":"p","method":"ping"}`,
			`{"id":"c","method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2}}}`,
			`{"id":"l","method":"tools/list"}`,
			`{"id":"r","method":"resources/read","params":{"uri":"mem:one"}}`,
			`{"id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25"}}`,
		} {
			if got := handle(t, b, raw); !strings.Contains(got, `"result":`) {
				t.Errorf("%s: %s", raw, got)
			}
		}
		if waited := time.Since(start); waited != 0 {
			t.Errorf("they waited %v for the slow calls", waited)
		}
		for range 3 {
			if got := <-slow; !strings.Contains(got, `"isError":true`) { // after their limit
				t.Errorf("slow call: %s", got)
			}
		}
	})
}

// Many calls at once: each gets its own reply, and what the middleware sees of
// one is never another's.
//
// R45 R46
func TestConcurrentCallsDoNotMix(t *testing.T) {
	const callers, each = 32, 50
	var seen sync.Map
	trace := func(ctx context.Context, inv *mcpserver.Invocation, next func(context.Context) error) error {
		before := mcpserver.RequestFrom(ctx)
		err := next(ctx)
		after := mcpserver.RequestFrom(ctx)
		if before.RequestID != after.RequestID || !strings.Contains(string(inv.Arguments), before.RequestID) {
			t.Errorf("request %s became %s, with arguments %s", before.RequestID, after.RequestID, inv.Arguments)
		}
		if _, twice := seen.LoadOrStore(before.RequestID, inv.Result.Text()); twice {
			t.Errorf("request %s was traced twice", before.RequestID)
		}
		return err
	}
	b := newBridge(t, bare(t, nil), &mcpbridge.Options{Middleware: trace})
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				id := fmt.Sprintf("%d", c*each+i+1_000_000)
				raw := fmt.Sprintf(`{"id":%s,"method":"tools/call","params":{"name":"echo","arguments":{"n":%s}}}`, id, id)
				got := handle(t, b, raw)
				if !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":`+id+`,`) || !strings.Contains(got, `{\"n\":`+id+`}`) {
					t.Errorf("request %s got %s", id, got)
				}
			}
		})
	}
	wg.Wait()
	count := 0
	seen.Range(func(id, result any) bool {
		count++
		if !strings.Contains(result.(string), id.(string)) {
			t.Errorf("request %v was traced with the result %v", id, result)
		}
		return true
	})
	if count != callers*each {
		t.Errorf("%d calls traced, want %d", count, callers*each)
	}
}

// A variable that is no number is warned of, once.
//
// B28
func TestTimeoutThatIsNoNumberIsWarnedOf(t *testing.T) {
	var log bytes.Buffer
	s := bare(t, &mcpserver.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), LookupEnv: func(name string) (string, bool) {
		return "soon", name == "CLAUDE_AGENT_TOOL_TIMEOUT"
	}})
	b := newBridge(t, s, nil)
	if got := b.Timeout(); got != time.Minute {
		t.Errorf("Timeout %v, want a minute", got)
	}
	handle(t, b, `{"id":2,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2}}}`)
	if n := strings.Count(log.String(), "CLAUDE_AGENT_TOOL_TIMEOUT"); n != 1 {
		t.Errorf("%d warnings, want 1:\n%s", n, &log)
	}
}

// A result that cannot be written is a fault of the bridge, and costs nothing but
// its request.
//
// B13
func TestResultThatCannotBeWritten(t *testing.T) {
	s := bare(t, nil)
	if err := s.AddTool(&mcpserver.Tool{Name: "spoiled"}, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
		return &mcpserver.Result{Content: []mcp.Content{}, Meta: mcp.Meta{"f": func() {}}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	b := newBridge(t, s, nil)
	got := handle(t, b, `{"id":1,"method":"tools/call","params":{"name":"spoiled"}}`)
	if !strings.Contains(got, `"code":-32603`) {
		t.Errorf("got %s, want the error -32603", got)
	}
	if got := handle(t, b, `{"id":2,"method":"ping"}`); got != `{"jsonrpc":"2.0","id":2,"result":{}}` {
		t.Errorf("afterwards: %s", got)
	}
}

// A server that panics outside of its handlers is an error of that request too.
//
// B13
func TestServerThatPanics(t *testing.T) {
	var log bytes.Buffer
	b := newBridge(t, panicking{bare(t, nil)}, &mcpbridge.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	got := handle(t, b, `{"id":1,"method":"tools/list"}`)
	if got != `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"internal error: the server failed to handle the request"}}` {
		t.Errorf("got %s, want the error -32603 without the panic's text", got)
	}
	if !strings.Contains(log.String(), "secret") || !strings.Contains(log.String(), "stack=") {
		t.Errorf("the log has no panic and stack: %s", &log)
	}
	if got := handle(t, b, `{"id":2,"method":"ping"}`); !strings.Contains(got, `"result":{}`) {
		t.Errorf("afterwards: %s", got)
	}
}

type panicking struct{ mcpserver.Provider }

func (p panicking) OpenSession(ctx context.Context, o *mcpserver.SessionOptions) (mcpserver.ServerSession, error) {
	s, err := p.Provider.OpenSession(ctx, o)
	return panickingSession{s}, err
}

type panickingSession struct{ mcpserver.ServerSession }

func (panickingSession) ListTools(context.Context) ([]*mcp.Tool, error) { panic("secret") }

// Big messages pass in both directions.
func TestBigMessages(t *testing.T) {
	b := newBridge(t, bare(t, nil), nil)
	big := strings.Repeat("x", 8<<20)
	got := handle(t, b, `{"id":1,"method":"tools/call","params":{"name":"echo","arguments":{"big":"`+big+`"}}}`)
	if len(got) < len(big) || !strings.Contains(got, `"isError":false`) {
		t.Errorf("got %d bytes: %.200s", len(got), got)
	}
}

// Depth bombs are refused before anything looks at them.
func TestDepthBombs(t *testing.T) {
	b := newBridge(t, bare(t, nil), nil)
	for _, open := range []string{"[", `{"a":`, `{"id":1,"method":"tools/call","params":{"name":"echo","arguments":` + strings.Repeat("[", 2000)} {
		got := handle(t, b, strings.Repeat(open, 1+1_000_000/len(open)))
		if !strings.Contains(got, `"code":-32700`) {
			t.Errorf("%.20s…: %s", open, got)
		}
	}
	nested := strings.Repeat("[", 900) + strings.Repeat("]", 900)
	got := handle(t, b, `{"id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":`+nested+`}}}`)
	if !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":1,`) {
		t.Errorf("900 levels: %.200s", got)
	}
}

// The server's own ping is answered by the client, whatever it answers.
func TestPing(t *testing.T) {
	answers := make(chan func(json.RawMessage) string, 1)
	var b *mcpbridge.Bridge
	b = newBridge(t, bare(t, nil), &mcpbridge.Options{Send: func(ctx context.Context, raw json.RawMessage) error {
		select {
		case answer := <-answers:
			_, err := b.Handle(ctx, json.RawMessage(answer(raw)))
			return err
		default:
			return nil
		}
	}})
	var sent struct{ ID json.RawMessage }
	for _, result := range []string{`"result":{}`, `"error":{"code":-32601,"message":"no ping here"}`} {
		answers <- func(raw json.RawMessage) string {
			if err := json.Unmarshal(raw, &sent); err != nil {
				t.Error(err)
			}
			return `{"jsonrpc":"2.0","id":` + string(sent.ID) + `,` + result + `}`
		}
		if err := b.Ping(t.Context()); err != nil {
			t.Errorf("answered by %s: %v", result, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Ping(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("no answer, context ended: %v", err)
	}
	if err := newBridge(t, bare(t, nil), nil).Ping(t.Context()); err == nil {
		t.Error("a bridge without Send pinged")
	}
}

// Whose call is cancelled while it asks the client takes its question back.
func TestQuestionIsTakenBack(t *testing.T) {
	send := make(chan json.RawMessage, 2)
	b := newBridge(t, bare(t, nil), &mcpbridge.Options{Send: sendTo(send)})
	handle(t, b, `{"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}}}}`)
	reply := make(chan string, 1)
	go func() { reply <- handle(t, b, `{"id":6,"method":"tools/call","params":{"name":"ask"}}`) }()
	if got := string(<-send); !strings.Contains(got, `"id":"tenon-1","method":"elicitation/create"`) {
		t.Fatalf("sent %s", got)
	}
	handle(t, b, `{"method":"notifications/cancelled","params":{"requestId":6}}`)
	if got := <-reply; got != "" {
		t.Errorf("a cancelled call was answered: %s", got)
	}
	if got := string(<-send); !strings.Contains(got, `"method":"notifications/cancelled"`) || !strings.Contains(got, `"requestId":"tenon-1"`) {
		t.Errorf("sent %s", got)
	}
}

// Close ends what waits: calls, questions to the client, listeners. It may be
// called twice and from anywhere.
func TestCloseEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mcpbridge.New(full(t, nil), &mcpbridge.Options{Send: func(context.Context, json.RawMessage) error { return nil }})
		handle(t, b, `{"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}}}}`)
		replies := make(chan string, 4)
		for _, raw := range []string{
			`{"id":1,"method":"tools/call","params":{"name":"wait"}}`,
			`{"id":2,"method":"tools/call","params":{"name":"ask"}}`,
		} {
			go func() { replies <- handle(t, b, raw) }()
		}
		pinged := make(chan error, 1)
		go func() { pinged <- b.Ping(t.Context()) }()
		synctest.Wait()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := b.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
		}
		wg.Wait()
		for range 2 {
			if got := <-replies; !strings.Contains(got, `"code":-32000`) {
				t.Errorf("after Close: %s", got)
			}
		}
		if err := <-pinged; !errors.Is(err, mcpserver.ErrClosed) {
			t.Errorf("Ping: %v", err)
		}
	})
}

// Several bridges to one server do not know of each other.
//
// R16 R17
func TestBridgesAreSeparate(t *testing.T) {
	s := bare(t, nil)
	count := func(n *atomic.Int32) mcpserver.Middleware {
		return func(ctx context.Context, _ *mcpserver.Invocation, next func(context.Context) error) error {
			n.Add(1)
			return next(ctx)
		}
	}
	var one, two atomic.Int32
	a := newBridge(t, s, &mcpbridge.Options{Middleware: count(&one)})
	b := newBridge(t, s, &mcpbridge.Options{Middleware: count(&two), Scheduling: mcpserver.Inline})
	const call = `{"id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2}}}`
	handle(t, a, call)
	handle(t, b, call)
	handle(t, b, call)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if got := handle(t, b, call); !strings.Contains(got, `"sum":3`) {
		t.Errorf("after the other was closed: %s", got)
	}
	if one.Load() != 1 || two.Load() != 3 {
		t.Errorf("middlewares saw %d and %d calls, want 1 and 3", one.Load(), two.Load())
	}
}

// A server whose session does not open costs each request an error, and is tried again.
func TestSessionThatDoesNotOpen(t *testing.T) {
	p := &failing{Provider: bare(t, nil), failures: 2}
	b := newBridge(t, p, nil)
	const ping = `{"id":1,"method":"ping"}`
	for range 2 {
		if got := handle(t, b, ping); !strings.Contains(got, `"code":-32603`) || !strings.Contains(got, "not today") {
			t.Errorf("got %s", got)
		}
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got := handle(t, b, ping); !strings.Contains(got, `"result":{}`) {
				t.Errorf("got %s", got)
			}
		})
	}
	wg.Wait()
	if n := p.opened.Load(); n != 3 {
		t.Errorf("opened %d times, want 3", n)
	}
}

type failing struct {
	mcpserver.Provider
	failures int32
	opened   atomic.Int32
}

func (f *failing) OpenSession(ctx context.Context, o *mcpserver.SessionOptions) (mcpserver.ServerSession, error) {
	if f.opened.Add(1) <= f.failures {
		return nil, errors.New("not today")
	}
	return f.Provider.OpenSession(ctx, o)
}

// Many bridges to one server at once, with calls, cancellations, changes of the
// lists and closes in between.
func TestManyBridges(t *testing.T) {
	s := bare(t, nil)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			b := mcpbridge.New(s, &mcpbridge.Options{Send: func(context.Context, json.RawMessage) error { return nil }})
			defer b.Close()
			var calls sync.WaitGroup
			for n := range 8 {
				calls.Go(func() {
					got, err := b.Handle(t.Context(), fmt.Appendf(nil, `{"id":%d,"method":"tools/call","params":{"name":"add","arguments":{"a":%d,"b":%d}}}`, n, i, n))
					if want := fmt.Sprintf(`{"sum":%d}`, i+n); err != nil || !strings.Contains(string(got), want) && !strings.Contains(string(got), "-32000") {
						t.Errorf("got %s, %v; want %s", got, err, want)
					}
				})
				calls.Go(func() {
					if got, err := b.Handle(t.Context(), fmt.Appendf(nil, `{"id":"w%d","method":"tools/call","params":{"name":"wait"}}`, n)); err != nil {
						t.Errorf("got %s, %v", got, err)
					}
				})
				calls.Go(func() {
					handle(t, b, fmt.Sprintf(`{"method":"notifications/cancelled","params":{"requestId":"w%d"}}`, n))
				})
			}
			name := fmt.Sprintf("t%d", i)
			if err := addRaw(s, name, `{"content":[]}`); err != nil {
				t.Error(err)
			}
			s.RemoveTool(name)
			if i%2 == 0 {
				_ = b.Close()
			}
			calls.Wait()
		})
	}
	wg.Wait()
}
