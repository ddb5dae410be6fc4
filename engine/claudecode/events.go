package claudecode

import (
	"encoding/json"
	"fmt"

	"github.com/tenon-sdk/tenon/agent"
)

// An Event is what a message says that has no type in package agent, because only the CLI has it:
// one of the types in this file.
type Event interface{ isEvent() }

// EventOf reads a message as an [Event]. It returns nil for messages that have a type of their own
// in package agent and for kinds that this package does not know, and an error for a known kind in
// an unknown form; the message itself holds all of it in either case.
func EventOf(m agent.Message) (Event, error) {
	var kind string
	var raw json.RawMessage
	switch m := m.(type) {
	case *agent.System:
		kind, raw = m.Subtype, m.Raw
	case *agent.Unknown:
		kind, raw = m.Type, m.Raw
	default:
		return nil, nil //nolint:nilnil // no event is no error
	}
	e := newEvent(kind)
	if e == nil {
		return nil, nil //nolint:nilnil // no event is no error
	}
	if err := json.Unmarshal(raw, e); err != nil {
		return nil, fmt.Errorf("claude-code: reading %s: %w", kind, err)
	}
	return e, nil
}

// TaskUsage is what a task has used up.
type TaskUsage struct {
	Tokens     int   `json:"total_tokens"`
	ToolUses   int   `json:"tool_uses"`
	DurationMS int64 `json:"duration_ms"`
}

// CompactBoundaryEvent says that the conversation was shortened to what the model still needs.
type CompactBoundaryEvent struct {
	Metadata struct {
		Trigger    string `json:"trigger"` // "manual" or "auto"
		PreTokens  int    `json:"pre_tokens"`
		PostTokens int    `json:"post_tokens"`
		DurationMS int64  `json:"duration_ms"`
	} `json:"compact_metadata"`
}

// StatusEvent says what the session is busy with.
type StatusEvent struct {
	Status         agent.NullString `json:"status"` // "compacting", "requesting", or empty
	PermissionMode string           `json:"permissionMode"`
	CompactResult  string           `json:"compact_result"` // "success" or "failed"
	CompactError   string           `json:"compact_error"`
}

// APIRetryEvent says that a request to the model is made again.
type APIRetryEvent struct {
	Attempt      int     `json:"attempt"`
	MaxRetries   int     `json:"max_retries"`
	RetryDelayMS float64 `json:"retry_delay_ms"`
	ErrorStatus  int     `json:"error_status"` // 0 if there was no answer
	Error        string  `json:"error"`
}

// RequestProgressEvent says that a control request takes long.
type RequestProgressEvent struct {
	RequestID    string  `json:"request_id"`
	Status       string  `json:"status"` // "started" or "api_retry"
	Attempt      int     `json:"attempt"`
	MaxRetries   int     `json:"max_retries"`
	RetryDelayMS float64 `json:"retry_delay_ms"`
	ErrorStatus  int     `json:"error_status"`
}

// RefusalFallbackEvent says that another model took over what one had refused.
type RefusalFallbackEvent struct {
	Direction     string   `json:"direction"` // "retry", "revert" or "sticky"
	OriginalModel string   `json:"original_model"`
	FallbackModel string   `json:"fallback_model"`
	Category      string   `json:"api_refusal_category"`
	Explanation   string   `json:"api_refusal_explanation"`
	Retracted     []string `json:"retracted_message_uuids"` // messages that no longer count
	Content       string   `json:"content"`
}

// RefusalEvent says that the model refused and no other took over.
type RefusalEvent struct {
	OriginalModel string `json:"original_model"`
	Category      string `json:"api_refusal_category"`
	Explanation   string `json:"api_refusal_explanation"`
	Content       string `json:"content"`
}

// LocalCommandOutputEvent says what a slash command wrote.
type LocalCommandOutputEvent struct {
	Content string `json:"content"`
}

// HookStartedEvent says that a hook of the CLI's settings has begun.
type HookStartedEvent struct {
	HookID    string `json:"hook_id"`
	HookName  string `json:"hook_name"`
	HookEvent string `json:"hook_event"`
}

