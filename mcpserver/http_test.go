package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpserver"
)

// web serves s over HTTP on loopback until the test ends.
func web(t *testing.T, s *mcpserver.Server, o *mcpserver.HTTPOptions) (*mcpserver.HTTPHandler, string) {
	t.Helper()
	h := mcpserver.NewHTTPHandler(s, o)
	srv := httptest.NewServer(h)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := h.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		srv.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return h, srv.URL
}

// A reply is what came back from a POST.
type reply struct {
	status int
	header http.Header
	body   string
}

// post sends one message. headers are pairs; "Host" sets the host.
func post(t *testing.T, url, body string, headers ...string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
			continue
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(data)}
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`

// open opens a session and returns its id.
func open(t *testing.T, url string, headers ...string) string {
	t.Helper()
	r := post(t, url, initialize, headers...)
	id := r.header.Get("Mcp-Session-Id")
	if r.status != http.StatusOK || id == "" {
		t.Fatalf("initialize: %d %s", r.status, r.body)
	}
	if r := post(t, url, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, append(headers, "Mcp-Session-Id", id)...); r.status != http.StatusAccepted {
		t.Fatalf("initialized: %d %s", r.status, r.body)
	}
	return id
}

// Everything works over HTTP in both eras, on one endpoint.
func TestHTTPServesEverything(t *testing.T) {
	s := served(t)
	_, url := web(t, s, nil)
	for _, version := range []string{"2025-11-25", "2026-07-28", "2024-11-05"} {
		t.Run(version, func(t *testing.T) {
			exercise(t, s, version, &mcp.StreamableClientTransport{Endpoint: url})
		})
	}
}

// The era is told by the request: by its header, its _meta, or its session.
func TestHTTPTellsTheEras(t *testing.T) {
	_, url := web(t, served(t), nil)
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	r := post(t, url, `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{`+meta+`}}`,
		"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "server/discover")
	if r.status != http.StatusOK || !strings.Contains(r.body, "2026-07-28") || !strings.Contains(r.body, "2025-11-25") || r.header.Get("Mcp-Session-Id") != "" {
		t.Errorf("discover: %d %s", r.status, r.body)
	}
	r = post(t, url, `{"jsonrpc":"2.0","id":"x","method":"tools/list","params":{`+meta+`}}`)
	if r.status != http.StatusBadRequest || !strings.Contains(r.body, "-32020") || !strings.Contains(r.body, `"id":"x"`) {
		t.Errorf("a request of 2026-07-28 without its header: %d %s", r.status, r.body)
	}
	id := open(t, url)
	r = post(t, url, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"id"}}`, "Mcp-Session-Id", id, "Mcp-Protocol-Version", "2025-11-25")
	if r.status != http.StatusOK || !strings.Contains(r.body, "2 2025-11-25") {
		t.Errorf("a call in a session: %d %s", r.status, r.body)
	}
	if r = post(t, url, `{"jsonrpc":"2.0","id":2,"method":"ping"}`, "Mcp-Session-Id", "gone"); r.status != http.StatusNotFound {
		t.Errorf("a session that is not there: %d %s, want 404 so that clients shake hands again", r.status, r.body)
	}
}

// The header that tells handlers the request's id cannot be forged.
func TestHTTPRequestIDIsOurs(t *testing.T) {
	_, url := web(t, served(t), nil)
	id := open(t, url)
	r := post(t, url, `{"jsonrpc":"2.0","id":"true","method":"tools/call","params":{"name":"id"}}`, "Mcp-Session-Id", id, "Tenon-Request-Id", "forged")
	if !strings.Contains(r.body, `\"true\" 2025-11-25`) || strings.Contains(r.body, "forged") {
		t.Errorf("got %s", r.body)
	}
}

