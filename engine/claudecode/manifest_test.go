package claudecode

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcpbridge"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// A lister is a server whose list of tools is made by a function, call by call.
type lister struct {
	*mcpserver.Server
	list func(ctx context.Context, call int) ([]*mcp.Tool, error)

	mu    sync.Mutex // guards the rest
	calls int
}

func (l *lister) OpenSession(ctx context.Context, o *mcpserver.SessionOptions) (mcpserver.ServerSession, error) {
	ss, err := l.Server.OpenSession(ctx, o)
	return &listerSession{ss, l}, err
}

func (l *lister) listed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls
}

type listerSession struct {
	mcpserver.ServerSession
	l *lister
}

func (s *listerSession) ListTools(ctx context.Context) ([]*mcp.Tool, error) {
	s.l.mu.Lock()
	s.l.calls++
	call := s.l.calls
	s.l.mu.Unlock()
	if s.l.list == nil {
		return s.ServerSession.ListTools(ctx)
	}
	return s.l.list(ctx, call)
}

// slow takes a while for its list.
func slow(t *testing.T, d time.Duration) *lister {
	s := echo(t)
	return &lister{Server: s, list: func(ctx context.Context, _ int) ([]*mcp.Tool, error) {
		select {
		case <-time.After(d):
			return s.ListTools(), nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}}
}

// sessionOf is a session with servers in this process and without a CLI.
func sessionOf(t *testing.T, o *agent.Options) *session {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := newSession(New(nil), o)
	s.ch = newChannel(t.Context())
	s.servers = newServers(s)
	var err error
	if s.servers.configs, err = s.servers.byHost(t.Context(), o.MCPServers); err != nil {
		t.Fatal(err)
	}
	s.servers.attach(s.servers.withShared(s.servers.configs))
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func inProcess(all map[string]mcpserver.Provider) *agent.Options {
	o := &agent.Options{MCPServers: map[string]mcphost.ServerConfig{}}
	for name, p := range all {
		o.MCPServers[name] = mcphost.InProcess(p)
	}
	return o
}

// helloOf is the initialize request that a scripted CLI was sent.
func helloOf(t *testing.T, o *agent.Options) (line string, manifests map[string]manifest) {
	t.Helper()
	e, f := fake("polite")
	maps.Copy(f.Env, o.Env)
	o.Env = f.Env
	msgs, err := ask(t, e, o)
	if err != nil {
		t.Fatal(err)
	}
	r, ok := msgs[len(msgs)-1].(*agent.Result)
	if !ok {
		t.Fatalf("the last message is %T", msgs[len(msgs)-1])
	}
	line, _, _ = strings.Cut(r.Result, "\n")
	var hello struct {
		Manifests map[string]manifest `json:"sdkMcpServerManifests"`
	}
	if err := json.Unmarshal([]byte(line), &hello); err != nil {
		t.Fatal(err)
	}
	return line, hello.Manifests
}

// What initialize says of a server in this process is what the server says in a handshake, byte for
// byte: the tools that the CLI can take, under the names that it takes.
func TestManifest(t *testing.T) {
	s := mcpserver.New("stock", &mcpserver.Options{Version: "1.2.3", Instructions: "ask <first>"})
	for _, name := range []string{"count", "in.stock"} {
		err := s.AddTool(&mcpserver.Tool{Name: name, Description: "a & b", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(context.Context, json.RawMessage) (*mcpserver.Result, error) { return mcpserver.Text("4"), nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	line, manifests := helloOf(t, inProcess(map[string]mcpserver.Provider{"mine": s}))
	const want = `{"mine":{"initializeResult":{"protocolVersion":"2025-11-25",` +
		`"capabilities":{"logging":{},"tools":{"listChanged":true}},"serverInfo":{"name":"stock","version":"1.2.3"},"instructions":"ask <first>"},` +
		`"toolsListResult":{"tools":[{"description":"a & b","inputSchema":{"type":"object","properties":{}},"name":"count"},{"description":"a & b","inputSchema":{"type":"object","properties":{}},"name":"in_stock"}]}}}`
	var hello map[string]json.RawMessage
	if err := json.Unmarshal([]byte(line), &hello); err != nil {
		t.Fatal(err)
	}
	if got := canonical(t, hello["sdkMcpServerManifests"]); got != canonical(t, json.RawMessage(want)) {
		t.Errorf("initialize has %s, want %s", got, want)
	}
	live := attachedSession(t, s)
	for request, got := range map[string]json.RawMessage{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"claude-code","version":"2.1.332"}}}`: manifests["mine"].Initialize,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`: manifests["mine"].Tools,
	} {
		reply, err := tell(t, live, "srv", request)
		var r struct {
			Result json.RawMessage `json:"result"`
		}
		if err != nil || json.Unmarshal([]byte(reply), &r) != nil || canonical(t, r.Result) != canonical(t, got) {
			t.Errorf("%s is answered %s, %v; the manifest has %s", request, reply, err, got)
		}
	}
}

func canonical(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// The switch is the TypeScript SDK's. What the options say of it counts before the process's environment.
func TestManifestsOff(t *testing.T) {
	for value, want := range map[string]bool{"": true, "0": true, "no": true, "2": true, "1": false, " TRUE ": false, "Yes": false, "on": false} {
		s := &session{opts: &agent.Options{Env: map[string]string{manifestsOff: value}}}
		if got := s.wantsManifests(); got != want {
			t.Errorf("%s=%q: manifests %t, want %t", manifestsOff, value, got, want)
		}
	}
	t.Setenv(manifestsOff, "1")
	for _, env := range []map[string]string{nil, {manifestsOff: "false"}} {
		o := inProcess(map[string]mcpserver.Provider{"mine": echo(t)})
		o.Env = env
		line, manifests := helloOf(t, o)
		if (len(manifests) > 0) != (env != nil) || strings.Contains(line, "Manifests") != (env != nil) {
			t.Errorf("with %v initialize is %s", env, line)
		}
	}
}

// All servers are asked at once and have a quarter of a second together. Who is late has no manifest
// and costs the others nothing.
func TestManifestsAreCapturedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := map[string]mcpserver.Provider{"late": slow(t, manifestLimit+time.Millisecond), "never": slow(t, time.Hour)}
		for i := range 9 {
			all[fmt.Sprintf("s%d", i)] = slow(t, manifestLimit-time.Millisecond)
		}
		s := sessionOf(t, inProcess(all))
		begin := time.Now()
		got := s.servers.manifests(t.Context())
		if took := time.Since(begin); took != manifestLimit {
			t.Errorf("it took %v, want %v", took, manifestLimit)
		}
		want := slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(name string) bool { return !strings.HasPrefix(name, "s") })
		if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
			t.Errorf("manifests of %v, want %v", names, want)
		}
		if _, err := json.Marshal(got); err != nil {
			t.Error(err)
		}
	})
}

