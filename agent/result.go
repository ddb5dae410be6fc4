package agent

import (
	"encoding/json"
	"strings"
)

// The subtypes of a [Result].
const (
	// SubtypeSuccess is a turn that came to its end. With IsError set it ended on a failed request and Result holds the error text.
	SubtypeSuccess = "success"
	// SubtypeErrorDuringExecution is a turn that was interrupted or broke.
	SubtypeErrorDuringExecution = "error_during_execution"
	// SubtypeErrorMaxTurns is a turn that was stopped by Options.MaxTurns.
	SubtypeErrorMaxTurns = "error_max_turns"
	// SubtypeErrorMaxBudget is a turn that was stopped by Options.MaxBudgetUSD.
	SubtypeErrorMaxBudget = "error_max_budget_usd"
	// SubtypeErrorTurnTimeout is a turn that was stopped by Options.TurnTimeout.
	SubtypeErrorTurnTimeout = "error_turn_timeout"
	// SubtypeErrorStructuredOutput is a turn whose answer never matched Options.OutputSchema.
	SubtypeErrorStructuredOutput = "error_max_structured_output_retries"
)

// The values of [Result.TerminalReason] that Tenon's own engines use; the set is open.
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

// A Result ends a turn. The answer is in Result only if Subtype is [SubtypeSuccess] and IsError is false.
type Result struct {
	Subtype string `json:"subtype"`
	// IsError is set on every result that is not an answer.
	IsError bool `json:"is_error"`
	// DurationMS is the turn's length in milliseconds, DurationAPIMS the part of it spent in requests to the model.
	DurationMS    int64 `json:"duration_ms"`
	DurationAPIMS int64 `json:"duration_api_ms"`
	// NumTurns is how often the model was asked in this turn.
	NumTurns int `json:"num_turns"`
	// Result is the model's last text, or the error's text if IsError is set. Only a success has it.
	Result string `json:"result"`
	// StopReason is the model's own reason for ending its last message.
	StopReason NullString `json:"stop_reason"`
	// TotalCostUSD is the running total of the session in US dollars, an estimate. It goes on from
	// Options.HistoryUsage.
	// It is 0 for a model without a known price.
	TotalCostUSD float64 `json:"total_cost_usd"`
	// Usage counts the tokens of this turn.
	Usage Usage `json:"usage"`
	// ModelUsage counts the tokens and the cost of the whole session by model.
	ModelUsage map[string]ModelUsage `json:"modelUsage"`
	// PermissionDenials are the calls of this turn that were not allowed to run.
	PermissionDenials []PermissionDenial `json:"permission_denials"`
	// StructuredOutput is the answer as the JSON that Options.OutputSchema asked for.
	StructuredOutput json.RawMessage `json:"structured_output,omitempty"`
	// TerminalReason says why the turn ended; see the Reason constants.
	TerminalReason string `json:"terminal_reason,omitempty"`
	// APIErrorStatus is the HTTP status of the request that ended the turn; 0 if none did.
	APIErrorStatus int `json:"api_error_status,omitempty"`
	// Errors says what went wrong, on the error subtypes.
	Errors []string `json:"errors,omitempty"`
	// ResultIndex counts the results of the session from 0.
	ResultIndex int `json:"result_index"`
	// QueuedTurnCount is how many inputs were still waiting: at least one more turn follows without further input.
	QueuedTurnCount int `json:"queued_turn_count"`
	// UserMessageUUIDs are the UUIDs of the inputs that this turn answered, of those that had one.
	UserMessageUUIDs []string `json:"user_message_uuids,omitempty"`
	SessionID        string   `json:"session_id"`
	UUID             string   `json:"uuid"`
	Extra            Fields   `json:"-"`
}

// Err returns a *ResultError if the result is an error, else nil.
func (r *Result) Err() error {
	if r.IsError || r.Subtype != SubtypeSuccess {
		return &ResultError{Result: r}
	}
	return nil
}

// MarshalJSON writes the message in its stream-json form: "result" on a success only, "errors" on the others.
func (r *Result) MarshalJSON() ([]byte, error) {
	type fields Result
	w := struct {
		fields
		Result *string  `json:"result,omitempty"`
		Errors []string `json:"errors,omitzero"`
	}{fields: fields(*r)}
	if r.Subtype == SubtypeSuccess || r.Result != "" {
		w.Result = &r.Result
	}
	if len(r.Errors) > 0 || r.Subtype != SubtypeSuccess {
		w.Errors = emptyNotNull(r.Errors)
	}
	if w.ModelUsage == nil {
		w.ModelUsage = map[string]ModelUsage{}
	}
	w.PermissionDenials = emptyNotNull(w.PermissionDenials)
	return encodeWire("result", w, r.Extra)
}

