package mcphost

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
)

// A process that asks and never reads the answers loses its connection for the reason, and another is made.
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
	if n := runtime.NumGoroutine(); n > before+2*64 {
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
	const maxInstructions = 64 << 10
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