// Nothing is waited for once everyone has answered, nor when whoever opens the session gives up.
func TestManifestsAreNotWaitedForLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sessionOf(t, inProcess(map[string]mcpserver.Provider{"quick": slow(t, time.Millisecond)}))
		begin := time.Now()
		if got := s.servers.manifests(t.Context()); len(got) != 1 || time.Since(begin) != time.Millisecond {
			t.Errorf("%d manifests after %v", len(got), time.Since(begin))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := sessionOf(t, inProcess(map[string]mcpserver.Provider{"slow": slow(t, time.Second)}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		begin := time.Now()
		if got := s.servers.manifests(ctx); len(got) != 0 || time.Since(begin) != time.Millisecond {
			t.Errorf("%d manifests after %v", len(got), time.Since(begin))
		}
	})
}

// A list that comes late, after the CLI's own, undoes nothing: neither the names that the CLI was told
// nor its handshake.
func TestLateListUndoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		p := &lister{Server: echo(t)}
		p.list = func(ctx context.Context, call int) ([]*mcp.Tool, error) {
			if call == 1 {
				<-time.After(time.Second)
				return nil, nil
			}
			return p.Server.ListTools(), nil
		}
		o := inProcess(map[string]mcpserver.Provider{"srv": p})
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		s := sessionOf(t, o)
		if got := s.servers.manifests(t.Context()); len(got) != 0 {
			t.Fatalf("got %v", got)
		}
		if !strings.Contains(log.String(), "servers=[srv]") {
			t.Errorf("the log does not name the late server: %s", log.String())
		}
		for _, m := range []string{
			`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"claude-code","version":"9"}}}`,
			`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
		} {
			if _, err := tell(t, s, "srv", m); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(2 * time.Second)
		synctest.Wait()
		if _, ok := s.servers.attached["srv"].guest.find("mcp__srv__echo"); !ok {
			t.Error("the late list has taken the tools away")
		}
		if p.listed() != 2 {
			t.Errorf("listed %d times", p.listed())
		}
		if got, err := tell(t, s, "srv", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}`); err != nil || !strings.Contains(got, "hello yourself") {
			t.Errorf("got %s, %v", got, err)
		}
	})
}

