package mcphost

import (
	"testing"
	"time"
)

type step struct {
	ev event
	f  facts
}

func TestNext(t *testing.T) {
	remoteFault := facts{remote: true, transient: true}
	tests := []struct {
		name  string
		steps []step
		want  state
		act   action // of the last step
		show  Status
	}{
		{"starts connecting", []step{{ev: evStart}}, state{phase: phaseConnecting, attempt: 1}, action{dial: true}, StatusPending},
		{"straight to ready", []step{{ev: evStart}, {ev: evConnected}}, state{phase: phaseReady, attempt: 1}, action{}, StatusConnected},
		{"a process that cannot start is failed at once", []step{{ev: evStart}, {evFailed, facts{transient: true}}}, state{phase: phaseFailed, attempt: 1}, action{}, StatusFailed},
		{"a remote fault that may pass is tried again", []step{{ev: evStart}, {evFailed, remoteFault}}, state{phase: phaseBackoff, attempt: 1}, action{timer: 500 * time.Millisecond}, StatusPending},
		{"a remote fault that will not is not", []step{{ev: evStart}, {evFailed, facts{remote: true}}}, state{phase: phaseFailed, attempt: 1}, action{}, StatusFailed},
		{"after four tries it is failed, and tried in the background", []step{ // D83
			{ev: evStart}, {evFailed, remoteFault}, {ev: evTimer}, {evFailed, remoteFault}, {ev: evTimer}, {evFailed, remoteFault}, {ev: evTimer}, {evFailed, remoteFault},
		}, state{phase: phaseFailed, attempt: 4}, action{timer: 30 * time.Second}, StatusFailed},
		{"when the limit for connecting is over it is failed, and tried in the background", []step{ // D11 D12 D83
			{ev: evStart}, {evFailed, remoteFault}, {ev: evTimer}, {evFailed, facts{remote: true, transient: true, late: true}},
		}, state{phase: phaseFailed, attempt: 2}, action{timer: 30 * time.Second}, StatusFailed},
		{"a background attempt shows failed until it succeeds", []step{ // D83
			{ev: evStart}, {evFailed, facts{remote: true}}, {ev: evTimer},
		}, state{phase: phaseConnecting, purpose: purposeAgain, attempt: 1, keep: StatusFailed}, action{dial: true}, StatusFailed},
		{"and then connected", []step{ // D83
			{ev: evStart}, {evFailed, facts{remote: true}}, {ev: evTimer}, {ev: evConnected},
		}, state{phase: phaseReady, purpose: purposeAgain, attempt: 1, keep: StatusFailed}, action{}, StatusConnected},
		{"a login is needed", []step{{ev: evStart}, {evFailed, facts{remote: true, needsAuth: true}}}, state{phase: phaseNeedsAuth, attempt: 1}, action{}, StatusNeedsAuth}, // D63
		{"a lost connection is pending while it is made again", []step{ // D81
			{ev: evStart}, {ev: evConnected}, {evLost, facts{remote: true, stable: true}},
		}, state{phase: phaseConnecting, purpose: purposeRecovery, attempt: 1}, action{dial: true, dropLink: true}, StatusPending},
		{"after five attempts it is failed", []step{ // D82
			{ev: evStart},
			{ev: evConnected},
			{evLost, facts{remote: true, stable: true}},
			{evFailed, remoteFault},
			{ev: evTimer},
			{evFailed, remoteFault},
			{ev: evTimer},
			{evFailed, remoteFault},
			{ev: evTimer},
			{evFailed, remoteFault},
			{ev: evTimer},
			{evFailed, remoteFault},
		}, state{phase: phaseFailed, purpose: purposeRecovery, attempt: 5}, action{timer: 30 * time.Second}, StatusFailed},
		{"or needs a login", []step{ // D82
			{ev: evStart}, {ev: evConnected}, {evLost, facts{remote: true}}, {evFailed, facts{remote: true, needsAuth: true}},
		}, state{phase: phaseNeedsAuth, purpose: purposeRecovery, attempt: 1, flaps: 1}, action{}, StatusNeedsAuth},
		{"a process that dies as soon as it is there is not started for ever", []step{
			{ev: evStart},
			{ev: evConnected},
			{ev: evLost},
			{ev: evConnected},
			{ev: evLost},
			{ev: evTimer},
			{ev: evConnected},
			{ev: evLost},
			{ev: evTimer},
			{ev: evConnected},
			{ev: evLost},
			{ev: evTimer},
			{ev: evConnected},
			{ev: evLost},
			{ev: evTimer},
			{ev: evConnected},
			{ev: evLost},
		}, state{phase: phaseFailed, purpose: purposeRecovery, attempt: 5, flaps: 6}, action{dropLink: true}, StatusFailed},
		{"one that serves a call each time is made anew after pauses that grow", []step{ // fault B1
			{ev: evStart},
			{ev: evConnected},
			{evLost, facts{remote: true, proven: true}},
			{ev: evConnected},
			{evLost, facts{remote: true, proven: true}},
			{ev: evConnected},
			{evLost, facts{remote: true, proven: true}},
			{ev: evConnected},
			{evLost, facts{remote: true, proven: true}},
			{ev: evTimer},
			{ev: evConnected},
			{evLost, facts{remote: true, proven: true}},
		}, state{phase: phaseBackoff, purpose: purposeRecovery, flaps: 5}, action{dropLink: true, timer: 2 * time.Second}, StatusPending},
		{"and at once when it lasted", []step{
			{ev: evStart}, {ev: evConnected}, {evLost, facts{proven: true}}, {ev: evConnected}, {evLost, facts{stable: true}},
		}, state{phase: phaseConnecting, purpose: purposeRecovery, attempt: 1}, action{dial: true, dropLink: true}, StatusPending},
		{"a manual attempt is one", []step{ // D84
			{ev: evStart}, {evFailed, remoteFault}, {ev: evReconnect}, {evFailed, remoteFault},
		}, state{phase: phaseFailed, purpose: purposeManual, attempt: 1}, action{timer: 30 * time.Second}, StatusFailed},
		{"a manual attempt in the state of health", []step{{ev: evStart}, {ev: evConnected}, {ev: evReconnect}}, // D84
			state{phase: phaseConnecting, purpose: purposeManual, attempt: 1}, action{dial: true, dropLink: true, stopDial: true}, StatusPending},
		{"lazy until used", []step{{evStart, facts{lazy: true}}}, state{phase: phaseLazy}, action{}, StatusPending}, // D12
		{"used", []step{{evStart, facts{lazy: true}}, {ev: evUse}}, state{phase: phaseConnecting, attempt: 1}, action{dial: true}, StatusPending},
		{"switched off", []step{{ev: evStart}, {ev: evConnected}, {ev: evDisable}}, state{phase: phaseDisabled}, action{dropLink: true, stopDial: true}, StatusDisabled},
		{"off stays off", []step{{ev: evDisable}, {ev: evStart}, {ev: evUse}}, state{phase: phaseDisabled}, action{}, StatusDisabled},
		{"and on again", []step{{ev: evDisable}, {ev: evEnable}}, state{phase: phaseConnecting, purpose: purposeManual, attempt: 1}, action{dial: true}, StatusPending},
		{"close wins over a late connect", []step{{ev: evStart}, {ev: evClose}, {ev: evConnected}}, state{phase: phaseClosed}, action{}, StatusFailed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s state
			var a action
			for _, st := range tt.steps {
				var err error
				if s, a, err = next(s, st.ev, st.f); err != nil {
					t.Fatal(err)
				}
			}
			if s != tt.want || a != tt.act || s.status() != tt.show {
				t.Errorf("got %+v, %+v, shown as %s\nwant %+v, %+v, shown as %s", s, a, s.status(), tt.want, tt.act, tt.show)
			}
		})
	}
}

