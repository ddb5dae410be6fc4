package mcphost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpserver"
)

func init() {
	// twice answers everything twice, the second time with something else, and shakes hands by itself.
	children["twice"] = func() {
		rawChild("["+echoTool+"]", func(s *rawServer, m rawMsg) bool {
			if m.ID == nil || m.Method == "" {
				return true
			}
			s.line(`{"jsonrpc":"2.0","id":"again","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
			s.standard(m)
			s.reply(m.ID, `{"protocolVersion":"1999-01-01","tools":[],"content":[{"type":"text","text":"the second answer"}]}`)
			return true
		})
	}
	// million floods its host with notifications of all kinds while a call runs.
	children["million"] = func() {
		rawChild("["+echoTool+"]", func(s *rawServer, m rawMsg) bool {
			if m.Method != "tools/call" {
				return false
			}
			var p struct {
				Meta struct {
					Token json.RawMessage `json:"progressToken"`
				} `json:"_meta"`
			}
			_ = json.Unmarshal(m.Params, &p)
			var b strings.Builder
			for i := range 1000 {
				fmt.Fprintf(&b, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`+"\n", p.Meta.Token, i)
				b.WriteString(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n")
				b.WriteString(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"mem://x"}}` + "\n")
				b.WriteString(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}` + "\n")
				fmt.Fprintf(&b, `{"jsonrpc":"2.0","id":"r%d","method":"no/such"}`+"\n", i)
				b.WriteString(`{"jsonrpc":"2.0","method":"notifications/` + strings.Repeat("x", 50) + `","params":[]}` + "\n")
			}
			for range 20 {
				s.line("%s", strings.TrimSuffix(b.String(), "\n"))
			}
			return false
		})
	}
	// unasked reports an error of no request where it should answer one.
	children["unasked"] = func() {
		rawChild("["+echoTool+"]", func(s *rawServer, m rawMsg) bool {
			if _, args := m.tool(); m.Method == "tools/call" && strings.Contains(args, "null") {
				s.line(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`)
				return true
			}
			if m.Method == "server/discover" {
				s.line(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}`)
				return true
			}
			return false
		})
	}
	// shifting has other tools on each page that is asked for, and says so each time.
	children["shifting"] = func() {
		lists := 0
		rawChild("[]", func(s *rawServer, m rawMsg) bool {
			if m.Method != "tools/list" {
				return false
			}
			var p struct{ Cursor string }
			_ = json.Unmarshal(m.Params, &p)
			tool := func(name string) string { return strings.Replace(echoTool, `"echo"`, `"`+name+`"`, 1) }
			switch p.Cursor {
			case "":
				lists++
				s.reply(m.ID, fmt.Sprintf(`{"tools":[%s,%s],"nextCursor":"2"}`, tool("echo"), tool(fmt.Sprintf("of-list-%d", lists))))
			default: // the first page has changed meanwhile: its last tool comes once more
				s.reply(m.ID, fmt.Sprintf(`{"tools":[%s,%s]}`, tool("echo"), tool("last")))
			}
			if lists < 3 {
				s.line(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			}
			return true
		})
	}
	// deafened closes its stdin when it is called for the first time, and lives on.
	children["deafened"] = func() {
		marker := os.Getenv("MARKER")
		rawChild("["+echoTool+"]", func(s *rawServer, m rawMsg) bool {
			if m.Method != "tools/call" {
				return false
			}
			if _, err := os.Stat(marker); err == nil {
				return false
			}
			_ = os.WriteFile(marker, nil, 0o600)
			_ = os.Stdin.Close()
			fmt.Fprintln(os.Stderr, "deaf now")
			select {}
		})
	}
}

// Whatever a server says beside its answers, the calls get theirs and the connection stays. (Pains 8, 14.)
func TestHostileTalkers(t *testing.T) {
	h := newHost(t, map[string]ServerConfig{"twice": child("twice"), "million": child("million"), "unasked": child("unasked"), "good": child("echo")},
		func(o *Options) { o.OnResourceUpdated = func(string, string) {} })
	connected(t, h)
	for _, s := range h.Status() {
		for range 2 {
			if got := text(t, h, "mcp__"+s.Name+"__echo", `{}`); got != "echo {}" {
				t.Errorf("%s: %q", s.Name, got)
			}
		}
		if s := status(t, h, s.Name); s.Status != StatusConnected || s.ProtocolVersion != "2025-11-25" {
			t.Errorf("%s is %s, %s: %v", s.Name, s.Status, s.ProtocolVersion, s.Err)
		}
	}
	var ce *CallError
	if _, err := h.Call(soon(t), "mcp__unasked__echo", []byte(`{"x":"null"}`), nil); !errors.As(err, &ce) || ce.Code != -32700 {
		t.Errorf("an error without an id: %v", err)
	}
}

