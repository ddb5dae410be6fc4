package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A mailbox is a session's Notify.
type mailbox struct {
	mu  sync.Mutex
	got []string
}

func (m *mailbox) notify(_ context.Context, n Notification) {
	text := strings.TrimPrefix(n.Method, "notifications/")
	switch p := n.Params.(type) {
	case *mcp.ResourceUpdatedNotificationParams:
		text += " " + p.URI
	case *mcp.ProgressNotificationParams:
		text += fmt.Sprintf(" %v %v/%v %s", p.ProgressToken, p.Progress, p.Total, p.Message)
	case *mcp.LoggingMessageParams:
		text += fmt.Sprintf(" %s %s %v", p.Level, p.Logger, p.Data)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.got = append(m.got, text)
}

// take returns what came, and forgets it.
func (m *mailbox) take() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	got := strings.Join(m.got, "; ")
	m.got = nil
	return got
}

func TestListChangesReachEverySession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New("test", &Options{LookupEnv: none})
		defer s.Close()
		boxes := make([]mailbox, 3)
		for i := range boxes {
			defer s.NewSession(&SessionOptions{Notify: boxes[i].notify}).Close()
		}
		silent := s.NewSession(nil)
		defer silent.Close()
		read := func(context.Context) (*mcp.ReadResourceResult, error) { return TextResource("mem:a", "", ""), nil }
		prompt := func(context.Context, map[string]string) (*mcp.GetPromptResult, error) { return nil, nil }
		steps := []struct {
			name string
			do   func()
			want string
		}{
			{"add tool", func() { addRaw(t, s, "a", returns(nil, nil)) }, "tools/list_changed"},
			{"remove tool", func() { s.RemoveTool("a") }, "tools/list_changed"},
			{"remove nothing", func() { s.RemoveTool("a"); s.RemovePrompt("x"); s.RemoveResource("mem:x") }, ""},
			{"rejected", func() { _ = s.AddTool(&Tool{Name: "a b"}, returns(nil, nil)) }, ""},
			{"add resource", func() { _ = s.AddResource(&mcp.Resource{URI: "mem:a"}, read) }, "resources/list_changed"},
			{"remove resource", func() { s.RemoveResource("mem:a") }, "resources/list_changed"},
			{"add template", func() {
				_ = s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "mem:{x}"}, func(context.Context, string, map[string]string) (*mcp.ReadResourceResult, error) { return nil, nil })
			}, "resources/list_changed"},
			{"remove template", func() { s.RemoveResourceTemplate("mem:{x}") }, "resources/list_changed"},
			{"add prompt", func() { _ = s.AddPrompt(&mcp.Prompt{Name: "p"}, prompt) }, "prompts/list_changed"},
			{"remove prompt", func() { s.RemovePrompt("p") }, "prompts/list_changed"},
		}
		for _, step := range steps {
			step.do()
			synctest.Wait()
			for i := range boxes {
				if got := boxes[i].take(); got != step.want {
					t.Errorf("%s: session %d got %q, want %q", step.name, i, got, step.want)
				}
			}
		}
	})
}

// F09.
func TestABurstCostsASlowClientFewMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New("test", &Options{LookupEnv: none})
		defer s.Close()
		var box mailbox
		ss := s.NewSession(&SessionOptions{Notify: func(ctx context.Context, n Notification) {
			time.Sleep(time.Second)
			box.notify(ctx, n)
		}})
		defer ss.Close()
		start := time.Now()
		for i := range 100 {
			addRaw(t, s, fmt.Sprint("t", i), returns(nil, nil))
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("registration waited %v for a client", took)
		}
		time.Sleep(time.Hour)
		if got := box.take(); got != "tools/list_changed; tools/list_changed" && got != "tools/list_changed" {
			t.Errorf("got %q", got)
		}
		if tools, err := ss.ListTools(t.Context()); err != nil || len(tools) != 100 {
			t.Errorf("%d tools, %v", len(tools), err)
		}
	})
}

func TestSubscriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []string
		s := New("test", &Options{
			LookupEnv: none,
			Subscribe: func(_ context.Context, uri string) error {
				if uri == "mem:secret" {
					return errTest
				}
				calls = append(calls, "+"+uri)
				return nil
			},
			Unsubscribe: func(_ context.Context, uri string) error {
				calls = append(calls, "-"+uri)
				return nil
			},
		})
		defer s.Close()
		for _, uri := range []string{"mem:a", "mem:secret"} {
			if err := s.AddResource(&mcp.Resource{URI: uri}, func(context.Context) (*mcp.ReadResourceResult, error) { return nil, nil }); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "row:{id}"}, func(context.Context, string, map[string]string) (*mcp.ReadResourceResult, error) { return nil, nil }); err != nil {
			t.Fatal(err)
		}
		var first, second mailbox
		a, b := s.NewSession(&SessionOptions{Notify: first.notify}), s.NewSession(&SessionOptions{Notify: second.notify})
		defer a.Close()
		defer b.Close()
		if err := errors.Join(a.Subscribe(t.Context(), "mem:a"), a.Subscribe(t.Context(), "row:7"), b.Subscribe(t.Context(), "row:8")); err != nil {
			t.Fatal(err)
		}
		var missing *NotFoundError
		if err := a.Subscribe(t.Context(), "mem:nobody"); !errors.As(err, &missing) {
			t.Errorf("unknown resource: %v", err)
		}
		if err := a.Subscribe(t.Context(), "mem:secret"); !errors.Is(err, errTest) {
			t.Errorf("refused subscription: %v", err)
		}
		s.NotifyResourceUpdated("mem:a")
		s.NotifyResourceUpdated("row:7")
		s.NotifyResourceUpdated("mem:secret")
		synctest.Wait()
		if got := first.take(); got != "resources/updated mem:a; resources/updated row:7" {
			t.Errorf("a got %q", got)
		}
		if got := second.take(); got != "" {
			t.Errorf("b got %q", got)
		}
		if err := errors.Join(a.Unsubscribe(t.Context(), "mem:a"), a.Unsubscribe(t.Context(), "mem:a")); err != nil {
			t.Fatal(err)
		}
		s.NotifyResourceUpdated("mem:a")
		synctest.Wait()
		if got := first.take(); got != "" {
			t.Errorf("after unsubscribing a got %q", got)
		}
		if got := strings.Join(calls, " "); got != "+mem:a +row:7 +row:8 -mem:a" {
			t.Errorf("callbacks: %s", got)
		}
	})
}

func TestProgressAndLogMessages(t *testing.T) {
	s := newTestServer(t, nil)
	var late func() error
	addRaw(t, s, "talk", func(ctx context.Context, _ json.RawMessage) (*Result, error) {
		r := RequestFrom(ctx)
		late = func() error { return r.Progress(context.WithoutCancel(ctx), 2, 2, "late") }
		return Text(""), errors.Join(
			r.Progress(ctx, 1, 2, "half"), r.Log(ctx, "debug", "x", "fine"), r.Log(ctx, "warning", "x", map[string]int{"n": 1}),
			r.Log(ctx, "nonsense", "x", 1))
	})
	var box mailbox
	ss := s.NewSession(&SessionOptions{Notify: box.notify})
	defer ss.Close()
	call := func(c Call) string {
		t.Helper()
		c.Name = "talk"
		if r, err := ss.CallTool(t.Context(), c); err != nil || r.IsError {
			t.Fatalf("%+v, %v", r, err)
		}
		return box.take()
	}
	if got, want := call(Call{ProgressToken: "p"}), "progress p 1/2 half; message debug x fine; message warning x map[n:1]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := late(); !errors.Is(err, ErrCallEnded) {
		t.Errorf("progress after the end: %v", err)
	}
	if got := call(Call{}); strings.Contains(got, "progress") {
		t.Errorf("progress without a token: %q", got)
	}
	if err := ss.SetLevel(t.Context(), "warning"); err != nil {
		t.Fatal(err)
	}
	if got, want := call(Call{}), "message warning x map[n:1]"; got != want {
		t.Errorf("from warning up: got %q, want %q", got, want)
	}
	if got := call(Call{Meta: mcp.Meta{metaLogLevel: "emergency"}}); got != "" {
		t.Errorf("a request that wants less: %q", got)
	}
	if err := ss.SetLevel(t.Context(), "loud"); err == nil {
		t.Error("an unknown level was taken")
	}
	if got := box.take(); got != "" {
		t.Errorf("left over: %q", got)
	}
}