// A server that breaks while it is asked has no manifest, and the log says why; its siblings have theirs.
func TestManifestsOfBrokenServers(t *testing.T) {
	var log bytes.Buffer
	broken := func(list func() ([]*mcp.Tool, error)) *lister {
		return &lister{Server: echo(t), list: func(context.Context, int) ([]*mcp.Tool, error) { return list() }}
	}
	o := inProcess(map[string]mcpserver.Provider{
		"fine":   echo(t),
		"panics": broken(func() ([]*mcp.Tool, error) { panic("oops") }),
		"fails":  broken(func() ([]*mcp.Tool, error) { return nil, errors.New("no database") }),
		"shut":   shut{echo(t)},
		"mute":   mute{echo(t)},
	})
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	got := sessionOf(t, o).servers.manifests(t.Context())
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, []string{"fine"}) {
		t.Errorf("manifests of %v", names)
	}
	for name, want := range map[string]string{"panics": "the server failed to handle", "fails": "no database", "shut": "out of order", "mute": "the server failed to handle"} {
		if !slices.ContainsFunc(strings.Split(log.String(), "\n"), func(line string) bool {
			return strings.Contains(line, "server="+name+" ") && strings.Contains(line, want)
		}) {
			t.Errorf("the log does not say of %s that %s", name, want)
		}
	}
	t.Log(log.String())
}

// shut opens no session; mute panics when asked who it is.
type (
	shut struct{ *mcpserver.Server }
	mute struct{ *mcpserver.Server }
)

func (shut) OpenSession(context.Context, *mcpserver.SessionOptions) (mcpserver.ServerSession, error) {
	return nil, errors.New("out of order")
}

func (mute) Info() *mcp.Implementation { panic("who?") }

// Of a list that comes in pages the CLI asks for all of them itself.
func TestManifestOfAPagedList(t *testing.T) {
	s := sessionOf(t, inProcess(map[string]mcpserver.Provider{"srv": echo(t)}))
	a := s.servers.attached["srv"]
	if err := mcpserver.AddTool(a.provider.(*mcpserver.Server), &mcpserver.Tool{Name: "two"}, func(context.Context, struct{}) (string, error) { return "", nil }); err != nil {
		t.Fatal(err)
	}
	for size, want := range map[int]bool{1: false, 2: true} {
		_ = a.bridge.Close()
		a.bridge = mcpbridge.New(a.guest, &mcpbridge.Options{PageSize: size})
		got, ok := s.servers.manifests(t.Context())["srv"]
		if !ok || len(got.Initialize) == 0 || (got.Tools != nil) != want {
			t.Errorf("with pages of %d: %t, %+v", size, ok, got)
		}
	}
	if got := wholeList(json.RawMessage(`{"tools":[],"nextCursor":""}`)); got != nil {
		t.Errorf("a cursor that is empty is one: %s", got)
	}
}