func TestNextRefusesTheImpossible(t *testing.T) {
	for _, ev := range []event{evConnected, evFailed, evLost, evTimer} {
		if _, _, err := next(state{phase: phaseIdle}, ev, facts{}); err == nil {
			t.Errorf("event %d before the start was taken", ev)
		}
	}
	if _, _, err := next(state{phase: phaseReady}, event(99), facts{}); err == nil {
		t.Error("an unknown event was taken")
	}
}

func TestBackoff(t *testing.T) {
	var got []time.Duration
	for n := 1; n <= recoveryTries; n++ {
		got = append(got, backoff(purposeRecovery, n))
	}
	want := []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("pause before attempt %d is %v, want %v", i+1, got[i], want[i])
		}
	}
}

// There are never more attempts in a window than the bound, and the next waits until the first of them is out of it.
//
// fault B1
func TestAttemptTimes(t *testing.T) {
	var a attemptTimes
	now := time.Unix(0, 0)
	for i := range 3 * maxAttempts {
		wait := a.wait(now)
		if want := map[bool]time.Duration{true: attemptWindow - maxAttempts*time.Millisecond}[i > 0 && i%maxAttempts == 0]; max(wait, 0) != want {
			t.Errorf("attempt %d waits %v, want %v", i, wait, want)
		}
		now = now.Add(max(wait, 0))
		a.add(now)
		now = now.Add(time.Millisecond)
	}
	s, act := postpone(state{phase: phaseConnecting, purpose: purposeAgain, attempt: 1, keep: StatusFailed}, action{dial: true, dropLink: true}, time.Second)
	if s != (state{phase: phaseBackoff, purpose: purposeAgain, keep: StatusFailed}) || act != (action{dropLink: true, timer: time.Second}) || s.status() != StatusFailed {
		t.Errorf("postponed: %+v %+v, shown as %s", s, act, s.status())
	}
	if s, act, err := next(s, evTimer, facts{}); err != nil || s.attempt != 1 || !act.dial || s.status() != StatusFailed {
		t.Errorf("then: %+v %+v %v", s, act, err)
	}
}
