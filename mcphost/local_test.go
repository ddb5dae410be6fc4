package mcphost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpserver"
)

type numbers struct {
	A int `json:"a"`
	B int `json:"b"`
}

func calculator(o *mcpserver.Options) *mcpserver.Server {
	s := mcpserver.New("calc", o)
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "add", ReadOnly: true, SearchHint: "sum", MaxResultSize: 1000},
		func(_ context.Context, in numbers) (map[string]int, error) {
			return map[string]int{"sum": in.A + in.B}, nil
		})
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "fail"}, func(context.Context, struct{}) (string, error) { return "", errors.New("it failed") })
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "panic"}, func(context.Context, struct{}) (string, error) { panic("oh no") })
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "hang"}, func(ctx context.Context, _ struct{}) (string, error) { <-ctx.Done(); return "", ctx.Err() })
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "steps"}, func(ctx context.Context, _ struct{}) (string, error) {
		for i := range 3 {
			if err := mcpserver.RequestFrom(ctx).Progress(ctx, float64(i+1), 3, "step"); err != nil {
				return "", err
			}
		}
		return "done", nil
	})
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "ask"}, func(ctx context.Context, _ struct{}) (string, error) {
		res, err := mcpserver.RequestFrom(ctx).Elicit(ctx, &mcp.ElicitParams{Message: "your name?", RequestedSchema: map[string]any{
			"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}, "title": map[string]any{"type": "string", "default": "Dr"}},
		}})
		if err != nil {
			return "", err
		}
		return fmt.Sprint(res.Action, res.Content["title"], res.Content["name"]), nil
	})
	return s
}

