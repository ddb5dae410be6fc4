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
	// revivePause is the pause between two attempts to get a sign of life of a server that gives none, doubled each time up
	// to revivePauseMax.
	revivePause    = time.Second
	revivePauseMax = 30 * time.Second
	// pingEvery is how many times as rarely an idle server is pinged as it is connected to.
	pingEvery = 3
)

// watch looks after the health of a connection until it is over: a server that answers nothing any more shows in the
// status, and its calls fail at once, until it gives a sign of life; one that died while it was idle is connected anew.
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

// probe asks an idle server for a sign of life: by a bare connection where there can be one, else by a ping, more rarely.
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

// revive pings a server until it gives a sign of life or the connection is over. From the first ping that is not
// answered until then the server is failed, and its calls fail at once.
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

// rest waits until it is time for the next ping; false says that the connection is over.
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

// markStalled notes that a server answers nothing any more.
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

// markResumed notes of a sign of life.
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