// HookProgressEvent says what such a hook has written so far.
type HookProgressEvent struct {
	HookID    string `json:"hook_id"`
	HookName  string `json:"hook_name"`
	HookEvent string `json:"hook_event"`
	Stdout    string `json:"stdout"`
	Stderr    string `json:"stderr"`
	Output    string `json:"output"`
}

// HookResponseEvent says how such a hook ended.
type HookResponseEvent struct {
	HookID    string `json:"hook_id"`
	HookName  string `json:"hook_name"`
	HookEvent string `json:"hook_event"`
	Stdout    string `json:"stdout"`
	Stderr    string `json:"stderr"`
	Output    string `json:"output"`
	ExitCode  *int   `json:"exit_code"`
	Outcome   string `json:"outcome"` // "success", "error" or "cancelled"
}

// PluginInstallEvent says that plugins are being installed.
type PluginInstallEvent struct {
	Status string `json:"status"` // "started", "installed", "failed" or "completed"
	Name   string `json:"name"`
	Error  string `json:"error"`
}

// ToolProgressEvent says that a tool call is still running.
type ToolProgressEvent struct {
	ToolUseID       string           `json:"tool_use_id"`
	ToolName        string           `json:"tool_name"`
	ParentToolUseID agent.NullString `json:"parent_tool_use_id"`
	ElapsedSeconds  float64          `json:"elapsed_time_seconds"`
	TaskID          string           `json:"task_id"`
	Heartbeat       bool             `json:"heartbeat"`
}

// AuthStatusEvent says that someone is logging in.
type AuthStatusEvent struct {
	Authenticating bool     `json:"isAuthenticating"`
	Output         []string `json:"output"`
	Error          string   `json:"error"`
}

// TaskStartedEvent says that a subagent or a background command has begun.
type TaskStartedEvent struct {
	TaskID       string `json:"task_id"`
	ToolUseID    string `json:"tool_use_id"`
	Description  string `json:"description"`
	TaskType     string `json:"task_type"`
	SubagentType string `json:"subagent_type"`
	Backgrounded bool   `json:"is_backgrounded"`
	ParentTaskID string `json:"parent_task_id"`
	Prompt       string `json:"prompt"`
}

// TaskProgressEvent says how far such a task is.
type TaskProgressEvent struct {
	TaskID       string    `json:"task_id"`
	ToolUseID    string    `json:"tool_use_id"`
	Description  string    `json:"description"`
	SubagentType string    `json:"subagent_type"`
	Usage        TaskUsage `json:"usage"`
	LastToolName string    `json:"last_tool_name"`
	Summary      string    `json:"summary"`
}

// TaskUpdatedEvent says that something about such a task has changed.
type TaskUpdatedEvent struct {
	TaskID string `json:"task_id"`
	Patch  struct {
		Status       string `json:"status"` // "pending", "running", "completed", "failed", "killed" or "paused"
		Description  string `json:"description"`
		Error        string `json:"error"`
		Backgrounded *bool  `json:"is_backgrounded"`
	} `json:"patch"` // what is not named has not changed
}

// TaskNotificationEvent says that such a task has ended.
type TaskNotificationEvent struct {
	TaskID     string     `json:"task_id"`
	ToolUseID  string     `json:"tool_use_id"`
	Status     string     `json:"status"` // "completed", "failed" or "stopped"
	OutputFile string     `json:"output_file"`
	Summary    string     `json:"summary"`
	Usage      *TaskUsage `json:"usage"`
}

// BackgroundTasksEvent lists the background tasks that there are now.
type BackgroundTasksEvent struct {
	Tasks []struct {
		TaskID       string `json:"task_id"`
		TaskType     string `json:"task_type"`
		SubagentType string `json:"subagent_type"`
		Description  string `json:"description"`
	} `json:"tasks"`
}

// ThinkingTokensEvent estimates how much the model has thought.
type ThinkingTokensEvent struct {
	Estimated int `json:"estimated_tokens"`
	Delta     int `json:"estimated_tokens_delta"`
}

// SessionStateEvent says that the session began or ceased to work.
type SessionStateEvent struct {
	State string `json:"state"` // "idle", "running" or "requires_action"
}

