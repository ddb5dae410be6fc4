package mcphost

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serve runs a handler on loopback until the test ends.
func serve(t testing.TB, h http.Handler) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv
}

func libraryHTTP(t testing.TB, o *mcp.StreamableHTTPOptions) http.Handler {
	t.Helper()
	srv := libraryServer()
	t.Cleanup(func() { // of sessions to which nobody said goodbye
		for s := range srv.Sessions() {
			_ = s.Close()
		}
	})
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return srv }, o)
}

// A rawHTTP is a streamable HTTP server made by hand.
type rawHTTP struct {
	mu       sync.Mutex
	sessions map[string]bool // live ones
	next     int
	requests []string // method and JSON-RPC method of each
	headers  []http.Header
	inits    int

	tools string
	// before may answer a request itself.
	before func(w http.ResponseWriter, r *http.Request, m rawMsg) bool
	// call answers tools/call; nil says its name and arguments.
	call func(w http.ResponseWriter, r *http.Request, m rawMsg)
	// get answers GET; nil is 405.
	get http.HandlerFunc
}

func (s *rawHTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var m rawMsg
	_ = json.Unmarshal(body, &m)
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+m.Method)
	s.headers = append(s.headers, r.Header)
	known := s.sessions[r.Header.Get(headerSession)]
	s.mu.Unlock()
	if s.before != nil && s.before(w, r, m) {
		return
	}
	switch {
	case r.Method == http.MethodGet && s.get != nil:
		s.get(w, r)
	case r.Method == http.MethodDelete:
		s.mu.Lock()
		delete(s.sessions, r.Header.Get(headerSession))
		s.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case m.Method == "initialize":
		s.mu.Lock()
		s.next++
		s.inits++
		id := fmt.Sprintf("session-%d", s.next)
		if s.sessions == nil {
			s.sessions = map[string]bool{}
		}
		s.sessions[id] = true
		s.mu.Unlock()
		w.Header().Set(headerSession, id)
		answer(w, m.ID, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`)
	case m.Method == "server/discover":
		answerError(w, m.ID, -32601, "method not found")
	case !known:
		http.Error(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`, http.StatusNotFound)
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	case m.Method == "tools/list":
		tools := s.tools
		if tools == "" {
			tools = "[" + echoTool + "]"
		}
		answer(w, m.ID, `{"tools":`+tools+`}`)
	case m.Method == "tools/call" && s.call != nil:
		s.call(w, r, m)
	case m.Method == "tools/call":
		name, args := m.tool()
		answerText(w, m.ID, name+" "+args)
	default:
		answerError(w, m.ID, -32601, "method not found")
	}
}

func (s *rawHTTP) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.sessions)
}

func (s *rawHTTP) count(request string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.requests {
		if r == request {
			n++
		}
	}
	return n
}

func answer(w http.ResponseWriter, id json.RawMessage, result string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

func answerText(w http.ResponseWriter, id json.RawMessage, text string) {
	b, _ := json.Marshal(text)
	answer(w, id, `{"content":[{"type":"text","text":`+string(b)+`}]}`)
}

func answerError(w http.ResponseWriter, id json.RawMessage, code int, msg string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, id, code, msg)
}

// D02 D51 D52: the official library's servers over all HTTP transports.
func TestHTTPLibraryServers(t *testing.T) {
	sse := libraryServer()
	h := newHost(t, map[string]ServerConfig{
		"http":      HTTP{URL: serve(t, libraryHTTP(t, nil)).URL},
		"json":      HTTP{URL: serve(t, libraryHTTP(t, &mcp.StreamableHTTPOptions{JSONResponse: true})).URL},
		"stateless": HTTP{URL: serve(t, libraryHTTP(t, &mcp.StreamableHTTPOptions{Stateless: true})).URL},
		"sse":       SSE{URL: serve(t, mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return sse }, nil)).URL},
	})
	connected(t, h)
	for _, s := range h.Status() {
		full := "mcp__" + s.Name + "__"
		if got := text(t, h, full+"echo", `{"text":"hi"}`); got != "echo: hi" {
			t.Errorf("%s: %q", s.Name, got)
		}
		if got := text(t, h, full+"big", `{"bytes":5242880}`); len(got) != 5<<20 {
			t.Errorf("%s: %d bytes", s.Name, len(got))
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		if _, err := h.Call(ctx, full+"wait", nil, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: a cancelled call: %v", s.Name, err)
		}
		if _, err := h.Call(soon(t), full+"wait", nil, &CallOptions{Timeout: 100 * time.Millisecond}); !errors.Is(err, ErrTimeout) {
			t.Errorf("%s: a call above its limit: %v", s.Name, err)
		}
		if got := text(t, h, full+"echo", `{"text":"after"}`); got != "echo: after" {
			t.Errorf("%s: %q", s.Name, got)
		}
		checkFeatures(t, h, s.Name)
		if s := status(t, h, s.Name); s.Status != StatusConnected || s.URL == "" || s.ProtocolVersion == "" {
			t.Errorf("%s: %+v", s.Name, s)
		}
	}
}

