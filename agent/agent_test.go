package agent

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/permission"
)

// A script is an engine whose sessions say the same whatever they hear.
type script struct {
	messages []Message
	end      error // what Receive returns after them
	openErr  error

	opened   *Options
	sessions []*scriptSession
}

func (*script) Name() string { return "script" }

func (e *script) Open(_ context.Context, o *Options) (Session, error) {
	e.opened = o
	if e.openErr != nil {
		return nil, e.openErr
	}
	s := &scriptSession{left: slices.Clone(e.messages), end: e.end, closed: make(chan struct{})}
	e.sessions = append(e.sessions, s)
	return s, nil
}

type scriptSession struct {
	end    error
	closed chan struct{}

	mu    sync.Mutex // guards the rest
	left  []Message
	heard []string
	once  sync.Once
}

func (s *scriptSession) note(what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = append(s.heard, what)
	return nil
}

func (s *scriptSession) Send(_ context.Context, in *Input) error {
	return s.note("send " + in.Content.Text())
}
func (s *scriptSession) EndInput() error                 { return s.note("end") }
func (s *scriptSession) Interrupt(context.Context) error { return s.note("interrupt") }
func (s *scriptSession) SetModel(_ context.Context, m string) error {
	return s.note("model " + m)
}

func (s *scriptSession) SetPermissionMode(_ context.Context, m permission.Mode) error {
	return s.note("mode " + string(m))
}

func (s *scriptSession) ContextUsage(context.Context) (*ContextUsage, error) {
	return &ContextUsage{TotalTokens: 7}, s.note("context")
}

func (s *scriptSession) MCPStatus(context.Context) ([]mcphost.ServerStatus, error) {
	return []mcphost.ServerStatus{{Name: "a"}}, s.note("status")
}

func (s *scriptSession) ReconnectMCPServer(_ context.Context, name string) error {
	return s.note("reconnect " + name)
}

func (s *scriptSession) SetMCPServerEnabled(_ context.Context, name string, on bool) error {
	return s.note("enable " + name)
}

func (s *scriptSession) SetMCPServers(context.Context, map[string]mcphost.ServerConfig) (mcphost.SetResult, error) {
	return mcphost.SetResult{}, s.note("set")
}

func (s *scriptSession) Receive(ctx context.Context) (Message, error) {
	s.mu.Lock()
	if len(s.left) > 0 {
		m := s.left[0]
		s.left = s.left[1:]
		s.mu.Unlock()
		return m, nil
	}
	s.mu.Unlock()
	if s.end != nil {
		return nil, s.end
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.closed:
		return nil, ErrClosed
	}
}

func (s *scriptSession) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

func (s *scriptSession) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

func success(text string) *Result { return &Result{Subtype: SubtypeSuccess, Result: text} }

func TestQueryYieldsInOrderAndCloses(t *testing.T) {
	e := &script{messages: []Message{&SystemInit{}, &Assistant{}, success("yes")}, end: io.EOF}
	var got []string
	for m, err := range Query(t.Context(), e, "well?", nil) {
		if err != nil {
			t.Fatal(err)
		}
		switch m.(type) {
		case *SystemInit:
			got = append(got, "init")
		case *Assistant:
			got = append(got, "assistant")
		case *Result:
			got = append(got, "result")
		}
	}
	if diff := cmp.Diff([]string{"init", "assistant", "result"}, got); diff != "" {
		t.Error(diff)
	}
	s := e.sessions[0]
	if diff := cmp.Diff([]string{"send well?", "end"}, s.heard); diff != "" || !s.isClosed() {
		t.Errorf("closed %v, heard %s", s.isClosed(), diff)
	}
}

// D77
func TestQueryErrorAfterErrorResult(t *testing.T) {
	bad := &Result{Subtype: SubtypeErrorMaxTurns, IsError: true, Errors: []string{"Reached maximum number of turns (1)"}}
	e := &script{messages: []Message{bad}, end: io.EOF}
	var messages int
	var last error
	for m, err := range Query(t.Context(), e, "x", nil) {
		if last != nil {
			t.Error("a value after the error")
		}
		if m != nil {
			messages++
		}
		last = err
	}
	re := (*ResultError)(nil)
	if messages != 1 || !errors.As(last, &re) || re.Result != bad || !errors.Is(last, ErrMaxTurns) || errors.Is(last, ErrMaxBudget) {
		t.Errorf("%d messages, then %v", messages, last)
	}
}

// D78
func TestQueryStartFailureYieldsOnlyTheError(t *testing.T) {
	boom := errors.New("cannot start")
	for name, e := range map[string]*script{
		"open":    {openErr: boom},
		"receive": {end: boom},
	} {
		n := 0
		for m, err := range Query(t.Context(), e, "x", nil) {
			n++
			if m != nil || !errors.Is(err, boom) {
				t.Errorf("%s: got %v and %v", name, m, err)
			}
		}
		if n != 1 {
			t.Errorf("%s: %d values, want 1", name, n)
		}
	}
}

func TestQueryEndWithoutResult(t *testing.T) {
	e := &script{messages: []Message{&SystemInit{}}, end: io.EOF}
	var last error
	for _, err := range Query(t.Context(), e, "x", nil) {
		last = err
	}
	if !errors.Is(last, ErrNoResult) {
		t.Errorf("got %v, want ErrNoResult", last)
	}
}

func TestQueryBreakCloses(t *testing.T) {
	e := &script{messages: []Message{&SystemInit{}, &Assistant{}}}
	for range Query(t.Context(), e, "x", nil) {
		break
	}
	if !e.sessions[0].isClosed() {
		t.Error("session is open after break")
	}
}

