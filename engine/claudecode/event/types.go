package event

import (
	"encoding/json"
	"fmt"

	"github.com/tenon-sdk/tenon/agent"
)

// Of decodes a message that only the CLI has. The event is a pointer to one of the types of this
// package. It is nil for messages that have a type in package agent and for kinds that this package
// does not know. The error is for a known kind in an unknown form. [agent.System.Raw] and
// [agent.Unknown.Raw] hold the whole message in every case.
func Of(m agent.Message) (any, error) {
	var kind string
	var raw json.RawMessage
	switch m := m.(type) {
	case *agent.System:
		kind, raw = m.Subtype, m.Raw
	case *agent.Unknown:
		kind, raw = m.Type, m.Raw
	}
	newEvent := kinds[kind]
	if newEvent == nil {
		return nil, nil //nolint:nilnil // no event is no error
	}
	e := newEvent()
	if err := json.Unmarshal(raw, e); err != nil {
		return nil, fmt.Errorf("claude-code: reading %s: %w", kind, err)
	}
	return e, nil
}

// kinds maps the type, or the subtype of a system message, to the type of the event.
var kinds = map[string]func() any{
	"compact_boundary":          func() any { return new(CompactBoundary) },
	"status":                    func() any { return new(Status) },
	"api_retry":                 func() any { return new(APIRetry) },
	"control_request_progress":  func() any { return new(RequestProgress) },
	"model_refusal_fallback":    func() any { return new(RefusalFallback) },
	"model_refusal_no_fallback": func() any { return new(Refusal) },
	"local_command_output":      func() any { return new(LocalCommandOutput) },
	"hook_started":              func() any { return new(HookStarted) },
	"hook_progress":             func() any { return new(HookProgress) },
	"hook_response":             func() any { return new(HookResponse) },
	"plugin_install":            func() any { return new(PluginInstall) },
	"tool_progress":             func() any { return new(ToolProgress) },
	"auth_status":               func() any { return new(AuthStatus) },
	"task_started":              func() any { return new(TaskStarted) },
	"task_progress":             func() any { return new(TaskProgress) },
	"task_updated":              func() any { return new(TaskUpdated) },
	"task_notification":         func() any { return new(TaskNotification) },
	"background_tasks_changed":  func() any { return new(BackgroundTasks) },
	"thinking_tokens":           func() any { return new(ThinkingTokens) },
	"session_state_changed":     func() any { return new(SessionState) },
	"worker_shutting_down":      func() any { return new(ShuttingDown) },
	"commands_changed":          func() any { return new(CommandsChanged) },
	"notification":              func() any { return new(Notification) },
	"files_persisted":           func() any { return new(FilesPersisted) },
	"tool_use_summary":          func() any { return new(ToolUseSummary) },
	"memory_recall":             func() any { return new(MemoryRecall) },
	"rate_limit_event":          func() any { return new(RateLimit) },
	"elicitation_complete":      func() any { return new(ElicitationComplete) },
	"permission_denied":         func() any { return new(PermissionDenied) },
	"prompt_suggestion":         func() any { return new(PromptSuggestion) },
	"mirror_error":              func() any { return new(MirrorError) },
	"informational":             func() any { return new(Informational) },
	"conversation_reset":        func() any { return new(ConversationReset) },
	"session_writes_lost":       func() any { return new(WritesLost) },
	"active_goal":               func() any { return new(ActiveGoal) },
}

// A Command is a slash command or a skill.
type Command struct {
	Name         string   `json:"name"` // without the slash
	Description  string   `json:"description"`
	ArgumentHint string   `json:"argumentHint"`
	Aliases      []string `json:"aliases,omitempty"`
	// Builtin reports whether the command is the CLI's own.
	Builtin bool `json:"builtin,omitempty"`
}

// TaskUsage is the usage of a task.
type TaskUsage struct {
	Tokens     int   `json:"total_tokens"`
	ToolUses   int   `json:"tool_uses"`
	DurationMS int64 `json:"duration_ms"`
}

// CompactBoundary reports that the conversation was compacted.
type CompactBoundary struct {
	Metadata struct {
		Trigger    string `json:"trigger"` // "manual" or "auto"
		PreTokens  int    `json:"pre_tokens"`
		PostTokens int    `json:"post_tokens"`
		DurationMS int64  `json:"duration_ms"`
	} `json:"compact_metadata"`
}

// Status reports what the session is doing.
type Status struct {
	Status         agent.NullString `json:"status"` // "compacting", "requesting", or empty
	PermissionMode string           `json:"permissionMode"`
	CompactResult  string           `json:"compact_result"` // "success" or "failed"
	CompactError   string           `json:"compact_error"`
}

