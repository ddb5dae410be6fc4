package claudecode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tenon-sdk/tenon/agent"
)

// An EventHook is a hook on any event that the CLI knows, in the CLI's own JSON. The events that
// every engine has are typed in [agent.Hooks].
//
// Events: PreToolUse, PostToolUse, PostToolUseFailure, PostToolBatch, Notification,
// UserPromptSubmit, UserPromptExpansion, SessionStart, SessionEnd, Stop, StopFailure, SubagentStart,
// SubagentStop, PreCompact, PostCompact, PreModelSwitch, PostModelSwitch, PermissionRequest,
// PermissionDenied, Setup, TeammateIdle, TaskCreated, TaskCompleted, Elicitation,
// ElicitationResult, ConfigChange, WorktreeCreate, WorktreeRemove, InstructionsLoaded, CwdChanged,
// FileChanged, DirectoryAdded, MessageDisplay, PreSkillShellCommand. What the CLI needs for some of
// them, and which two never come, is in docs/parity.md.
type EventHook struct {
	// Event is the event's name.
	Event string
	// Matcher is the CLI's regular expression for the event's subject: a tool's name, say. Empty matches all.
	Matcher string
	// Timeout is how long the hook may take. Zero means [agent.DefaultHookTimeout].
	Timeout time.Duration
	// FailClosed says that an error or a panic of the hook blocks what it guards.
	FailClosed bool
	// Func gets the event's input and returns what the hook has to say; nil for nothing.
	Func func(ctx context.Context, input json.RawMessage) (json.RawMessage, error)
}

// A rawHookFunc calls a hook with the input as it came and returns its output as it goes.
type rawHookFunc func(ctx context.Context, input json.RawMessage) (json.RawMessage, error)

// registerEventHooks gives each hook an id and announces it.
func (s *session) registerEventHooks(all map[string][]hookMatcher) map[string][]hookMatcher {
	for i, h := range s.engine.opts.EventHooks {
		id := fmt.Sprintf("event-%s-%d", h.Event, i)
		limit := h.Timeout
		if limit <= 0 {
			limit = agent.DefaultHookTimeout
		}
		m := hookMatcher{Callbacks: []string{id}, Timeout: limit.Seconds(), OnFailure: "continue"}
		if h.FailClosed {
			m.OnFailure = "block"
		}
		if h.Matcher != "" {
			m.Matcher = &h.Matcher
		}
		all[h.Event] = append(all[h.Event], m)
		s.rawHooks[id] = func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
			ctx, cancel := context.WithTimeoutCause(ctx, limit, errHookTimeout)
			defer cancel()
			out, err := contained(s, "hook "+h.Event, func() (json.RawMessage, error) { return h.Func(ctx, input) })
			if err == nil && len(out) == 0 {
				return json.RawMessage("{}"), nil
			}
			if err == nil && !json.Valid(out) {
				return nil, errors.New("the hook's output is no JSON")
			}
			return out, err
		}
	}
	return all
}
