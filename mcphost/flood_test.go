package mcphost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/tenon-sdk/tenon/internal/rpcmsg"
)

// A stuckCarrier takes messages from nobody, as a server that does not read does.
type stuckCarrier struct {
	wire    *wire
	sending atomic.Int64
}

func (c *stuckCarrier) send(ctx context.Context, _ *outgoing) error {
	c.sending.Add(1)
	defer c.sending.Add(-1)
	select {
	case <-c.wire.done:
		return c.wire.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *stuckCarrier) close() error { return nil }

// A server that asks and does not read the answers has no more than 64 requests under way, and as many being refused; what
// comes beyond that is dropped, and if it never reads, the connection ends. One with a long id is not answered at all.
//
// fault H4
func TestUnreadAnswersEndTheConnection(t *testing.T) {
	var log records
	w := newWire(t.Context(), log.logger(), newMasker(Stdio{}), notifications{}, 0)
	car := &stuckCarrier{wire: w}
	w.car = car
	reading := make(chan struct{})
	go func() { // as the library: each request is answered by a goroutine of its own
		defer close(reading)
		for {
			m, err := w.Read(t.Context())
			if err != nil {
				return
			}
			if r, ok := m.(*jsonrpc.Request); ok {
				w.wg.Go(func() { _ = w.Write(t.Context(), &jsonrpc.Response{ID: r.ID, Result: json.RawMessage("{}")}) })
			}
		}
	}()
	sent := 0
	for ; sent < 100_000 && !isClosed(w.done); sent++ {
		w.receive(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"%s%d","method":"no/such"}`, strings.Repeat("x", rpcmsg.MaxID), sent))
		w.receive(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"no/such"}`, sent))
		if n := car.sending.Load(); n > 2*maxInbound {
			t.Fatalf("%d answers and refusals at once", n)
		}
	}
	<-w.done
	if sent != 2*maxInbound+maxUnread+1 || !strings.Contains(w.err.Error(), "does not read the answers") {
		t.Errorf("ended after %d requests with %v", sent, w.err)
	}
	<-reading
	w.wg.Wait()
}

// The same of a real process: the connection is lost for the reason, and another is made.
//
// fault H4
func TestServerThatOnlyAsks(t *testing.T) {
	h := newHost(t, map[string]ServerConfig{"s": child("asks")})
	connected(t, h)
	before := runtime.NumGoroutine()
	var ce *CallError
	if _, err := h.Call(soon(t), "mcp__s__echo", []byte(`{"x":"flood"}`), nil); !errors.As(err, &ce) || !errors.Is(err, ErrConnectionLost) || !strings.Contains(err.Error(), "does not read the answers") {
		t.Errorf("got %v", err)
	}
	if got := text(t, h, "mcp__s__echo", `{}`); got != "echo {}" {
		t.Errorf("afterwards: %q", got)
	}
	if n := runtime.NumGoroutine(); n > before+2*maxInbound {
		t.Errorf("%d goroutines, %d before", n, before)
	}
}

// Requests within the bound are all answered, also with ids that are used again.
func TestRequestsWithinTheBoundAreAnswered(t *testing.T) {
	h := newHost(t, map[string]ServerConfig{"s": child("asks")})
	connected(t, h)
	if got := text(t, h, "mcp__s__echo", `{"x":"politely"}`); got != "1000 answers" {
		t.Errorf("got %q", got)
	}
}

