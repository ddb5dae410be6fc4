package mcphost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// askingServer is a server of the official library that asks back, in the way
// of both eras of the protocol.
func askingServer() *mcp.Server {
	srv := mcp.NewServer(&mcp.Implementation{Name: "asking", Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	schema := map[string]any{"type": "object", "properties": map[string]any{
		"sure": map[string]any{"type": "boolean"}, "colour": map[string]any{"type": "string", "default": "green"},
	}}
	mcp.AddTool(srv, &mcp.Tool{Name: "confirm"}, func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		if req.Params.InputResponses == nil {
			return &mcp.CallToolResult{
				InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{Message: "sure?", RequestedSchema: schema}}, RequestState: "s1",
			}, nil, nil
		}
		a := req.Params.InputResponses["q"].(*mcp.ElicitResult)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("%s %v %v", a.Action, a.Content["sure"], a.Content["colour"])}}}, nil, nil
	})
	mcp.AddTool(srv, &mcp.Tool{Name: "think"}, func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		if req.Params.InputResponses == nil {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"m": &mcp.CreateMessageParams{
				MaxTokens: 10, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "2+2?"}}},
			}}}, nil, nil
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("%T", req.Params.InputResponses["m"])}}}, nil, nil
	})
	mcp.AddTool(srv, &mcp.Tool{Name: "roots"}, func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		if req.Params.InputResponses == nil {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"r": &mcp.ListRootsParams{}}}, nil, nil
		}
		r := req.Params.InputResponses["r"].(*mcp.ListRootsResult)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: r.Roots[0].URI}}}, nil, nil
	})
	srv.AddPrompt(&mcp.Prompt{Name: "asks"}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		if req.Params.InputResponses == nil {
			return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{Message: "sure?", RequestedSchema: schema}}}, nil
		}
		a := req.Params.InputResponses["q"].(*mcp.ElicitResult)
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: a.Action}}}}, nil
	})
	srv.AddResource(&mcp.Resource{URI: "mem://a", Name: "a"}, func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		if req.Params.InputResponses == nil {
			return &mcp.ReadResourceResult{InputRequests: mcp.InputRequestMap{"r": &mcp.ListRootsParams{}}}, nil
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "mem://a", Text: "a"}}}, nil
	})
	return srv
}

func withCallbacks(o *Options) {
	o.Roots = []string{"/a/dir with blank"}
	o.Elicit = func(_ context.Context, server string, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		if p.Message != "sure?" {
			return nil, errors.New("who asks?")
		}
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"sure": true}}, nil
	}
	o.Sample = func(context.Context, string, *mcp.CreateMessageWithToolsParams) (*mcp.CreateMessageWithToolsResult, error) {
		return &mcp.CreateMessageWithToolsResult{Model: "m", Role: "assistant", Content: []mcp.Content{&mcp.TextContent{Text: "4"}}}, nil
	}
}

