package native

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

// openedProvider tells when it is opened.
type openedProvider struct {
	*slowProvider
	opened chan time.Time
}

func (p *openedProvider) OpenSession(ctx context.Context, o *mcpserver.SessionOptions) (mcpserver.ServerSession, error) {
	p.opened <- time.Now()
	return p.slowProvider.OpenSession(ctx, o)
}

// Connecting starts with the session, before there is any input; the init message, and the first request, go out
// when the wait of the first turn ends. // D09 D56 D104
func TestConnectingStartsWithTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &openedProvider{&slowProvider{serverWith(t, "w", echoArgs), make(chan struct{})}, make(chan time.Time, 1)}
		model := modeltest.New(t, modeltest.Text("x"))
		began := time.Now()
		c, err := agent.Open(t.Context(), testEngine(model), &agent.Options{MCPServers: map[string]mcphost.ServerConfig{"slow": mcphost.InProcess(p)}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if at := <-p.opened; at != began {
			t.Errorf("connecting began after %v", at.Sub(began))
		}
		time.Sleep(time.Second)
		if err := c.Send(t.Context(), "hello"); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(3*time.Second, func() { close(p.release) })
		first := true
		for m, err := range c.Response(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			init, ok := m.(*agent.SystemInit)
			if !first {
				continue
			}
			first = false
			if took := time.Since(began); !ok || took != 4*time.Second || init.MCPServers[0].Name != "slow" || init.MCPServers[0].Status != "connected" {
				t.Errorf("the first message is %T after %v: %+v", m, took, m)
			}
		}
		if len(model.Requests()) != 1 {
			t.Errorf("%d requests", len(model.Requests()))
		}
	})
}

// Each turn begins with an init message, which shows each server as it is at that moment: one that has come up since
// is connected in the next. // D36 D73
func TestInitShowsTheServersOfTheMoment(t *testing.T) {
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer refuses.Close()
	slow := &slowProvider{serverWith(t, "w", echoArgs), make(chan struct{})}
	h, err := mcphost.New(&mcphost.Options{Servers: map[string]mcphost.ServerConfig{
		"auth": mcphost.HTTP{URL: refuses.URL},
		"gone": mcphost.Stdio{Command: "no-such-program"},
		"good": mcphost.InProcess(serverWith(t, "w", echoArgs)),
		"off":  mcphost.InProcessServer{Provider: serverWith(t, "w", echoArgs), Common: mcphost.Common{Disabled: true}},
		"slow": mcphost.InProcess(slow),
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	h.Start(t.Context())
	if err := h.Ready(t.Context(), "auth", "gone", "good", "off"); err != nil {
		t.Fatal(err)
	}
	c, err := agent.Open(t.Context(), testEngine(modeltest.New(t, modeltest.Text("1"), modeltest.Text("2"))), &agent.Options{Host: h})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	want := map[string]string{"auth": "needs-auth", "gone": "failed", "good": "connected", "off": "disabled", "slow": "pending"}
	for turn := range 2 {
		if err := c.Send(t.Context(), "hello"); err != nil {
			t.Fatal(err)
		}
		var first agent.Message
		for m, err := range c.Response(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = m
			}
		}
		init, ok := first.(*agent.SystemInit)
		if !ok {
			t.Fatalf("turn %d begins with %T", turn+1, first)
		}
		got := map[string]string{}
		for _, s := range init.MCPServers {
			got[s.Name] = s.Status
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("turn %d (-want +got):\n%s", turn+1, diff)
		}
		if turn == 0 {
			close(slow.release)
			if err := h.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			want["slow"] = "connected"
		}
	}
}

// An interrupt cuts the wait for servers short; they go on connecting, and the next turn waits for them again.
func TestInterruptWhileServersConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &slowProvider{serverWith(t, "w", echoArgs), make(chan struct{})}
		model := modeltest.New(t, modeltest.Text("x"))
		o := &agent.Options{MCPServers: map[string]mcphost.ServerConfig{"slow": mcphost.InProcess(p)}, PermissionPromptTool: "mcp__slow__w"}
		c, err := agent.Open(t.Context(), testEngine(model), o)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		began := time.Now()
		if err := c.Send(t.Context(), "first"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := c.Interrupt(t.Context()); err != nil {
			t.Fatal(err)
		}
		r := resultOf(t, c)
		if !errors.Is(r.Err(), agent.ErrInterrupted) || r.TerminalReason != agent.ReasonAbortedStreaming || time.Since(began) != 0 || len(model.Requests()) != 0 {
			t.Errorf("%v, %s, after %v and %d requests", r.Err(), r.TerminalReason, time.Since(began), len(model.Requests()))
		}
		time.AfterFunc(time.Second, func() { close(p.release) })
		if err := c.Send(t.Context(), "second"); err != nil {
			t.Fatal(err)
		}
		if r := resultOf(t, c); r.Err() != nil || r.Result != "x" || time.Since(began) != time.Second {
			t.Errorf("%v, %q after %v", r.Err(), r.Result, time.Since(began))
		}
		text := string(model.Requests()[0].Field("messages"))
		for _, want := range []string{"first", "[Request interrupted by user]", "second"} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in %s", want, text)
			}
		}
	})
}

// resultOf reads the messages of a turn and returns its result.
func resultOf(t *testing.T, c *agent.Client) *agent.Result {
	t.Helper()
	var result *agent.Result
	for m, err := range c.Response(t.Context()) {
		if err != nil && result == nil {
			t.Fatal(err)
		}
		if r, ok := m.(*agent.Result); ok {
			result = r
		}
	}
	return result
}

// A server over HTTP that dies while a session is idle is pending in the session's status, and connected again once it
// is back, with its tools: nobody has to call one to find out.
//
// D111
func TestServerDiesWhileIdle(t *testing.T) {
	srv := serverWith(t, "w", echoArgs)
	serve := func(addr string) *httptest.Server {
		var lc net.ListenConfig
		l, err := lc.Listen(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		h := mcpserver.NewHTTPHandler(srv, nil)
		s := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
		s.Start()
		t.Cleanup(func() { _ = h.Shutdown(context.WithoutCancel(t.Context())); s.CloseClientConnections(); s.Close() })
		return s
	}
	first := serve("127.0.0.1:0")
	host, err := mcphost.New(&mcphost.Options{Servers: map[string]mcphost.ServerConfig{"r": mcphost.HTTP{URL: "http://" + first.Listener.Addr().String()}}})
	if err != nil {
		t.Fatal(err)
	}
	host.Start(t.Context())
	t.Cleanup(func() { _ = host.Close() })
	c := open(t, modeltest.New(t, modeltest.Text("x"), modeltest.ToolUse("mcp__r__w", `{}`), modeltest.Text("y")), &agent.Options{Host: host, AllowedTools: []string{"mcp__r__w"}})
	events := host.Watch(t.Context())
	until := func(want mcphost.Status) {
		t.Helper()
		for st := ""; st != string(want); {
			status, err := c.MCPStatus(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if st = string(status[0].Status); st != string(want) {
				<-events
			}
		}
	}
	say(t, c, "x")
	until(mcphost.StatusConnected)
	first.CloseClientConnections()
	_ = first.Config.Close()
	until(mcphost.StatusPending)
	serve(first.Listener.Addr().String())
	until(mcphost.StatusConnected)
	if _, msgs := say(t, c, "y"); len(results(msgs)) != 1 || results(msgs)[0].IsError {
		t.Errorf("results %+v", results(msgs))
	}
}
