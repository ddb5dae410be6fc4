package mcphost

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// probeLimit is how long a server may take to give a sign of life.
	probeLimit = 5 * time.Second
	// revivePause is the pause between pings of a server that does not answer, doubled each time up
	// to revivePauseMax.
	revivePause    = time.Second
	revivePauseMax = 30 * time.Second
	// pingEvery is how many intervals pass between two pings of an idle server.
	pingEvery = 3
)

// watch checks a connection until its end. While a server answers nothing, its status is failed and
// its calls fail at once. An idle server whose connection is lost is connected again.
func (o *owner) watch(l *liveLink) {
	r, ok := l.link.(*remoteLink)
	if !ok {
		return // a server in this process
	}
	var tick <-chan time.Time
	if r.IsHTTP() && o.probeInterval > 0 {
		t := time.NewTicker(o.probeInterval)
		defer t.Stop()
		tick = t.C
	}
	heard, quiet := l.received(), 0
	for {
		select {
		case <-o.ctx.Done():
			return
		case <-l.done():
			return
		case <-l.lost():
			return
		case <-l.suspected:
			o.revive(l)
		case <-tick:
			if now := l.received(); now != heard || r.StreamOpen() {
				heard, quiet = now, 0
				continue
			}
			quiet++
			o.probe(l, r, quiet)
		}
	}
}

// probe checks an idle server: by opening a connection if possible, otherwise by a ping, less
// often.
func (o *owner) probe(l *liveLink, r *remoteLink, quiet int) {
	ctx, cancel := context.WithTimeout(o.ctx, o.probeLimit())
	defer cancel()
	if err := r.ProbeHTTP(ctx); !errors.Is(err, errors.ErrUnsupported) {
		return
	}
	if quiet%pingEvery != 0 {
		return
	}
	if l.ping(ctx) != nil && ctx.Err() != nil && o.ctx.Err() == nil {
		o.mu.Lock()
		o.timedOut(l)
		o.mu.Unlock()
	}
}

// probeLimit is how long the server may take to give a sign of life.
func (o *owner) probeLimit() time.Duration {
	if call := o.dialer.limits.call; call > 0 {
		return min(call, probeLimit)
	}
	return probeLimit
}

// revive pings a server until it answers or the connection ends. After the first ping without an
// answer the status is failed, and calls fail at once.
func (o *owner) revive(l *liveLink) {
	for pause := revivePause; ; pause = min(2*pause, revivePauseMax) {
		heard := l.received()
		ctx, cancel := context.WithTimeout(o.ctx, o.probeLimit())
		err := l.ping(ctx)
		silent := err != nil && l.received() == heard && (ctx.Err() != nil || isClosed(l.done()) || isClosed(l.lost()))
		cancel()
		if o.ctx.Err() != nil || isClosed(l.done()) || isClosed(l.lost()) {
			return // the owner's loop has more to say of that
		}
		if !silent {
			o.markResumed(l)
			return
		}
		o.markStalled(l, pause)
		if !o.rest(l, pause) {
			return
		}
	}
}

// rest waits for the next ping. It reports false if the connection has ended.
func (o *owner) rest(l *liveLink, pause time.Duration) bool {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-l.done():
	case <-l.lost():
	case <-o.ctx.Done():
	}
	return false
}

// markStalled records that a server answers nothing.
func (o *owner) markStalled(l *liveLink, pause time.Duration) {
	now := time.Now()
	o.mu.Lock()
	if o.rec.link != l {
		o.mu.Unlock()
		return
	}
	first := o.rec.stalled == nil
	o.rec.nextTry = now.Add(pause)
	if first {
		err := o.dialer.fault(o.ctx, PhaseSession, fmt.Errorf("%w: %d calls in a row timed out, and so did a ping", ErrUnresponsive, l.silent), nil)
		o.rec.stalled, o.rec.since, o.rec.lastBad = err, now, now
	}
	err := o.rec.stalled
	o.broadcast()
	o.mu.Unlock()
	if first {
		o.log.Warn("server answers nothing any more; its calls fail at once until it does", "error", err)
		o.notify(Event{Server: o.name, Status: StatusFailed, Err: err, Time: now})
	}
}

// markResumed records that a server answers again.
func (o *owner) markResumed(l *liveLink) {
	now := time.Now()
	o.mu.Lock()
	l.silent = 0
	was := o.rec.stalled != nil && o.rec.link == l
	if was {
		o.rec.stalled, o.rec.since, o.rec.lastOK, o.rec.nextTry = nil, now, now, time.Time{}
		o.broadcast()
	}
	o.mu.Unlock()
	if was {
		o.log.Info("server answers again")
		o.notify(Event{Server: o.name, Status: StatusConnected, Time: now})
	}
}