// Requests from web pages that have no business here are refused before anything
// of them is read.
func TestHTTPChecksWhereRequestsComeFrom(t *testing.T) {
	tests := []struct {
		name    string
		opts    mcpserver.HTTPOptions
		headers []string
		want    int
	}{
		{"loopback by name", mcpserver.HTTPOptions{}, []string{"Host", "localhost:1234"}, 200},
		{"loopback by IPv6", mcpserver.HTTPOptions{}, []string{"Host", "[::1]:1234"}, 200},
		{"rebound DNS", mcpserver.HTTPOptions{}, []string{"Host", "evil.example.com"}, 403},
		{"a host that only begins like loopback", mcpserver.HTTPOptions{}, []string{"Host", "localhost.evil.example.com"}, 403},
		{"the page of another site", mcpserver.HTTPOptions{}, []string{"Origin", "https://evil.example.com"}, 403},
		{"a local page", mcpserver.HTTPOptions{}, []string{"Origin", "http://localhost:6274"}, 200},
		{"a page from a file", mcpserver.HTTPOptions{}, []string{"Origin", "null"}, 403},
		{"an allowed host", mcpserver.HTTPOptions{AllowedHosts: []string{"MCP.example.com"}}, []string{"Host", "mcp.example.com:443"}, 200},
		{"no allowed host", mcpserver.HTTPOptions{AllowedHosts: []string{"mcp.example.com"}}, nil, 403},
		{"any host", mcpserver.HTTPOptions{AllowedHosts: []string{"*"}}, []string{"Host", "evil.example.com"}, 200},
		{"its own page", mcpserver.HTTPOptions{AllowedHosts: []string{"*"}}, []string{"Host", "mcp.example.com", "Origin", "https://mcp.example.com"}, 200},
		{"an allowed origin", mcpserver.HTTPOptions{AllowedOrigins: []string{"https://app.example.com"}}, []string{"Origin", "https://APP.example.com"}, 200},
		{"any origin", mcpserver.HTTPOptions{AllowedOrigins: []string{"*"}}, []string{"Origin", "https://evil.example.com"}, 200},
	}
	s := served(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, url := web(t, s, &test.opts)
			if r := post(t, url, initialize, test.headers...); r.status != test.want {
				t.Errorf("status %d, want %d: %s", r.status, test.want, r.body)
			}
		})
	}
}

func TestHTTPBoundsBodies(t *testing.T) {
	_, url := web(t, served(t), &mcpserver.HTTPOptions{MaxBodyBytes: 1000})
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		r := post(t, url, `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"`+strings.Repeat("x", 1000)+`"}}`, "Mcp-Protocol-Version", version)
		if r.status != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %d %s, want 413", version, r.status, r.body)
		}
	}
	if r := post(t, url, initialize); r.status != http.StatusOK {
		t.Errorf("a short one: %d", r.status)
	}
	for _, body := range []string{"", "nonsense", `{"jsonrpc":"2.0"`, "[]"} {
		if r := post(t, url, body); r.status != http.StatusBadRequest {
			t.Errorf("body %q: %d %s, want 400", body, r.status, r.body)
		}
	}
}

func TestHTTPBoundsSessions(t *testing.T) {
	_, url := web(t, served(t), &mcpserver.HTTPOptions{MaxSessions: 2})
	first := open(t, url)
	open(t, url)
	r := post(t, url, initialize)
	if r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "" {
		t.Errorf("one session too many: %d %s", r.status, r.body)
	}
	const call = `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"sum","arguments":{"A":1,"B":2}}}`
	if r := post(t, url, call, "Mcp-Session-Id", first); !strings.Contains(r.body, `"sum":3`) {
		t.Errorf("a session that is open: %d %s", r.status, r.body)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Mcp-Session-Id", first)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if r := post(t, url, initialize); r.status != http.StatusOK {
		t.Errorf("after one was closed: %d %s", r.status, r.body)
	}
}

func TestHTTPClosesIdleSessions(t *testing.T) {
	h, url := web(t, served(t), &mcpserver.HTTPOptions{IdleTimeout: time.Millisecond})
	r := post(t, url, initialize)
	id := r.header.Get("Mcp-Session-Id")
	for h.Sessions() > 0 { // it ends by itself
		select {
		case <-t.Context().Done():
			t.Fatal("the session stays")
		default:
		}
	}
	if r := post(t, url, `{"jsonrpc":"2.0","id":2,"method":"ping"}`, "Mcp-Session-Id", id); r.status != http.StatusNotFound {
		t.Errorf("after the idle timeout: %d %s", r.status, r.body)
	}
}