// checkFeatures reads the resources and prompts of libraryServer.
func checkFeatures(t *testing.T, h *Host, name string) {
	t.Helper()
	ctx := soon(t)
	res, err := h.Resources(ctx, name)
	if err != nil || len(res) != 1 || res[0].URI != "mem://a" || res[0].Server != name {
		t.Errorf("%s: resources %v, %v", name, res, err)
	}
	tmpl, err := h.ResourceTemplates(ctx, name)
	if err != nil || len(tmpl) != 1 || tmpl[0].URITemplate != "mem://{x}" {
		t.Errorf("%s: templates %v, %v", name, tmpl, err)
	}
	read, err := h.ReadResource(ctx, name, "mem://a")
	if err != nil || len(read.Contents) != 1 || read.Contents[0].Text != "content of a" {
		t.Errorf("%s: reading %v, %v", name, read, err)
	}
	var ce *CallError
	if _, err := h.ReadResource(ctx, name, "mem://none"); !errors.As(err, &ce) || ce.Code == 0 && status(t, h, name).Transport != TransportSDK {
		t.Errorf("%s: reading what is not there: %v", name, err)
	}
	prompts, err := h.Prompts(ctx, name)
	if err != nil || len(prompts) != 1 || prompts[0].Name != "greet" {
		t.Errorf("%s: prompts %v, %v", name, prompts, err)
	}
	got, err := h.GetPrompt(ctx, name, "greet", map[string]string{"who": "you"})
	if err != nil || len(got.Messages) != 1 || got.Messages[0].Content.(*mcp.TextContent).Text != "hello you" {
		t.Errorf("%s: prompt %v, %v", name, got, err)
	}
}

// D60 D69 D70: headers go with each request; the session and version follow.
func TestHTTPHeaders(t *testing.T) {
	raw := &rawHTTP{}
	srv := serve(t, raw)
	h := newHost(t, map[string]ServerConfig{"r": HTTP{URL: srv.URL + "/mcp?key=abcdef", Headers: map[string]string{"Authorization": "Bearer tok-tok-tok", "X-A": "1"}}})
	connected(t, h)
	if got := text(t, h, "mcp__r__echo", `{}`); got != "echo {}" {
		t.Errorf("got %q", got)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	raw.mu.Lock()
	defer raw.mu.Unlock()
	for i, hd := range raw.headers {
		if hd.Get("Authorization") != "Bearer tok-tok-tok" || hd.Get("X-A") != "1" {
			t.Errorf("%s has headers %v", raw.requests[i], hd)
		}
		late := !strings.Contains(raw.requests[i], "initialize") && !strings.Contains(raw.requests[i], "discover")
		if late && (hd.Get(headerSession) != "session-1" || hd.Get(headerVersion) != "2025-11-25") {
			t.Errorf("%s has session %q, version %q", raw.requests[i], hd.Get(headerSession), hd.Get(headerVersion))
		}
	}
	if last := raw.requests[len(raw.requests)-1]; last != "DELETE " {
		t.Errorf("the last request is %q, not the goodbye to the session", last)
	}
}

// D60: over the older transport, too, headers go with each request.
func TestSSEHeaders(t *testing.T) {
	lib := libraryServer()
	inner := mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return lib }, nil)
	var requests atomic.Int64
	web := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-A") != "1" || r.Header.Get("Authorization") != "Bearer tok-tok-tok" {
			t.Errorf("%s has headers %v", r.Method, r.Header)
		}
		requests.Add(1)
		inner.ServeHTTP(w, r)
	}))
	h := newHost(t, map[string]ServerConfig{"s": SSE{URL: web.URL, Headers: map[string]string{"X-A": "1"}, HeadersFunc: func(context.Context) (map[string]string, error) {
		return map[string]string{"Authorization": "Bearer tok-tok-tok"}, nil
	}}})
	connected(t, h)
	if got := text(t, h, "mcp__s__echo", `{"text":"x"}`); got != "echo: x" || requests.Load() < 5 {
		t.Errorf("got %q after %d requests", got, requests.Load())
	}
}

