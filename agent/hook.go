package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/tenon-sdk/tenon/permission"
)

// DefaultHookTimeout is the default of [Hook.Timeout].
const DefaultHookTimeout = time.Minute

// Hooks are functions that a session calls at fixed points. Hooks of settings files come before the
// program's. The matching hooks of an event run at the same time, except on PreToolUse. Their outputs
// are merged in order: a denial overrides a question, a question overrides an approval, the last
// changed output is used, and contexts are joined.
type Hooks struct {
	// PreToolUse hooks are called before a tool call is decided. They run one after the other, each with
	// the input that the one before left; the tool receives the last one's, unless the permission
	// callback changes it. If a PermissionRequest hook of a settings file then changes the input, the
	// program's PreToolUse hooks are called again with it.
	PreToolUse []Hook[PreToolUse, PreToolUseOutput]
	// PostToolUse hooks are called after a successful tool call, before the model receives its result.
	PostToolUse []Hook[PostToolUse, PostToolUseOutput]
	// PostToolUseFailure hooks are called after a failed tool call.
	PostToolUseFailure []Hook[PostToolUseFailure, HookOutput]
	// PostToolBatch hooks are called when all calls of a response have results.
	PostToolBatch []Hook[PostToolBatch, HookOutput]
	// PermissionRequest hooks are called before the permission callback.
	PermissionRequest []Hook[PermissionRequest, PermissionRequestOutput]
	// UserPromptSubmit hooks are called with each input before the model receives it.
	UserPromptSubmit []Hook[UserPromptSubmit, PromptOutput]
	// Stop hooks are called when the model has answered.
	Stop []Hook[Stop, StopOutput]
	// SessionStart hooks are called before the first turn, SessionEnd hooks when the session closes.
	SessionStart []Hook[SessionStart, HookOutput]
	SessionEnd   []Hook[SessionEnd, HookOutput]
	// Notification hooks are called when a user interface would notify a person, above all before a
	// permission question.
	Notification []Hook[Notification, HookOutput]
	// PreCompact and PostCompact hooks are called before and after the conversation is compacted. The
	// native engine does not compact.
	PreCompact  []Hook[PreCompact, PreCompactOutput]
	PostCompact []Hook[PostCompact, HookOutput]
}

// A Hook is a function for one event.
type Hook[In, Out any] struct {
	// Matcher is a regular expression that must match all of the event's subject: the full name of a
	// tool, the Source of a SessionStart, the Reason of a SessionEnd, the Type of a Notification, or the
	// Trigger of a PreCompact or PostCompact. Other events ignore it. Empty or "*" matches everything.
	Matcher string
	// Timeout bounds the hook. Zero means [DefaultHookTimeout]. A PreToolUse or PermissionRequest hook
	// that exceeds it blocks the call; any other has failed.
	Timeout time.Duration
	// FailClosed makes an error or a panic of the hook block the tool call, question or prompt.
	// Otherwise an "informational" message reports it, and the turn continues.
	FailClosed bool
	// Func is the hook. A nil output has no effect.
	Func func(ctx context.Context, in *In) (*Out, error)
}

// HookInput is the input that all hooks have.
type HookInput struct {
	SessionID      string          `json:"session_id"`
	CWD            string          `json:"cwd"`
	PermissionMode permission.Mode `json:"permission_mode,omitempty"`
	HookEventName  string          `json:"hook_event_name"`
}

// HookOutput is the output that all hooks have.
type HookOutput struct {
	// Stop ends the turn after this event. StopReason is the reason.
	Stop       bool
	StopReason string
	// SystemMessage is shown to the user in an "informational" message.
	SystemMessage string
	// AdditionalContext is text for the model.
	AdditionalContext string
}

// ToolHookInput is the input that all hooks on tool calls have.
type ToolHookInput struct {
	HookInput
	ToolName  string          `json:"tool_name"`
	ToolUseID string          `json:"tool_use_id"`
	ToolInput json.RawMessage `json:"tool_input"`
}

// PreToolUse is the input of PreToolUse hooks.
type PreToolUse struct{ ToolHookInput }

// PreToolUseOutput is the output of PreToolUse hooks.
type PreToolUseOutput struct {
	HookOutput
	// Decision is permission.Allow, Deny or Ask. Empty decides nothing. Rules that deny or ask override
	// Allow.
	Decision permission.Behavior
	// Reason is the text for the model about a denied call.
	Reason string
	// UpdatedInput replaces the arguments. Nil leaves them unchanged.
	UpdatedInput json.RawMessage
}

// PostToolUse is the input of PostToolUse hooks.
type PostToolUse struct {
	ToolHookInput
	// ToolResponse is the tool's result.
	ToolResponse json.RawMessage `json:"tool_response"`
	DurationMS   int64           `json:"duration_ms"`
}

// PostToolUseOutput is the output of PostToolUse hooks.
type PostToolUseOutput struct {
	HookOutput
	// Feedback is text that is added to the result.
	Feedback string
	// UpdatedOutput replaces the result for the model. Nil leaves it unchanged.
	UpdatedOutput Content
}