func TestHTTPAsksForTokens(t *testing.T) {
	s := served(t)
	if err := s.AddTool(&mcpserver.Tool{Name: "whoami"}, func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
		return mcpserver.Text(mcpserver.TokenInfo(ctx).UserID), nil
	}); err != nil {
		t.Fatal(err)
	}
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		switch token {
		case "ann", "bob":
			return &auth.TokenInfo{UserID: token, Scopes: []string{"use"}, Expiration: time.Now().Add(time.Hour)}, nil
		case "poor":
			return &auth.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour)}, nil
		}
		return nil, fmt.Errorf("%w: unknown", auth.ErrInvalidToken)
	}
	const about = "https://mcp.example.com/.well-known/oauth-protected-resource"
	_, url := web(t, s, &mcpserver.HTTPOptions{Auth: &mcpserver.BearerAuth{Verify: verify, Scopes: []string{"use"}, ResourceMetadataURL: about}})
	for token, want := range map[string]int{"": 401, "Bearer nobody": 401, "Basic ann": 401, "Bearer poor": 403} {
		r := post(t, url, initialize, "Authorization", token)
		if r.status != want || !strings.Contains(r.header.Get("WWW-Authenticate"), `resource_metadata="`+about+`"`) {
			t.Errorf("token %q: %d, %q; want %d and the address of the metadata", token, r.status, r.header.Get("WWW-Authenticate"), want)
		}
	}
	id := open(t, url, "Authorization", "Bearer ann")
	const call = `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"whoami"}}`
	if r := post(t, url, call, "Authorization", "Bearer ann", "Mcp-Session-Id", id); !strings.Contains(r.body, `"text":"ann"`) {
		t.Errorf("the handler sees %s", r.body)
	}
	if r := post(t, url, call, "Authorization", "Bearer bob", "Mcp-Session-Id", id); r.status != http.StatusForbidden {
		t.Errorf("another user in the session: %d %s", r.status, r.body)
	}
}

// In 2026-07-28 an annotated argument must stand in its header too.
//
// T13 T24
func TestHTTPChecksParamHeaders(t *testing.T) {
	s := served(t)
	schema := json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`)
	if err := s.AddTool(&mcpserver.Tool{Name: "regional", InputSchema: schema}, func(_ context.Context, args json.RawMessage) (*mcpserver.Result, error) {
		return mcpserver.Text(string(args)), nil
	}); err != nil {
		t.Fatal(err)
	}
	_, url := web(t, s, nil)
	call := func(headers ...string) reply {
		return post(t, url, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"regional","arguments":{"region":"north"},`+
			`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
			append(headers, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "regional")...)
	}
	if r := call("Mcp-Param-Region", "north"); r.status != http.StatusOK || !strings.Contains(r.body, "north") {
		t.Errorf("the header as the argument: %d %s", r.status, r.body)
	}
	for name, headers := range map[string][]string{"no header": nil, "another value": {"Mcp-Param-Region", "south"}} {
		if r := call(headers...); r.status != http.StatusBadRequest || !strings.Contains(r.body, "-32020") {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if _, err := session.ListTools(t.Context(), nil); err != nil { // it learns of the header here
		t.Fatal(err)
	}
	if got := textOf(t, session, "regional", map[string]string{"region": "west"}, nil); got != `{"region":"west"}` {
		t.Errorf("a client that mirrors: %s", got)
	}
}

// Shutdown lets requests end, closes standing streams, and refuses new requests.
func TestHTTPShutdownIsGraceful(t *testing.T) {
	s := served(t)
	started, release := make(chan struct{}), make(chan struct{})
	if err := s.AddTool(&mcpserver.Tool{Name: "slow"}, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
		close(started)
		<-release
		return mcpserver.Text("done"), nil
	}); err != nil {
		t.Fatal(err)
	}
	h, url := web(t, s, nil)
	id := open(t, url)
	stream := standing(t, url, id)
	answered := make(chan reply, 1)
	go func() {
		answered <- post(t, url, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow"}}`, "Mcp-Session-Id", id)
	}()
	<-started
	down := make(chan error, 1)
	go func() { down <- h.Shutdown(t.Context()) }()
	for {
		if r := post(t, url, initialize); r.status == http.StatusServiceUnavailable {
			break
		}
	}
	close(release)
	if r := <-answered; !strings.Contains(r.body, "done") {
		t.Errorf("the request in flight: %d %s", r.status, r.body)
	}
	if err := <-down; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if _, err := io.ReadAll(stream); err != nil {
		t.Errorf("the standing stream ended with %v", err)
	}
	if err := h.Shutdown(t.Context()); err != nil {
		t.Errorf("a second Shutdown: %v", err)
	}
}