// Servers that are to be off, and those of a host that are not connected, have no manifest: of the
// latter nothing is known but the name. Those that are connected have one.
func TestManifestsOfServersOfAHost(t *testing.T) {
	h, err := mcphost.New(&mcphost.Options{Servers: map[string]mcphost.ServerConfig{
		"shared": mcphost.InProcess(echo(t)), "gone": mcphost.Stdio{Command: "/nothing/here"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	h.Start(t.Context())
	if err := h.WaitFirstTurn(t.Context(), mcphost.WaitInput{ToolSearchOff: true}); err != nil {
		t.Fatal(err)
	}
	s := sessionOf(t, &agent.Options{Host: h, MCPServers: map[string]mcphost.ServerConfig{
		"mine": mcphost.InProcess(echo(t)),
		"off":  mcphost.InProcessServer{Provider: echo(t), Common: mcphost.Common{Disabled: true}},
	}})
	got := s.servers.manifests(t.Context())
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, []string{"mine", "shared"}) {
		t.Fatalf("manifests of %v", names)
	}
	if !strings.Contains(string(got["shared"].Initialize), `"name":"echo"`) || !strings.Contains(string(got["shared"].Tools), `"name":"echo"`) {
		t.Errorf("the shared server's: %s, %s", got["shared"].Initialize, got["shared"].Tools)
	}
	if err := h.SetEnabled(t.Context(), "shared", false); err != nil {
		t.Fatal(err)
	}
	if names := slices.Sorted(maps.Keys(s.servers.manifests(t.Context()))); !slices.Equal(names, []string{"mine"}) {
		t.Errorf("manifests of %v after the server has gone", names)
	}
}

// A list that changes while it is asked for is not told, and the CLI hears of the change once it can
// do something about it.
func TestManifestOfAListThatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &lister{Server: echo(t)}
		p.list = func(context.Context, int) ([]*mcp.Tool, error) {
			tools := slices.Clone(p.Server.ListTools())
			mcpserver.MustAddTool(p.Server, &mcpserver.Tool{Name: fmt.Sprint("late", p.listed())}, func(context.Context, struct{}) (string, error) { return "", nil })
			<-time.After(time.Millisecond) // in which the server says so
			return tools, nil
		}
		s := sessionOf(t, inProcess(map[string]mcpserver.Provider{"srv": p, "calm": echo(t)}))
		got := s.servers.manifests(t.Context())
		if len(got["srv"].Initialize) == 0 || got["srv"].Tools != nil || got["calm"].Tools == nil {
			t.Errorf("got %+v", got)
		}
		select {
		case line := <-s.ch.out.lines:
			t.Errorf("said before the CLI knows the server: %s", line)
		default:
		}
		s.servers.met(t.Context(), &Initialization{MCPManifests: map[string]string{"srv": "parked", "calm": "not_honoured"}})
		if line := string(<-s.ch.out.lines); !strings.Contains(line, `"server_name":"srv"`) || !strings.Contains(line, "notifications/tools/list_changed") {
			t.Errorf("said %s", line)
		}
	})
}