// D63 D64 D69: what servers answer, and what the status says of it (F15). Pains 9, 16, 26
func TestHTTPFailures(t *testing.T) {
	reply := func(status int, contentType, body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})
	}
	never := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body); <-r.Context().Done() })
	key := map[string]string{"Authorization": "Bearer sesame-sesame"}
	tests := map[string]struct {
		cfg    ServerConfig
		status Status
		want   []string
		code   int
	}{
		"html":       {HTTP{URL: serve(t, reply(200, "text/html", "<html>Welcome to nginx</html>")).URL}, StatusFailed, []string{"HTTP 200 OK: <html>Welcome to nginx</html>", `"text/html"`, "not as an MCP server"}, 200},
		"401":        {HTTP{URL: serve(t, reply(401, "text/plain", "who are you?")).URL}, StatusNeedsAuth, []string{"HTTP 401 Unauthorized: who are you?", "log in"}, 401},
		"401 key":    {HTTP{URL: serve(t, reply(401, "text/plain", "sesame-sesame is wrong")).URL, Headers: key}, StatusFailed, []string{"HTTP 401 Unauthorized: *** is wrong", "rejected the configured Authorization header"}, 401},
		"403":        {HTTP{URL: serve(t, reply(403, "text/plain", "no")).URL}, StatusNeedsAuth, []string{"HTTP 403"}, 403},
		"404":        {HTTP{URL: serve(t, reply(404, "text/plain", "nothing here")).URL}, StatusFailed, []string{"HTTP 404 Not Found: nothing here", "check the URL"}, 404},
		"405":        {HTTP{URL: serve(t, reply(405, "text/plain", "")).URL}, StatusFailed, []string{"HTTP 405", "type sse"}, 405},
		"500":        {HTTP{URL: serve(t, reply(500, "text/plain", "stack trace")).URL}, StatusFailed, []string{"HTTP 500 Internal Server Error: stack trace"}, 500},
		"empty":      {HTTP{URL: serve(t, reply(200, "application/json", "")).URL}, StatusFailed, []string{"not a JSON-RPC message"}, 0},
		"json":       {HTTP{URL: serve(t, reply(200, "application/json", `{"hello":"world"}`)).URL}, StatusFailed, []string{`not a JSON-RPC message: {"hello":"world"}`}, 0},
		"refused":    {HTTP{URL: "http://127.0.0.1:1/mcp?token=sesame-sesame"}, StatusFailed, []string{"connection refused"}, 0},
		"never":      {HTTP{URL: serve(t, never).URL, Common: Common{ConnectTimeout: 300 * time.Millisecond}}, StatusFailed, []string{"timed out after 300ms"}, 0},
		"bad url":    {HTTP{URL: "localhost:80"}, StatusFailed, []string{"must begin with http://"}, 0},
		"bad header": {HTTP{URL: "http://127.0.0.1:1", Headers: map[string]string{"X Y": "1"}}, StatusFailed, []string{`header "X Y"`}, 0},
		"sse html":   {SSE{URL: serve(t, reply(200, "text/html", "<html>")).URL}, StatusFailed, []string{`"text/html", not a stream`}, 200},
		"sse 405":    {SSE{URL: serve(t, reply(405, "text/plain", "")).URL}, StatusFailed, []string{"HTTP 405", "type http"}, 405},
		"sse event":  {SSE{URL: serve(t, reply(200, "text/event-stream", "event: hello\ndata: 1\n\n")).URL}, StatusFailed, []string{`begins with event "hello"`}, 0},
		"sse long":   {SSE{URL: serve(t, reply(200, "text/event-stream", "event: endpoint\ndata: /m?s="+strings.Repeat("s", (16<<10))+"\n\n")).URL}, StatusFailed, []string{"no usable address for messages"}, 0},
		"sse other":  {SSE{URL: serve(t, reply(200, "text/event-stream", "event: endpoint\ndata: http://example.com/x?s=1\n\n")).URL}, StatusFailed, []string{"another origin, http://example.com/x?s=***"}, 0},
		"sse never":  {SSE{URL: serve(t, never).URL, Common: Common{ConnectTimeout: 300 * time.Millisecond}}, StatusFailed, []string{"timed out after 300ms"}, 0},
		"good":       {HTTP{URL: serve(t, &rawHTTP{}).URL}, StatusConnected, nil, 0},
	}
	servers := map[string]ServerConfig{}
	for name, tt := range tests {
		servers[name] = tt.cfg
	}
	h := newHost(t, servers)
	ready(t, h)
	for name, tt := range tests {
		s := status(t, h, name)
		if s.Status != tt.status {
			t.Errorf("%s is %s, want %s: %s", name, s.Status, tt.status, s.Error)
		}
		for _, w := range tt.want {
			if !strings.Contains(s.Error, w) {
				t.Errorf("%s: %q\nlacks %q", name, s.Error, w)
			}
		}
		if strings.Contains(fmt.Sprintf("%+v", s), "sesame") {
			t.Errorf("%s: the secret is in %+v", name, s)
		}
		var ce *ConnectError
		if tt.code != 0 && (!errors.As(s.Err, &ce) || ce.HTTPStatus != tt.code) {
			t.Errorf("%s: HTTP status in %+v", name, ce)
		}
	}
	if got := text(t, h, "mcp__good__echo", `{}`); got != "echo {}" {
		t.Errorf("the good one: %q", got)
	}
}