// Tools that change while they are listed: each is there once, and the last list counts. Pain 33.
func TestToolsChangeWhilePaging(t *testing.T) {
	h := newHost(t, map[string]ServerConfig{"s": child("shifting")})
	connected(t, h)
	events := h.Watch(soon(t))
	for {
		if _, ok := h.Tool("mcp__s__of-list-3"); ok {
			break
		}
		if _, ok := <-events; !ok {
			t.Fatalf("the third list is not there: %v", toolNames(h.Tools()))
		}
	}
	if got := strings.Join(toolNames(h.Tools()), " "); got != "mcp__s__echo mcp__s__last mcp__s__of-list-3" {
		t.Errorf("tools %s", got)
	}
}

// A server whose tools change whenever they are listed is not listed without end.
func TestEndlessChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := opensAfter(0)
		var lists atomic.Int64
		var quiet atomic.Bool
		changed := func() { p.notify(t.Context(), mcpserver.Notification{Method: mcpserver.MethodToolListChanged}) }
		p.list = func(context.Context) ([]*mcp.Tool, error) {
			lists.Add(1)
			if !quiet.Load() {
				changed()
			}
			return []*mcp.Tool{{Name: "t", InputSchema: json.RawMessage(`{"type":"object"}`)}}, nil
		}
		h := newHost(t, map[string]ServerConfig{"p": InProcess(p)})
		connected(t, h)
		time.Sleep(time.Minute)
		if n := lists.Load(); n < 5 || n > 20 {
			t.Errorf("%d lists in a minute", n)
		}
		// Once it is quiet again, a change is seen at once.
		quiet.Store(true)
		time.Sleep(time.Minute)
		before := lists.Load()
		changed()
		time.Sleep(2 * relistPause)
		if n := lists.Load() - before; n != 1 {
			t.Errorf("%d lists for the change after the quiet", n)
		}
		h.Close()
	})
}

// A child that closes its stdin and lives on is replaced. Pain 5, 13.
func TestChildThatStopsListening(t *testing.T) {
	lines := newLines()
	h := newHost(t, map[string]ServerConfig{"d": child("deafened", "MARKER="+filepath.Join(t.TempDir(), "marker"))}, func(o *Options) { o.OnStderr = lines.add })
	connected(t, h)
	pid := status(t, h, "d").PID
	first := make(chan error, 1)
	go func() {
		_, err := h.Call(soon(t), "mcp__d__echo", nil, nil)
		first <- err
	}()
	lines.wait(t, "deaf now")
	// The first write that fails is what tells the host; that call goes to the next process.
	if got := text(t, h, "mcp__d__echo", `{}`); got != "echo {}" {
		t.Errorf("got %q", got)
	}
	if err := <-first; !errors.Is(err, ErrConnectionLost) {
		t.Errorf("the call under way: %v", err)
	}
	if s := status(t, h, "d"); s.Status != StatusConnected || s.PID == pid {
		t.Errorf("%s, process %d, before %d", s.Status, s.PID, pid)
	}
}

// Streams that never end, goodbyes that are not answered, answers of the wrong kind and redirects in mid-session cost
// their calls at most, and Close returns. Pains 6, 14, 15, 16.
func TestHostileHTTP(t *testing.T) {
	other := &rawHTTP{}
	elsewhere := serve(t, other).URL
	end := make(chan struct{})
	defer close(end)
	raw := &rawHTTP{get: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		trickle(w, r, end)
	}}
	raw.before = func(_ http.ResponseWriter, r *http.Request, _ rawMsg) bool {
		if r.Method == http.MethodDelete {
			waitFor(r, end)
			return true
		}
		return false
	}
	raw.call = func(w http.ResponseWriter, r *http.Request, m rawMsg) {
		_, args := m.tool()
		switch {
		case strings.Contains(args, "endless stream"):
			w.Header().Set("Content-Type", "text/event-stream")
			trickle(w, r, end)
		case strings.Contains(args, "endless body"):
			w.Header().Set("Content-Type", "application/json")
			trickle(w, r, end)
		case strings.Contains(args, "no headers"):
			waitFor(r, end)
		case strings.Contains(args, "html"):
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>maintenance</html>")
		case strings.Contains(args, "no type"):
			w.Header()["Content-Type"] = nil
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, m.ID)
		case strings.Contains(args, "away"):
			http.Redirect(w, r, elsewhere+"/mcp", http.StatusTemporaryRedirect)
		case strings.Contains(args, "null id"):
			answerError(w, json.RawMessage("null"), -32700, "Parse error")
		case strings.Contains(args, "endless refusal"):
			w.WriteHeader(http.StatusTeapot)
			trickle(w, r, end)
		default:
			answerText(w, m.ID, "fine")
		}
	}
	h := newHost(t, map[string]ServerConfig{"r": HTTP{URL: serve(t, raw).URL, Headers: map[string]string{"Authorization": "Bearer tok-tok-tok"}}})
	connected(t, h)
	for how, want := range map[string]string{
		"endless stream": "timed out after 300ms", "endless body": "timed out after 300ms", "no headers": "timed out after 300ms",
		"html": `the response is "text/html"`, "no type": `the response is ""`, "away": "leads to another origin", "null id": "Parse error",
		"endless refusal": "", // its head, or the limit: whichever is first
	} {
		_, err := h.Call(soon(t), "mcp__r__echo", fmt.Appendf(nil, `{"x":%q}`, how), &CallOptions{Timeout: 300 * time.Millisecond})
		var ce *CallError
		if !errors.As(err, &ce) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", how, err, want)
		}
		if got := text(t, h, "mcp__r__echo", `{}`); got != "fine" {
			t.Errorf("the call after %s: %q", how, got)
		}
	}
	if s := status(t, h, "r"); s.Status != StatusConnected || raw.inits != 1 {
		t.Errorf("%s, %d handshakes: %v", s.Status, raw.inits, s.Err)
	}
	if len(other.requests) > 0 {
		t.Errorf("the other origin was sent %v", other.headers)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

// trickle sends comments, or blanks, until the client is gone.
func trickle(w http.ResponseWriter, r *http.Request, end <-chan struct{}) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := io.WriteString(w, ": \n"); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		case <-end:
			return
		}
	}
}

