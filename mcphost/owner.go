package mcphost

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/tenon-sdk/tenon/mcphost/internal/transport"
)

// An owner is the state of the goroutine that manages a conn's connection.
type owner struct {
	*conn
	ctx   context.Context // of the conn's life; ends with close
	start context.Context // bounds the first attempts

	results    chan dialed
	listed     chan listing
	dialing    *dialing        // the attempt under way
	ended      <-chan struct{} // closed when the latest attempt is over, also if it was called off; nil if there was none
	times      attemptTimes
	lastReason string // why the server is not connected, as the log has it
	// initialEnd is the end of the time for the first attempts.
	initialEnd time.Time
	waiters    []chan error
	timer      *time.Timer // nil when none is set
	pause      *time.Timer // before listing anew
	listing    bool
	// pausing is the last pause, relistEnd the time of the list after it.
	pausing   time.Duration
	relistEnd time.Time
	again     *time.Timer // until a list that could not be had is asked for again; nil if none was
	againIn   time.Duration
}

// A dialing is a running attempt, a dialed its result.
type dialing struct {
	began  time.Time
	cancel context.CancelFunc
}

type dialed struct {
	of   *dialing
	link link
	list toolList
	err  error
}

type listing struct {
	of   *liveLink
	list toolList
	err  error
}

func (o *owner) loop() {
	if o.state.phase == phaseLazy {
		o.notify(Event{Server: o.name, Status: o.state.status(), Tools: true, Time: time.Now()})
	}
	o.apply(evStart, facts{}, nil)
	for o.step() {
	}
	o.listLater(toolList{}, nil)
	o.resolve(o.conn.ended())
	o.apply(evClose, facts{}, o.conn.ended())
}

// step handles one event. It reports false at the end of the conn.
func (o *owner) step() bool {
	var done, lost, relist <-chan struct{}
	if l := o.rec.link; l != nil {
		done, lost = l.done(), l.lost()
		if o.pause == nil && !o.listing {
			relist = o.relist
		}
	}
	select {
	case <-o.ctx.Done():
		return false
	case cmd := <-o.cmds:
		o.command(cmd)
	case <-o.use:
		o.apply(evUse, facts{}, nil)
	case <-due(o.timer):
		o.timer = nil
		o.apply(evTimer, facts{remote: o.remote}, nil)
	case d := <-o.results:
		o.dialed(d)
	case <-done:
		l := o.rec.link
		o.lost(o.dialer.fault(o.ctx, PhaseSession, l.err(), l.link))
	case <-lost:
		o.lost(o.dialer.fault(o.ctx, PhaseSession, o.rec.link.err(), nil))
	case <-relist:
		o.pauseRelist()
	case <-due(o.pause):
		o.pause = nil
		o.listAnew()
	case l := <-o.listed:
		o.relisted(l)
	}
	return true
}

// pauseRelist waits for further notices before it lists the tools. A server that keeps sending them
// is asked less and less often.
func (o *owner) pauseRelist() {
	if o.pausing > 0 && time.Since(o.relistEnd) < 2*o.pausing {
		o.pausing = min(2*o.pausing, relistPauseMax)
	} else {
		o.pausing = relistPause
	}
	o.pause = time.NewTimer(o.pausing)
}

const (
	// listAgain is the pause before a failed list of tools is requested again, doubled each time up
	// to listAgainMax.
	listAgain    = 5 * time.Second
	listAgainMax = 5 * time.Minute
)

// listLater requests a failed list of tools again after a while: the server may be starting, and
// need not notify when it is ready.
func (o *owner) listLater(list toolList, err error) {
	if o.again != nil {
		o.again.Stop()
		o.again = nil
	}
	if err == nil || len(list.tools) > 0 {
		o.againIn = 0
		return
	}
	o.againIn = min(max(2*o.againIn, listAgain), listAgainMax)
	o.again = time.AfterFunc(o.againIn, o.toolsChanged)
}

func due(t *time.Timer) <-chan time.Time {
	if t == nil {
		return nil
	}
	return t.C
}

func (o *owner) command(cmd command) {
	if cmd.ev != evDisable {
		o.waiters = append(o.waiters, cmd.reply)
	}
	if cmd.ev == evReconnect && o.dialing != nil && o.state.purpose != purposeAgain {
		return // an attempt is under way: its outcome is the answer
	}
	before := o.state.phase
	o.apply(cmd.ev, facts{remote: o.remote}, nil)
	if cmd.ev == evEnable && before != phaseDisabled && o.dialing == nil {
		o.resolve(o.rec.err) // it was on
	}
	if cmd.ev == evDisable {
		o.resolve(ErrDisabled)
		cmd.reply <- nil
	}
}