// APIRetry reports that a request to the API is retried.
type APIRetry struct {
	Attempt      int     `json:"attempt"`
	MaxRetries   int     `json:"max_retries"`
	RetryDelayMS float64 `json:"retry_delay_ms"`
	ErrorStatus  int     `json:"error_status"` // 0 if there was no answer
	Error        string  `json:"error"`
}

// RequestProgress reports the progress of a long control request.
type RequestProgress struct {
	RequestID    string  `json:"request_id"`
	Status       string  `json:"status"` // "started" or "api_retry"
	Attempt      int     `json:"attempt"`
	MaxRetries   int     `json:"max_retries"`
	RetryDelayMS float64 `json:"retry_delay_ms"`
	ErrorStatus  int     `json:"error_status"`
}

// RefusalFallback reports that another model answers a request that one model refused.
type RefusalFallback struct {
	Direction     string   `json:"direction"` // "retry", "revert" or "sticky"
	OriginalModel string   `json:"original_model"`
	FallbackModel string   `json:"fallback_model"`
	Category      string   `json:"api_refusal_category"`
	Explanation   string   `json:"api_refusal_explanation"`
	Retracted     []string `json:"retracted_message_uuids"` // messages that are no longer part of the conversation
	Content       string   `json:"content"`
}

// Refusal reports that the model refused and no other model answers.
type Refusal struct {
	OriginalModel string `json:"original_model"`
	Category      string `json:"api_refusal_category"`
	Explanation   string `json:"api_refusal_explanation"`
	Content       string `json:"content"`
}

// LocalCommandOutput is the output of a slash command.
type LocalCommandOutput struct {
	Content string `json:"content"`
}

// HookStarted reports that a hook of the CLI's settings has started.
type HookStarted struct {
	HookID   string `json:"hook_id"`
	HookName string `json:"hook_name"`
	Hook     string `json:"hook_event"`
}

// HookProgress is what a hook has written so far.
type HookProgress struct {
	HookStarted
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	Output string `json:"output"`
}

// HookResponse reports how a hook ended.
type HookResponse struct {
	HookProgress
	ExitCode *int   `json:"exit_code"`
	Outcome  string `json:"outcome"` // "success", "error" or "cancelled"
}

// PluginInstall reports the installation of plugins.
type PluginInstall struct {
	Status string `json:"status"` // "started", "installed", "failed" or "completed"
	Name   string `json:"name"`
	Error  string `json:"error"`
}

// ToolProgress reports that a tool call is still running.
type ToolProgress struct {
	ToolUseID       string           `json:"tool_use_id"`
	ToolName        string           `json:"tool_name"`
	ParentToolUseID agent.NullString `json:"parent_tool_use_id"`
	ElapsedSeconds  float64          `json:"elapsed_time_seconds"`
	TaskID          string           `json:"task_id"`
	Heartbeat       bool             `json:"heartbeat"`
}

// AuthStatus reports the progress of a login.
type AuthStatus struct {
	Authenticating bool     `json:"isAuthenticating"`
	Output         []string `json:"output"`
	Error          string   `json:"error"`
}

// TaskStarted reports that a subagent or a background command has started.
type TaskStarted struct {
	TaskID       string `json:"task_id"`
	ToolUseID    string `json:"tool_use_id"`
	Description  string `json:"description"`
	TaskType     string `json:"task_type"`
	SubagentType string `json:"subagent_type"`
	Backgrounded bool   `json:"is_backgrounded"`
	ParentTaskID string `json:"parent_task_id"`
	Prompt       string `json:"prompt"`
}

// TaskProgress reports the progress of a task.
type TaskProgress struct {
	TaskID       string    `json:"task_id"`
	ToolUseID    string    `json:"tool_use_id"`
	Description  string    `json:"description"`
	SubagentType string    `json:"subagent_type"`
	Usage        TaskUsage `json:"usage"`
	LastToolName string    `json:"last_tool_name"`
	Summary      string    `json:"summary"`
}

// TaskUpdated reports that a task has changed.
type TaskUpdated struct {
	TaskID string `json:"task_id"`
	Patch  struct {
		Status       string `json:"status"` // "pending", "running", "completed", "failed", "killed" or "paused"
		Description  string `json:"description"`
		Error        string `json:"error"`
		Backgrounded *bool  `json:"is_backgrounded"`
	} `json:"patch"` // absent members have not changed
}

