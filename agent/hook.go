package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/tenon-sdk/tenon/permission"
)

// DefaultHookTimeout is how long a hook may take, unless its Timeout says otherwise.
const DefaultHookTimeout = time.Minute

// Hooks are functions that a run calls at fixed points. Hooks of settings files stand before those of
// the program. All hooks of one event that match run at the same time, but those on PreToolUse; their
// outputs are merged in that order: a denial beats a question, a question beats an approval, the last
// changed output stands, contexts are joined.
type Hooks struct {
	// PreToolUse is called before a tool call is decided on. The hooks run one after the other: each sees
	// the input as those before it have changed it, and the tool gets what the last one left, unless who
	// is asked about the call changes it again. Where a hook of a settings file changes the input after
	// them, on PermissionRequest, the program's hooks are called once more with the changed input.
	PreToolUse []Hook[PreToolUse, PreToolUseOutput]
	// PostToolUse is called after a tool call that succeeded, before the model reads its result.
	PostToolUse []Hook[PostToolUse, PostToolUseOutput]
	// PostToolUseFailure is called after a tool call that failed.
	PostToolUseFailure []Hook[PostToolUseFailure, HookOutput]
	// PostToolBatch is called when all calls of one response are answered.
	PostToolBatch []Hook[PostToolBatch, HookOutput]
	// PermissionRequest is called before anyone is asked about a call.
	PermissionRequest []Hook[PermissionRequest, PermissionRequestOutput]
	// UserPromptSubmit is called with each input before the model sees it.
	UserPromptSubmit []Hook[UserPromptSubmit, PromptOutput]
	// Stop is called when the model has answered.
	Stop []Hook[Stop, StopOutput]
	// SessionStart is called before the first turn, SessionEnd when the session closes.
	SessionStart []Hook[SessionStart, HookOutput]
	SessionEnd   []Hook[SessionEnd, HookOutput]
	// Notification is called when a person would be told of something: above all, before anyone is
	// asked about a call.
	Notification []Hook[Notification, HookOutput]
	// PreCompact and PostCompact are called before and after the conversation is made shorter. The
	// native engine does not do that, so that it never calls them.
	PreCompact  []Hook[PreCompact, PreCompactOutput]
	PostCompact []Hook[PostCompact, HookOutput]
}

// A Hook is a function for one event.
type Hook[In, Out any] struct {
	// Matcher is a regular expression that has to match the whole of what the event is about: the full
	// name of a tool, the Source of a SessionStart, the Reason of a SessionEnd, the Type of a
	// Notification, the Trigger of a PreCompact or PostCompact. Events that are about none of these
	// ignore it. Empty or "*" matches everything.
	Matcher string
	// Timeout is how long the hook may take. Zero means [DefaultHookTimeout]. A hook that runs out
	// of time has failed, and one on PreToolUse or PermissionRequest that does blocks the call.
	Timeout time.Duration
	// FailClosed says that an error or a panic of the hook blocks what it guards: the tool call, the
	// question, the prompt. Otherwise it is reported in an "informational" message, and the run goes on.
	FailClosed bool
	// Func is the hook. A nil output means nothing to say.
	Func func(ctx context.Context, in *In) (*Out, error)
}

// HookInput is what every hook is told.
type HookInput struct {
	SessionID      string          `json:"session_id"`
	CWD            string          `json:"cwd"`
	PermissionMode permission.Mode `json:"permission_mode,omitempty"`
	HookEventName  string          `json:"hook_event_name"`
}

// HookOutput is what every hook can say.
type HookOutput struct {
	// Stop ends the turn after this event, StopReason says why.
	Stop       bool
	StopReason string
	// SystemMessage is shown to the user in an "informational" message.
	SystemMessage string
	// AdditionalContext is text that the model reads next.
	AdditionalContext string
}

// ToolHookInput is what a hook is told about a tool call.
type ToolHookInput struct {
	HookInput
	ToolName  string          `json:"tool_name"`
	ToolUseID string          `json:"tool_use_id"`
	ToolInput json.RawMessage `json:"tool_input"`
}