// resolve sends the result of an attempt to those who requested it.
func (o *owner) resolve(err error) {
	for _, w := range o.waiters {
		w <- err // never blocks: the channel holds the one reply
	}
	o.waiters = nil
}

func (o *owner) lost(err *ConnectError) {
	o.mu.Lock()
	proven := o.rec.proven
	o.mu.Unlock()
	stable := time.Since(o.rec.upSince) >= stableAfter
	o.apply(evLost, facts{remote: o.remote, stable: stable, proven: proven}, err)
}

// apply changes the state. Nothing else does.
func (o *owner) apply(ev event, f facts, err error) {
	n, act, nerr := next(o.state, ev, f)
	if nerr != nil {
		o.log.Error("event refused", "error", nerr)
		return
	}
	if ev == evUse && n == o.state {
		return
	}
	if act.stopDial && o.dialing != nil {
		o.dialing.cancel()
		o.dialing = nil
	}
	if wait := o.times.wait(time.Now()); act.dial && wait > 0 {
		n, act = postpone(n, act, wait)
	}
	o.stopTimer()
	var delay time.Duration
	if act.timer > 0 {
		delay = act.timer + rand.N(act.timer/4+1)
		o.timer = time.NewTimer(delay)
	}
	o.logged(ev, n, err)
	o.record(n, act, err, delay)
	if act.dial {
		o.dial()
	}
}

// logged logs the changes that matter to an operator: a lost connection, a server that is given up,
// and one that is back. Attempts are logged for debugging.
func (o *owner) logged(ev event, n state, err error) {
	var ce *ConnectError
	why := "" // without what differs from one attempt to the next
	if errors.As(err, &ce) {
		why = fmt.Sprint(ce.Phase, ce.Err)
	}
	switch {
	case ev == evLost:
		o.log.Warn("connection lost", "error", err)
	case ev == evFailed && n.phase == phaseBackoff, ev == evFailed && o.state.purpose == purposeAgain && why == o.lastReason:
		o.log.Debug("attempt to connect failed", "attempt", n.attempt, "error", err)
	case ev == evFailed:
		o.lastReason = why
		o.log.Warn("server is not connected", "status", n.status(), "error", err)
	case ev == evConnected && !o.rec.lastBad.IsZero():
		o.lastReason = ""
		o.log.Info("server is connected", "attempt", n.attempt)
	}
}

func (o *owner) stopTimer() {
	if o.timer != nil {
		o.timer.Stop()
		o.timer = nil
	}
}

// record stores and publishes the new state.
func (o *owner) record(n state, act action, err error, delay time.Duration) {
	now := time.Now()
	o.mu.Lock()
	before := o.state.status()
	hadTools := o.showsTools()
	o.state = n
	if act.dropLink && o.rec.link != nil {
		o.drop()
	}
	if err != nil {
		o.rec.err, o.rec.lastBad = err, now
	} else if n.phase == phaseReady || n.phase == phaseDisabled {
		o.rec.err = o.rec.list.problem
	}
	o.rec.nextTry = time.Time{}
	if delay > 0 {
		o.rec.nextTry = now.Add(delay)
	}
	after := n.status()
	if before != after {
		o.rec.since = now
	}
	if after != StatusPending {
		o.rec.settled = true
	}
	tools := o.showsTools() != hadTools || n.phase == phaseReady
	if tools {
		o.touch() // before anybody wakes up and asks for the tools
	}
	o.broadcast()
	o.mu.Unlock()
	if before != after || tools || err != nil {
		o.notify(Event{Server: o.name, Status: after, Tools: tools, Err: err, Time: now})
	}
}

// drop closes the link, at once or, if calls on it may still be answered, when they are done. The
// caller holds c.mu.
func (o *owner) drop() {
	l := o.rec.link
	gently := isClosed(l.lost())
	o.rec.link, o.rec.stalled = nil, nil
	o.rec.diag = l.diagnostics()
	unused := l.unused()
	o.wg.Go(func() {
		if gently {
			select {
			case <-unused:
			case <-l.done():
			case <-o.ctx.Done():
			}
		}
		if err := l.close(); err != nil {
			o.log.Warn("closing the connection", "error", err)
		}
	})
}