// Pain 12: a lost session is made anew once for all, and what was refused is
// sent again.
func TestLostSession(t *testing.T) {
	raw := &rawHTTP{}
	h := newHost(t, map[string]ServerConfig{"r": HTTP{URL: serve(t, raw).URL}})
	connected(t, h)
	for range 3 {
		raw.forget()
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				want := fmt.Sprintf(`{"n":%d}`, i)
				res, err := h.Call(soon(t), "mcp__r__echo", []byte(want), nil)
				if err != nil || plainText(res) != "echo "+want {
					t.Errorf("call %d: %v, %v", i, res, err)
				}
			})
		}
		wg.Wait()
	}
	raw.mu.Lock()
	defer raw.mu.Unlock()
	if raw.inits != 4 {
		t.Errorf("%d handshakes, want 4: one, and one for each loss", raw.inits)
	}
	if n := func() int {
		n := 0
		for _, r := range raw.requests {
			if r == "POST server/discover" {
				n++
			}
		}
		return n
	}(); n != 1 {
		t.Errorf("%d probes for the new era, want 1", n)
	}
}

// A call that runs when the session is lost may still be answered.
func TestLostSessionSparesCallsUnderWay(t *testing.T) {
	release := make(chan struct{})
	started := make(chan struct{})
	raw := &rawHTTP{}
	raw.call = func(w http.ResponseWriter, _ *http.Request, m rawMsg) {
		if _, args := m.tool(); strings.Contains(args, "slow") {
			close(started)
			<-release
		}
		answerText(w, m.ID, "done")
	}
	h := newHost(t, map[string]ServerConfig{"r": HTTP{URL: serve(t, raw).URL}})
	connected(t, h)
	slow := make(chan error, 1)
	go func() {
		_, err := h.Call(soon(t), "mcp__r__echo", []byte(`{"slow":true}`), nil)
		slow <- err
	}()
	<-started
	raw.forget()
	if got := text(t, h, "mcp__r__echo", `{}`); got != "done" {
		t.Errorf("got %q", got)
	}
	close(release)
	if err := <-slow; err != nil {
		t.Errorf("the call under way: %v", err)
	}
}