func waitFor(r *http.Request, end <-chan struct{}) {
	select {
	case <-r.Context().Done():
	case <-end:
	}
}

// Pain 12: a session that the server forgot, in all the words that servers have for it, is made anew once for all calls.
func TestForgottenSessions(t *testing.T) {
	for name, refusal := range map[string]struct {
		status int
		body   string
		lost   bool
	}{
		"the protocol's":  {404, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`, true},
		"without a body":  {404, "", true},
		"the reference's": {400, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`, true},
		"plain":           {400, "Invalid or missing session ID", true},
		"gone":            {410, "session expired", true},
		"bad arguments":   {400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"argument session is missing"}}`, false},
		"another refusal": {400, "obsession is not allowed", false},
	} {
		t.Run(name, func(t *testing.T) {
			var refuse atomic.Bool
			raw := &rawHTTP{}
			raw.before = func(w http.ResponseWriter, r *http.Request, m rawMsg) bool {
				if m.Method != "tools/call" || r.Header.Get(headerSession) != "session-1" || !refuse.Load() {
					return false
				}
				w.WriteHeader(refusal.status)
				_, _ = io.WriteString(w, refusal.body)
				return true
			}
			h := newHost(t, map[string]ServerConfig{"r": HTTP{URL: serve(t, raw).URL}})
			connected(t, h)
			refuse.Store(true)
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					res, err := h.Call(soon(t), "mcp__r__echo", nil, nil)
					if refusal.lost && (err != nil || plainText(res) != "echo {}") || !refusal.lost && err == nil {
						t.Errorf("got %v, %v", res, err)
					}
				})
			}
			wg.Wait()
			raw.mu.Lock()
			defer raw.mu.Unlock()
			if want := map[bool]int{true: 2, false: 1}[refusal.lost]; raw.inits != want {
				t.Errorf("%d handshakes, want %d", raw.inits, want)
			}
		})
	}
}

// The older transport: a session that is gone though its stream is open, and a login that ends in use. Pains 12, 13.
func TestForgottenSSESessions(t *testing.T) {
	for name, refusal := range map[string]int{"404": 404, "400": 400, "401": 401} {
		t.Run(name, func(t *testing.T) {
			srv := libraryServer()
			inner := mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return srv }, nil)
			var first atomic.Value // the session that is refused
			web := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				id := r.URL.Query().Get("sessionid")
				if r.Method == http.MethodPost && first.Load() == id {
					w.WriteHeader(refusal)
					fmt.Fprint(w, "No transport found for sessionId")
					return
				}
				inner.ServeHTTP(w, r)
			}))
			var computed atomic.Int64
			h := newHost(t, map[string]ServerConfig{"s": SSE{URL: web.URL, HeadersFunc: func(context.Context) (map[string]string, error) {
				return map[string]string{"X-N": fmt.Sprint(computed.Add(1))}, nil
			}}})
			connected(t, h)
			c := h.conns["s"]
			c.mu.Lock()
			to := c.rec.link.link.(*remoteLink).MessagesURL()
			c.mu.Unlock()
			first.Store(to.Query().Get("sessionid"))
			if got := text(t, h, "mcp__s__fail", `{}`); got != "it failed" {
				t.Errorf("got %q", got)
			}
			if n := computed.Load(); n != 2 {
				t.Errorf("%d connections, want 2", n)
			}
		})
	}
}