// dial starts an attempt.
func (o *owner) dial() {
	ctx, cancel := context.WithCancel(o.ctx) // without the limit: its outcome is to be told
	d := &dialing{began: time.Now(), cancel: cancel}
	o.times.add(d.began)
	before, ended := o.ended, make(chan struct{})
	o.ended = ended
	limit := o.dialer.limits.connect
	within := func(ctx context.Context, end time.Time) (context.Context, context.CancelFunc) {
		return context.WithDeadlineCause(ctx, end, fmt.Errorf("%w after %v", ErrTimeout, limit))
	}
	bounded, release := ctx, func() {}
	if o.state.purpose == purposeInitial { // all of its attempts together have the limit for connecting
		if o.state.attempt == 1 {
			o.initialEnd = d.began.Add(limit)
		}
		stop := context.AfterFunc(o.start, cancel)
		var end context.CancelFunc
		bounded, end = within(ctx, o.initialEnd)
		release = func() { end(); stop() }
	}
	o.dialing = d
	o.wg.Go(func() {
		defer cancel()
		defer release()
		o.dialer.awaitClosed(bounded.Done())
		bounded, stop := within(bounded, time.Now().Add(limit))
		defer stop()
		out := make(chan dialed, 1)
		go func() { // ends with dial: soon after bounded, unless functions of the program do not heed it
			defer close(ended)
			l, list, err := o.dialer.dial(bounded, before)
			out <- dialed{d, l, list, err} // never blocks: the channel holds the one outcome
		}()
		o.finish(ctx, o.await(bounded, out, d))
	})
}

// abandonAfter is how long an attempt may go on after its context ended, to return why it failed.
const abandonAfter = 250 * time.Millisecond

// await returns the result of an attempt. It does not wait for one that ignores its context, whose
// link is closed later.
func (o *owner) await(ctx context.Context, out chan dialed, d *dialing) dialed {
	select {
	case r := <-out:
		return r
	case <-ctx.Done():
	}
	t := time.NewTimer(abandonAfter)
	defer t.Stop()
	select {
	case r := <-out:
		return r
	case <-t.C:
	}
	go func() { // ends with the attempt
		if r := <-out; r.link != nil {
			_ = r.link.close() // nobody wants it any more
		}
	}()
	return dialed{of: d, err: o.dialer.fault(ctx, PhaseStart, ctx.Err(), nil)}
}

// finish sends the result of an attempt to the owner's loop. It closes a connection that is not
// needed any more.
func (o *owner) finish(ctx context.Context, d dialed) {
	select {
	case o.results <- d:
		return
	case <-ctx.Done():
	}
	if d.link != nil {
		_ = d.link.close()
		d.link, d.err = nil, o.dialer.fault(ctx, PhaseInitialize, ctx.Err(), nil)
	}
	select {
	case o.results <- d:
	case <-o.ctx.Done():
	}
}

func (o *owner) dialed(d dialed) {
	for range o.dialer.extra.Swap(0) {
		o.times.add(time.Now())
	}
	if d.of != o.dialing {
		if d.link != nil { // of an attempt that was called off
			o.wg.Go(func() { _ = d.link.close() })
		}
		return
	}
	o.dialing = nil
	if d.err != nil {
		f := facts{remote: o.remote}
		var ce *ConnectError
		if errors.As(d.err, &ce) {
			f.transient, f.needsAuth = ce.Transient || o.mayPass(ce), ce.NeedsAuth
		}
		if o.state.purpose == purposeInitial {
			pause := backoff(purposeInitial, o.state.attempt+1)
			f.late = time.Until(o.initialEnd) <= pause+pause/4 // with the jitter
			if o.start.Err() != nil {
				f.transient = false // whoever started the host has given up waiting
			}
		}
		o.forget(ce)
		o.apply(evFailed, f, d.err)
		if !o.state.trying() {
			o.resolve(d.err)
		}
		return
	}
	o.mu.Lock()
	o.rec.link = &liveLink{link: d.link, receivedAt: d.link.received()}
	if _, ok := d.link.(*remoteLink); ok {
		o.rec.link.suspected = make(chan struct{}, 1)
	}
	o.rec.info = d.link.info()
	o.setList(d.list)
	now := time.Now()
	o.rec.upSince, o.rec.lastOK, o.rec.took = now, now, now.Sub(d.of.began)
	o.rec.proven, o.rec.hold, o.rec.holdTill = false, 0, time.Time{}
	o.mu.Unlock()
	o.apply(evConnected, facts{}, nil)
	o.saveList()
	o.listLater(d.list, d.list.problem)
	live := o.rec.link
	o.wg.Go(func() { o.watch(live) })
	o.resume(live)
	o.resolve(nil)
}

