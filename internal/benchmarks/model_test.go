//go:build linux

package benchmarks

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenon-sdk/tenon/internal/peers"
	"github.com/tenon-sdk/tenon/modeltest"
)

// A model is a scripted Messages API on loopback that notes when it was asked and how long it took itself.
type model struct {
	url string

	mu       sync.Mutex // guards the rest
	asked    []time.Time
	answered []time.Time
	busy     time.Duration // in all answers

	held    sync.WaitGroup
	gate    *modeltest.Gate
	history atomic.Int64 // bytes of the held conversations' messages
}

// A script is what the model does with every conversation.
type script struct {
	turns, parallel int
	hold            int // that many conversations are held at their last answer
}

// serve starts a model in the network.
func (s script) serve(b *testing.B, l *peers.Loopback) *model {
	b.Helper()
	m := &model{gate: modeltest.NewGate()}
	m.held.Add(s.hold)
	script := modeltest.Func(func(r *modeltest.Request) modeltest.Turn {
		if _, ok := r.Tool("mcp__bench__lookup"); !ok && len(r.Tools) > 0 {
			b.Errorf("the model was not given the tool: %v", r.ToolNames())
		}
		switch done := len(r.ToolUses()) / s.parallel; {
		case done < s.turns:
			var calls []modeltest.Part
			for i := range s.parallel {
				calls = append(calls, modeltest.ToolUse("mcp__bench__lookup", fmt.Sprintf(`{"sku":"AB-%05d"}`, done*s.parallel+i)))
			}
			return modeltest.Say(calls...)
		case s.hold > 0 && r.FirstUserText() != "first":
			m.history.Add(int64(len(r.Field("messages"))))
			m.held.Done()
			return modeltest.Say(modeltest.Hold(m.gate), modeltest.Text("done"))
		}
		return modeltest.Text("done")
	})
	scripted := modeltest.NewModel(&modeltest.Options{TB: b, Turns: []modeltest.Turn{script}, KeepRequests: -1})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /held", func(http.ResponseWriter, *http.Request) { m.held.Wait() })
	mux.HandleFunc("GET /release", func(http.ResponseWriter, *http.Request) { m.gate.Open() })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { m.note(scripted, w, r) })
	listener := l.Listen(b)
	m.url = "http://" + listener.Addr().String()
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // ends with Close
	b.Cleanup(func() { _ = server.Close() })
	return m
}

// note answers a request and keeps its times, if it is one for a message.
func (m *model) note(scripted http.Handler, w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	scripted.ServeHTTP(w, r)
	if r.Method != http.MethodPost || r.URL.Path != "/v1/messages" {
		return
	}
	end := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked, m.answered = append(m.asked, start), append(m.answered, end)
	m.busy += end.Sub(start)
}

// take returns what was noted since the last time, in the order in which the answers ended.
func (m *model) take() (asked, answered []time.Time, busy time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	asked, answered, busy = m.asked, m.answered, m.busy
	m.asked, m.answered, m.busy = nil, nil, 0
	return asked, answered, busy
}