// standing opens the stream on which the server sends by itself.
func standing(t *testing.T, url, id string, headers ...string) io.Reader {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Mcp-Session-Id", id)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("GET: %s", resp.Status)
	}
	return resp.Body
}

// When its time is over, Shutdown cancels what still runs, handlers that heed
// nothing included.
func TestHTTPShutdownCancels(t *testing.T) {
	s := served(t)
	started, waiting, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
	s.RemoveTool("wait")
	if err := s.AddTool(&mcpserver.Tool{Name: "wait"}, func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
		close(waiting)
		<-ctx.Done()
		return nil, ctx.Err()
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.AddTool(&mcpserver.Tool{Name: "deaf"}, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
		close(started)
		<-release
		return mcpserver.Text("too late"), nil
	}); err != nil {
		t.Fatal(err)
	}
	h, url := web(t, s, nil)
	id := open(t, url)
	answered := make(chan reply, 2)
	go func() {
		answered <- post(t, url, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"deaf"}}`, "Mcp-Session-Id", id)
	}()
	go func() {
		answered <- post(t, url, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"wait","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
			"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "wait")
	}()
	<-started
	<-waiting
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: %v, want context.Canceled", err)
	}
	for range 2 {
		if r := <-answered; !strings.Contains(r.body, "-32000") {
			t.Errorf("got %d %s, want the error of a closed server", r.status, r.body)
		}
	}
	close(release)
}

// In 2026-07-28 a client that goes away ends its call.
func TestHTTPDisconnectCancels(t *testing.T) {
	s := served(t)
	started, ended := make(chan struct{}), make(chan struct{})
	if err := s.AddTool(&mcpserver.Tool{Name: "watch"}, func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
		close(started)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	}); err != nil {
		t.Fatal(err)
	}
	_, url := web(t, s, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"watch","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "watch",
	} {
		req.Header.Set(key, value)
	}
	go func() {
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			resp.Body.Close()
		}
	}()
	<-started
	cancel()
	<-ended
}

// Many clients of both eras at once, while tools come and go.
func TestHTTPManyClients(t *testing.T) {
	s := served(t)
	_, url := web(t, s, nil)
	stop := make(chan struct{})
	var changing sync.WaitGroup
	changing.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = s.AddTool(&mcpserver.Tool{Name: "flicker"}, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
				return mcpserver.Text(""), nil
			})
			s.RemoveTool("flicker")
		}
	})
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			version := []string{"2025-11-25", "2026-07-28"}[i%2]
			client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil)
			session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url}, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Error(err)
				return
			}
			defer session.Close()
			for n := range 20 {
				if got, want := textOf(t, session, "sum", map[string]int{"A": i, "B": n}, nil), fmt.Sprintf(`{"sum":%d}`, i+n); got != want {
					t.Errorf("client %d: %s, want %s", i, got, want)
				}
			}
		})
	}
	clients.Wait()
	close(stop)
	changing.Wait()
}

// A handler can let go of its client only where the client can come back.
func TestHTTPCloseStream(t *testing.T) {
	for name, o := range map[string]*mcpserver.HTTPOptions{"false": nil, "true": {EventStore: mcp.NewMemoryEventStore(nil)}} {
		t.Run(name, func(t *testing.T) {
			s := served(t)
			if err := s.AddTool(&mcpserver.Tool{Name: "letgo"}, func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
				return mcpserver.Text(fmt.Sprint(mcpserver.CloseStream(ctx, time.Millisecond))), nil
			}); err != nil {
				t.Fatal(err)
			}
			_, url := web(t, s, o)
			session, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil).
				Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			if got := textOf(t, session, "letgo", nil, nil); got != name {
				t.Errorf("got %s, want %s", got, name)
			}
			if mcpserver.CloseStream(t.Context(), 0) {
				t.Error("a context of no call closed a stream")
			}
		})
	}
}