// ShuttingDownEvent says that the CLI is about to end.
type ShuttingDownEvent struct {
	Reason string `json:"reason"`
}

// CommandsChangedEvent lists the slash commands that there are now.
type CommandsChangedEvent struct {
	Commands []Command `json:"commands"`
}

// NotificationEvent is something that a user should see.
type NotificationEvent struct {
	Key       string `json:"key"`
	Text      string `json:"text"`
	Priority  string `json:"priority"` // "low", "medium", "high" or "immediate"
	TimeoutMS int64  `json:"timeout_ms"`
}

// FilesPersistedEvent says that files were stored.
type FilesPersistedEvent struct {
	Files []struct {
		Name string `json:"filename"`
		ID   string `json:"file_id"`
	} `json:"files"`
	Failed []struct {
		Name  string `json:"filename"`
		Error string `json:"error"`
	} `json:"failed"`
	ProcessedAt string `json:"processed_at"`
}

// ToolUseSummaryEvent sums up tool calls in one sentence.
type ToolUseSummaryEvent struct {
	Summary    string   `json:"summary"`
	ToolUseIDs []string `json:"preceding_tool_use_ids"`
}

// MemoryRecallEvent lists memories that the model was given.
type MemoryRecallEvent struct {
	Mode     string `json:"mode"` // "select" or "synthesize"
	Memories []struct {
		Path    string `json:"path"`
		Scope   string `json:"scope"`
		Content string `json:"content"`
	} `json:"memories"`
}

// RateLimitEvent tells the limits of the account's plan.
type RateLimitEvent struct {
	Info struct {
		Status      string  `json:"status"`
		Type        string  `json:"rateLimitType"`
		ResetsAt    float64 `json:"resetsAt"` // seconds since 1970
		Utilization float64 `json:"utilization"`
	} `json:"rate_limit_info"`
}

// ElicitationCompleteEvent says that a question of a server by URL has been answered.
type ElicitationCompleteEvent struct {
	Server        string `json:"mcp_server_name"`
	ElicitationID string `json:"elicitation_id"`
}

// PermissionDeniedEvent says that a tool call was denied without a question.
type PermissionDeniedEvent struct {
	ToolName   string `json:"tool_name"`
	ToolUseID  string `json:"tool_use_id"`
	AgentID    string `json:"agent_id"`
	ReasonType string `json:"decision_reason_type"`
	Reason     string `json:"decision_reason"`
	Message    string `json:"message"`
}

// PromptSuggestionEvent says what the user may want to say next.
type PromptSuggestionEvent struct {
	Suggestion string `json:"suggestion"`
}

// MirrorErrorEvent says that something written could not be mirrored.
type MirrorErrorEvent struct {
	Error string `json:"error"`
}

// InformationalEvent is a text for the user.
type InformationalEvent struct {
	Content             string `json:"content"`
	Level               string `json:"level"` // "info", "notice", "suggestion" or "warning"
	ToolUseID           string `json:"tool_use_id"`
	PreventContinuation bool   `json:"prevent_continuation"`
	Tag                 string `json:"tag"`
}

// ConversationResetEvent says that a new conversation has begun in the session.
type ConversationResetEvent struct {
	NewConversationID string `json:"new_conversation_id"`
	Trigger           string `json:"trigger"`
}

// WritesLostEvent says that the disk is full and the transcript has holes.
type WritesLostEvent struct {
	ErrorCode  string   `json:"error_code"` // "ENOSPC" or "EDQUOT"
	Lost       []string `json:"lost"`
	SessionIDs []string `json:"transcript_session_ids"`
}

// ActiveGoalEvent says how the session's goal stands.
type ActiveGoalEvent struct {
	Value *struct {
		Condition  string  `json:"condition"`
		Iterations int     `json:"iterations"`
		SetAt      float64 `json:"set_at"`
		LastReason string  `json:"last_reason"`
	} `json:"value"` // nil when it was taken back
}