// Pain 11: whatever GET answers, POST works, and GET is not hammered.
func TestStandingStreamIsOptional(t *testing.T) {
	gets := map[string]http.HandlerFunc{
		"405": nil,
		"404": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) },
		"400": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400) },
		"406": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(406) },
		"401": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) },
		"302": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://example.com/", http.StatusFound)
		},
		"json": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, "{}")
		},
		"500":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"empty": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/event-stream") },
		"malformed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {{{\n\n")
		},
	}
	servers, raws := map[string]ServerConfig{}, map[string]*rawHTTP{}
	for name, get := range gets {
		raws[name] = &rawHTTP{get: get}
		servers[name] = HTTP{URL: serve(t, raws[name]).URL}
	}
	h := newHost(t, servers)
	connected(t, h)
	for name := range gets {
		for range 3 {
			if got := text(t, h, "mcp__"+name+"__echo", `{}`); got != "echo {}" {
				t.Errorf("%s: %q", name, got)
			}
		}
		if s := status(t, h, name); s.Status != StatusConnected {
			t.Errorf("%s is %s: %v", name, s.Status, s.Err)
		}
		if n := raws[name].count("GET "); n > 2 {
			t.Errorf("%s: %d GETs", name, n)
		}
	}
}

// Pain 16 and F36.
func TestRedirects(t *testing.T) {
	other := &rawHTTP{}
	elsewhere := serve(t, other)
	raw := &rawHTTP{}
	raw.before = func(w http.ResponseWriter, r *http.Request, _ rawMsg) bool {
		switch r.URL.Path {
		case "/mcp":
			http.Redirect(w, r, "/mcp/?x=1", http.StatusTemporaryRedirect)
		case "/away":
			http.Redirect(w, r, elsewhere.URL+"/mcp?secret=sesame-sesame", http.StatusTemporaryRedirect)
		case "/found":
			http.Redirect(w, r, "/mcp/", http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusPermanentRedirect)
		default:
			return false
		}
		return true
	}
	url := serve(t, raw).URL
	headers := map[string]string{"Authorization": "Bearer tok-tok-tok"}
	h := newHost(t, map[string]ServerConfig{
		"slash": HTTP{URL: url + "/mcp", Headers: headers},
		"away":  HTTP{URL: url + "/away", Headers: headers},
		"found": HTTP{URL: url + "/found", Headers: headers},
		"loop":  HTTP{URL: url + "/loop", Headers: headers},
	})
	ready(t, h)
	if got := text(t, h, "mcp__slash__echo", `{"a":1}`); got != `echo {"a":1}` {
		t.Errorf("after a redirect: %q", got)
	}
	raw.mu.Lock()
	for i, hd := range raw.headers {
		if hd.Get("Authorization") == "" {
			t.Errorf("request %d, %s, lost its Authorization", i, raw.requests[i])
		}
		if strings.HasPrefix(raw.requests[i], "POST ") && raw.requests[i] == "POST " {
			t.Errorf("request %d lost its body", i)
		}
	}
	raw.mu.Unlock()
	for name, want := range map[string]string{
		"away": "HTTP 307 leads to another origin, " + elsewhere.URL + "/mcp?secret=***", "found": "HTTP 302 to " + url + "/mcp/ would lose the request's body", "loop": "more than 5",
	} {
		if s := status(t, h, name); s.Status != StatusFailed || !strings.Contains(s.Error, want) {
			t.Errorf("%s is %s: %q, want %q", name, s.Status, s.Error, want)
		}
	}
	if len(other.requests) > 0 {
		t.Errorf("the other origin was sent %v", other.headers)
	}
}