// TaskNotification reports that a task has ended.
type TaskNotification struct {
	TaskID     string     `json:"task_id"`
	ToolUseID  string     `json:"tool_use_id"`
	Status     string     `json:"status"` // "completed", "failed" or "stopped"
	OutputFile string     `json:"output_file"`
	Summary    string     `json:"summary"`
	Usage      *TaskUsage `json:"usage"`
}

// BackgroundTasks lists the current background tasks.
type BackgroundTasks struct {
	Tasks []struct {
		TaskID       string `json:"task_id"`
		TaskType     string `json:"task_type"`
		SubagentType string `json:"subagent_type"`
		Description  string `json:"description"`
	} `json:"tasks"`
}

// ThinkingTokens estimates the tokens of the model's thinking.
type ThinkingTokens struct {
	Estimated int `json:"estimated_tokens"`
	Delta     int `json:"estimated_tokens_delta"`
}

// SessionState reports that the session has started or stopped working.
type SessionState struct {
	State string `json:"state"` // "idle", "running" or "requires_action"
	// HostOnly marks an event that the CLI emits only because this engine asks for it. The engine does
	// not deliver it.
	HostOnly bool `json:"sdk_host_only"`
}

// ShuttingDown reports that the CLI is about to exit.
type ShuttingDown struct {
	Reason string `json:"reason"`
}

// CommandsChanged lists the current slash commands.
type CommandsChanged struct {
	Commands []Command `json:"commands"`
}

// Notification is a text to show to the user.
type Notification struct {
	Key       string `json:"key"`
	Text      string `json:"text"`
	Priority  string `json:"priority"` // "low", "medium", "high" or "immediate"
	TimeoutMS int64  `json:"timeout_ms"`
}

// FilesPersisted reports that files were stored.
type FilesPersisted struct {
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

// ToolUseSummary sums up tool calls in one sentence.
type ToolUseSummary struct {
	Summary    string   `json:"summary"`
	ToolUseIDs []string `json:"preceding_tool_use_ids"`
}

// MemoryRecall lists memories that were added to the conversation.
type MemoryRecall struct {
	Mode     string `json:"mode"` // "select" or "synthesize"
	Memories []struct {
		Path    string `json:"path"`
		Scope   string `json:"scope"`
		Content string `json:"content"`
	} `json:"memories"`
}

// RateLimit reports the limits of the account's plan.
type RateLimit struct {
	Info struct {
		Status      string  `json:"status"`
		Type        string  `json:"rateLimitType"`
		ResetsAt    float64 `json:"resetsAt"` // seconds since 1970
		Utilization float64 `json:"utilization"`
	} `json:"rate_limit_info"`
}

// ElicitationComplete reports that the user has completed an elicitation in URL mode.
type ElicitationComplete struct {
	Server        string `json:"mcp_server_name"`
	ElicitationID string `json:"elicitation_id"`
}

// PermissionDenied reports that a tool call was denied without asking.
type PermissionDenied struct {
	ToolName   string `json:"tool_name"`
	ToolUseID  string `json:"tool_use_id"`
	AgentID    string `json:"agent_id,omitempty"`
	ReasonType string `json:"decision_reason_type,omitempty"`
	Reason     string `json:"decision_reason,omitempty"`
	Message    string `json:"message"`
}

// PromptSuggestion is a guess at the user's next input.
type PromptSuggestion struct {
	Suggestion string `json:"suggestion"`
}

// MirrorError reports that transcript entries could not be mirrored.
type MirrorError struct {
	Error string `json:"error"`
}

// Informational is a text for the user, with a level.
type Informational struct {
	Content             string `json:"content"`
	Level               string `json:"level"` // "info", "notice", "suggestion" or "warning"
	ToolUseID           string `json:"tool_use_id,omitempty"`
	PreventContinuation bool   `json:"prevent_continuation,omitempty"`
	Tag                 string `json:"tag,omitempty"`
}

// ConversationReset reports that a new conversation has begun in the session.
type ConversationReset struct {
	NewConversationID string `json:"new_conversation_id"`
	Trigger           string `json:"trigger"`
}

// WritesLost reports that the disk is full and the transcript is incomplete.
type WritesLost struct {
	ErrorCode  string   `json:"error_code"` // "ENOSPC" or "EDQUOT"
	Lost       []string `json:"lost"`
	SessionIDs []string `json:"transcript_session_ids"`
}

// ActiveGoal reports the session's goal.
type ActiveGoal struct {
	Value *struct {
		Condition  string  `json:"condition"`
		Iterations int     `json:"iterations"`
		SetAt      float64 `json:"set_at"`
		LastReason string  `json:"last_reason"`
	} `json:"value"` // nil if the goal was removed
}