// PostToolUseFailure is the input of PostToolUseFailure hooks.
type PostToolUseFailure struct {
	ToolHookInput
	// Error is the text for the model.
	Error string `json:"error"`
	// DurationMS is the length of the call in milliseconds.
	DurationMS int64 `json:"duration_ms"`
	// IsInterrupt is set if the call was cancelled.
	IsInterrupt bool `json:"is_interrupt"`
}

// PostToolBatch is the input of PostToolBatch hooks.
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

// PermissionRequest is the input of PermissionRequest hooks.
type PermissionRequest struct{ ToolHookInput }

// PermissionRequestOutput is the output of PermissionRequest hooks.
type PermissionRequestOutput struct {
	HookOutput
	// Verdict replaces the answer of the permission callback. Nil leaves the question open.
	Verdict *permission.PromptResult
}

// UserPromptSubmit is the input of UserPromptSubmit hooks.
type UserPromptSubmit struct {
	HookInput
	// Prompt is the input's text.
	Prompt string `json:"prompt"`
}

// PromptOutput is the output of UserPromptSubmit hooks.
type PromptOutput struct {
	HookOutput
	// Block discards the input. Reason is shown to the user.
	Block  bool
	Reason string
}

// Stop is the input of Stop hooks.
type Stop struct {
	HookInput
	// StopHookActive is set if an earlier Stop hook made the model continue.
	StopHookActive bool `json:"stop_hook_active"`
	// LastAssistantMessage is the answer's text.
	LastAssistantMessage string `json:"last_assistant_message,omitempty"`
}

// StopOutput is the output of Stop hooks.
type StopOutput struct {
	HookOutput
	// Block makes the model continue. Reason is the text for the model.
	Block  bool
	Reason string
}

// SessionStart is the input of SessionStart hooks.
type SessionStart struct {
	HookInput
	// Source is "startup" or "resume", or, within a session of the Claude Code CLI, "compact" or "clear".
	Source string `json:"source"`
	Model  string `json:"model,omitempty"`
}

// SessionEnd is the input of SessionEnd hooks.
type SessionEnd struct {
	HookInput
	// Reason is "other" for a closed session, "clear" for a cleared conversation.
	Reason string `json:"reason"`
}

// Notification is the input of Notification hooks.
type Notification struct {
	HookInput
	Message string `json:"message"`
	Title   string `json:"title,omitempty"`
	// Type is "permission_prompt" for a permission question; the set is open.
	Type string `json:"notification_type"`
}

// PreCompact is the input of PreCompact hooks.
type PreCompact struct {
	HookInput
	// Trigger is "auto" if the context is full, "manual" on request.
	Trigger string `json:"trigger"`
	// CustomInstructions are instructions for the summary.
	CustomInstructions NullString `json:"custom_instructions"`
}

// PreCompactOutput is the output of PreCompact hooks.
type PreCompactOutput struct {
	HookOutput
	// Block leaves the conversation unchanged. Reason says why.
	Block  bool
	Reason string
}

// PostCompact is the input of PostCompact hooks.
type PostCompact struct {
	HookInput
	Trigger string `json:"trigger"`
	// Summary is the text that replaces the conversation.
	Summary string `json:"compact_summary"`
}

// MatchTool reports whether a hook's Matcher matches a tool's full name. An invalid pattern matches
// nothing; Open refuses it.
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

// checked returns a copy of the hooks, or the error of the first one that cannot be called.
func (h *Hooks) checked() (*Hooks, error) {
	if h == nil {
		return nil, nil
	}
	c := *h
	return &c, cmp.Or(
		checkHooks("PreToolUse", &c.PreToolUse),
		checkHooks("PostToolUse", &c.PostToolUse),
		checkHooks("PostToolUseFailure", &c.PostToolUseFailure),
		checkHooks("PostToolBatch", &c.PostToolBatch),
		checkHooks("PermissionRequest", &c.PermissionRequest),
		checkHooks("UserPromptSubmit", &c.UserPromptSubmit),
		checkHooks("Stop", &c.Stop),
		checkHooks("SessionStart", &c.SessionStart),
		checkHooks("SessionEnd", &c.SessionEnd),
		checkHooks("Notification", &c.Notification),
		checkHooks("PreCompact", &c.PreCompact),
		checkHooks("PostCompact", &c.PostCompact),
	)
}

// checkHooks replaces the hooks of an event by a copy, and checks them.
func checkHooks[In, Out any](event string, hooks *[]Hook[In, Out]) error {
	*hooks = slices.Clone(*hooks)
	for i, h := range *hooks {
		field := fmt.Sprintf("Hooks.%s[%d]", event, i)
		if h.Func == nil {
			return &OptionError{field + ".Func", "is nil", "set a function"}
		}
		if h.Timeout < 0 {
			return &OptionError{field + ".Timeout", fmt.Sprintf("is %v", h.Timeout), "set a positive duration, or 0 for the default"}
		}
		if _, err := compileMatcher(h.Matcher); err != nil && h.Matcher != "*" {
			return &OptionError{field + ".Matcher", fmt.Sprintf("is not a regular expression (%v)", err), `set one, or "" to match every tool`}
		}
	}
	return nil
}