// D01 D13 D55: a server in this process, without JSON-RPC, processes or sockets.
func TestInProcess(t *testing.T) {
	h := newHost(t, map[string]ServerConfig{"calc": InProcess(calculator(&mcpserver.Options{Instructions: "count"}))}, func(o *Options) {
		o.Elicit = func(_ context.Context, server string, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": server + " " + p.Message}}, nil
		}
	})
	connected(t, h)
	res, err := h.Call(soon(t), "mcp__calc__add", []byte(`{"a":1,"b":2}`), nil)
	if err != nil || res.IsError || string(res.StructuredContent) != `{"sum":3}` {
		t.Errorf("add: %+v, %v", res, err)
	}
	for name, want := range map[string]string{"fail": "it failed", "panic": "panic"} {
		res, err := h.Call(soon(t), "mcp__calc__"+name, nil, nil)
		if err != nil || !res.IsError || !strings.Contains(plainText(res), want) {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
	if res, err := h.Call(soon(t), "mcp__calc__add", []byte(`{"a":"x"}`), nil); err != nil || !res.IsError {
		t.Errorf("bad arguments: %+v, %v", res, err)
	}
	if got := text(t, h, "mcp__calc__ask", `{}`); got != "acceptDrcalc your name?" {
		t.Errorf("ask: %q", got)
	}
	var got []Progress
	if _, err := h.Call(soon(t), "mcp__calc__steps", nil, &CallOptions{OnProgress: func(p Progress) { got = append(got, p) }}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]Progress{{1, 3, "step"}, {2, 3, "step"}, {3, 3, "step"}}, got); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := h.Call(ctx, "mcp__calc__hang", nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := h.Call(soon(t), "mcp__calc__hang", nil, &CallOptions{Timeout: 20 * time.Millisecond}); !errors.Is(err, ErrTimeout) {
		t.Errorf("timed out: %v", err)
	}
	s := status(t, h, "calc")
	if s.Transport != TransportSDK || s.Instructions != "count" || s.ServerInfo.Name != "calc" || s.ToolCount != 6 || s.CallTimeout != time.Minute {
		t.Errorf("status: %+v", s)
	}
	tool, _ := h.Tool("mcp__calc__add")
	if !tool.ReadOnly || tool.SearchHint != "sum" || tool.MaxResultSize != 1000 || !json.Valid(tool.InputSchema) || !json.Valid(tool.OutputSchema) {
		t.Errorf("tool: %+v", tool)
	}
}

// Pain 2: one server, many hosts at once.
func TestInProcessServerIsShared(t *testing.T) {
	srv := calculator(nil)
	var wg sync.WaitGroup
	for range 8 {
		h := newHost(t, map[string]ServerConfig{"c": InProcess(srv)})
		wg.Go(func() {
			for i := range 5 {
				res, err := h.Call(t.Context(), "mcp__c__add", fmt.Appendf(nil, `{"a":%d,"b":1}`, i), nil)
				if err != nil || string(res.StructuredContent) != fmt.Sprintf(`{"sum":%d}`, i+1) {
					t.Errorf("got %+v, %v", res, err)
				}
			}
		})
	}
	wg.Wait()
}

// D93: the limits of a server in this process, and who wins over whom.
func TestInProcessLimits(t *testing.T) {
	slow := calculator(&mcpserver.Options{Timeout: 100 * time.Millisecond})
	plain := calculator(nil)
	h := newHost(t, map[string]ServerConfig{
		"own":   InProcess(slow),
		"entry": InProcessServer{Provider: slow, Common: Common{CallTimeout: 200 * time.Millisecond}},
		"env":   InProcess(plain),
	}, func(o *Options) { o.Env = map[string]string{"CLAUDE_AGENT_TOOL_TIMEOUT": "7"} })
	connected(t, h)
	for name, want := range map[string]time.Duration{"own": 100 * time.Millisecond, "entry": 200 * time.Millisecond, "env": 7 * time.Second} {
		if s := status(t, h, name); s.CallTimeout != want {
			t.Errorf("%s: limit %v, want %v", name, s.CallTimeout, want)
		}
	}
	for _, name := range []string{"own", "entry"} {
		if res, err := h.Call(soon(t), "mcp__"+name+"__hang", nil, nil); err != nil || !res.IsError {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
}

// A server of the official library, in this process.
func TestInProcessLibraryServer(t *testing.T) {
	h := newHost(t, map[string]ServerConfig{"lib": InMemory(libraryServer())})
	connected(t, h)
	if got := text(t, h, "mcp__lib__echo", `{"text":"hi"}`); got != "echo: hi" {
		t.Errorf("got %q", got)
	}
	checkFeatures(t, h, "lib")
}

// A fakeProvider plays a server in this process that behaves as its fields say.
type fakeProvider struct {
	open func(ctx context.Context) error
	list func(ctx context.Context) ([]*mcp.Tool, error)
	call func(ctx context.Context, c mcpserver.Call) (*mcpserver.Result, error)
	end  func() // while a session is closed

	mu     sync.Mutex
	opens  int
	notify func(ctx context.Context, n mcpserver.Notification) // of the latest session
}

func (p *fakeProvider) Info() *mcp.Implementation {
	return &mcp.Implementation{Name: "fake", Version: "1"}
}
func (p *fakeProvider) Instructions() string { return "" }
func (p *fakeProvider) Capabilities() *mcp.ServerCapabilities {
	return &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}}
}

func (p *fakeProvider) OpenSession(ctx context.Context, o *mcpserver.SessionOptions) (mcpserver.ServerSession, error) {
	p.mu.Lock()
	p.opens++
	p.notify = o.Notify
	p.mu.Unlock()
	if p.open != nil {
		if err := p.open(ctx); err != nil {
			return nil, err
		}
	}
	return &fakeSession{ServerSession: mcpserver.New("fake", nil).NewSession(nil), p: p}, nil
}

type fakeSession struct {
	mcpserver.ServerSession
	p *fakeProvider
}

func (s *fakeSession) Close() error {
	if s.p.end != nil {
		s.p.end()
	}
	return s.ServerSession.Close()
}

func (s *fakeSession) ListTools(ctx context.Context) ([]*mcp.Tool, error) {
	if s.p.list != nil {
		return s.p.list(ctx)
	}
	return []*mcp.Tool{{Name: "t", InputSchema: json.RawMessage(`{"type":"object"}`)}}, nil
}

func (s *fakeSession) CallTool(ctx context.Context, c mcpserver.Call) (*mcpserver.Result, error) {
	return s.p.call(ctx, c)
}

// A server in this process that panics, lists nonsense or answers nothing is contained.
func TestBadProviders(t *testing.T) {
	h := newHost(t, map[string]ServerConfig{
		"open": InProcess(&fakeProvider{open: func(context.Context) error { panic("open") }}),
		"list": InProcess(&fakeProvider{list: func(context.Context) ([]*mcp.Tool, error) { panic("list") }}),
		"tools": InProcess(&fakeProvider{list: func(context.Context) ([]*mcp.Tool, error) {
			return []*mcp.Tool{nil, {Name: ""}, {Name: "x", InputSchema: 7}, {Name: "y"}}, nil
		}, call: func(context.Context, mcpserver.Call) (*mcpserver.Result, error) { return nil, nil }}),
		"nil":  InProcess(nil),
		"call": InProcess(&fakeProvider{call: func(context.Context, mcpserver.Call) (*mcpserver.Result, error) { panic("call") }}),
	})
	ready(t, h)
	want := map[string]Status{"open": StatusFailed, "list": StatusConnected, "tools": StatusConnected, "nil": StatusFailed, "call": StatusConnected}
	for _, s := range h.Status() {
		if s.Status != want[s.Name] {
			t.Errorf("%s is %s: %v", s.Name, s.Status, s.Err)
		}
	}
	if s := status(t, h, "tools"); len(s.Rejected) != 3 || s.ToolCount != 1 {
		t.Errorf("tools: %+v", s)
	}
	for _, full := range []string{"mcp__call__t", "mcp__tools__y"} {
		var ce *CallError
		if _, err := h.Call(soon(t), full, nil, nil); !errors.As(err, &ce) {
			t.Errorf("%s: %v", full, err)
		}
	}
}

// A call to a server that is still connecting waits for it; its limit counts
// from then on.
func TestCallWaitsForTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvider{
			open: func(ctx context.Context) error { time.Sleep(4 * time.Second); return nil },
			call: func(context.Context, mcpserver.Call) (*mcpserver.Result, error) {
				return mcpserver.Text("late but fine"), nil
			},
		}
		h := newHost(t, map[string]ServerConfig{"slow": InProcess(p)})
		if s := status(t, h, "slow"); s.Status != StatusPending {
			t.Errorf("status %s", s.Status)
		}
		began := time.Now()
		res, err := h.Call(t.Context(), "mcp__slow__t", nil, &CallOptions{Timeout: time.Second})
		if err != nil || plainText(res) != "late but fine" || time.Since(began) != 4*time.Second {
			t.Errorf("got %v, %v after %v", res, err, time.Since(began))
		}
		if _, err := h.Call(t.Context(), "mcp__slow__nothing", nil, nil); !errors.Is(err, ErrUnknownTool) {
			t.Errorf("an unknown tool: %v", err)
		}
		if _, err := h.CallServer(t.Context(), "nobody", "t", nil, nil); !errors.Is(err, ErrUnknownServer) {
			t.Errorf("an unknown server: %v", err)
		}
		h.Close()
	})
}