// PreToolUse is the input of the hooks that run before a tool call.
type PreToolUse struct{ ToolHookInput }

// PreToolUseOutput is what they can say.
type PreToolUseOutput struct {
	HookOutput
	// Decision is permission.Allow, Deny or Ask. Empty decides nothing. Rules that deny and rules
	// that ask stand above Allow.
	Decision permission.Behavior
	// Reason is what the model reads about a denied call.
	Reason string
	// UpdatedInput replaces the arguments. Nil leaves them as they are.
	UpdatedInput json.RawMessage
}

// PostToolUse is the input of the hooks that run after a tool call that succeeded.
type PostToolUse struct {
	ToolHookInput
	// ToolResponse is the tool's own result.
	ToolResponse json.RawMessage `json:"tool_response"`
	DurationMS   int64           `json:"duration_ms"`
}

// PostToolUseOutput is what they can say.
type PostToolUseOutput struct {
	HookOutput
	// Feedback is text that the model reads beside the result. Empty adds nothing.
	Feedback string
	// UpdatedOutput replaces what the model reads. Nil leaves it as it is.
	UpdatedOutput Content
}

// PostToolUseFailure is the input of the hooks that run after a tool call that failed.
type PostToolUseFailure struct {
	ToolHookInput
	// Error is what the model reads.
	Error string `json:"error"`
	// DurationMS is how long the call took, as in [PostToolUse].
	DurationMS int64 `json:"duration_ms"`
	// IsInterrupt is set when the call was stopped and did not fail by itself.
	IsInterrupt bool `json:"is_interrupt"`
}

// PostToolBatch is the input of the hooks that run when all calls of one response are answered.
type PostToolBatch struct {
	HookInput
	ToolCalls []BatchCall `json:"tool_calls"`
}

// A BatchCall is one call in a [PostToolBatch].
type BatchCall struct {
	ToolName     string          `json:"tool_name"`
	ToolUseID    string          `json:"tool_use_id"`
	ToolInput    json.RawMessage `json:"tool_input"`
	ToolResponse json.RawMessage `json:"tool_response,omitempty"`
}

// PermissionRequest is the input of the hooks that run before anyone is asked about a call.
type PermissionRequest struct{ ToolHookInput }

// PermissionRequestOutput is what they can say.
type PermissionRequestOutput struct {
	HookOutput
	// Verdict answers in place of whoever would be asked. Nil leaves the question open.
	Verdict *permission.PromptResult
}

// UserPromptSubmit is the input of the hooks that run before the model sees an input.
type UserPromptSubmit struct {
	HookInput
	// Prompt is the input's text.
	Prompt string `json:"prompt"`
}

// PromptOutput is what they can say.
type PromptOutput struct {
	HookOutput
	// Block keeps the input from the model; Reason is shown to the user.
	Block  bool
	Reason string
}

// Stop is the input of the hooks that run when the model has answered.
type Stop struct {
	HookInput
	// StopHookActive is set when the model goes on because an earlier Stop hook made it.
	StopHookActive bool `json:"stop_hook_active"`
	// LastAssistantMessage is the answer's text.
	LastAssistantMessage string `json:"last_assistant_message,omitempty"`
}

// StopOutput is what they can say.
type StopOutput struct {
	HookOutput
	// Block makes the model go on; Reason tells it why.
	Block  bool
	Reason string
}

// SessionStart is the input of the hooks that run before the first turn.
type SessionStart struct {
	HookInput
	// Source is "startup" or "resume"; within a session "compact" or "clear", when its conversation
	// begins anew. The native engine does not do that.
	Source string `json:"source"`
	Model  string `json:"model,omitempty"`
}

// SessionEnd is the input of the hooks that run when the session closes.
type SessionEnd struct {
	HookInput
	// Reason is "other" for a session that was closed, "clear" for a conversation that was.
	Reason string `json:"reason"`
}