func TestQueryPanicInTheLoopCloses(t *testing.T) {
	e := &script{messages: []Message{&SystemInit{}}}
	func() {
		defer func() { _ = recover() }()
		for range Query(t.Context(), e, "x", nil) {
			panic("in the loop")
		}
	}()
	if !e.sessions[0].isClosed() {
		t.Error("session is open after a panic")
	}
}

func TestQueryContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	e := &script{messages: []Message{&SystemInit{}}}
	var last error
	for _, err := range Query(ctx, e, "x", nil) {
		cancel()
		last = err
	}
	if !errors.Is(last, context.Canceled) || !e.sessions[0].isClosed() {
		t.Errorf("ended with %v", last)
	}
	for _, err := range Query(ctx, e, "x", nil) {
		last = err
	}
	if !errors.Is(last, context.Canceled) || len(e.sessions) != 1 {
		t.Errorf("on an ended context: %v, %d sessions", last, len(e.sessions))
	}
}

func TestQueryWithoutEngine(t *testing.T) {
	for _, err := range Query(t.Context(), nil, "x", nil) {
		if err == nil {
			t.Error("no error")
		}
	}
}

func TestClient(t *testing.T) {
	e := &script{messages: []Message{&SystemInit{}, success("one"), &SystemInit{}, success("two")}, end: io.EOF}
	c, err := Open(t.Context(), e, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"one", "two"} {
		var r *Result
		for m, err := range c.Response(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := m.(*Result); ok {
				r = got
			}
		}
		if r == nil || r.Result != want {
			t.Errorf("got %v, want %s", r, want)
		}
	}
	for m, err := range c.Messages(t.Context()) {
		t.Errorf("after the end: %v, %v", m, err)
	}
	ctx := t.Context()
	status, _ := c.MCPStatus(ctx)
	_, _ = c.SetMCPServers(ctx, nil)
	usage, _ := c.ContextUsage(ctx)
	for _, err := range []error{
		c.Send(ctx, "hi"), c.SendInput(ctx, Text("ho")), c.EndInput(), c.Interrupt(ctx), c.SetModel(ctx, "m"),
		c.SetPermissionMode(ctx, "plan"), c.ReconnectMCPServer(ctx, "a"), c.SetMCPServerEnabled(ctx, "a", true), c.Close(), c.Close(),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	want := []string{"status", "set", "context", "send hi", "send ho", "end", "interrupt", "model m", "mode plan", "reconnect a", "enable a"}
	if diff := cmp.Diff(want, e.sessions[0].heard); diff != "" || len(status) != 1 || usage.TotalTokens != 7 {
		t.Error(diff)
	}
	if err := c.SetPermissionMode(ctx, "nonsense"); err == nil {
		t.Error("an unknown mode was taken")
	}
}

func TestClientOneReaderAtATime(t *testing.T) {
	e := &script{messages: []Message{&SystemInit{}, &Assistant{}}}
	c, err := Open(t.Context(), e, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range c.Messages(t.Context()) {
		for _, err := range c.Messages(t.Context()) {
			if !errors.Is(err, errReading) {
				t.Errorf("a second loop: %v", err)
			}
		}
		break
	}
	// A loop that was left can be followed by another one.
	for m, err := range c.Messages(t.Context()) {
		if _, ok := m.(*Assistant); !ok || err != nil {
			t.Errorf("got %v, %v", m, err)
		}
		break
	}
}

func TestClientCloseEndsReading(t *testing.T) {
	c, err := Open(t.Context(), &script{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		var last error
		for _, err := range c.Messages(t.Context()) {
			last = err
		}
		ended <- last
	}()
	c.Close()
	if err := <-ended; !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

func TestResultError(t *testing.T) {
	tests := []struct {
		r    Result
		want string
		is   error
	}{
		{Result{Subtype: SubtypeErrorMaxBudget, Errors: []string{"a", "b"}}, "agent: error_max_budget_usd: a; b", ErrMaxBudget},
		{Result{Subtype: SubtypeSuccess, IsError: true, APIErrorStatus: 401, Result: "no key"}, "agent: request failed with status 401: no key", nil},
		{Result{Subtype: SubtypeErrorDuringExecution, TerminalReason: ReasonAbortedTools}, "agent: error_during_execution", ErrInterrupted},
		{Result{Subtype: SubtypeErrorDuringExecution, TerminalReason: ReasonAbortedStreaming}, "agent: error_during_execution", ErrInterrupted},
	}
	for _, tt := range tests {
		err := tt.r.Err()
		if err == nil || err.Error() != tt.want {
			t.Errorf("got %v, want %s", err, tt.want)
		}
		for _, target := range []error{ErrMaxTurns, ErrMaxBudget, ErrInterrupted, ErrClosed} {
			if errors.Is(err, target) != errors.Is(target, tt.is) {
				t.Errorf("%v: errors.Is(%v) = %v", err, target, errors.Is(err, target))
			}
		}
	}
	if err := success("x").Err(); err != nil {
		t.Error(err)
	}
}

// A host that was closed is an error when a conversation is opened, and not one of each call in it.
// fault G8
func TestOpenOnAClosedHost(t *testing.T) {
	h, err := mcphost.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	e := &script{messages: []Message{success("hi")}, end: io.EOF}
	for _, closed := range []bool{false, true} {
		if closed {
			h.Close()
		}
		if h.Closed() != closed {
			t.Errorf("closed: %v", h.Closed())
		}
		c, err := Open(t.Context(), e, &Options{Host: h})
		if closed != errors.Is(err, mcphost.ErrClosed) || closed != (c == nil) {
			t.Errorf("closed %v: %v", closed, err)
		}
		for _, err = range Query(t.Context(), e, "hi", &Options{Host: h}) {
		}
		if closed != errors.Is(err, mcphost.ErrClosed) {
			t.Errorf("a query, closed %v: %v", closed, err)
		}
	}
}
