package faults

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
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
	workers      = 16               // rounds that run at once: they wait more than they work
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
	kinds := []struct {
		name  string
		round func(seed uint64) (mcphost.ServerConfig, func())
	}{
		{"stdio", stdioRound},
		{"http", httpRound},
		{"sse", sseRound},
	}
	n := *rounds / len(kinds)
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			var tally tally
			seeds := make(chan uint64)
			var wg sync.WaitGroup
			for range workers {
				wg.Go(func() {
					for seed := range seeds {
						config, stop := k.round(seed)
						if err := round(t.Context(), config, &tally); err != nil {
							t.Errorf("seed %d: %v", seed, err)
						}
						stop()
					}
				})
			}
			for i := range n {
				seeds <- *first + uint64(i)
			}
			close(seeds)
			wg.Wait()
			t.Logf("%d rounds: %d calls answered, %d reported as lost", n, tally.answered, tally.lost)
			if n >= 50 && (tally.answered == 0 || tally.lost == 0) {
				t.Error("the faults are too many or too few to show anything")
			}
		})
	}
}

type tally struct {
	mu             sync.Mutex
	answered, lost int
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
func round(ctx context.Context, config mcphost.ServerConfig, tally *tally) error {
	ctx, cancel := context.WithTimeoutCause(ctx, hang, errors.New("hung"))
	defer cancel()
	h, err := mcphost.New(&mcphost.Options{
		Servers:        map[string]mcphost.ServerConfig{name: config},
		ConnectTimeout: connectLimit, CallTimeout: callLimit, CloseGrace: callLimit,
	})
	if err != nil {
		return err
	}
	h.Start(ctx)
	wrong := make(chan error, 2*calls) // never blocks: one a call
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
	for err := range wrong {
		all = append(all, err)
	}
	return errors.Join(all...)
}

func stdioRound(seed uint64) (mcphost.ServerConfig, func()) {
	return mcphost.Stdio{
		Command: os.Args[0],
		Env:     map[string]string{"FAULTS_TEST_CHILD": "stdio", "FAULTS_SEED": strconv.FormatUint(seed, 10)},
	}, func() {}
}

func httpRound(seed uint64) (mcphost.ServerConfig, func()) {
	s := echoServer()
	p := newProxy(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil), seed)
	client := &http.Client{Transport: &http.Transport{}}
	return mcphost.HTTP{URL: p.server.URL, HTTPClient: client}, func() {
		p.close()
		client.CloseIdleConnections()
		for ss := range s.Sessions() {
			ss.Close()
		}
	}
}

func sseRound(seed uint64) (mcphost.ServerConfig, func()) {
	s := echoServer()
	p := newProxy(mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil), seed)
	client := &http.Client{Transport: &http.Transport{}}
	return mcphost.SSE{URL: p.server.URL, HTTPClient: client}, func() {
		p.close()
		client.CloseIdleConnections()
	}
}
