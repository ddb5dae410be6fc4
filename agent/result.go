package agent

import (
	"encoding/json"
	"strings"
)

// The subtypes of a [Result].
const (
	// SubtypeSuccess is a completed turn. If IsError is set, a request failed and Result is the error text.
	SubtypeSuccess = "success"
	// SubtypeErrorDuringExecution is an interrupted or failed turn.
	SubtypeErrorDuringExecution = "error_during_execution"
	// SubtypeErrorMaxTurns is a turn that reached Options.MaxTurns.
	SubtypeErrorMaxTurns = "error_max_turns"
	// SubtypeErrorMaxBudget is a turn that reached Options.MaxBudgetUSD.
	SubtypeErrorMaxBudget = "error_max_budget_usd"
	// SubtypeErrorTurnTimeout is a turn that exceeded Options.TurnTimeout.
	SubtypeErrorTurnTimeout = "error_turn_timeout"
	// SubtypeErrorStructuredOutput is a turn without an answer that matches Options.OutputSchema.
	SubtypeErrorStructuredOutput = "error_max_structured_output_retries"
)

// The values of [Result.TerminalReason]; the set is open.
const (
	ReasonCompleted         = "completed"
	ReasonMaxTurns          = "max_turns"
	ReasonBudgetExhausted   = "budget_exhausted"
	ReasonTurnTimeout       = "turn_timeout"
	ReasonAPIError          = "api_error"
	ReasonModelError        = "model_error"
	ReasonPromptTooLong     = "prompt_too_long"
	ReasonAbortedTools      = "aborted_tools"
	ReasonAbortedStreaming  = "aborted_streaming"
	ReasonHookStopped       = "hook_stopped"
	ReasonStopHookPrevented = "stop_hook_prevented"
	ReasonMalformedToolUse  = "malformed_tool_use_exhausted"
	ReasonStructuredOutput  = "structured_output_retry_exhausted"
	ReasonTurnSetupFailed   = "turn_setup_failed"
)

// A Result is the last message of a turn. If Subtype is [SubtypeSuccess] and IsError is false, the field
// Result is the answer.
type Result struct {
	Subtype string `json:"subtype"`
	// IsError is set if the result is not an answer.
	IsError bool `json:"is_error"`
	// DurationMS is the length of the turn in milliseconds, DurationAPIMS that of its model requests.
	DurationMS    int64 `json:"duration_ms"`
	DurationAPIMS int64 `json:"duration_api_ms"`
	// NumTurns is the number of model requests of the turn.
	NumTurns int `json:"num_turns"`
	// Result is the model's last text, or the error text if IsError is set.
	Result string `json:"result"`
	// StopReason is the stop reason of the model's last message.
	StopReason NullString `json:"stop_reason"`
	// TotalCostUSD is the estimated cost of the session and Options.HistoryUsage in US dollars. A model
	// without a known price costs 0.
	TotalCostUSD float64 `json:"total_cost_usd"`
	// Usage counts the tokens of the turn.
	Usage Usage `json:"usage"`
	// ModelUsage has the tokens and the cost of the session by model.
	ModelUsage map[string]ModelUsage `json:"modelUsage"`
	// PermissionDenials are the denied tool calls of the turn.
	PermissionDenials []PermissionDenial `json:"permission_denials"`
	// StructuredOutput is the answer that matches Options.OutputSchema.
	StructuredOutput json.RawMessage `json:"structured_output,omitempty"`
	// TerminalReason is one of the Reason constants.
	TerminalReason string `json:"terminal_reason,omitempty"`
	// APIErrorStatus is the HTTP status of the request that ended the turn, if one did.
	APIErrorStatus int `json:"api_error_status,omitempty"`
	// Errors are the error texts of the error subtypes.
	Errors []string `json:"errors,omitempty"`
	// ResultIndex is the index of the result in the session.
	ResultIndex int `json:"result_index"`
	// QueuedTurnCount is the number of waiting inputs. If it is not 0, another turn follows.
	QueuedTurnCount int `json:"queued_turn_count"`
	// UserMessageUUIDs are the UUIDs of the inputs that the turn answers.
	UserMessageUUIDs []string `json:"user_message_uuids,omitempty"`
	SessionID        string   `json:"session_id"`
	UUID             string   `json:"uuid"`
	Extra            Fields   `json:"-"`
}

// Err returns a *[ResultError] if the result is an error, or else nil.
func (r *Result) Err() error {
	if r.IsError || r.Subtype != SubtypeSuccess {
		return &ResultError{Result: r}
	}
	return nil
}

