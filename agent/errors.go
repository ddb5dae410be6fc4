package agent

import (
	"errors"
	"fmt"
	"strings"
)

// Facts that a caller can test for with errors.Is.
var (
	// ErrClosed reports the use of a session or client that was closed.
	ErrClosed = errors.New("agent: session is closed")
	// ErrMaxTurns is matched by the [ResultError] of a turn that Options.MaxTurns stopped.
	ErrMaxTurns = errors.New("agent: turn limit reached")
	// ErrMaxBudget is matched by the [ResultError] of a turn that Options.MaxBudgetUSD stopped.
	ErrMaxBudget = errors.New("agent: budget used up")
	// ErrTurnTimeout is matched by the [ResultError] of a turn that Options.TurnTimeout stopped.
	ErrTurnTimeout = errors.New("agent: turn ran out of time")
	// ErrTooManyInputs is matched by the error of an input that was refused because
	// Options.MaxQueuedInputs of them wait already. It was not queued.
	ErrTooManyInputs = errors.New("agent: too many inputs are waiting")
	// ErrInterrupted is matched by the [ResultError] of a turn that was interrupted.
	ErrInterrupted = errors.New("agent: turn interrupted")
	// ErrNoResult reports that an engine ended without saying how the run went.
	ErrNoResult = errors.New("agent: the run ended without a result")
)

// A ResultError is a turn that ended with an error result. [Query] yields it after the result itself.
type ResultError struct {
	// Result is the error result.
	Result *Result
}

// Error says why the turn ended.
func (e *ResultError) Error() string {
	r := e.Result
	what := r.Subtype
	if what == SubtypeSuccess {
		what = "request failed"
		if r.APIErrorStatus != 0 {
			what = fmt.Sprintf("request failed with status %d", r.APIErrorStatus)
		}
	}
	if text := r.text(); text != what {
		what += ": " + text
	}
	return "agent: " + what
}

// Is matches [ErrMaxTurns], [ErrMaxBudget], [ErrTurnTimeout] and [ErrInterrupted].
func (e *ResultError) Is(target error) bool {
	switch target {
	case ErrMaxTurns:
		return e.Result.Subtype == SubtypeErrorMaxTurns
	case ErrMaxBudget:
		return e.Result.Subtype == SubtypeErrorMaxBudget
	case ErrTurnTimeout:
		return e.Result.Subtype == SubtypeErrorTurnTimeout
	case ErrInterrupted:
		return e.Result.TerminalReason == ReasonAbortedTools || e.Result.TerminalReason == ReasonAbortedStreaming
	}
	return false
}

// An OptionError is a field of [Options] that cannot be used as it is.
type OptionError struct {
	// Field is the name in Options, such as "MaxTurns" or `MCPServers["files"]`.
	Field string
	// Problem says what is wrong, Remedy what to do about it.
	Problem, Remedy string
}

// Error names the field, the problem and the remedy.
func (e *OptionError) Error() string {
	return fmt.Sprintf("agent: Options.%s %s: %s", e.Field, e.Problem, e.Remedy)
}

// An UnsupportedError lists the options that an engine cannot honour. No option is ever ignored.
type UnsupportedError struct {
	// Engine is the engine's name.
	Engine string
	// Fields are the names of the fields in Options.
	Fields []string
	// Remedy says what to do about it. Empty means that there is nothing more to say than to leave
	// the fields unset or to use another engine.
	Remedy string
}

// Error names the engine and the fields.
func (e *UnsupportedError) Error() string {
	remedy := e.Remedy
	if remedy == "" {
		remedy = "leave it unset or use another engine"
	}
	return fmt.Sprintf("agent: engine %q cannot honour Options.%s: %s", e.Engine, strings.Join(e.Fields, ", Options."), remedy)
}