// What a server says before the CLI knows it comes afterwards, in its order, and before what it says then.
func TestHeldMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sessionOf(t, inProcess(map[string]mcpserver.Provider{"srv": echo(t)}))
		out := s.servers.attached["srv"].out
		const more = 3
		var wg sync.WaitGroup
		for i := range heldLimit + more {
			raw := json.RawMessage(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":%d}}`, i))
			wg.Go(func() { _ = out.send(t.Context(), raw) })
			synctest.Wait()
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := out.send(gone, json.RawMessage(`{}`)); !errors.Is(err, context.Canceled) {
			t.Errorf("a sender that gave up got %v", err)
		}
		out.open()
		out.open()
		for i := range heldLimit + more {
			var m struct {
				ID      string `json:"request_id"`
				Request struct {
					Message struct {
						Params struct {
							Data int `json:"data"`
						} `json:"params"`
					} `json:"message"`
				} `json:"request"`
			}
			if err := json.Unmarshal(<-s.ch.out.lines, &m); err != nil {
				t.Fatal(err)
			}
			if i < heldLimit && m.Request.Message.Params.Data != i {
				t.Errorf("message %d came as number %d", m.Request.Message.Params.Data, i)
			}
			s.ch.take("control_response", fmt.Appendf(nil, `{"type":"control_response","response":{"subtype":"success","request_id":%q}}`, m.ID))
		}
		wg.Wait()
	})
}

// Nobody who waits for the CLI is left behind by a session that ends.
func TestHeldMessagesOfASessionThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sessionOf(t, inProcess(map[string]mcpserver.Provider{"srv": echo(t)}))
		out := s.servers.attached["srv"].out
		for range heldLimit {
			_ = out.send(t.Context(), json.RawMessage(`{}`))
		}
		failed := make(chan error, 1)
		go func() { failed <- out.send(t.Context(), json.RawMessage(`{}`)) }()
		synctest.Wait()
		_ = s.Close()
		if err := <-failed; !errors.Is(err, agent.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

// The traps of a server in this process hold for a CLI that takes manifests and shakes hands no more,
// and for one that is sent none.
func TestTrapsBothWays(t *testing.T) {
	traps := map[string]func(*testing.T){
		"Notifications": TestTrapNotificationsAreAcknowledged, "Handshake": TestTrapHandshake, "Replies": TestTrapRepliesAreWellFormed,
		"UnknownServer": TestTrapUnknownServer, "HandshakeAgain": TestTrapHandshakeAgainWhileACallRuns, "Slow": TestTrapSlowServerDelaysNobody,
		"ListChanged": TestTrapListChanged, "Pages": TestTrapPages, "Limit": TestTrapLimitOfACall, "Goodbye": TestTrapNobodySaysGoodbye,
		"RoundTrip": TestInProcessServerOverTheControlProtocol,
	}
	for way, variable := range map[string]string{"Honoured": "CLAUDECODE_TEST_HONOURS", "Off": manifestsOff} {
		t.Run(way, func(t *testing.T) {
			t.Setenv(variable, "1")
			for name, trap := range traps {
				t.Run(name, trap)
			}
		})
	}
}

// With a CLI that takes manifests a server is asked once, by this process, and its tools are called
// without a handshake. A server that is broken then is asked by the CLI, which goes on with the others.
func TestManifestsSaveTheHandshake(t *testing.T) {
	t.Setenv("CLAUDECODE_TEST_HONOURS", "1")
	fine := &lister{Server: echo(t)}
	bad := &lister{Server: echo(t), list: func(context.Context, int) ([]*mcp.Tool, error) { panic("oops") }}
	e, o := fake("polite")
	o.MCPServers = map[string]mcphost.ServerConfig{"fine": mcphost.InProcess(fine), "bad": mcphost.InProcess(bad)}
	msgs, err := ask(t, e, o)
	if err != nil {
		t.Fatal(err)
	}
	r, ok := msgs[len(msgs)-1].(*agent.Result)
	if !ok || strings.Count(r.Result, "hello yourself") != 2 { // a call of the broken one works all the same
		t.Errorf("the result is %+v", msgs[len(msgs)-1])
	}
	if fine.listed() != 1 || bad.listed() != 2 {
		t.Errorf("asked for tools %d and %d times, want once and twice", fine.listed(), bad.listed())
	}
}
