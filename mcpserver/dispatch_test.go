package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// goroutine is the number of the goroutine that runs.
func goroutine() string {
	var buf [64]byte
	return strings.Fields(string(buf[:runtime.Stack(buf[:], false)]))[1]
}

// named is a middleware that records its name when it is called.
func named(log *[]string, name string) Middleware {
	var mu sync.Mutex
	return func(ctx context.Context, inv *Invocation, next func(context.Context) error) error {
		mu.Lock()
		*log = append(*log, name+" "+string(inv.Kind)+" "+inv.Name)
		mu.Unlock()
		return next(ctx)
	}
}

// pairServer has a tool, a resource and a prompt that report where they run.
func pairServer(t *testing.T, o *Options) (s *Server, ran *string) {
	t.Helper()
	s = newTestServer(t, o)
	ran = new(string)
	addRaw(t, s, "tool", func(context.Context, json.RawMessage) (*Result, error) {
		*ran = goroutine()
		return Text("ok"), nil
	})
	if err := errors.Join(
		s.AddResource(&mcp.Resource{URI: "mem:r"}, func(context.Context) (*mcp.ReadResourceResult, error) {
			*ran = goroutine()
			return TextResource("mem:r", "", "r"), nil
		}),
		s.AddPrompt(&mcp.Prompt{Name: "prompt"}, func(context.Context, map[string]string) (*mcp.GetPromptResult, error) {
			*ran = goroutine()
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{}}, nil
		})); err != nil {
		t.Fatal(err)
	}
	return s, ran
}

// all calls the tool, the resource and the prompt through c and returns how
// often that happened in this goroutine.
func all(t *testing.T, c ServerSession, ran *string) (inline int) {
	t.Helper()
	here := goroutine()
	_, err := c.CallTool(t.Context(), Call{Name: "tool"})
	if *ran == here {
		inline++
	}
	_, err2 := c.ReadResource(t.Context(), "mem:r")
	if *ran == here {
		inline++
	}
	_, err3 := c.GetPrompt(t.Context(), "prompt", nil)
	if *ran == here {
		inline++
	}
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	return inline
}

// direct makes direct calls look like a session.
type direct struct {
	ServerSession
	s *Server
}

func (d direct) CallTool(ctx context.Context, c Call) (*Result, error) {
	return d.s.CallTool(ctx, c.Name, c.Arguments)
}

func (d direct) ReadResource(ctx context.Context, uri string) (*mcp.ReadResourceResult, error) {
	return d.s.ReadResource(ctx, uri)
}

func (d direct) GetPrompt(ctx context.Context, name string, args map[string]string) (*mcp.GetPromptResult, error) {
	return d.s.GetPrompt(ctx, name, args)
}

// R10 R11 R12 R13 R35 R54 R59
func TestDirectCallsFollowTheServersPair(t *testing.T) {
	var log []string
	s, ran := pairServer(t, nil)
	if sc, m := s.Dispatch(); sc != Concurrent || m != nil {
		t.Errorf("default dispatch: %v, %p", sc, m)
	}
	if n := all(t, direct{s: s}, ran); n != 0 {
		t.Errorf("by default %d of 3 ran in the caller's goroutine", n)
	}
	s.SetDispatch(Inline, named(&log, "own"))
	if sc, m := s.Dispatch(); sc != Inline || m == nil {
		t.Errorf("pair after SetDispatch: %v, %p", sc, m)
	}
	if n := all(t, direct{s: s}, ran); n != 3 {
		t.Errorf("inline: %d of 3 ran in the caller's goroutine", n)
	}
	want := "own tool tool,own resource mem:r,own prompt prompt"
	if got := strings.Join(log, ","); got != want {
		t.Errorf("middleware: got %s, want %s", got, want)
	}
	s, ran = pairServer(t, &Options{Scheduling: Inline})
	if n := all(t, direct{s: s}, ran); n != 3 {
		t.Errorf("inline by option: %d of 3 ran in the caller's goroutine", n)
	}
}

// R14 R15 R16 R17 R18 R35
func TestSessionsFollowTheirOwnPair(t *testing.T) {
	var log []string
	s, ran := pairServer(t, &Options{Scheduling: Inline, Middleware: named(&log, "server")})
	plain := s.NewSession(nil)
	inline := s.NewSession(&SessionOptions{Scheduling: Inline, Middleware: named(&log, "session")})
	if n := all(t, plain, ran); n != 0 || len(log) != 0 {
		t.Errorf("a session without a dispatch: %d inline, middleware %q", n, log)
	}
	if n := all(t, inline, ran); n != 3 || len(log) != 3 || !strings.HasPrefix(log[0], "session") {
		t.Errorf("a session with a dispatch: %d inline, middleware %q", n, log)
	}
	if sc, m := s.Dispatch(); sc != Inline || m == nil {
		t.Error("a session changed the server's pair")
	}
	_ = plain.Close()
	_ = inline.Close()
	log = nil
	if n := all(t, direct{s: s}, ran); n != 3 || len(log) != 3 || !strings.HasPrefix(log[0], "server") {
		t.Errorf("after the sessions: %d inline, middleware %q", n, log)
	}
}

