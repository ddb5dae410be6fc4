package agent

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
)

// Errors to test for with [errors.Is].
var (
	// ErrClosed is the error of a closed session or client.
	ErrClosed = errors.New("agent: session is closed")
	// ErrMaxTurns matches the [ResultError] of a turn that reached Options.MaxTurns.
	ErrMaxTurns = errors.New("agent: turn limit reached")
	// ErrMaxBudget matches the [ResultError] of a turn that reached Options.MaxBudgetUSD.
	ErrMaxBudget = errors.New("agent: budget used up")
	// ErrTurnTimeout matches the [ResultError] of a turn that exceeded Options.TurnTimeout.
	ErrTurnTimeout = errors.New("agent: turn ran out of time")
	// ErrTooManyInputs is the error of an input that was not queued because Options.MaxQueuedInputs wait.
	ErrTooManyInputs = errors.New("agent: too many inputs are waiting")
	// ErrInterrupted matches the [ResultError] of an interrupted turn.
	ErrInterrupted = errors.New("agent: turn interrupted")
	// ErrNoResult is the error of a session that ended without a result.
	ErrNoResult = errors.New("agent: the run ended without a result")
)

// A ResultError is the error of a turn that ended with an error result. [Query] yields it after the
// result.
type ResultError struct {
	// Result is the error result.
	Result *Result
}

// Error implements the error interface.
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

// Is reports whether the turn ended with [ErrMaxTurns], [ErrMaxBudget], [ErrTurnTimeout] or
// [ErrInterrupted].
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

// An OptionError is the error of an invalid field of [Options].
type OptionError struct {
	// Field is the field's name, such as "MaxTurns" or `MCPServers["files"]`.
	Field string
	// Problem says what is wrong, and Remedy how to correct it.
	Problem, Remedy string
}

// Error implements the error interface.
func (e *OptionError) Error() string {
	return fmt.Sprintf("agent: Options.%s %s: %s", e.Field, e.Problem, e.Remedy)
}

// An UnsupportedError is the error of options that an engine does not support.
type UnsupportedError struct {
	// Engine is the engine's name.
	Engine string
	// Fields are the names of the fields of [Options].
	Fields []string
	// Remedy says what to do. Empty means to leave the fields unset or to use another engine.
	Remedy string
}

// Error implements the error interface.
func (e *UnsupportedError) Error() string {
	remedy := cmp.Or(e.Remedy, "leave it unset or use another engine")
	return fmt.Sprintf("agent: engine %q cannot honour Options.%s: %s", e.Engine, strings.Join(e.Fields, ", Options."), remedy)
}