func TestDirectCallsLogToTheLogger(t *testing.T) {
	var log logBuffer
	s := newTestServer(t, &Options{Logger: log.logger()})
	addRaw(t, s, "talk", func(ctx context.Context, _ json.RawMessage) (*Result, error) {
		r := RequestFrom(ctx)
		if _, err := r.Elicit(ctx, &mcp.ElicitParams{}); !errors.Is(err, ErrNotSupported) {
			return nil, fmt.Errorf("elicitation: %w", err)
		}
		if _, err := r.Sample(ctx, &mcp.CreateMessageParams{}); !errors.Is(err, ErrNotSupported) {
			return nil, fmt.Errorf("sampling: %w", err)
		}
		if _, err := r.ListRoots(ctx); !errors.Is(err, ErrNotSupported) {
			return nil, fmt.Errorf("roots: %w", err)
		}
		return Text("ok"), errors.Join(r.Progress(ctx, 1, 1, ""), r.Log(ctx, "error", "shelf", "it is empty"))
	})
	wantText(t, s, "talk", ``, "ok", false)
	if got := log.String(); !strings.Contains(got, "level=ERROR") || !strings.Contains(got, "it is empty") {
		t.Errorf("log: %s", got)
	}
	empty := RequestFrom(t.Context())
	if err := errors.Join(empty.Progress(t.Context(), 1, 1, ""), empty.Log(t.Context(), "info", "", "")); err != nil {
		t.Errorf("outside of calls: %v", err)
	}
}

func TestAskingTheClient(t *testing.T) {
	s := newTestServer(t, nil)
	addRaw(t, s, "ask", func(ctx context.Context, _ json.RawMessage) (*Result, error) {
		r := RequestFrom(ctx)
		answer, err := r.Elicit(ctx, &mcp.ElicitParams{Message: "name?"})
		if err != nil {
			return nil, err
		}
		said, err := r.Sample(ctx, &mcp.CreateMessageParams{SystemPrompt: "hi"})
		if err != nil {
			return nil, err
		}
		roots, err := r.ListRoots(ctx)
		if err != nil {
			return nil, err
		}
		return Text(fmt.Sprint(answer.Action, answer.Content["name"], said.Model, len(roots))), nil
	})
	ss := s.NewSession(&SessionOptions{
		Elicit: func(_ context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": p.Message + "Ada"}}, nil
		},
		Sample: func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Model: "m"}, nil
		},
		ListRoots: func(context.Context) ([]*mcp.Root, error) { return []*mcp.Root{{}}, nil },
	})
	defer ss.Close()
	r, err := ss.CallTool(t.Context(), Call{Name: "ask"})
	if err != nil || r.Text() != "acceptname?Adam1" {
		t.Errorf("%v, %v", r.Text(), err)
	}
}

// The handler gets the client's error, and never a root that is null.
//
// fault F8
func TestErrorsOfRootsReachHandlers(t *testing.T) {
	var log logBuffer
	s := newTestServer(t, &Options{Logger: log.logger()})
	addRaw(t, s, "roots", func(ctx context.Context, _ json.RawMessage) (*Result, error) {
		roots, err := RequestFrom(ctx).ListRoots(ctx)
		return Text(fmt.Sprint(len(roots))), err
	})
	for name, tt := range map[string]struct {
		roots func(context.Context) ([]*mcp.Root, error)
		want  string
		fails bool
	}{
		"an error":    {func(context.Context) ([]*mcp.Root, error) { return nil, errors.New("the disk is gone") }, "the disk is gone", true},
		"a panic":     {func(context.Context) ([]*mcp.Root, error) { panic("secret") }, "SessionOptions.ListRoots panicked", true},
		"a null root": {func(context.Context) ([]*mcp.Root, error) { return []*mcp.Root{nil}, nil }, "root 0 is null", true},
		"none":        {func(context.Context) ([]*mcp.Root, error) { return nil, nil }, "0", false},
	} {
		ss := s.NewSession(&SessionOptions{ListRoots: tt.roots})
		r, err := ss.CallTool(t.Context(), Call{Name: "roots"})
		if err != nil || r.IsError != tt.fails || !strings.Contains(r.Text(), tt.want) || strings.Contains(r.Text(), "secret") {
			t.Errorf("%s: %+v, %v; want %s", name, r, err, tt.want)
		}
		_ = ss.Close()
	}
	if !strings.Contains(log.String(), "secret") {
		t.Errorf("the panic is not in the log: %s", log.String())
	}
}

func TestCloseEndsCallsAndIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logBuffer
		s := New("test", &Options{LookupEnv: none, Logger: log.logger()})
		defer s.Close()
		deaf := make(chan struct{})
		addRaw(t, s, "polite", func(ctx context.Context, _ json.RawMessage) (*Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		addRaw(t, s, "deaf", func(context.Context, json.RawMessage) (*Result, error) {
			<-deaf
			return Text(""), nil
		})
		for _, tool := range []string{"polite", "deaf"} {
			ss := s.NewSession(&SessionOptions{Scheduling: Concurrent})
			errs := make(chan error, 1)
			go func() {
				_, err := ss.CallTool(t.Context(), Call{Name: tool})
				errs <- err
			}()
			synctest.Wait()
			start := time.Now()
			closed := make(chan struct{}, 3)
			for range 3 { // from several goroutines at once
				go func() {
					_ = ss.Close()
					closed <- struct{}{}
				}()
			}
			for range 3 {
				<-closed
			}
			took := time.Since(start)
			if tool == "polite" && took != 0 || took > 2*time.Second {
				t.Errorf("%s: Close took %v", tool, took)
			}
			if err := <-errs; !errors.Is(err, ErrClosed) {
				t.Errorf("%s: the call ended with %v", tool, err)
			}
			if _, err := ss.CallTool(t.Context(), Call{Name: tool}); !errors.Is(err, ErrClosed) {
				t.Errorf("%s: a call after Close: %v", tool, err)
			}
			if _, err := ss.ListTools(t.Context()); !errors.Is(err, ErrClosed) {
				t.Errorf("%s: a list after Close: %v", tool, err)
			}
		}
		if !strings.Contains(log.String(), "handlers still run") {
			t.Errorf("the deaf handler is not logged: %s", log.String())
		}
		close(deaf)
		wantText(t, s, "deaf", ``, "", false) // other sessions and direct calls go on
	})
}

func TestCloseOfTheServerEndsItsSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New("test", &Options{LookupEnv: none})
		var ended sync.WaitGroup
		addRaw(t, s, "wait", func(ctx context.Context, _ json.RawMessage) (*Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		for i := range 4 {
			ss := s.NewSession(&SessionOptions{Scheduling: Scheduling(i % 2)})
			ended.Go(func() {
				if _, err := ss.CallTool(t.Context(), Call{Name: "wait"}); !errors.Is(err, ErrClosed) {
					t.Errorf("session %d: %v", i, err)
				}
			})
		}
		synctest.Wait()
		_ = s.Close()
		ended.Wait()
	})
}

