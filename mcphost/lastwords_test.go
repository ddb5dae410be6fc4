package mcphost

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

func init() {
	// doomed dies of the first call, and of reading a resource, with a word to say.
	children["doomed"] = func() {
		rawChild("["+echoTool+"]", func(s *rawServer, m rawMsg) bool {
			switch m.Method {
			case "initialize":
				s.reply(m.ID, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"doomed","version":"1"}}`)
				return true
			case "tools/call", "resources/read":
				fmt.Fprintln(os.Stderr, "FATAL: out of shelves for", os.Getenv("API_KEY"))
				os.Exit(3)
			}
			return false
		})
	}
}

// A call to a process that died tells how it ended and what it said last, as the status of a server does.
func TestLastWordsOfACall(t *testing.T) {
	h := newHost(t, map[string]ServerConfig{"s": child("doomed", "API_KEY=sesame-1")})
	connected(t, h)
	_, call := h.CallServer(soon(t), "s", "echo", nil, nil)
	if err := h.Reconnect(soon(t), "s"); err != nil {
		t.Fatal(err)
	}
	_, read := h.ReadResource(soon(t), "s", "mem://a")
	for what, err := range map[string]error{"call": call, "read": read} {
		var ce *CallError
		if !errors.As(err, &ce) || !errors.Is(err, ErrConnectionLost) {
			t.Fatalf("%s: %v", what, err)
		}
		if !strings.Contains(ce.Stderr, "FATAL: out of shelves for ***") {
			t.Errorf("%s: stderr %q", what, ce.Stderr)
		}
		for _, want := range []string{"exited with code 3", "stderr: FATAL: out of shelves for ***"} {
			if text := err.Error(); strings.Count(text, want) != 1 {
				t.Errorf("%s: %s", what, text)
			}
		}
	}
}