// R17 R21
func TestConcurrentSessionsSeeTheirOwnPair(t *testing.T) {
	s := newTestServer(t, nil)
	addRaw(t, s, "pair", func(ctx context.Context, _ json.RawMessage) (*Result, error) {
		sc, m := RequestFrom(ctx).Dispatch()
		return Text(fmt.Sprint(sc, m != nil)), nil
	})
	pass := func(ctx context.Context, _ *Invocation, next func(context.Context) error) error { return next(ctx) }
	var wg sync.WaitGroup
	for i := range 16 {
		o := &SessionOptions{Scheduling: Scheduling(i % 2)}
		if i%4 < 2 {
			o.Middleware = pass
		}
		want := fmt.Sprint(o.Scheduling, o.Middleware != nil)
		wg.Go(func() {
			ss := s.NewSession(o)
			defer ss.Close()
			for range 50 {
				r, err := ss.CallTool(t.Context(), Call{Name: "pair"})
				if err != nil || r.Text() != want {
					t.Errorf("got %v, %v; want %s", r.Text(), err, want)
					return
				}
			}
		})
	}
	wg.Wait()
	wantText(t, s, "pair", ``, "concurrent false", false)
}

// R60 R18
func TestNestedDirectCallsUseTheSessionsPairWhileItIsLive(t *testing.T) {
	s := newTestServer(t, nil)
	addRaw(t, s, "inner", func(ctx context.Context, _ json.RawMessage) (*Result, error) {
		sc, m := RequestFrom(ctx).Dispatch()
		return Text(strings.TrimSpace(fmt.Sprintf("%v %v %s", sc, m != nil, RequestFrom(ctx).SessionID))), nil
	})
	var leaked context.Context
	addRaw(t, s, "outer", func(ctx context.Context, args json.RawMessage) (*Result, error) {
		leaked = ctx
		started := make(chan *Result)
		go func() {
			r, err := s.CallTool(ctx, "inner", nil)
			if err != nil {
				r = Errorf("%v", err)
			}
			started <- r
		}()
		r, err := s.CallTool(ctx, "inner", nil)
		if err != nil {
			return nil, err
		}
		if other := <-started; other.Text() != r.Text() {
			return nil, fmt.Errorf("a goroutine of the handler saw %s, the handler %s", other.Text(), r.Text())
		}
		switch string(args) {
		case `{"end":"fail"}`:
			return nil, errTest
		case `{"end":"panic"}`:
			panic("test")
		}
		return r, nil
	})
	pass := func(ctx context.Context, _ *Invocation, next func(context.Context) error) error { return next(ctx) }
	ss := s.NewSession(&SessionOptions{ID: "s1", Scheduling: Inline, Middleware: pass})
	defer ss.Close()
	r, err := ss.CallTool(t.Context(), Call{Name: "outer"})
	if err != nil || r.Text() != "inline true s1" {
		t.Errorf("within the dispatch: %v, %v; want the session's pair", r.Text(), err)
	}
	for _, end := range []string{``, `{"end":"fail"}`, `{"end":"panic"}`} {
		if _, err := ss.CallTool(t.Context(), Call{Name: "outer", Arguments: json.RawMessage(end)}); err != nil {
			t.Fatal(err)
		}
		after := context.WithoutCancel(leaked) // a goroutine that outlives its call
		r, err = s.CallTool(after, "inner", nil)
		if err != nil || r.Text() != "concurrent false" {
			t.Errorf("after a dispatch that ended with %q: %v, %v; want the server's pair", end, r.Text(), err)
		}
		if sc, m := RequestFrom(leaked).Dispatch(); sc != Concurrent || m != nil {
			t.Errorf("after the dispatch its context says %v, %v", sc, m != nil)
		}
	}
}

// R60 R20: a dispatch that ran over its time closes its scope too, also while its handler goes on.
func TestAScopeClosesAtTheTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New("test", &Options{LookupEnv: none})
		defer s.Close()
		addRaw(t, s, "inner", func(ctx context.Context, _ json.RawMessage) (*Result, error) {
			sc, m := RequestFrom(ctx).Dispatch()
			return Text(fmt.Sprint(sc, m != nil, RequestFrom(ctx).SessionID)), nil
		})
		seen := make(chan string, 1)
		look := func(ctx context.Context) {
			r, err := s.CallTool(context.WithoutCancel(ctx), "inner", nil)
			if err != nil {
				t.Error(err)
				r = Text("")
			}
			seen <- r.Text()
		}
		late := make(chan struct{})
		addRaw(t, s, "deaf", func(ctx context.Context, _ json.RawMessage) (*Result, error) {
			<-late
			look(ctx)
			return Text("too late"), nil
		})
		var leaked context.Context
		addRaw(t, s, "polite", func(ctx context.Context, _ json.RawMessage) (*Result, error) {
			leaked = ctx
			<-ctx.Done()
			return nil, ctx.Err()
		})
		pass := func(ctx context.Context, _ *Invocation, next func(context.Context) error) error { return next(ctx) }
		for _, sc := range []Scheduling{Concurrent, Inline} {
			ss := s.NewSession(&SessionOptions{ID: "s1", Scheduling: sc, Middleware: pass, Timeout: time.Second})
			defer ss.Close()
			name := map[Scheduling]string{Concurrent: "deaf", Inline: "polite"}[sc]
			r, err := ss.CallTool(t.Context(), Call{Name: name})
			if err != nil || !strings.Contains(r.Text(), "timed out") {
				t.Fatalf("%s: %v, %v", name, r.Text(), err)
			}
			if sc == Concurrent {
				close(late)
			} else {
				look(leaked)
			}
			if got := <-seen; got != "concurrent false" {
				t.Errorf("%s: a call after the limit saw %q, want the server's pair", name, got)
			}
		}
	})
}