// UnmarshalJSON reads the message from its stream-json form.
func (r *Result) UnmarshalJSON(data []byte) (err error) {
	type wire Result
	r.Extra, err = decodeWire(data, (*wire)(r), "type")
	return err
}

// Usage counts tokens as the Messages API does.
type Usage struct {
	InputTokens              int64 `json:"input_tokens"`
	CacheCreationInputTokens int64 `json:"cache_creation_input_tokens"`
	CacheReadInputTokens     int64 `json:"cache_read_input_tokens"`
	OutputTokens             int64 `json:"output_tokens"`
	// CacheCreation splits CacheCreationInputTokens by the lifetime of what was written.
	CacheCreation *CacheCreation   `json:"cache_creation,omitempty"`
	ServerToolUse *ServerToolUsage `json:"server_tool_use,omitempty"`
	ServiceTier   string           `json:"service_tier,omitempty"`
	Extra         Fields           `json:"-"`
}

// CacheCreation counts the tokens written to the prompt cache by their lifetime.
type CacheCreation struct {
	Ephemeral5mInputTokens int64 `json:"ephemeral_5m_input_tokens"`
	Ephemeral1hInputTokens int64 `json:"ephemeral_1h_input_tokens"`
}

// ServerToolUsage counts the calls of tools that the API runs itself.
type ServerToolUsage struct {
	WebSearchRequests int64 `json:"web_search_requests"`
	WebFetchRequests  int64 `json:"web_fetch_requests"`
}

// MarshalJSON writes the counts in their Messages API form.
func (u Usage) MarshalJSON() ([]byte, error) {
	type wire Usage
	return encodeWire("", wire(u), u.Extra)
}

// UnmarshalJSON reads the counts from their Messages API form. Null reads as no tokens.
func (u *Usage) UnmarshalJSON(data []byte) (err error) {
	type wire Usage
	if string(data) == "null" {
		return nil
	}
	u.Extra, err = decodeWire(data, (*wire)(u))
	return err
}

// ModelUsage is what one model used in a session.
type ModelUsage struct {
	InputTokens              int64 `json:"inputTokens"`
	OutputTokens             int64 `json:"outputTokens"`
	CacheReadInputTokens     int64 `json:"cacheReadInputTokens"`
	CacheCreationInputTokens int64 `json:"cacheCreationInputTokens"`
	WebSearchRequests        int64 `json:"webSearchRequests"`
	// CostUSD is an estimate in US dollars; 0 for a model without a known price.
	CostUSD         float64 `json:"costUSD"`
	ContextWindow   int64   `json:"contextWindow"`
	MaxOutputTokens int64   `json:"maxOutputTokens"`
	Extra           Fields  `json:"-"`
}

// MarshalJSON writes the counts in their stream-json form.
func (u ModelUsage) MarshalJSON() ([]byte, error) {
	type wire ModelUsage
	return encodeWire("", wire(u), u.Extra)
}

// UnmarshalJSON reads the counts from their stream-json form.
func (u *ModelUsage) UnmarshalJSON(data []byte) (err error) {
	type wire ModelUsage
	u.Extra, err = decodeWire(data, (*wire)(u))
	return err
}

// A PermissionDenial is a tool call that was not allowed to run.
type PermissionDenial struct {
	ToolName  string          `json:"tool_name"`
	ToolUseID string          `json:"tool_use_id"`
	ToolInput json.RawMessage `json:"tool_input"`
	Extra     Fields          `json:"-"`
}

// MarshalJSON writes the denial in its stream-json form.
func (d PermissionDenial) MarshalJSON() ([]byte, error) {
	type wire PermissionDenial
	if len(d.ToolInput) == 0 {
		d.ToolInput = json.RawMessage("{}")
	}
	return encodeWire("", wire(d), d.Extra)
}

// UnmarshalJSON reads the denial from its stream-json form.
func (d *PermissionDenial) UnmarshalJSON(data []byte) (err error) {
	type wire PermissionDenial
	d.Extra, err = decodeWire(data, (*wire)(d))
	return err
}

// text says in one line why the result is an error.
func (r *Result) text() string {
	switch {
	case len(r.Errors) > 0:
		return strings.Join(r.Errors, "; ")
	case r.Result != "":
		return r.Result
	}
	return r.Subtype
}
