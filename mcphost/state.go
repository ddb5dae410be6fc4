package mcphost

import (
	"fmt"
	"time"
)

// A phase is where a server is in its life.
type phase uint8

const (
	phaseIdle       phase = iota // not started
	phaseLazy                    // its tools are known from the cache; the first call connects it
	phaseConnecting              // an attempt is under way
	phaseBackoff                 // between two attempts
	phaseReady                   // connected
	phaseFailed                  // given up; remote servers are tried again in the background
	phaseNeedsAuth               // a login is needed
	phaseDisabled                // switched off
	phaseClosed                  // the end
)

func (p phase) String() string {
	return [...]string{"idle", "lazy", "connecting", "backoff", "ready", "failed", "needs-auth", "disabled", "closed"}[p]
}

// A purpose is why a number of attempts to connect are made.
type purpose uint8

const (
	purposeInitial  purpose = iota // the first connection
	purposeRecovery                // a connection was lost
	purposeManual                  // somebody asked for it: one attempt
	purposeAgain                   // a failed server is given another chance, unnoticed unless it succeeds: one attempt
)

// An event is what happens to a server.
type event uint8

const (
	evStart     event = iota // the host starts
	evUse                    // a call needs the server
	evConnected              // the attempt succeeded
	evFailed                 // the attempt failed
	evLost                   // the connection broke
	evTimer                  // the time for the next attempt has come
	evReconnect              // somebody asks for an attempt now
	evEnable                 // somebody switches the server on
	evDisable                // somebody switches the server off
	evClose                  // the host closes, or the server is removed
)

// A state is all that decides what happens next to a server.
type state struct {
	phase   phase
	purpose purpose
	attempt int    // attempts of this round, the one under way included
	flaps   int    // connections in a row that broke soon after they were made
	keep    Status // what is shown during purposeAgain
}

// facts are what next has to know beside the state.
type facts struct {
	remote    bool // HTTP or SSE
	lazy      bool // its tools are in the cache
	transient bool // of evFailed: the same attempt may succeed later
	late      bool // of evFailed in purposeInitial: the limit for connecting leaves no time for another
	needsAuth bool // of evFailed
	stable    bool // of evLost: the connection lasted
	proven    bool // of evLost: the connection served a call
}

// An action is what a transition asks for.
type action struct {
	dial     bool          // begin an attempt
	stopDial bool          // stop the one under way
	dropLink bool          // close the connection
	timer    time.Duration // send evTimer after this time; zero means never
}

const (
	// initialTries are the attempts of a remote server whose faults may pass, as many of them as the
	// limit for connecting has room for; a process has one.
	initialTries  = 4
	recoveryTries = 5
	// againAfter is the pause before a failed remote server is tried in the background.
	againAfter = 30 * time.Second
	// freeFlaps is how many connections in a row may break soon after they were made and served a call before
	// there is a pause before the next. It doubles from a second to flapPauseMax.
	freeFlaps    = 3
	flapPauseMax = 32 * time.Second
	// maxAttempts is how many attempts to connect a server begin within attemptWindow, whatever asks for them.
	maxAttempts   = 8
	attemptWindow = 10 * time.Second
)

// flapPause is the pause before a connection is made anew after n in a row that broke soon.
func flapPause(n int) time.Duration {
	if n <= freeFlaps {
		return 0
	}
	return min(time.Second<<min(n-freeFlaps-1, 10), flapPauseMax)
}

// attemptTimes are when the last attempts to connect a server began, oldest first; maxAttempts at most.
type attemptTimes []time.Time

// wait returns how long the next attempt has to wait for the bound on their number.
func (a attemptTimes) wait(now time.Time) time.Duration {
	if len(a) < maxAttempts {
		return 0
	}
	return a[0].Add(attemptWindow).Sub(now)
}

// add takes note of an attempt.
func (a *attemptTimes) add(now time.Time) {
	*a = append(*a, now)
	if extra := len(*a) - maxAttempts; extra > 0 {
		*a = append((*a)[:0], (*a)[extra:]...)
	}
}

// postpone turns a transition to an attempt into one to the pause before it.
func postpone(s state, a action, pause time.Duration) (state, action) {
	s.phase = phaseBackoff
	s.attempt--
	a.dial, a.timer = false, pause
	return s, a
}

// backoff is the pause before an attempt, the first being number 1. The caller
// adds jitter.
func backoff(r purpose, attempt int) time.Duration {
	if attempt <= 1 {
		return 0
	}
	unit := time.Second // recovery: 0, 1, 2, 4, 8 s
	if r == purposeInitial {
		unit = 500 * time.Millisecond
	}
	return unit << (attempt - 2)
}