// ReadyFor waits for the servers that a tool's full name may belong to, and for no other.
func TestReadyForATool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		after := func(d time.Duration) ServerConfig { return InProcess(opensAfter(d)) }
		h := newHost(t, map[string]ServerConfig{"a": after(time.Second), "a__b": after(2 * time.Second), "other": after(time.Hour)})
		began := time.Now()
		for _, tt := range []struct {
			name string
			want time.Duration
		}{{"mcp__nobody__t", 0}, {"mcp__a__t", time.Second}, {"mcp__a__b__t", 2 * time.Second}, {"mcp__a__t", 2 * time.Second}} {
			if err := h.ReadyFor(t.Context(), tt.name); err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			if got := time.Since(began); got != tt.want {
				t.Errorf("%s: ready %v after the start, want %v", tt.name, got, tt.want)
			}
		}
		h.Close()
	})
}

// Pain 22 and F23: the limit for connecting is honoured past 60 s.
func TestConnectTimeoutIsHonoured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var limit time.Duration
		p := &fakeProvider{open: func(ctx context.Context) error {
			d, _ := ctx.Deadline()
			limit = time.Until(d)
			<-ctx.Done()
			return ctx.Err()
		}}
		h := newHost(t, map[string]ServerConfig{"never": InProcess(p)}, func(o *Options) { o.Env = map[string]string{"MCP_TIMEOUT": "100000"} }) // D91
		began := time.Now()
		if err := h.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := status(t, h, "never"); s.Status != StatusFailed || !errors.Is(s.Err, ErrTimeout) || time.Since(began) != 100*time.Second || limit != 100*time.Second {
			t.Errorf("%s after %v: %v", s.Status, time.Since(began), s.Err)
		}
		h.Close()
	})
}

