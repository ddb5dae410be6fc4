package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcphost"
)

var (
	rounds = flag.Int("rounds", 1000, "rounds over all transports")
	first  = flag.Uint64("seed", 1, "seed of the first round")
)

const (
	workers      = 32               // concurrent rounds of one transport, which mostly wait
	calls        = 6                // calls of a round at once
	connectLimit = 5 * time.Second  // of one attempt, on a busy machine
	callLimit    = time.Second      // of one call: what a lost answer costs
	hang         = 90 * time.Second // after which a round counts as hung
	name         = "s"
)

// A host that is connected by bad lines answers every call: with its own
// answer, or with an error that says that there is none. It does not hang and
// leaves nothing behind. (Field cases F12 F21, pains 13 14.)
func TestFaultyConnections(t *testing.T) {
	t.Parallel()
	kinds := []struct {
		name  string
		round func(seed uint64) *bad
	}{
		{"stdio", stdioRound},
		{"http", httpRound},
		{"sse", sseRound},
	}
	n := *rounds / (len(kinds) + 1) // the rest are those of TestFaultySessions
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			var tally tally
			seeds := make(chan uint64)
			var wg sync.WaitGroup
			for range workers {
				wg.Go(func() {
					for seed := range seeds {
						b := k.round(seed)
						if err := round(t.Context(), b, &tally); err != nil {
							t.Errorf("seed %d: %v", seed, err)
						}
						b.stop()
					}
				})
			}
			for i := range n {
				seeds <- *first + uint64(i)
			}
			close(seeds)
			wg.Wait()
			tally.report(t, n)
		})
	}
}

// A bad is a server behind a bad line.
type bad struct {
	config mcphost.ServerConfig
	stop   func()
	shakes *handshakes
	limit  time.Duration               // after which a round counts as hung
	after  func(h *mcphost.Host) error // what comes after the calls; nil for nothing
}

// mostHandshakes is how many handshakes with one server there may be in any ten seconds, whatever makes the host connect anew.
const mostHandshakes = 9

// handshakes is when each handshake of each kind began.
type handshakes struct {
	mu sync.Mutex
	at map[string][]time.Time // by the method that begins it
}

// see takes note of a request that begins a handshake.
func (h *handshakes) see(body []byte) {
	for _, method := range []string{"initialize", "server/discover"} {
		if bytes.Contains(body, []byte(`"method":"`+method+`"`)) {
			h.add(method)
		}
	}
}

func (h *handshakes) add(method string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at == nil {
		h.at = map[string][]time.Time{}
	}
	h.at[method] = append(h.at[method], time.Now())
}

// most returns the most handshakes of one kind in any ten seconds.
func (h *handshakes) most() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	most := 0
	for _, at := range h.at {
		for i, from := range at {
			end, _ := slices.BinarySearchFunc(at, from.Add(10*time.Second), time.Time.Compare)
			most = max(most, end-i)
		}
	}
	return most
}

type tally struct {
	mu             sync.Mutex
	answered, lost int
	most           int // handshakes of one round
}

func (c *tally) report(t *testing.T, n int) {
	t.Helper()
	t.Logf("%d rounds: %d calls answered, %d reported as lost; at most %d handshakes in ten seconds", n, c.answered, c.lost, c.most)
	if n >= 50 && (c.answered == 0 || c.lost == 0) {
		t.Error("the faults are too many or too few to show anything")
	}
}

func (c *tally) add(answered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answered {
		c.answered++
	} else {
		c.lost++
	}
}

// round connects, calls at once from several goroutines, then one by one, and
// closes.
func round(ctx context.Context, b *bad, tally *tally) error {
	ctx, cancel := context.WithTimeoutCause(ctx, b.limit, errors.New("hung"))
	defer cancel()
	h, err := mcphost.New(&mcphost.Options{
		Servers:        map[string]mcphost.ServerConfig{name: b.config},
		ConnectTimeout: connectLimit, CallTimeout: callLimit, CloseGrace: callLimit,
		OnStderr: func(_, line string) {
			if line == started {
				b.shakes.add("start")
			}
		},
	})
	if err != nil {
		return err
	}
	h.Start(ctx)
	wrong := make(chan error, 2*calls) // never blocks: one a call, and one after them
	call := func(token string) {
		args, _ := json.Marshal(map[string]string{"token": token})
		res, err := h.CallServer(ctx, name, "echo", args, nil)
		switch {
		case ctx.Err() != nil:
			wrong <- fmt.Errorf("call %s: %w", token, context.Cause(ctx))
		case err == nil && !res.IsError && res.Text() != token:
			wrong <- fmt.Errorf("call %s was answered with %q", token, res.Text())
		}
		tally.add(err == nil && !res.IsError)
	}
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() { call("together-" + strconv.Itoa(i)) })
	}
	wg.Wait()
	for i := range calls / 2 {
		call("alone-" + strconv.Itoa(i))
	}
	if b.after != nil {
		if err := b.after(h); err != nil {
			wrong <- err
		}
	}
	closed := make(chan error, 1)
	go func() { closed <- h.Close() }() // waited for below
	select {
	case err := <-closed:
		if err != nil {
			return fmt.Errorf("Close: %w", err)
		}
	case <-ctx.Done():
		return fmt.Errorf("Close: %w", context.Cause(ctx))
	}
	close(wrong)
	var all []error
	most := b.shakes.most()
	if most > mostHandshakes {
		all = append(all, fmt.Errorf("%d handshakes in ten seconds", most))
	}
	tally.mu.Lock()
	tally.most = max(tally.most, most)
	tally.mu.Unlock()
	for err := range wrong {
		all = append(all, err)
	}
	return errors.Join(all...)
}

// started is what a child says when it starts.
const started = "faults: started"

func stdioRound(seed uint64) *bad {
	return &bad{
		config: mcphost.Stdio{
			Command: os.Args[0],
			Env:     map[string]string{"FAULTS_TEST_CHILD": "stdio", "FAULTS_SEED": strconv.FormatUint(seed, 10)},
		},
		stop: func() {}, shakes: new(handshakes), limit: hang,
	}
}

func httpRound(seed uint64) *bad {
	s := echoServer()
	p := newProxy(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil), seed)
	p.listen()
	client := &http.Client{Transport: &http.Transport{}}
	return &bad{config: mcphost.HTTP{URL: p.server.URL, HTTPClient: client}, shakes: &p.shakes, limit: hang, stop: func() {
		p.close()
		client.CloseIdleConnections()
		endSessions(s)
	}}
}

func endSessions(s *mcp.Server) {
	for ss := range s.Sessions() {
		ss.Close()
	}
}

func sseRound(seed uint64) *bad {
	s := echoServer()
	p := newProxy(mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil), seed)
	p.listen()
	client := &http.Client{Transport: &http.Transport{}}
	return &bad{config: mcphost.SSE{URL: p.server.URL, HTTPClient: client}, shakes: &p.shakes, limit: hang, stop: func() {
		p.close()
		client.CloseIdleConnections()
	}}
}