// MarshalJSON implements [json.Marshaler]. A success has the field "result", a failure the field
// "errors".
func (r *Result) MarshalJSON() ([]byte, error) {
	type fields Result
	out := struct {
		fields
		Result *string  `json:"result,omitempty"`
		Errors []string `json:"errors,omitzero"`
	}{fields: fields(*r)}
	if r.Subtype == SubtypeSuccess || r.Result != "" {
		out.Result = &r.Result
	}
	if len(r.Errors) > 0 || r.Subtype != SubtypeSuccess {
		out.Errors = orEmpty(r.Errors)
	}
	if out.ModelUsage == nil {
		out.ModelUsage = map[string]ModelUsage{}
	}
	out.PermissionDenials = orEmpty(out.PermissionDenials)
	return joinObject(&out, r.Extra, "type", "result")
}

// UnmarshalJSON implements [json.Unmarshaler].
func (r *Result) UnmarshalJSON(data []byte) error { return decodeObject(data, r, "type") }

// Usage counts tokens as the Messages API does.
type Usage struct {
	InputTokens              int64 `json:"input_tokens"`
	CacheCreationInputTokens int64 `json:"cache_creation_input_tokens"`
	CacheReadInputTokens     int64 `json:"cache_read_input_tokens"`
	OutputTokens             int64 `json:"output_tokens"`
	// CacheCreation splits CacheCreationInputTokens by cache lifetime.
	CacheCreation *CacheCreation   `json:"cache_creation,omitempty"`
	ServerToolUse *ServerToolUsage `json:"server_tool_use,omitempty"`
	ServiceTier   string           `json:"service_tier,omitempty"`
	Extra         Fields           `json:"-"`
}

// CacheCreation counts the tokens written to the prompt cache by cache lifetime.
type CacheCreation struct {
	Ephemeral5mInputTokens int64 `json:"ephemeral_5m_input_tokens"`
	Ephemeral1hInputTokens int64 `json:"ephemeral_1h_input_tokens"`
}

// ServerToolUsage counts the calls of tools that the API runs.
type ServerToolUsage struct {
	WebSearchRequests int64 `json:"web_search_requests"`
	WebFetchRequests  int64 `json:"web_fetch_requests"`
}

// MarshalJSON implements [json.Marshaler].
func (u Usage) MarshalJSON() ([]byte, error) { return encodeObject(&u) }

// UnmarshalJSON implements [json.Unmarshaler]. It ignores null.
func (u *Usage) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	return decodeObject(data, u)
}

// ModelUsage is the usage of a model in a session.
type ModelUsage struct {
	InputTokens              int64 `json:"inputTokens"`
	OutputTokens             int64 `json:"outputTokens"`
	CacheReadInputTokens     int64 `json:"cacheReadInputTokens"`
	CacheCreationInputTokens int64 `json:"cacheCreationInputTokens"`
	WebSearchRequests        int64 `json:"webSearchRequests"`
	// CostUSD is an estimate in US dollars, or 0 without a known price.
	CostUSD         float64 `json:"costUSD"`
	ContextWindow   int64   `json:"contextWindow"`
	MaxOutputTokens int64   `json:"maxOutputTokens"`
	Extra           Fields  `json:"-"`
}

// MarshalJSON implements [json.Marshaler].
func (u ModelUsage) MarshalJSON() ([]byte, error) { return encodeObject(&u) }

// UnmarshalJSON implements [json.Unmarshaler].
func (u *ModelUsage) UnmarshalJSON(data []byte) error { return decodeObject(data, u) }

// A PermissionDenial is a denied tool call.
type PermissionDenial struct {
	ToolName  string          `json:"tool_name"`
	ToolUseID string          `json:"tool_use_id"`
	ToolInput json.RawMessage `json:"tool_input"`
	Extra     Fields          `json:"-"`
}

// MarshalJSON implements [json.Marshaler].
func (d PermissionDenial) MarshalJSON() ([]byte, error) {
	if len(d.ToolInput) == 0 {
		d.ToolInput = json.RawMessage("{}")
	}
	return encodeObject(&d)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (d *PermissionDenial) UnmarshalJSON(data []byte) error { return decodeObject(data, d) }

// text returns the error text of the result.
func (r *Result) text() string {
	switch {
	case len(r.Errors) > 0:
		return strings.Join(r.Errors, "; ")
	case r.Result != "":
		return r.Result
	}
	return r.Subtype
}