// F12 over HTTP: events in all forms; what is above the limit fails its call only.
func TestStreamedAnswers(t *testing.T) {
	raw := &rawHTTP{}
	raw.call = func(w http.ResponseWriter, _ *http.Request, m rawMsg) {
		_, args := m.tool()
		var in struct{ Form string }
		_ = json.Unmarshal([]byte(args), &in)
		result := func(text string) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%q}]}}`, m.ID, text)
		}
		if in.Form == "json too large" {
			answerText(w, m.ID, strings.Repeat("x", 2<<20))
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		switch in.Form {
		case "one line":
			fmt.Fprintf(w, "data: %s\n\n", result(strings.Repeat("x", 500_000)))
		case "many lines":
			fmt.Fprintf(w, ": hello\r\nevent: message\r\ndata: %s\r\n\r\n", strings.ReplaceAll(result("many"), ",", ",\r\ndata: "))
		case "no blank line":
			fmt.Fprintf(w, "data: %s", result("cut"))
		case "noise":
			fmt.Fprintf(w, "data: what?\n\nevent: other\ndata: {}\n\ndata:\n\ndata: %s\n\n", result("noise"))
		case "too large":
			fmt.Fprintf(w, "data: %s\n\n", result(strings.Repeat("x", 2<<20)))
		case "no answer":
			fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"x\"}}\n\n")
		}
	}
	h := newHost(t, map[string]ServerConfig{"r": HTTP{URL: serve(t, raw).URL, Common: Common{MaxMessageBytes: 1 << 20}}})
	connected(t, h)
	for form, want := range map[string]string{"one line": strings.Repeat("x", 500_000), "many lines": "many", "no blank line": "cut", "noise": "noise"} {
		if got := text(t, h, "mcp__r__echo", fmt.Sprintf(`{"form":%q}`, form)); got != want {
			t.Errorf("%s: %.50q", form, got)
		}
	}
	for form, want := range map[string]error{"too large": ErrTooLarge, "json too large": ErrTooLarge, "no answer": ErrConnectionLost} {
		if _, err := h.Call(soon(t), "mcp__r__echo", fmt.Appendf(nil, `{"form":%q}`, form), nil); !errors.Is(err, want) {
			t.Errorf("%s: %v", form, err)
		}
		if got := text(t, h, "mcp__r__echo", `{"form":"noise"}`); got != "noise" {
			t.Errorf("the call after %s: %q", form, got)
		}
	}
	if s := status(t, h, "r"); s.Status != StatusConnected {
		t.Errorf("status %s: %v", s.Status, s.Err)
	}
}

// Pain 14: a call's failure is that call's.
func TestHTTPCallFailures(t *testing.T) {
	raw := &rawHTTP{}
	raw.call = func(w http.ResponseWriter, r *http.Request, m rawMsg) {
		_, args := m.tool()
		switch {
		case strings.Contains(args, "500"):
			http.Error(w, "boom", 500)
		case strings.Contains(args, "rpc400"):
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(400)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"bad"}}`, m.ID)
		case strings.Contains(args, "reset"):
			conn, _, _ := w.(http.Hijacker).Hijack()
			_ = conn.(*net.TCPConn).SetLinger(0)
			conn.Close()
		case strings.Contains(args, "garbage"):
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, "{{{")
		case strings.Contains(args, "wrong id"):
			answerText(w, json.RawMessage("12345"), "not yours")
		case strings.Contains(args, "202"):
			w.WriteHeader(http.StatusAccepted)
		default:
			answerText(w, m.ID, "fine")
		}
	}
	h := newHost(t, map[string]ServerConfig{"r": HTTP{URL: serve(t, raw).URL}})
	connected(t, h)
	for _, in := range []string{"500", "rpc400", "reset", "garbage", "wrong id", "reset"} {
		_, err := h.Call(soon(t), "mcp__r__echo", fmt.Appendf(nil, `{"x":%q}`, in), nil)
		var ce *CallError
		if !errors.As(err, &ce) {
			t.Errorf("%s: %v", in, err)
		}
		if in == "rpc400" && ce.Code != -32602 {
			t.Errorf("%s: code %d", in, ce.Code)
		}
		if got := text(t, h, "mcp__r__echo", `{}`); got != "fine" {
			t.Errorf("the call after %s: %q", in, got)
		}
	}
	if _, err := h.Call(soon(t), "mcp__r__echo", []byte(`{"x":"202"}`), &CallOptions{Timeout: 100 * time.Millisecond}); !errors.Is(err, ErrTimeout) {
		t.Errorf("never answered: %v", err)
	}
	if s := status(t, h, "r"); s.Status != StatusConnected || raw.inits != 1 {
		t.Errorf("status %s, %d handshakes: %v", s.Status, raw.inits, s.Err)
	}
}

