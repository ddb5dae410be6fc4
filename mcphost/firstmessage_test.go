package mcphost

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func init() {
	// strict ends, in the way that HOW says, when its first message is not initialize.
	children["strict"] = func() {
		f, _ := os.OpenFile(os.Getenv("STARTS"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		fmt.Fprintln(f, "started")
		f.Close()
		first := true
		rawChild("["+echoTool+"]", func(_ *rawServer, m rawMsg) bool {
			if first && m.Method != "initialize" {
				switch how := os.Getenv("HOW"); how {
				case "killed":
					self, _ := os.FindProcess(os.Getpid())
					_ = self.Kill()
					select {}
				default:
					fmt.Fprintln(os.Stderr, "unexpected message")
					os.Exit(len(how))
				}
			}
			first = false
			return false
		})
	}
}

// A server that ends when its first message is not initialize, in any way, is started again and used; that is remembered.
//
// fault B4
func TestServerThatWantsInitializeFirst(t *testing.T) {
	for _, how := range []string{"", "x", "seventeen letters", "killed"} {
		starts := filepath.Join(t.TempDir(), "starts")
		h := newHost(t, map[string]ServerConfig{"s": child("strict", "HOW="+how, "STARTS="+starts)})
		connected(t, h)
		if got := text(t, h, "mcp__s__echo", `{}`); got != "echo {}" {
			t.Errorf("%s: %q", how, got)
		}
		if err := h.Reconnect(soon(t), "s"); err != nil {
			t.Errorf("%s: again: %v", how, err)
		}
		if b, err := os.ReadFile(starts); err != nil || strings.Count(string(b), "started") != 3 {
			t.Errorf("%q: started %d times, want 3: with a probe, without, and without again: %v", how, strings.Count(string(b), "started"), err)
		}
	}
}

// A program that always ends is not started more than twice for one attempt, and the error is that of its end.
//
// fault B4
func TestProgramThatAlwaysEnds(t *testing.T) {
	h := newHost(t, map[string]ServerConfig{"s": child("exit3")})
	ready(t, h)
	if s := status(t, h, "s"); s.Status != StatusFailed || !strings.Contains(s.Error, "exited with code 3") || !strings.Contains(s.Error, "missing KEY") {
		t.Errorf("%s: %s", s.Status, s.Error)
	}
}

// A server that speaks another protocol after it was replaced is connected with that.
func TestServerThatChangesItsProtocol(t *testing.T) {
	old := &rawHTTP{}
	srv := serveAt(t, "", old)
	addr := srv.Listener.Addr().String()
	h := newHost(t, map[string]ServerConfig{"r": HTTP{URL: srv.URL}})
	connected(t, h)
	_ = srv.Config.Close()
	srv.CloseClientConnections()
	srv.Close()
	s := newStreamServer("2026-07-28")
	inner := s.raw.before
	s.raw.before = func(w http.ResponseWriter, r *http.Request, m rawMsg) bool {
		if m.Method == "initialize" {
			w.WriteHeader(http.StatusBadRequest)
			answerError(w, m.ID, -32022, "Unsupported protocol version")
			return true
		}
		if m.Method == "tools/call" {
			answerText(w, m.ID, "new")
			return true
		}
		return inner(w, r, m)
	}
	serveAt(t, addr, &s.raw)
	// The first attempt may meet a connection of the old server, the next is refused, and the one after it asks anew.
	var errs []error
	for range 3 {
		err := h.Reconnect(soon(t), "r")
		if err == nil {
			break
		}
		errs = append(errs, err)
	}
	if len(errs) == 0 || len(errs) == 3 {
		t.Errorf("attempts: %v", errs)
	}
	if got := text(t, h, "mcp__r__echo0", `{}`); got != "new" || status(t, h, "r").ProtocolVersion != "2026-07-28" {
		t.Errorf("%q, %s", got, status(t, h, "r").ProtocolVersion)
	}
}