// Cursors and instructions of any length are bounded; the server is used all the same.
//
// fault H14
func TestLongCursorsAndInstructions(t *testing.T) {
	var pages atomic.Int64
	long := strings.Repeat("c", 20<<20)
	raw := &rawHTTP{}
	raw.before = func(w http.ResponseWriter, _ *http.Request, m rawMsg) bool {
		switch m.Method {
		case "initialize":
			w.Header().Set(headerSession, "session-x")
			raw.mu.Lock()
			raw.sessions = map[string]bool{"session-x": true}
			raw.mu.Unlock()
			answer(w, m.ID, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"raw","version":"1"},"x-junk":"`+long[:1<<20]+`","instructions":"`+strings.Repeat(`\u00e4`, 8<<20)+`"}`)
		case "tools/list", "resources/list":
			key, element := strings.TrimSuffix(m.Method, "/list"), echoTool
			if key == "resources" {
				element = `{"uri":"mem://a","name":"a"}`
			}
			answer(w, m.ID, fmt.Sprintf(`{%q:[%s],"nextCursor":"%d-%s"}`, key, element, pages.Add(1), long))
		default:
			return false
		}
		return true
	}
	h := newHost(t, map[string]ServerConfig{"r": HTTP{URL: serve(t, raw).URL}})
	connected(t, h)
	s := status(t, h, "r")
	if n := len(s.Instructions); n > maxInstructions+10 || n < maxInstructions/4 || strings.Trim(s.Instructions, "ä…") != "" {
		t.Errorf("%d bytes of instructions, ending %q", n, s.Instructions[max(0, n-20):])
	}
	if s.ToolCount != 1 || !strings.Contains(s.Error, "gives a cursor of") || pages.Load() != 1 {
		t.Errorf("%d tools of %d pages: %.200s", s.ToolCount, pages.Load(), s.Error)
	}
	if all, err := h.Resources(soon(t), "r"); err != nil || len(all) != 1 {
		t.Errorf("%d resources: %.200v", len(all), err)
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > 200<<20 {
		t.Errorf("%d MiB in use", m.HeapAlloc>>20)
	}
}

func TestCutText(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`"short"`, `"short"`},
		{`17`, `17`},
		{`"0123456789012345678901234567890123456789"`, `"0123456789012345678901234567890…"`},
		{`"0123456789012345678901234567\u00e4\u00e4\u00e4"`, `"0123456789012345678901234567…"`},
		{`"01234567890123456789\ud83d\ude00\ud83d\ude00"`, `"01234567890123456789�…"`},
	} {
		if got := string(cutText(json.RawMessage(tt.in), 32)); got != tt.want {
			t.Errorf("%s became %s, want %s", tt.in, got, tt.want)
		}
	}
}

func init() {
	// asks floods its host with requests in a call and does not read until it has written a million of them; or it asks a
	// thousand times and reads each answer.
	children["asks"] = func() {
		answers := 0
		var call rawMsg
		rawChild("["+echoTool+"]", func(s *rawServer, m rawMsg) bool {
			if _, args := m.tool(); m.Method == "tools/call" && strings.Contains(args, "flood") {
				many := strings.Repeat(`{"jsonrpc":"2.0","id":7,"method":"ping"}`+"\n"+`{"jsonrpc":"2.0","id":8,"method":"ping"}`+"\n", 1000)
				for range 500 {
					if _, err := io.WriteString(os.Stdout, many); err != nil {
						os.Exit(1)
					}
				}
				return false
			} else if m.Method == "tools/call" && strings.Contains(args, "politely") {
				call = m
				s.line(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
				return true
			}
			if m.Method != "" || call.ID == nil {
				return false
			}
			if answers++; answers < 1000 {
				s.line(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
				return true
			}
			s.reply(call.ID, fmt.Sprintf(`{"content":[{"type":"text","text":"%d answers"}]}`, answers))
			return true
		})
	}
}

// A list of any number of things that are none, or of more things than can be used, is bounded: in the status, in the log, in
// memory. Those that can be used are, and what is left out is counted.
//
// fault H14
func TestLongLists(t *testing.T) {
	junk := strings.Repeat(`1,`, 1<<20)
	raw := &rawHTTP{}
	raw.before = func(w http.ResponseWriter, _ *http.Request, m rawMsg) bool {
		switch m.Method {
		case "initialize":
			w.Header().Set(headerSession, "session-x")
			raw.mu.Lock()
			raw.sessions = map[string]bool{"session-x": true}
			raw.mu.Unlock()
			answer(w, m.ID, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{},"prompts":{}},"serverInfo":{"name":"raw","version":"1"}}`)
		case "tools/list":
			answer(w, m.ID, `{"tools":[`+echoTool+`,`+junk+`1]}`)
		case "resources/list":
			answer(w, m.ID, `{"resources":[{"uri":"mem://a","name":"a"},`+junk+`1]}`)
		case "prompts/list":
			answer(w, m.ID, `{"prompts":[{"name":"a"},`+junk+`1]}`)
		default:
			return false
		}
		return true
	}
	log := new(records)
	h := newHost(t, map[string]ServerConfig{"r": HTTP{URL: serve(t, raw).URL}}, func(o *Options) { o.Logger = log.logger() })
	connected(t, h)
	if got := text(t, h, "mcp__r__echo", `{}`); got != "echo {}" {
		t.Errorf("%q", got)
	}
	s := status(t, h, "r")
	if n := len(s.Rejected); n != maxRejected+1 || s.Rejected[n-1].Reason != fmt.Sprintf("%d more tools cannot be used", maxListed-1-maxRejected) {
		t.Errorf("%d tools are said to be left out, the last: %+v", n, s.Rejected[n-1])
	}
	if s.ToolCount != 1 || !strings.Contains(s.Error, errTooMany.Error()) {
		t.Errorf("%d tools, %q", s.ToolCount, s.Error)
	}
	if all, err := h.Resources(soon(t), "r"); len(all) != 1 || err != nil || len(log.with("list of the server cut", "resources/list")) != 1 {
		t.Errorf("%d resources, %v", len(all), err)
	}
	if all, err := h.Prompts(soon(t), "r"); len(all) != 1 || err != nil || len(log.with("list of the server cut", "prompts/list")) != 1 {
		t.Errorf("%d prompts, %v", len(all), err)
	}
	if n := len(log.with()); n > maxNamed+3*logBurst {
		t.Errorf("%d lines in the log", n)
	}
}