func init() {
	children["asking"] = func() { _ = askingServer().Run(context.Background(), &mcp.StdioTransport{}) }
	children["evilform"] = func() {
		// A schema that crashes the library's validator.
		asked := false
		rawChild("["+echoTool+"]", func(s *rawServer, m rawMsg) bool {
			switch {
			case m.Method == "tools/call" && !asked:
				asked = true
				s.line(`{"jsonrpc":"2.0","id":"e1","method":"elicitation/create","params":{"message":"sure?","requestedSchema":{"$ref":"#"}}}`)
				return false
			case m.Method == "" && string(m.ID) == `"e1"`:
				fmt.Fprintf(os.Stderr, "answer %s%s\n", m.Result, m.Error)
				return true
			}
			return false
		})
	}
	// regret asks something during the first call, and during the second wants no answer any more.
	children["regret"] = func() {
		rawChild("["+echoTool+"]", func(s *rawServer, m rawMsg) bool {
			if _, args := m.tool(); m.Method == "tools/call" && strings.Contains(args, "ask") {
				s.line(`{"jsonrpc":"2.0","id":5,"method":"elicitation/create","params":{"message":"sure?","requestedSchema":{"type":"object","properties":{}}}}`)
			} else if m.Method == "tools/call" {
				s.line(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
			}
			return false
		})
	}
	children["logs"] = func() {
		rawChild("["+echoTool+"]", func(s *rawServer, m rawMsg) bool {
			if m.Method == "initialize" {
				s.reply(m.ID, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{},"resources":{"subscribe":true}},"serverInfo":{"name":"logs","version":"1"}}`)
				return true
			}
			switch m.Method {
			case "logging/setLevel", "resources/subscribe", "resources/unsubscribe":
				fmt.Fprintf(os.Stderr, "%s %s\n", m.Method, m.Params)
				s.reply(m.ID, `{}`)
				return true
			case "tools/call":
				s.line(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","logger":"db","data":"no space, key is %s"}}`, os.Getenv("API_KEY"))
				s.line(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","data":{"a":1}}}`)
				s.line(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"mem://x"}}`)
				s.line(`{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`)
			}
			return false
		})
	}
}

// Elicitation, sampling and roots, in both eras and over all transports.
func TestServersAskBack(t *testing.T) {
	srv := askingServer()
	handler := func(o *mcp.StreamableHTTPOptions) http.Handler {
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return srv }, o)
	}
	h := newHost(t, map[string]ServerConfig{
		"stdio": child("asking"), "http": HTTP{URL: serve(t, handler(nil)).URL},
		"sse": SSE{URL: serve(t, mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return srv }, nil)).URL},
	}, withCallbacks)
	connected(t, h)
	for _, s := range h.Status() {
		if got := text(t, h, "mcp__"+s.Name+"__confirm", `{}`); got != "accept true green" {
			t.Errorf("%s (%s): %q", s.Name, s.ProtocolVersion, got)
		}
		if got := text(t, h, "mcp__"+s.Name+"__roots", `{}`); got != "file:///a/dir%20with%20blank" {
			t.Errorf("%s (%s): %q", s.Name, s.ProtocolVersion, got)
		}
		if p, err := h.GetPrompt(soon(t), s.Name, "asks", nil); err != nil || len(p.Messages) != 1 || p.Messages[0].Content.(*mcp.TextContent).Text != "accept" {
			t.Errorf("%s (%s): prompt %v, %v", s.Name, s.ProtocolVersion, p, err)
		}
		if got := text(t, h, "mcp__"+s.Name+"__think", `{}`); !strings.Contains(got, "CreateMessage") {
			t.Errorf("%s (%s): %q", s.Name, s.ProtocolVersion, got)
		}
		if s.ProtocolVersion < "2026" {
			continue // the library's server refuses a resource without contents in the older era
		}
		if r, err := h.ReadResource(soon(t), s.Name, "mem://a"); err != nil || len(r.Contents) != 1 || r.Contents[0].Text != "a" {
			t.Errorf("%s (%s): resource %v, %v", s.Name, s.ProtocolVersion, r, err)
		}
	}
}

// The schema of a question never reaches a validator that it could crash.
func TestEvilElicitation(t *testing.T) {
	lines := newLines()
	h := newHost(t, map[string]ServerConfig{"e": child("evilform")}, withCallbacks, func(o *Options) { o.OnStderr = lines.add })
	connected(t, h)
	if got := text(t, h, "mcp__e__echo", `{}`); got != "echo {}" {
		t.Errorf("got %q", got)
	}
	if got := lines.wait(t, "answer "); got != `answer {"action":"accept","content":{"sure":true}}` {
		t.Error(got)
	}
}

// A question that the server takes back ends for whoever is to answer it.
func TestQuestionTakenBack(t *testing.T) {
	asked, over := make(chan struct{}), make(chan error, 1)
	h := newHost(t, map[string]ServerConfig{"r": child("regret")}, func(o *Options) {
		o.Elicit = func(ctx context.Context, _ string, _ *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			close(asked)
			<-ctx.Done()
			over <- ctx.Err()
			return nil, ctx.Err()
		}
	})
	connected(t, h)
	text(t, h, "mcp__r__echo", `{"ask":true}`)
	<-asked
	text(t, h, "mcp__r__echo", `{}`)
	select {
	case <-over:
	case <-soon(t).Done():
		t.Error("the question is still open")
	}
}

// Without callbacks the capabilities are not declared, and questions are refused.
func TestNoCallbacks(t *testing.T) {
	lines := newLines()
	h := newHost(t, map[string]ServerConfig{"e": child("evilform")}, func(o *Options) { o.OnStderr = lines.add })
	connected(t, h)
	if got := text(t, h, "mcp__e__echo", `{}`); got != "echo {}" {
		t.Errorf("got %q", got)
	}
	if got := lines.wait(t, "answer "); !strings.Contains(got, "method not found") {
		t.Error(got)
	}
}

// A callback that never returns, or panics, holds up nobody.
func TestBadCallbacks(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	for name, ask := range map[string]func(){"blocks": func() { <-release }, "panics": func() { panic("no") }} {
		h := newHost(t, map[string]ServerConfig{"e": child("evilform")}, func(o *Options) {
			o.Elicit = func(context.Context, string, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
				ask()
				return nil, nil
			}
		})
		connected(t, h)
		for range 2 {
			if got := text(t, h, "mcp__e__echo", `{}`); got != "echo {}" {
				t.Errorf("%s: got %q", name, got)
			}
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A syncBuffer is a log for several goroutines.
type syncBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// Server logs go to slog; subscriptions and the level outlive a connection.
func TestLogsAndSubscriptions(t *testing.T) {
	var log syncBuffer
	lines := newLines()
	updated := make(chan string, 10)
	h := newHost(t, map[string]ServerConfig{"l": child("logs", "API_KEY=sesame-sesame")}, func(o *Options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		o.OnStderr = lines.add
		o.OnResourceUpdated = func(server, uri string) { updated <- server + " " + uri }
	})
	connected(t, h)
	events := h.Watch(t.Context())
	ctx := soon(t)
	if err := h.SetLogLevel(ctx, "l", "debug"); err != nil {
		t.Fatal(err)
	}
	if err := h.Subscribe(ctx, "l", "mem://x"); err != nil {
		t.Fatal(err)
	}
	text(t, h, "mcp__l__echo", `{}`)
	if got := <-updated; got != "l mem://x" {
		t.Errorf("updated: %q", got)
	}
	for ev := range events {
		if ev.Prompts {
			break
		}
	}
	got := log.String()
	for _, want := range []string{`level=ERROR msg="no space, key is ***" server=l logger=db`, `level=DEBUG msg="{\"a\":1}" server=l`} {
		if !strings.Contains(got, want) {
			t.Errorf("the log lacks %s:\n%s", want, got)
		}
	}
	if strings.Contains(got, "sesame") {
		t.Error("the secret is in the log")
	}
	before := len(lines.all())
	if err := h.Reconnect(ctx, "l"); err != nil {
		t.Fatal(err)
	}
	text(t, h, "mcp__l__echo", `{}`)
	for len(lines.all()) < before+2 {
		<-lines.more
	}
	if diff := cmp.Diff([]string{`logging/setLevel {"level":"debug"}`, `resources/subscribe {"uri":"mem://x"}`}, lines.all()[before:before+2]); diff != "" {
		t.Errorf("restored (-want +got):\n%s", diff)
	}
	if err := h.Unsubscribe(ctx, "l", "mem://x"); err != nil {
		t.Fatal(err)
	}
}

// On both eras a change of the tools is heard over HTTP.
func TestListChangedOverHTTP(t *testing.T) {
	for _, stateless := range []bool{false, true} {
		srv := libraryServer()
		var o *mcp.StreamableHTTPOptions
		if stateless {
			o = &mcp.StreamableHTTPOptions{Stateless: true}
		}
		h := newHost(t, map[string]ServerConfig{"l": HTTP{URL: serve(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return srv }, o)).URL}})
		connected(t, h)
		events := h.Watch(t.Context())
		mcp.AddTool(srv, &mcp.Tool{Name: "fresh"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{}, nil, nil
		})
		timeout := time.After(20 * time.Second)
		for {
			if _, ok := h.Tool("mcp__l__fresh"); ok {
				break
			}
			select {
			case <-events:
			case <-timeout:
				t.Fatalf("stateless %v (%s): the new tool is not seen", stateless, status(t, h, "l").ProtocolVersion)
			}
		}
	}
}

const headerTools = `[{"name":"echo","inputSchema":{"type":"object","properties":{
	"region":{"type":"string","x-mcp-header":"Region"},
	"where":{"type":"object","properties":{"zone":{"type":"integer","x-mcp-header":"Zone"}}},
	"dry":{"type":"boolean","x-mcp-header":"Dry"},"plain":{"type":"string"}}}},
	{"name":"bad","inputSchema":{"type":"object","properties":{"x":{"type":"string","x-mcp-header":"not a token"}}}}]`

// T13 T44: annotated arguments are mirrored into headers, absent and null ones
// are not, also when the tools come from the cache.
func TestParamHeaders(t *testing.T) {
	raw := &rawHTTP{tools: strings.ReplaceAll(headerTools, "\n", "")}
	url := serve(t, raw).URL
	dir := t.TempDir()
	check := func(h *Host, args string, want map[string]string) {
		t.Helper()
		if got := text(t, h, "mcp__r__echo", args); got != "echo "+args {
			t.Errorf("got %q", got)
		}
		raw.mu.Lock()
		defer raw.mu.Unlock()
		var last http.Header
		for i, r := range raw.requests {
			if r == "POST tools/call" {
				last = raw.headers[i]
			}
		}
		got := map[string]string{}
		for k := range last {
			if strings.HasPrefix(k, headerParam) {
				got[strings.TrimPrefix(k, headerParam)] = last.Get(k)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("headers for %s (-want +got):\n%s", args, diff)
		}
	}
	withCache := func(o *Options) { o.CacheDir = dir }
	h := newHost(t, map[string]ServerConfig{"r": HTTP{URL: url}}, withCache)
	connected(t, h)
	check(h, `{"region":"eu","where":{"zone":7},"dry":true,"plain":"x"}`, map[string]string{"Region": "eu", "Zone": "7", "Dry": "true"})
	check(h, `{"region":" ü","where":{"zone":null}}`, map[string]string{"Region": "=?base64?IMO8?="})
	check(h, `{"region":null,"where":3,"dry":"yes"}`, map[string]string{"Dry": "yes"})
	if s := status(t, h, "r"); len(s.Rejected) != 1 || s.Rejected[0].Name != "bad" {
		t.Errorf("rejected: %+v", s.Rejected)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	lazy := newHost(t, map[string]ServerConfig{"r": HTTP{URL: url}}, withCache)
	ready(t, lazy)
	if s := status(t, lazy, "r"); s.Status != StatusPending || !s.Cached || s.ToolCount != 1 {
		t.Errorf("with the cache: %+v", s)
	}
	check(lazy, `{"region":"us"}`, map[string]string{"Region": "us"})
}

// D12 D14 D35 D47 D71: the discovery cache and its rules.
func TestDiscoveryCache(t *testing.T) {
	var refuse atomic.Bool
	raw := &rawHTTP{before: func(w http.ResponseWriter, _ *http.Request, _ rawMsg) bool {
		if refuse.Load() {
			w.WriteHeader(http.StatusUnauthorized)
		}
		return refuse.Load()
	}}
	url := serve(t, raw).URL + "/?key=sesame-sesame"
	dir := filepath.Join(t.TempDir(), "cache")
	cfg := HTTP{URL: url, Headers: map[string]string{"Authorization": "Bearer tok-tok-tok"}}
	run := func(cfg ServerConfig, env ...string) *Host {
		t.Helper()
		h := newHost(t, map[string]ServerConfig{"r": cfg, "local": child("echo")}, func(o *Options) {
			if len(env) == 0 {
				o.CacheDir = dir
			}
		})
		ready(t, h)
		return h
	}
	h := run(cfg)
	connected(t, h)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files: %v, %v: stdio servers are not cached", files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(files[0]); err != nil || st.Mode().Perm() != 0o600 || strings.Contains(string(b), "sesame") || strings.Contains(string(b), "tok-tok") {
		t.Errorf("mode %v, %v; content %s", st.Mode(), err, b)
	}
	before := raw.count("POST initialize")
	h = run(cfg)
	s := status(t, h, "r")
	if n := raw.count("POST initialize"); s.Status != StatusPending || s.ToolCount != 1 || s.ServerInfo == nil || n != before {
		t.Errorf("second run: %s, %d tools, %d handshakes", s.Status, s.ToolCount, n-before)
	}
	if err := h.WaitFirstTurn(t.Context(), WaitInput{}); err != nil || raw.count("POST initialize") != before || status(t, h, "r").Status != StatusPending {
		t.Errorf("the first turn waited for what is cached: %v, %d handshakes, %s", err, raw.count("POST initialize")-before, dump(h))
	}
	loaded := cfg
	loaded.AlwaysLoad = true
	l := run(loaded)
	if err := l.WaitFirstTurn(t.Context(), WaitInput{}); err != nil || raw.count("POST initialize") != before {
		t.Errorf("always loaded: %v, %d handshakes", err, raw.count("POST initialize")-before)
	}
	if tool, ok := l.Tool("mcp__r__echo"); !ok || !tool.AlwaysLoad {
		t.Errorf("always loaded: the tool is %+v, %v", tool, ok)
	}
	if got := text(t, h, "mcp__r__echo", `{}`); got != "echo {}" || status(t, h, "r").Status != StatusConnected {
		t.Errorf("first call: %q, %s", got, dump(h))
	}
	// Off: connects. Another account: connects.
	if s := status(t, run(cfg, "off"), "r"); s.Cached || s.Status != StatusConnected {
		t.Errorf("cache off: %+v", s)
	}
	other := cfg
	other.Headers = map[string]string{"Authorization": "Bearer another-token"}
	if s := status(t, run(other), "r"); s.Cached {
		t.Error("another account got the list of the first")
	}
	// Old, broken, or writable by others: not used, and removed.
	for _, spoil := range []func(){
		func() {
			_ = os.WriteFile(files[0], []byte(strings.Replace(string(b), `"saved":"20`, `"saved":"19`, 1)), 0o600)
		},
		func() { _ = os.WriteFile(files[0], []byte("{"), 0o600) },
		func() { _ = os.WriteFile(files[0], b, 0o600); _ = os.Chmod(files[0], 0o666) },
	} {
		spoil()
		if s := status(t, run(cfg), "r"); s.Cached || s.Status != StatusConnected {
			t.Errorf("a bad file was used: %+v", s)
		}
	}
	// A server that refuses is forgotten.
	refuse.Store(true)
	h = run(cfg)
	var ce *ConnectError
	if _, err := h.Call(soon(t), "mcp__r__echo", nil, nil); !errors.As(err, &ce) || ce.HTTPStatus != 401 {
		t.Errorf("a call that cannot connect: %v", err)
	}
	if _, err := os.Stat(files[0]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
}

// Per-call headers and _meta.
func TestCallOptions(t *testing.T) {
	raw := &rawHTTP{}
	raw.call = func(w http.ResponseWriter, r *http.Request, m rawMsg) {
		var p struct {
			Meta json.RawMessage `json:"_meta"`
		}
		_ = json.Unmarshal(m.Params, &p)
		answerText(w, m.ID, r.Header.Get("X-Tenant")+" "+string(p.Meta))
	}
	h := newHost(t, map[string]ServerConfig{"r": HTTP{URL: serve(t, raw).URL}})
	connected(t, h)
	res, err := h.Call(soon(t), "mcp__r__echo", nil, &CallOptions{
		ToolUseID: "toolu_1", Meta: mcp.Meta{"trace": "abc"}, Headers: map[string]string{"X-Tenant": "acme"},
	})
	if err != nil {
		t.Fatal(err)
	}
	tenant, meta, _ := strings.Cut(plainText(res), " ")
	var got map[string]any
	if err := json.Unmarshal([]byte(meta), &got); err != nil || tenant != "acme" || got["claudecode/toolUseId"] != "toolu_1" || got["trace"] != "abc" || got["progressToken"] == nil {
		t.Errorf("tenant %q, meta %s", tenant, meta)
	}
}