// R46 R57
func TestManySessionsAtOnce(t *testing.T) {
	s := newTestServer(t, nil)
	MustAddTool(s, &Tool{Name: "echo", ReadOnly: true}, func(ctx context.Context, in struct {
		N int `json:"n"`
	}) (struct {
		N       int
		Session string
		ID      string
	}, error,
	) {
		r := RequestFrom(ctx)
		_ = r.Progress(ctx, float64(in.N), 0, r.SessionID)
		return struct {
			N       int
			Session string
			ID      string
		}{in.N, r.SessionID, r.RequestID}, nil
	})
	addRaw(t, s, "wait", func(ctx context.Context, _ json.RawMessage) (*Result, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	addRaw(t, s, "nested", func(ctx context.Context, args json.RawMessage) (*Result, error) { return s.CallTool(ctx, "echo", args) })
	if err := s.AddTool(&Tool{Name: "serial", Concurrency: Serial}, returns(Text("s"), nil)); err != nil {
		t.Fatal(err)
	}
	if err := s.AddResource(&mcp.Resource{URI: "mem:a"}, func(context.Context) (*mcp.ReadResourceResult, error) { return TextResource("mem:a", "", "a"), nil }); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() { session(t, s, i) })
	}
	for i := range 4 {
		wg.Go(func() {
			for n := range 50 {
				name := fmt.Sprintf("extra-%d-%d", i, n)
				addRaw(t, s, name, returns(Text(name), nil))
				s.NotifyResourceUpdated("mem:a")
				s.SetDispatch(Scheduling(n%2), nil)
				s.RemoveTool(name)
			}
		})
	}
	wg.Wait()
	if tools := s.ListTools(); len(tools) != 4 {
		t.Errorf("%d tools are left", len(tools))
	}
	if s.mu.Lock(); len(s.sessions) != 0 {
		t.Errorf("%d sessions are left", len(s.sessions))
	}
	s.mu.Unlock()
}

// session is the life of one of many sessions.
func session(t *testing.T, s *Server, i int) {
	rnd := rand.New(rand.NewPCG(uint64(i), 1))
	id := fmt.Sprint("s", i)
	var progress []string
	var mu sync.Mutex
	ss := s.NewSession(&SessionOptions{ID: id, Scheduling: Scheduling(i % 2), Notify: func(_ context.Context, n Notification) {
		if p, ok := n.Params.(*mcp.ProgressNotificationParams); ok {
			mu.Lock()
			defer mu.Unlock()
			progress = append(progress, p.Message)
		}
	}})
	if err := ss.Subscribe(t.Context(), "mem:a"); err != nil {
		t.Error(err)
	}
	for n := range 30 {
		c := Call{Name: "echo", Arguments: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)), RequestID: fmt.Sprint(i*1000 + n), ProgressToken: n}
		switch rnd.IntN(8) {
		case 0:
			ctx, cancel := context.WithCancel(t.Context())
			go cancel()
			if _, err := ss.CallTool(ctx, Call{Name: "wait"}); !errors.Is(err, context.Canceled) {
				t.Errorf("a cancelled call: %v", err)
			}
		case 1:
			if r, err := ss.CallTool(t.Context(), Call{Name: "serial"}); err != nil || r.Text() != "s" {
				t.Errorf("serial: %+v, %v", r, err)
			}
		case 2:
			if _, err := ss.ListTools(t.Context()); err != nil {
				t.Error(err)
			}
			if r, err := ss.ReadResource(t.Context(), "mem:a"); err != nil || r.Contents[0].Text != "a" {
				t.Errorf("resource: %+v, %v", r, err)
			}
		case 3:
			if r, err := ss.CallTool(t.Context(), Call{Name: "echo", Arguments: json.RawMessage(`{"n":"x"}`)}); err != nil || !r.IsError {
				t.Errorf("wrong arguments: %+v, %v", r, err)
			}
		case 4:
			c.Name = "nested"
			fallthrough
		default:
			r, err := ss.CallTool(t.Context(), c)
			if err != nil {
				t.Errorf("echo: %v", err)
				continue
			}
			want := fmt.Sprintf(`{"N":%d,"Session":%q,"ID":%q}`, n, id, c.RequestID)
			if c.Name == "nested" { // a call of its own: no request carried it
				want = fmt.Sprintf(`{"N":%d,"Session":%q,"ID":""}`, n, id)
			}
			if r.Text() != want {
				t.Errorf("got %s, want %s", r.Text(), want)
			}
		}
	}
	if i%3 == 0 { // close with a call under way
		go func() { _, _ = ss.CallTool(t.Context(), Call{Name: "wait"}) }()
	}
	if err := ss.Close(); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if slices.ContainsFunc(progress, func(p string) bool { return p != id }) {
		t.Errorf("session %s got the progress of others: %v", id, progress)
	}
}