// mayPass reports whether a fault may be temporary, although it is final for a new server, because
// the server was connected before: while it restarts, a proxy answers 404 or 503, and without a
// network no name resolves.
func (o *owner) mayPass(ce *ConnectError) bool {
	switch ce.HTTPStatus {
	case http.StatusUnauthorized, http.StatusForbidden:
		return false
	}
	return !o.rec.upSince.IsZero() && ce.Phase != PhaseConfig && ce.Phase != PhaseLookup && !transport.Permanent(ce) && !errors.Is(ce, transport.ErrRedirect)
}

// saveList stores the tool list for the next run.
func (o *owner) saveList() {
	if o.cache == nil || o.rec.list.problem != nil {
		return
	}
	info, list := o.rec.info, o.rec.list
	o.wg.Go(func() {
		if err := o.cache.save(o.ctx, o.name, o.cfg, info, list); err != nil {
			o.log.Warn("saving the tool list for the next run", "error", err)
		}
	})
}

// forget deletes the stored tool list of a server that refused the connection.
func (o *owner) forget(ce *ConnectError) {
	if o.cache == nil || ce == nil {
		return
	}
	switch ce.HTTPStatus {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		o.cache.drop(o.ctx, o.name, o.cfg)
	}
}

// resume restores log level and subscriptions on a new connection.
func (o *owner) resume(l *liveLink) {
	o.mu.Lock()
	uris, level := slices.Sorted(maps.Keys(o.subs)), o.level
	o.mu.Unlock()
	if len(uris) == 0 && level == "" {
		return
	}
	o.wg.Go(func() {
		ctx, cancel := context.WithTimeout(o.ctx, o.dialer.limits.connect)
		defer cancel()
		var errs []error
		if level != "" {
			errs = append(errs, l.setLevel(ctx, level))
		}
		for _, uri := range uris {
			errs = append(errs, l.subscribe(ctx, uri))
		}
		if err := errors.Join(errs...); err != nil {
			o.log.Warn("restoring subscriptions", "error", maskError(o.dialer.mask, err))
		}
	})
}

// listAnew lists the tools, once for all notices so far.
func (o *owner) listAnew() {
	l := o.rec.link
	if l == nil {
		return
	}
	select {
	case <-o.relist: // this list will have that change
	default:
	}
	o.listing = true
	o.wg.Go(func() {
		ctx, cancel := context.WithTimeout(o.ctx, o.dialer.limits.connect)
		defer cancel()
		list, err := o.dialer.listTools(ctx, l)
		select {
		case o.listed <- listing{l, list, err}:
		case <-o.ctx.Done():
		}
	})
}

// relisted replaces the list, unless listing failed.
func (o *owner) relisted(l listing) {
	o.listing, o.relistEnd = false, time.Now()
	if l.of != o.rec.link {
		return
	}
	err := l.err
	if err == nil {
		err = l.list.problem
	}
	o.listLater(l.list, err)
	now := time.Now()
	o.mu.Lock()
	before, last := o.rec.list, o.rec.err
	if err == nil || len(l.list.tools) > 0 {
		o.setList(l.list)
	}
	if err == nil && last == nil && reflect.DeepEqual(before, o.rec.list) {
		o.mu.Unlock()
		return // it was the stream that changed, or nothing at all
	}
	o.rec.err = err
	o.touch()
	o.broadcast()
	o.mu.Unlock()
	if err != nil {
		o.log.Warn("listing the tools anew", "error", err)
	} else {
		o.saveList()
	}
	o.notify(Event{Server: o.name, Status: StatusConnected, Tools: true, Err: err, Time: now})
}

// run starts the goroutine, unless the conn is closed. All that the conn does has the values of
// start, whose end stops the first attempts.
func (c *conn) run(start context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing || c.started {
		return
	}
	c.started = true
	if lazy, _, err := next(c.state, evStart, facts{lazy: true}); err == nil && c.rec.cached {
		// Not left to the goroutine: who has started the host finds the tools, and does not wait for the server.
		c.state = lazy
		c.touch()
		c.broadcast()
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(start))
	c.wg.Go(func() {
		<-c.quit
		cancel(ErrClosed)
	})
	c.wg.Go(func() {
		o := &owner{conn: c, ctx: ctx, start: start, results: make(chan dialed), listed: make(chan listing)}
		o.loop() // the owner has the context of its life
	})
}
