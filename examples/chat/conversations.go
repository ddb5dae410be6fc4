package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tenon-sdk/tenon/agent"
)

var (
	errBusy = errors.New("this conversation is being answered: wait for the end of its stream")
	errFull = errors.New("too many conversations: try again later")
)

// conversations are the open conversations by id.
type conversations struct {
	engine agent.Engine
	opts   *agent.Options
	idle   time.Duration
	most   int
	kept   store
	wg     sync.WaitGroup // conversations that are being closed because nobody uses them

	mu     sync.Mutex // guards the rest, and the fields of each conversation
	open   map[string]*conversation
	closed bool
}

type conversation struct {
	id     string
	kept   store
	client *agent.Client // nil until the first turn
	busy   bool
	idle   *time.Timer
}

func newConversations(e agent.Engine, o *agent.Options, idle time.Duration, most int) *conversations {
	return &conversations{engine: e, opts: o, idle: idle, most: most, open: map[string]*conversation{}}
}

// take gives a conversation to one request, until put. One that is not open goes on with what is kept of
// it, or begins.
func (cs *conversations) take(ctx context.Context, id string) (*conversation, error) {
	c, err := cs.reserve(id)
	if err != nil || c.client != nil {
		return c, err
	}
	opts := *cs.opts
	var client *agent.Client
	if opts.History, err = cs.kept.load(id); err == nil {
		client, err = agent.Open(ctx, cs.engine, &opts)
	}
	if err == nil {
		cs.mu.Lock()
		c.client = client
		closed := cs.closed
		cs.mu.Unlock()
		if !closed {
			return c, nil
		}
		err = agent.ErrClosed // Close did not see this client
	}
	cs.put(c)
	return nil, err
}

func (cs *conversations) reserve(id string) (*conversation, error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.open[id]
	switch {
	case c == nil && (cs.closed || len(cs.open) >= cs.most):
		return nil, errFull
	case c == nil:
		c = &conversation{id: id, kept: cs.kept}
		cs.open[id] = c
	case c.busy:
		return nil, errBusy
	}
	c.busy = true
	if c.idle != nil {
		c.idle.Stop() // if it has fired already, expire sees busy
	}
	return c, nil
}

// put ends a request's hold of a conversation.
func (cs *conversations) put(c *conversation) {
	cs.mu.Lock()
	c.busy = false
	closed := cs.closed
	switch {
	case c.client == nil: // it could not be opened
		delete(cs.open, c.id)
	case !closed:
		c.idle = time.AfterFunc(cs.idle, func() { cs.expire(c) })
	}
	cs.mu.Unlock()
	if closed && c.client != nil {
		_ = c.client.Close()
	}
}

// expire closes a conversation that nobody has used for a while. If it is not kept, its id begins a new
// one from then on.
func (cs *conversations) expire(c *conversation) {
	cs.mu.Lock()
	if cs.closed || c.busy || cs.open[c.id] != c {
		cs.mu.Unlock()
		return
	}
	delete(cs.open, c.id)
	cs.wg.Add(1)
	cs.mu.Unlock()
	defer cs.wg.Done()
	_ = c.client.Close()
}

// Close closes every conversation; their turns end with an error. It may be called more than once.
func (cs *conversations) Close() {
	cs.mu.Lock()
	open := cs.open
	cs.open, cs.closed = map[string]*conversation{}, true
	var clients []*agent.Client
	for _, c := range open {
		if c.idle != nil {
			c.idle.Stop()
		}
		if c.client != nil {
			clients = append(clients, c.client)
		}
	}
	cs.mu.Unlock()
	for _, client := range clients {
		_ = client.Close()
	}
	cs.wg.Wait()
}

// turn says something and sends the events of the answer. When ctx ends the turn is interrupted, and the
// conversation can go on.
func (c *conversation) turn(ctx context.Context, text string, send func(event string, data any)) {
	life := context.WithoutCancel(ctx) // the answer is read to its end even if nobody listens
	if err := c.client.Send(life, text); err != nil {
		send("error", err.Error())
		return
	}
	stop := context.AfterFunc(ctx, func() { _ = c.client.Interrupt(life) })
	defer stop()
	for msg, err := range c.client.Response(life) {
		if err != nil {
			send("error", err.Error())
			return
		}
		if err := c.kept.keep(c.id, msg); err != nil {
			send("warning", err.Error()) // the answer is worth more than its copy
		}
		switch m := msg.(type) {
		case *agent.StreamEvent:
			if delta := m.TextDelta(); delta != "" {
				send("text", delta)
			}
		case *agent.Assistant:
			for _, use := range m.ToolUses() {
				send("tool", use.Name)
			}
		case *agent.Result:
			if err := m.Err(); err != nil {
				send("error", err.Error())
				return
			}
			send("done", map[string]any{"turns": m.NumTurns, "costUSD": m.TotalCostUSD})
		}
	}
}
