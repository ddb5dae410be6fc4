package claudecode

import (
	"encoding/binary"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/tenon-sdk/tenon/agent"
)

// turnState is where the turns of a session are. The session's mutex guards it.
type turnState struct {
	waiting map[string]bool // inputs that have no end yet, by UUID
	// unplaced is how many inputs were sent. Only a result says what became of one that the CLI does
	// not report by its UUID.
	unplaced int
	results  int
	idle     bool // the CLI waits for input
	// expected is the input for which idle is false while the CLI has reported nothing itself.
	expected string
	running  bool // the CLI has begun a turn that has no result
	// interruptNext is set if the CLI was asked to interrupt a turn before it had begun it.
	interruptNext bool
	clock         *turnClock      // nil without a turn or a limit
	responses     map[string]bool // IDs of the model's messages in this turn
	empty         emptyResponses
	stopped       string // why a hook ended the turn
}

func newTurnState() turnState {
	return turnState{waiting: map[string]bool{}, idle: true, responses: map[string]bool{}, empty: emptyResponses{awaited: true}}
}

// allAnswered reports whether no input waits for a result. A session that had inputs has a result.
func (t *turnState) allAnswered() bool {
	return len(t.waiting) == 0 && (t.results > 0 || t.unplaced == 0)
}

// quiet reports whether the CLI is idle and no input waits.
func (t *turnState) quiet() bool { return t.idle && len(t.waiting) == 0 }

// A ruleReview finds rules for tools that do not exist, which the CLI does not report.
type ruleReview struct {
	done     bool // there is nothing more to find
	running  bool // the CLI must not end yet
	reported map[string]bool
}

// A turnClock bounds the time of a turn.
type turnClock struct {
	timer *time.Timer
	ended chan struct{} // closed when the turn has ended
	late  bool          // the turn took too long and is interrupted
}

// stopClock ends the time of a turn.
func (t *turnState) stopClock() {
	if t.clock == nil {
		return
	}
	t.clock.timer.Stop()
	close(t.clock.ended)
	t.clock = nil
}

// emptyResponses counts the model's messages in a turn that the CLI does not show: messages without
// visible content, and one that was interrupted before it had any. The counter goes by what the CLI
// says to the model next. The model's stream would mislead: a message that is requested again after
// its stream broke is in it twice, and one that was interrupted before it began is not in it.
type emptyResponses struct {
	awaited bool // a message of the model is next
	n       int
}

// retries are the beginnings of what the CLI says to the model after a message that it does not show.
// It may say the same after one that it shows.
var retries = []string{
	"[Your previous response had no visible output.", "Output token limit hit", "Your response above was ",
	"Stop hook feedback", "[structured-output-enforce]", "Your tool call was malformed", "The previous response failed ",
}

// addUser adds a message to the model.
func (e *emptyResponses) addUser(m *agent.User) {
	if m.ParentToolUseID != "" {
		return
	}
	text := m.Message.Content.Text()
	retried := m.IsSynthetic && slices.ContainsFunc(retries, func(r string) bool { return strings.HasPrefix(text, r) })
	if retried && e.awaited {
		e.n++
	}
	e.awaited = e.awaited || retried || len(m.ToolResults()) > 0
}

// total returns the number of empty responses in the turn of a result. The CLI says nothing after the
// last response of a turn.
func (e *emptyResponses) total(r *agent.Result) int {
	last := false
	switch r.TerminalReason {
	case agent.ReasonAbortedStreaming:
		last = true
	case agent.ReasonCompleted, agent.ReasonStopHookPrevented:
		// A turn without a request to the model is a success, too. Its num_turns, as the CLI counts, is at most 1.
		last = r.Subtype != agent.SubtypeSuccess || r.NumTurns > 1 && r.StructuredOutput == nil
	case agent.ReasonBudgetExhausted:
		last = r.StopReason != "" && r.StopReason != "tool_use" // else the turn ended before the next request
	}
	if last && e.awaited {
		return e.n + 1
	}
	return e.n
}

// inputIDs makes UUIDs for inputs that have none. Those of a session have the same beginning.
type inputIDs struct {
	first uuid.UUID
	n     atomic.Uint32
}

func newInputIDs() *inputIDs { return &inputIDs{first: uuid.New()} }

func (u *inputIDs) next() string {
	id := u.first
	binary.BigEndian.PutUint32(id[12:], u.n.Add(1))
	return id.String()
}

// has reports whether next returned the ID.
func (u *inputIDs) has(id string) bool {
	got, err := uuid.Parse(id)
	return err == nil && [12]byte(got[:12]) == [12]byte(u.first[:12])
}
