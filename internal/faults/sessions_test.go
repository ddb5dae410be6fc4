package faults

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/memhttp"
	"github.com/tenon-sdk/tenon/mcphost"
)

// Servers that lose their sessions, have several nodes that know nothing of one another, refuse notifications, refuse new
// sessions for a while, compress what nobody asked them to, and end the stream of changes again and again: behind the
// same bad lines. The host answers each call, connects anew less than ten times in any ten seconds, and uses the server
// again once it is well. The clock is a fake one.
//
// fault B1
// fault B2
// fault B3
// fault B5
// fault B10
func TestFaultySessions(t *testing.T) {
	t.Parallel()
	var tally tally
	n := *rounds / 4
	for i := range n {
		seed := *first + uint64(i)
		var err error
		synctest.Test(t, func(t *testing.T) {
			b := sessionRound(seed)
			err = round(t.Context(), b, &tally)
			b.stop()
		})
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	tally.report(t, n)
}

// A balancer stands in front of nodes with moods.
type balancer struct {
	nodes   []http.Handler
	refused int           // the status for notifications/initialized; 0 for none
	ends    time.Duration // how long a stream of changes lasts; 0 for ever
	words   int           // how it says that it does not know a session
	forgets float64       // the odds that a request is the last of its session
	denies  int           // how many new sessions are refused after one is forgotten

	mu        sync.Mutex // guards the rest
	rng       *rand.Rand
	turn      int
	forgotten map[string]bool // sessions
	denied    int             // new sessions that are yet to be refused
	well      bool
}

func newBalancer(s *mcp.Server, seed uint64) *balancer {
	rng := rand.New(rand.NewPCG(seed, 0xba1a))
	b := &balancer{rng: rng, forgotten: map[string]bool{}, words: rng.IntN(4)}
	for range 1 + 2*rng.IntN(2) {
		b.nodes = append(b.nodes, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	}
	if rng.IntN(3) == 0 {
		b.refused = []int{400, 404, 410, 500}[rng.IntN(4)]
	}
	if rng.IntN(2) == 0 {
		b.ends = time.Duration(1+rng.IntN(3000)) * time.Millisecond
	}
	if rng.IntN(2) == 0 {
		b.forgets, b.denies = 0.5*rng.Float64(), rng.IntN(3)
	}
	return b
}

// heal ends all moods.
func (b *balancer) heal() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.well = true
}

func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var m struct {
		ID     json.RawMessage
		Method string
	}
	_ = json.Unmarshal(body, &m)
	if m.Method == "server/discover" { // no node is of the kind without sessions
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID)
		return
	}
	node, refuse, ends := b.decide(r, m.Method)
	if refuse != nil {
		refuse(w, m.ID)
		return
	}
	if r.Method == http.MethodGet && ends > 0 {
		ctx, cancel := context.WithTimeout(r.Context(), ends)
		defer cancel()
		r = r.WithContext(ctx)
	}
	node.ServeHTTP(w, r)
}

func (b *balancer) decide(r *http.Request, method string) (node http.Handler, refuse func(http.ResponseWriter, json.RawMessage), ends time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	session := r.Header.Get("Mcp-Session-Id")
	node = b.nodes[b.turn%len(b.nodes)]
	if !b.well {
		b.turn++
	}
	switch {
	case session != "" && b.forgotten[session]:
		return nil, b.unknown, 0
	case b.well:
		return node, nil, 0
	case method == "notifications/initialized" && b.refused != 0:
		return nil, func(w http.ResponseWriter, _ json.RawMessage) { http.Error(w, "no such session", b.refused) }, 0
	case method == "initialize" && b.denied > 0:
		b.denied--
		status := []int{404, 503}[b.rng.IntN(2)]
		return nil, func(w http.ResponseWriter, _ json.RawMessage) { http.Error(w, "being deployed", status) }, 0
	case session != "" && b.rng.Float64() < b.forgets:
		b.forgotten[session] = true
		b.denied = b.denies
	}
	return node, nil, b.ends
}

// unknown refuses a request with a session that is not known.
func (b *balancer) unknown(w http.ResponseWriter, id json.RawMessage) {
	const text = `"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}`
	if id == nil {
		id = json.RawMessage("null")
	}
	switch b.words {
	case 0:
		http.Error(w, "session not found", http.StatusNotFound)
	case 1:
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":null,`+text)
	case 2:
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s`, id, text)
	case 3:
		http.Error(w, "call initialize first", http.StatusBadRequest)
	}
}

// sessionRound is a round with a balancer, without a network.
func sessionRound(seed uint64) *bad {
	s := echoServer()
	balancer := newBalancer(s, seed)
	p := newProxy(balancer, seed)
	line := &memhttp.Transport{Handler: p}
	if rand.New(rand.NewPCG(seed, 0x6219)).IntN(2) == 0 {
		line.Handler = compressed{p}
	}
	return &bad{
		config: mcphost.HTTP{URL: "http://server.test/mcp", HTTPClient: &http.Client{Transport: line}},
		shakes: &p.shakes,
		limit:  time.Hour, // the clock is a fake one
		after: func(h *mcphost.Host) error {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
				_, _ = h.CallServer(ctx, name, "echo", json.RawMessage(`{"token":"more"}`), nil)
			}
			balancer.heal()
			p.heal()
			var last error
			for ctx.Err() == nil {
				res, err := h.CallServer(ctx, name, "echo", json.RawMessage(`{"token":"well"}`), nil)
				if err == nil && res.Text() == "well" {
					return nil
				}
				last = err
				time.Sleep(time.Second)
			}
			return fmt.Errorf("not used again though it is well: %w", last)
		},
		stop: func() {
			p.close()
			endSessions(s)
			line.Wait()
		},
	}
}

// compressed compresses what a handler answers, whether the client wants that or not.
type compressed struct{ http.Handler }

func (c compressed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	z := &zipWriter{ResponseWriter: w, zip: gzip.NewWriter(w)}
	c.Handler.ServeHTTP(z, r)
	_ = z.zip.Close()
}

type zipWriter struct {
	http.ResponseWriter
	zip *gzip.Writer
}

func (z *zipWriter) WriteHeader(code int) {
	z.Header().Set("Content-Encoding", "gzip")
	z.Header().Del("Content-Length")
	z.ResponseWriter.WriteHeader(code)
}

func (z *zipWriter) Write(b []byte) (int, error) {
	z.Header().Set("Content-Encoding", "gzip")
	z.Header().Del("Content-Length")
	return z.zip.Write(b)
}

func (z *zipWriter) Flush() {
	z.Header().Set("Content-Encoding", "gzip")
	_ = z.zip.Flush()
	if f, ok := z.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}