// D84 D104: manual control in any state.
func TestControl(t *testing.T) {
	var down bool
	var mu sync.Mutex
	p := &fakeProvider{
		open: func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			if down {
				return errors.New("closed for lunch")
			}
			return nil
		},
		call: func(context.Context, mcpserver.Call) (*mcpserver.Result, error) { return mcpserver.Text("ok"), nil },
	}
	set := func(d bool) { mu.Lock(); down = d; mu.Unlock() }
	set(true)
	h := newHost(t, map[string]ServerConfig{"p": InProcess(p), "off": InProcessServer{Provider: p, Common: Common{Disabled: true}}})
	ready(t, h)
	ctx := soon(t)
	if err := h.Reconnect(ctx, "p"); err == nil || !strings.Contains(err.Error(), "closed for lunch") {
		t.Errorf("reconnecting a server that is down: %v", err)
	}
	set(false)
	if err := h.Reconnect(ctx, "p"); err != nil || status(t, h, "p").Status != StatusConnected {
		t.Errorf("reconnecting: %v, %s", err, dump(h))
	}
	if err := h.Reconnect(ctx, "p"); err != nil { // in the state of health, too
		t.Errorf("reconnecting again: %v", err)
	}
	if err := h.SetEnabled(ctx, "p", false); err != nil || status(t, h, "p").Status != StatusDisabled || len(h.Tools()) != 0 {
		t.Errorf("switching off: %v, %s, %v", err, dump(h), toolNames(h.Tools()))
	}
	if _, err := h.Call(ctx, "mcp__p__t", nil, nil); !errors.Is(err, ErrDisabled) {
		t.Errorf("calling a server that is off: %v", err)
	}
	if err := h.SetEnabled(ctx, "p", true); err != nil || text(t, h, "mcp__p__t", `{}`) != "ok" {
		t.Errorf("switching on: %v", err)
	}
	if err := h.SetEnabled(ctx, "p", true); err != nil {
		t.Errorf("switching on what is on: %v", err)
	}
	if s := status(t, h, "off"); s.Status != StatusDisabled {
		t.Errorf("off is %s", s.Status)
	}
	if err := h.SetEnabled(ctx, "off", true); err != nil || len(h.Tools()) != 2 {
		t.Errorf("switching on: %v, %v", err, toolNames(h.Tools()))
	}
	for _, err := range []error{h.Reconnect(ctx, "none"), h.SetEnabled(ctx, "none", true), h.Ready(ctx, "none")} {
		if !errors.Is(err, ErrUnknownServer) {
			t.Errorf("an unknown server: %v", err)
		}
	}
}

// A call gives a failed server one more chance.
func TestCallRevivesAFailedServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := false
		p := &fakeProvider{
			open: func(context.Context) error {
				if !up {
					return errors.New("not yet")
				}
				return nil
			},
			call: func(context.Context, mcpserver.Call) (*mcpserver.Result, error) { return mcpserver.Text("ok"), nil },
		}
		h := newHost(t, map[string]ServerConfig{"p": InProcess(p)})
		if err := h.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		call := func() error { _, err := h.CallServer(t.Context(), "p", "t", nil, nil); return err }
		if err := call(); err == nil || p.opens != 2 {
			t.Errorf("first call: %v, %d attempts", err, p.opens)
		}
		if err := call(); err == nil || p.opens != 2 {
			t.Errorf("second call at once: %v, %d attempts", err, p.opens)
		}
		up = true
		time.Sleep(useHold)
		if err := call(); err != nil || p.opens != 3 {
			t.Errorf("later call: %v, %d attempts", err, p.opens)
		}
		h.Close()
	})
}

// Pain 27: servers come and go at run time.
func TestSetServers(t *testing.T) {
	a, b := calculator(nil), calculator(nil)
	h := newHost(t, map[string]ServerConfig{"keep": InProcess(a), "change": child("echo"), "go": InProcess(b)})
	connected(t, h)
	since := status(t, h, "keep").Since
	res, err := h.SetServers(soon(t), map[string]ServerConfig{
		"keep": InProcess(a), "change": child("library"), "new": InProcess(b), "bad": Stdio{Command: "no-such-program"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(SetResult{Added: []string{"bad", "new"}, Removed: []string{"go"}, Changed: []string{"change"}}, SetResult{Added: res.Added, Removed: res.Removed, Changed: res.Changed}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(res.Errors) != 1 || res.Errors["bad"] == nil {
		t.Errorf("errors: %v", res.Errors)
	}
	if got := text(t, h, "mcp__change__echo", `{"text":"x"}`); got != "echo: x" {
		t.Errorf("changed server: %q", got)
	}
	if status(t, h, "keep").Since != since {
		t.Error("a server that did not change was connected anew")
	}
	if _, err := h.Call(soon(t), "mcp__go__add", nil, nil); !errors.Is(err, ErrUnknownTool) {
		t.Errorf("calling a removed server: %v", err)
	}
	if _, err := h.SetServers(soon(t), map[string]ServerConfig{"x": nil}); err == nil {
		t.Error("a server without configuration was taken")
	}
}

// Watching ends with the watcher's context and with the host.
func TestWatch(t *testing.T) {
	h := newHost(t, map[string]ServerConfig{"c": InProcess(calculator(nil))})
	ctx, cancel := context.WithCancel(t.Context())
	a, b := h.Watch(ctx), h.Watch(t.Context())
	connected(t, h)
	cancel()
	for range a {
	}
	if err := h.SetEnabled(soon(t), "c", false); err != nil {
		t.Fatal(err)
	}
	for ev := range b {
		if ev.Server == "c" && ev.Status == StatusDisabled {
			break
		}
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	for range b {
	}
	for range h.Watch(t.Context()) {
		t.Error("an event after Close")
	}
}