// D81: a stream that breaks is made anew; calls wait for it.
func TestSSEDrop(t *testing.T) {
	var streams atomic.Int64
	lib := libraryServer()
	started, release := make(chan struct{}, 1), make(chan struct{})
	mcp.AddTool(lib, &mcp.Tool{Name: "hold"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		started <- struct{}{}
		select { // the library does not end calls with their stream
		case <-ctx.Done():
		case <-release:
		}
		return nil, nil, errors.New("nobody waits")
	})
	inner := mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return lib }, nil)
	srv := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			streams.Add(1)
		}
		inner.ServeHTTP(w, r)
	}))
	h := newHost(t, map[string]ServerConfig{"s": SSE{URL: srv.URL}})
	connected(t, h)
	waiting := make(chan error, 1)
	go func() {
		_, err := h.Call(soon(t), "mcp__s__hold", nil, nil)
		waiting <- err
	}()
	<-started
	events := h.Watch(t.Context())
	srv.CloseClientConnections()
	if err := <-waiting; !errors.Is(err, ErrConnectionLost) {
		t.Errorf("the call in flight: %v", err)
	}
	close(release)
	if got := text(t, h, "mcp__s__echo", `{"text":"again"}`); got != "echo: again" {
		t.Errorf("got %q", got)
	}
	if ev := <-events; ev.Server != "s" {
		t.Errorf("event %+v", ev)
	}
	// net/http itself asks once more for a GET whose connection died under it.
	if n := streams.Load(); n < 2 || n > 3 {
		t.Errorf("%d streams, want 2, or 3 with one of net/http's own", n)
	}
}

// A call whose POST is not answered yet when the stream ends was cut off, not closed on request.
func TestSSEDropBeforeThePostIsAnswered(t *testing.T) {
	inner := mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return libraryServer() }, nil)
	stream, drop := context.WithCancel(t.Context())
	var streams atomic.Int64
	posted := make(chan struct{})
	srv := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what is missing fails the test below
		switch r.Body = io.NopCloser(bytes.NewReader(body)); {
		case r.Method == http.MethodGet && streams.Add(1) == 1:
			r = r.WithContext(stream)
		case bytes.Contains(body, []byte("tools/call")):
			close(posted)
			<-r.Context().Done()
			return
		}
		inner.ServeHTTP(w, r)
	}))
	h := newHost(t, map[string]ServerConfig{"s": SSE{URL: srv.URL}})
	connected(t, h)
	go func() { <-posted; drop() }()
	_, err := h.Call(soon(t), "mcp__s__echo", []byte(`{"text":"x"}`), nil)
	if ce := (*CallError)(nil); !errors.Is(err, ErrConnectionLost) || !errors.As(err, &ce) || !ce.Sent {
		t.Errorf("got %v, want a lost connection of a call that was sent", err)
	}
}

// D13 D101: the settings of one host do not reach another.
func TestServersAreApart(t *testing.T) {
	var hits atomic.Int64
	raw := &rawHTTP{before: func(_ http.ResponseWriter, _ *http.Request, _ rawMsg) bool { hits.Add(1); return false }}
	url := serve(t, raw).URL
	a := newHost(t, map[string]ServerConfig{"r": HTTP{URL: url}}, func(o *Options) { o.Env = map[string]string{"MCP_TIMEOUT": "1234", "MCP_TOOL_TIMEOUT": "77"} })
	b := newHost(t, map[string]ServerConfig{"r": HTTP{URL: url}})
	connected(t, a)
	connected(t, b)
	sa, sb := status(t, a, "r"), status(t, b, "r")
	got := []time.Duration{sa.ConnectTimeout, sa.CallTimeout, sb.ConnectTimeout, sb.CallTimeout}
	want := []time.Duration{1234 * time.Millisecond, 77 * time.Millisecond, 30 * time.Second, 10 * time.Minute} // D91 D92
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
}