func newEvent(kind string) Event {
	switch kind {
	case "compact_boundary":
		return new(CompactBoundaryEvent)
	case "status":
		return new(StatusEvent)
	case "api_retry":
		return new(APIRetryEvent)
	case "control_request_progress":
		return new(RequestProgressEvent)
	case "model_refusal_fallback":
		return new(RefusalFallbackEvent)
	case "model_refusal_no_fallback":
		return new(RefusalEvent)
	case "local_command_output":
		return new(LocalCommandOutputEvent)
	case "hook_started":
		return new(HookStartedEvent)
	case "hook_progress":
		return new(HookProgressEvent)
	case "hook_response":
		return new(HookResponseEvent)
	case "plugin_install":
		return new(PluginInstallEvent)
	case "tool_progress":
		return new(ToolProgressEvent)
	case "auth_status":
		return new(AuthStatusEvent)
	case "task_started":
		return new(TaskStartedEvent)
	case "task_progress":
		return new(TaskProgressEvent)
	case "task_updated":
		return new(TaskUpdatedEvent)
	case "task_notification":
		return new(TaskNotificationEvent)
	case "background_tasks_changed":
		return new(BackgroundTasksEvent)
	case "thinking_tokens":
		return new(ThinkingTokensEvent)
	case "session_state_changed":
		return new(SessionStateEvent)
	case "worker_shutting_down":
		return new(ShuttingDownEvent)
	case "commands_changed":
		return new(CommandsChangedEvent)
	case "notification":
		return new(NotificationEvent)
	case "files_persisted":
		return new(FilesPersistedEvent)
	case "tool_use_summary":
		return new(ToolUseSummaryEvent)
	case "memory_recall":
		return new(MemoryRecallEvent)
	case "rate_limit_event":
		return new(RateLimitEvent)
	case "elicitation_complete":
		return new(ElicitationCompleteEvent)
	case "permission_denied":
		return new(PermissionDeniedEvent)
	case "prompt_suggestion":
		return new(PromptSuggestionEvent)
	case "mirror_error":
		return new(MirrorErrorEvent)
	case "informational":
		return new(InformationalEvent)
	case "conversation_reset":
		return new(ConversationResetEvent)
	case "session_writes_lost":
		return new(WritesLostEvent)
	case "active_goal":
		return new(ActiveGoalEvent)
	}
	return nil
}

func (*CompactBoundaryEvent) isEvent()     {}
func (*StatusEvent) isEvent()              {}
func (*APIRetryEvent) isEvent()            {}
func (*RequestProgressEvent) isEvent()     {}
func (*RefusalFallbackEvent) isEvent()     {}
func (*RefusalEvent) isEvent()             {}
func (*LocalCommandOutputEvent) isEvent()  {}
func (*HookStartedEvent) isEvent()         {}
func (*HookProgressEvent) isEvent()        {}
func (*HookResponseEvent) isEvent()        {}
func (*PluginInstallEvent) isEvent()       {}
func (*ToolProgressEvent) isEvent()        {}
func (*AuthStatusEvent) isEvent()          {}
func (*TaskStartedEvent) isEvent()         {}
func (*TaskProgressEvent) isEvent()        {}
func (*TaskUpdatedEvent) isEvent()         {}
func (*TaskNotificationEvent) isEvent()    {}
func (*BackgroundTasksEvent) isEvent()     {}
func (*ThinkingTokensEvent) isEvent()      {}
func (*SessionStateEvent) isEvent()        {}
func (*ShuttingDownEvent) isEvent()        {}
func (*CommandsChangedEvent) isEvent()     {}
func (*NotificationEvent) isEvent()        {}
func (*FilesPersistedEvent) isEvent()      {}
func (*ToolUseSummaryEvent) isEvent()      {}
func (*MemoryRecallEvent) isEvent()        {}
func (*RateLimitEvent) isEvent()           {}
func (*ElicitationCompleteEvent) isEvent() {}
func (*PermissionDeniedEvent) isEvent()    {}
func (*PromptSuggestionEvent) isEvent()    {}
func (*MirrorErrorEvent) isEvent()         {}
func (*InformationalEvent) isEvent()       {}
func (*ConversationResetEvent) isEvent()   {}
func (*WritesLostEvent) isEvent()          {}
func (*ActiveGoalEvent) isEvent()          {}