// Notification is the input of the hooks that run when a person would be told of something.
type Notification struct {
	HookInput
	Message string `json:"message"`
	Title   string `json:"title,omitempty"`
	// Type is "permission_prompt" when someone is asked about a call; the set is open.
	Type string `json:"notification_type"`
}

// PreCompact is the input of the hooks that run before the conversation is made shorter.
type PreCompact struct {
	HookInput
	// Trigger is "auto" when the context is full, "manual" when it was asked for.
	Trigger string `json:"trigger"`
	// CustomInstructions are what the summary was asked to keep.
	CustomInstructions NullString `json:"custom_instructions"`
}

// PreCompactOutput is what they can say.
type PreCompactOutput struct {
	HookOutput
	// Block keeps the conversation as it is; Reason says why.
	Block  bool
	Reason string
}

// PostCompact is the input of the hooks that run after the conversation was made shorter.
type PostCompact struct {
	HookInput
	Trigger string `json:"trigger"`
	// Summary is what the conversation was replaced by.
	Summary string `json:"compact_summary"`
}

// MatchTool reports whether a hook's Matcher matches a tool's full name. A pattern that is no
// regular expression matches nothing; Open refuses it.
func MatchTool(matcher, tool string) bool {
	if matcher == "" || matcher == "*" {
		return true
	}
	re, err := compileMatcher(matcher)
	return err == nil && re.MatchString(tool)
}

func compileMatcher(matcher string) (*regexp.Regexp, error) {
	return regexp.Compile(`^(?:` + matcher + `)$`)
}

func (h *Hooks) clone() *Hooks {
	if h == nil {
		return nil
	}
	return &Hooks{
		PreToolUse:         slices.Clone(h.PreToolUse),
		PostToolUse:        slices.Clone(h.PostToolUse),
		PostToolUseFailure: slices.Clone(h.PostToolUseFailure),
		PostToolBatch:      slices.Clone(h.PostToolBatch),
		PermissionRequest:  slices.Clone(h.PermissionRequest),
		UserPromptSubmit:   slices.Clone(h.UserPromptSubmit),
		Stop:               slices.Clone(h.Stop),
		SessionStart:       slices.Clone(h.SessionStart),
		SessionEnd:         slices.Clone(h.SessionEnd),
		Notification:       slices.Clone(h.Notification),
		PreCompact:         slices.Clone(h.PreCompact),
		PostCompact:        slices.Clone(h.PostCompact),
	}
}

// check reports the first hook that cannot be called.
func (h *Hooks) check() error {
	if h == nil {
		return nil
	}
	for _, err := range []error{
		checkHooks("PreToolUse", h.PreToolUse),
		checkHooks("PostToolUse", h.PostToolUse),
		checkHooks("PostToolUseFailure", h.PostToolUseFailure),
		checkHooks("PostToolBatch", h.PostToolBatch),
		checkHooks("PermissionRequest", h.PermissionRequest),
		checkHooks("UserPromptSubmit", h.UserPromptSubmit),
		checkHooks("Stop", h.Stop),
		checkHooks("SessionStart", h.SessionStart),
		checkHooks("SessionEnd", h.SessionEnd),
		checkHooks("Notification", h.Notification),
		checkHooks("PreCompact", h.PreCompact),
		checkHooks("PostCompact", h.PostCompact),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func checkHooks[In, Out any](event string, hooks []Hook[In, Out]) error {
	for i, h := range hooks {
		field := fmt.Sprintf("Hooks.%s[%d]", event, i)
		if h.Func == nil {
			return &OptionError{field + ".Func", "is nil", "set a function"}
		}
		if h.Timeout < 0 {
			return &OptionError{field + ".Timeout", fmt.Sprintf("is %v", h.Timeout), "set a positive duration, or 0 for the default"}
		}
		if _, err := compileMatcher(h.Matcher); err != nil && h.Matcher != "*" {
			return &OptionError{field + ".Matcher", fmt.Sprintf("is no regular expression (%v)", err), `set one, or "" to match every tool`}
		}
	}
	return nil
}
