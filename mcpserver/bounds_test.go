package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/rpcmsg"
)

// waits adds a tool whose calls wait until the returned function is called.
func waits(t *testing.T, s *Server, name string) (started <-chan struct{}, end func()) {
	t.Helper()
	begun, gate := make(chan struct{}, 100), make(chan struct{})
	addRaw(t, s, name, func(context.Context, json.RawMessage) (*Result, error) {
		begun <- struct{}{}
		<-gate
		return Text("done"), nil
	})
	return begun, sync.OnceFunc(func() { close(gate) })
}

// A session has as many calls as it may and not one more, those that were given
// up among them. Other sessions and direct calls go on.
//
// fault G11
func TestCallsOfASessionAreBounded(t *testing.T) {
	s := newTestServer(t, &Options{MaxCalls: 2})
	started, end := waits(t, s, "wait")
	defer end()
	addRaw(t, s, "quick", returns(Text("quick"), nil))
	if err := errors.Join(
		s.AddResource(&mcp.Resource{URI: "mem:a"}, func(context.Context) (*mcp.ReadResourceResult, error) { return TextResource("mem:a", "", ""), nil }),
		s.AddPrompt(&mcp.Prompt{Name: "p"}, func(context.Context, map[string]string) (*mcp.GetPromptResult, error) { return says("x"), nil }),
	); err != nil {
		t.Fatal(err)
	}
	ss, other := s.NewSession(nil), s.NewSession(nil)
	defer other.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() { _, _ = ss.CallTool(ctx, Call{Name: "wait"}) })
		<-started
	}
	full := func(when string) {
		t.Helper()
		const want = "Tool 'quick' did not run: 2 calls of this session run already, as many as may; call it again when some have ended"
		if r, err := ss.CallTool(t.Context(), Call{Name: "quick"}); err != nil || !r.IsError || r.Text() != want {
			t.Errorf("%s: %+v, %v", when, r, err)
		}
		if _, err := ss.ReadResource(t.Context(), "mem:a"); !errors.Is(err, ErrTooManyCalls) || err.Error() != `reading resource "mem:a": mcpserver: too many calls at once` {
			t.Errorf("%s, a resource: %v", when, err)
		}
		if _, err := ss.GetPrompt(t.Context(), "p", nil); !errors.Is(err, ErrTooManyCalls) {
			t.Errorf("%s, a prompt: %v", when, err)
		}
	}
	full("two calls run")
	cancel()
	calls.Wait()
	full("two calls were given up and do not end")
	for name, call := range map[string]func() (*Result, error){
		"another session": func() (*Result, error) { return other.CallTool(t.Context(), Call{Name: "quick"}) },
		"a direct call":   func() (*Result, error) { return s.CallTool(t.Context(), "quick", nil) },
	} {
		if r, err := call(); err != nil || r.Text() != "quick" {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	end()
	_ = ss.Close() // waits for both
	after := s.NewSession(nil)
	defer after.Close()
	if r, err := after.CallTool(t.Context(), Call{Name: "quick"}); err != nil || r.Text() != "quick" {
		t.Errorf("after their end: %+v, %v", r, err)
	}
	if ss.lifetime.calls.Load() != 0 {
		t.Errorf("%d calls are counted in the end", ss.lifetime.calls.Load())
	}
}

// Zero is the default, and a negative value is no bound.
func TestTheDefaultOfMaxCalls(t *testing.T) {
	for given, want := range map[int]int64{0: DefaultMaxCalls, -1: -1, 7: 7} {
		ss := newTestServer(t, &Options{MaxCalls: given}).NewSession(nil)
		if ss.lifetime.maxCalls != want {
			t.Errorf("MaxCalls %d: the bound is %d, want %d", given, ss.lifetime.maxCalls, want)
		}
		_ = ss.Close()
	}
}

// A user of 2026-07-28, where there are no sessions, has as many calls at a time
// as a session has, and others are not in its way.
//
// fault G11
func TestCallsOfAUserAreBounded(t *testing.T) {
	s := newTestServer(t, &Options{MaxCalls: 1})
	started, end := waits(t, s, "wait")
	defer end()
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{UserID: token}, nil
	}
	h := NewHTTPHandler(s, &HTTPOptions{Auth: &BearerAuth{Verify: verify, AllowMissingExpiration: true}})
	call := func(user string) string {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://x/", strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","arguments":{},`+
				`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
		for key, value := range map[string]string{
			"Content-Type": "application/json", "Authorization": "Bearer " + user,
			"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "wait",
		} {
			req.Header.Set(key, value)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		return w.Body.String()
	}
	var calls sync.WaitGroup
	for _, user := range []string{"ann", "bob"} {
		calls.Go(func() {
			if got := call(user); !strings.Contains(got, "done") {
				t.Errorf("%s: %s", user, got)
			}
		})
		<-started
	}
	if got := call("ann"); !strings.Contains(got, fmt.Sprint(rpcmsg.CodeBusy)) || !strings.Contains(got, "1 of this user run already") {
		t.Errorf("one more call: %s", got)
	}
	end()
	calls.Wait()
	if err := h.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if len(h.adapter.users)+len(h.adapter.requests) != 0 {
		t.Errorf("users %v and requests %v are kept", h.adapter.users, h.adapter.requests)
	}
}

// A session subscribes to at most 1,000 resources; one that is there may come again.
//
// fault H4
func TestSubscriptionsAreBounded(t *testing.T) {
	s := newTestServer(t, nil)
	if err := s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "mem:{x}"}, func(context.Context, string, map[string]string) (*mcp.ReadResourceResult, error) {
		return nil, nil
	}); err != nil {
		t.Fatal(err)
	}
	ss := s.NewSession(nil)
	defer ss.Close()
	for i := range maxSubscriptions {
		if err := ss.Subscribe(t.Context(), fmt.Sprint("mem:", i)); err != nil {
			t.Fatalf("subscription %d: %v", i+1, err)
		}
	}
	const want = `subscribing to "mem:more": the session has 1000 subscriptions, as many as it may`
	if err := ss.Subscribe(t.Context(), "mem:more"); err == nil || err.Error() != want {
		t.Errorf("one more: %v", err)
	}
	if err := ss.Subscribe(t.Context(), "mem:0"); err != nil {
		t.Errorf("one that is there: %v", err)
	}
	if err := errors.Join(ss.Unsubscribe(t.Context(), "mem:0"), ss.Subscribe(t.Context(), "mem:more")); err != nil {
		t.Errorf("in place of another: %v", err)
	}
}

// A URI matches a template up to its bound, exactly, and what is longer is not
// repeated at length.
//
// fault H4
func TestURIsAreBounded(t *testing.T) {
	s := newTestServer(t, nil)
	if err := s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "mem:{+x}"}, func(_ context.Context, uri string, vars map[string]string) (*mcp.ReadResourceResult, error) {
		return TextResource(uri, "", vars["x"]), nil
	}); err != nil {
		t.Fatal(err)
	}
	longest := "mem:" + strings.Repeat("a", maxTemplateURI-4)
	if r, err := s.ReadResource(t.Context(), longest); err != nil || r.Contents[0].Text != longest[4:] {
		t.Errorf("the longest: %v", err)
	}
	_, err := s.ReadResource(t.Context(), longest+"a")
	var missing *NotFoundError
	if !errors.As(err, &missing) {
		t.Fatalf("a longer one: %v", err)
	}
	if _, err = s.ReadResource(t.Context(), "mem:"+strings.Repeat("a", 1<<20)); len(err.Error()) > 3000 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
	if r, err := s.CallTool(t.Context(), strings.Repeat("é", 1<<20), nil); err != nil || len(r.Text()) > 3000 || !strings.HasSuffix(r.Text(), "é...' not found") {
		t.Errorf("the text has %d bytes, %v", len(r.Text()), err)
	}
}

// The variables of a template are all there, lists among them.
func TestListsInTemplates(t *testing.T) {
	s := newTestServer(t, nil)
	for template, uris := range map[string]map[string]string{
		"one:{x}":    {"one:a": "a", "one:a%2Cb": "a,b"},
		"many:{x*}":  {"many:a": "a", "many:a,b,c": "a,b,c"},
		"path:{/x*}": {"path:/a/b": "a,b"},
	} {
		if err := s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: template}, func(_ context.Context, uri string, vars map[string]string) (*mcp.ReadResourceResult, error) {
			return TextResource(uri, "", vars["x"]), nil
		}); err != nil {
			t.Fatal(err)
		}
		for uri, want := range uris {
			if r, err := s.ReadResource(t.Context(), uri); err != nil || r.Contents[0].Text != want {
				t.Errorf("%s: %+v, %v; want %q", uri, r, err, want)
			}
		}
	}
}

// What sessions subscribed to is not kept when they end, however they do: clients
// that come and go with ever new URIs cost no memory.
//
// fault H4
func TestEndedSessionsLeaveNoSubscriptions(t *testing.T) {
	s := newTestServer(t, nil)
	if err := s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "mem:{x}"}, func(context.Context, string, map[string]string) (*mcp.ReadResourceResult, error) {
		return nil, nil
	}); err != nil {
		t.Fatal(err)
	}
	h := NewHTTPHandler(s, nil)
	// The library's table. If it has another name now, find out how it forgets.
	kept := func() int { return reflect.ValueOf(h.adapter.lib).Elem().FieldByName("resourceSubscriptions").Len() }
	do := func(method, session, body string) *httptest.ResponseRecorder {
		req := httptest.NewRequestWithContext(t.Context(), method, "http://x/", strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		return w
	}
	open := func(uris ...string) string {
		t.Helper()
		id := do(http.MethodPost, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`).Header().Get("Mcp-Session-Id")
		do(http.MethodPost, id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		for _, uri := range uris {
			if w := do(http.MethodPost, id, `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"`+uri+`"}}`); !strings.Contains(w.Body.String(), `"result":{}`) {
				t.Fatalf("subscribing: %s", w.Body)
			}
		}
		return id
	}
	stays, goes := open("mem:a", "mem:b"), open("mem:b", "mem:c")
	if n := kept(); n != 3 {
		t.Fatalf("%d URIs are known, want 3", n)
	}
	do(http.MethodDelete, goes, "")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for open := 2; open > 1; runtime.Gosched() { // the session ends on its own goroutine
		if ctx.Err() != nil {
			t.Fatal("the session that was deleted is still there")
		}
		h.adapter.mu.Lock()
		open = len(h.adapter.sessions)
		h.adapter.mu.Unlock()
	}
	if n := kept(); n != 2 {
		t.Fatalf("%d URIs are kept, want 2", n)
	}
	if w := do(http.MethodPost, stays, `{"jsonrpc":"2.0","id":3,"method":"resources/unsubscribe","params":{"uri":"mem:a"}}`); !strings.Contains(w.Body.String(), `"result":{}`) || kept() != 1 {
		t.Errorf("unsubscribing: %s, %d URIs are kept", w.Body, kept())
	}
	if err := h.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if n := kept(); n != 0 {
		t.Errorf("after Shutdown %d URIs are kept", n)
	}
}