// status is what users see of a state.
func (s state) status() Status {
	switch s.phase {
	case phaseReady:
		return StatusConnected
	case phaseFailed:
		return StatusFailed
	case phaseNeedsAuth:
		return StatusNeedsAuth
	case phaseDisabled:
		return StatusDisabled
	case phaseConnecting, phaseBackoff:
		if s.purpose == purposeAgain {
			return s.keep
		}
	case phaseClosed:
		return StatusFailed
	}
	return StatusPending
}

// trying reports whether an attempt is under way or will be soon: worth waiting for.
func (s state) trying() bool { return s.phase == phaseConnecting || s.phase == phaseBackoff }

// next is the whole state machine: no I/O, no clock, no lock. It reports an
// error for an event that cannot happen in s.
func next(s state, ev event, f facts) (state, action, error) {
	switch {
	case s.phase == phaseClosed:
		return s, action{}, nil // late events of goroutines that are winding down
	case ev == evClose:
		return state{phase: phaseClosed}, action{stopDial: true, dropLink: true}, nil
	case ev == evDisable:
		return state{phase: phaseDisabled}, action{stopDial: true, dropLink: true}, nil
	case ev == evReconnect:
		return dial(s, purposeManual, 1, action{dropLink: true, stopDial: true})
	case ev == evEnable && s.phase == phaseDisabled:
		return dial(s, purposeManual, 1, action{})
	case ev == evEnable, ev == evStart && s.phase != phaseIdle:
		return s, action{}, nil
	case ev == evStart && f.lazy:
		return state{phase: phaseLazy}, action{}, nil
	case ev == evStart, ev == evUse && s.phase == phaseLazy:
		return dial(s, purposeInitial, 1, action{})
	case ev == evUse && (s.phase == phaseFailed || s.phase == phaseNeedsAuth), ev == evTimer && s.phase == phaseFailed:
		n, a, err := dial(s, purposeAgain, 1, action{})
		n.keep = s.status()
		return n, a, err
	case ev == evUse:
		return s, action{}, nil // it is there, or on its way, or switched off
	case ev == evConnected && s.phase == phaseConnecting:
		s.phase = phaseReady
		return s, action{}, nil
	case ev == evFailed && s.phase == phaseConnecting:
		return failed(s, f)
	case ev == evLost && s.phase == phaseReady:
		return lost(s, f)
	case ev == evTimer && s.phase == phaseBackoff:
		n, a, err := dial(s, s.purpose, s.attempt+1, action{})
		n.keep = s.keep
		return n, a, err
	case ev == evTimer, ev == evLost, ev == evFailed, ev == evConnected:
		return s, action{}, fmt.Errorf("mcphost: event %d in phase %v", ev, s.phase)
	}
	return s, action{}, fmt.Errorf("mcphost: unknown event %d", ev)
}

func dial(s state, r purpose, attempt int, a action) (state, action, error) {
	a.dial = true
	return state{phase: phaseConnecting, purpose: r, attempt: attempt, flaps: s.flaps}, a, nil
}

// failed decides after a failed attempt: wait for the next, or give up.
func failed(s state, f facts) (state, action, error) {
	tries := 1
	switch {
	case s.purpose == purposeInitial && f.remote && f.transient && !f.late:
		tries = initialTries
	case s.purpose == purposeRecovery && (f.transient || !f.remote):
		tries = recoveryTries
	}
	switch {
	case f.needsAuth:
		s.phase = phaseNeedsAuth
		return s, action{}, nil
	case s.attempt < tries:
		s.phase = phaseBackoff
		return s, action{timer: backoff(s.purpose, s.attempt+1)}, nil
	}
	s.phase = phaseFailed
	return s, action{timer: inBackground(f)}, nil
}

func inBackground(f facts) time.Duration {
	if f.remote && f.transient {
		return againAfter
	}
	return 0
}

// lost decides after a lost connection. One that lasted is made anew at once. One that broke soon after it was
// made, but served a call, is too, a few times in a row; then after pauses that grow. One that served nothing goes
// on with the round that made it, so that a server that connects and dies is not started for ever.
func lost(s state, f facts) (state, action, error) {
	s.flaps++
	switch {
	case f.stable:
		s.flaps = 0
		return dial(s, purposeRecovery, 1, action{dropLink: true})
	case f.proven || s.purpose != purposeRecovery:
		n, a, err := dial(s, purposeRecovery, 1, action{dropLink: true})
		if pause := flapPause(s.flaps); pause > 0 {
			n, a = postpone(n, a, pause)
		}
		return n, a, err
	case s.attempt < recoveryTries:
		s.phase = phaseBackoff
		return s, action{dropLink: true, timer: backoff(s.purpose, s.attempt+1)}, nil
	}
	s.phase = phaseFailed
	f.transient = true
	return s, action{dropLink: true, timer: inBackground(f)}, nil
}
