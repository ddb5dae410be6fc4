package claudecode

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tenon-sdk/tenon/agent"
)

// An input that could not be sent is none: the session does not wait for its turn, and ends with the input.
//
// fault D2
func TestSendThatFails(t *testing.T) {
	for _, before := range []int{0, 1} {
		e, o := fake("polite")
		c, err := agent.Open(t.Context(), e, o)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		results := 0
		for range before {
			if err := c.Send(t.Context(), "hello"); err != nil {
				t.Fatal(err)
			}
			for {
				m, err := c.Session().Receive(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, ok := m.(*agent.Result); ok {
					break
				}
			}
		}
		bad := &agent.Input{Content: agent.Content{&agent.TextBlock{Text: "x"}, &agent.UnknownBlock{Type: "odd", Raw: json.RawMessage("{")}}}
		if err := c.SendInput(t.Context(), bad); err == nil {
			t.Error("an input that is no JSON was sent")
		}
		if err := c.EndInput(); err != nil {
			t.Fatal(err)
		}
		for {
			m, err := c.Session().Receive(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := m.(*agent.Result); ok {
				results++
			}
		}
		if results != 0 {
			t.Errorf("%d results", results)
		}
	}
}

// A program that does not receive holds up the CLI: what waits is bounded, however much the CLI says. An
// answer to a request of the program's, which comes behind the messages, is read all the same.
//
// fault D4
func TestPausedProgramHoldsUpTheCLI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, o := fake("polite")
		s := connected(t, e, o)
		r, w := io.Pipe()
		s.readers.Go(func() { s.ch.read(r) })
		var sent int
		line := []byte(`{"type":"system","subtype":"odd","text":"` + strings.Repeat("x", 1<<20) + `"}` + "\n")
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				if _, err := w.Write(line); err != nil {
					return
				}
				s.mu.Lock()
				sent++
				s.mu.Unlock()
			}
		}()
		synctest.Wait() // nobody goes on: the reader waits for room, and the writer for the reader
		s.mu.Lock()
		waiting, size := sent, s.inbox.size
		s.mu.Unlock()
		if size > queueBytes+3*len(line) || waiting < 10 {
			t.Errorf("%d bytes of %d messages wait, want at most %d", size, waiting, queueBytes)
		}
		// A request of the program's makes room for its answer, within bounds.
		asked := make(chan error, 1)
		go func() { asked <- s.ch.request(t.Context(), "mcp_status", nil, nil) }()
		synctest.Wait()
		s.mu.Lock()
		more, size := sent, s.inbox.size
		s.mu.Unlock()
		if more <= waiting || size > queueMax+3*len(line) {
			t.Errorf("with a request: %d messages, %d before; %d bytes, want at most %d", more, waiting, size, queueMax)
		}
		for range more {
			if _, err := s.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		s.mu.Lock()
		if sent <= more {
			t.Errorf("nothing follows once the program receives: %d messages", sent)
		}
		s.mu.Unlock()
		s.ch.cancel(agent.ErrClosed)
		_ = r.Close()
		<-done
		<-asked
		s.readers.Wait()
	})
}

// What is said before the first init message is received after it; a session that ends without one says
// what it has.
//
// fault I2
func TestInitIsReceivedFirst(t *testing.T) {
	early := `{"type":"system","subtype":"informational","content":"early"}`
	tests := []struct {
		name, last string
		want       []string
	}{
		{"init", `{"type":"system","subtype":"init"}`, []string{"init", "informational"}},
		{"no init", `{"type":"result","subtype":"success"}`, []string{"informational", "success"}},
	}
	for _, tt := range tests {
		e, o := fake("polite")
		s := connected(t, e, o)
		s.line(early)
		s.line(tt.last)
		var got []string
		for range tt.want {
			m, err := s.Receive(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			switch m := m.(type) {
			case *agent.SystemInit:
				got = append(got, "init")
			case *agent.System:
				got = append(got, m.Subtype)
			case *agent.Result:
				got = append(got, m.Subtype)
			}
		}
		if strings.Join(got, " ") != strings.Join(tt.want, " ") {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// The UUIDs that the session gives to inputs are kept nowhere, and the program does not hear of them.
//
// fault D4
func TestInputIDsAreNotKept(t *testing.T) {
	ids, others := newInputIDs(), newInputIDs()
	seen := map[string]bool{}
	for range 1000 {
		id := ids.next()
		if seen[id] || !ids.has(id) || others.has(id) {
			t.Fatalf("the ID %s: seen %v, ours %v, another's %v", id, seen[id], ids.has(id), others.has(id))
		}
		seen[id] = true
	}
	for _, id := range []string{"", "x", someID} {
		if ids.has(id) {
			t.Errorf("%q counts as ours", id)
		}
	}
}