// R19 R20
func TestAScopeThatClosesNeverYieldsHalves(t *testing.T) {
	pass := func(ctx context.Context, _ *Invocation, next func(context.Context) error) error { return next(ctx) }
	s := newTestServer(t, nil) // its own dispatch: concurrent, none
	addRaw(t, s, "inner", func(ctx context.Context, _ json.RawMessage) (*Result, error) {
		sc, m := RequestFrom(ctx).Dispatch()
		return Text(fmt.Sprint(sc, m != nil)), nil
	})
	var leak func(context.Context)
	addRaw(t, s, "outer", func(ctx context.Context, _ json.RawMessage) (*Result, error) {
		leak(context.WithoutCancel(ctx))
		return Text(""), nil
	})
	ss := s.NewSession(&SessionOptions{Scheduling: Inline, Middleware: pass})
	defer ss.Close()
	seen := map[string]int{}
	for range 300 {
		var wg sync.WaitGroup
		results := make(chan string, 2)
		leak = func(ctx context.Context) {
			for range 2 { // these race with the end of the dispatch
				wg.Go(func() {
					if r, err := s.CallTool(ctx, "inner", nil); err == nil {
						results <- r.Text()
					}
				})
			}
			runtime.Gosched()
		}
		if _, err := ss.CallTool(t.Context(), Call{Name: "outer"}); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		close(results)
		for r := range results {
			seen[r]++
		}
	}
	for pair, n := range seen {
		// An inline call may find its scope closed: then the server's pair is what it reads.
		if pair != "inline true" && pair != "concurrent false" {
			t.Errorf("%d calls saw the pair %q", n, pair)
		}
	}
}

// R61
func TestErrorsOfTheMiddlewareAreInBand(t *testing.T) {
	var log logBuffer
	s := newTestServer(t, &Options{Logger: log.logger()})
	addRaw(t, s, "tool", returns(Text("ok"), nil))
	addRaw(t, s, "fail", returns(nil, errTest))
	for name, m := range map[string]Middleware{
		"before": func(context.Context, *Invocation, func(context.Context) error) error { return errors.New("not today") },
		"after": func(ctx context.Context, _ *Invocation, next func(context.Context) error) error {
			return errors.Join(next(ctx), errors.New("not today"))
		},
	} {
		s.SetDispatch(Concurrent, m)
		if got, isError := callText(t, s, "tool", ``); got != "not today" || !isError {
			t.Errorf("%s: got %q, %v", name, got, isError)
		}
	}
	s.SetDispatch(Inline, func(context.Context, *Invocation, func(context.Context) error) error { panic("in the middleware") })
	wantText(t, s, "tool", ``, "Tool 'tool' failed: internal error", true)
	if !strings.Contains(log.String(), "in the middleware") {
		t.Error("the panic was not logged")
	}
	s.SetDispatch(Concurrent, func(ctx context.Context, _ *Invocation, next func(context.Context) error) error {
		_ = next(ctx)
		return nil
	})
	wantFailure(t, s, "fail", ``, "must return a *mcpserver.Result with content, and its handler returned nil")
}

func TestAMiddlewareSeesAndReplacesTheResult(t *testing.T) {
	s := newTestServer(t, nil)
	addRaw(t, s, "tool", func(ctx context.Context, _ json.RawMessage) (*Result, error) {
		v, _ := ctx.Value(testKey{}).(string)
		return Text("handler " + v), nil
	})
	s.SetDispatch(Concurrent, func(ctx context.Context, inv *Invocation, next func(context.Context) error) error {
		if inv.Result != nil || string(inv.Arguments) != `{"a":1}` {
			t.Errorf("before: %+v", inv)
		}
		if err := next(context.WithValue(ctx, testKey{}, "value")); err != nil {
			return err
		}
		inv.Result = Text("seen " + inv.Result.Text())
		return nil
	})
	wantText(t, s, "tool", `{"a":1}`, "seen handler value", false)
}

type testKey struct{}
