package claudecode

import (
	"context"
	"encoding/json"
	"fmt"
)

// A Dialog is a question that the CLI has the program put to its user.
type Dialog struct {
	// Kind says what it is about; one of Options.DialogKinds.
	Kind string
	// Payload is what the dialog shows; its form is the kind's.
	Payload json.RawMessage
	// ToolUseID is the tool call that it belongs to; empty if to none.
	ToolUseID string
}

// A DialogFunc shows a dialog and returns the answer in the kind's form, or nil if it was cancelled,
// which an error and a panic count as. Its ctx ends when the answer is no longer wanted.
type DialogFunc func(ctx context.Context, d *Dialog) (answer json.RawMessage, err error)

// dialog answers request_user_dialog. Without a function it stays unanswered, as the protocol wants it.
func (s *session) dialog(ctx context.Context, request json.RawMessage) (any, error) {
	show := s.engine.opts.OnDialog
	if show == nil {
		return nil, errUnanswered
	}
	var q struct {
		Kind      string          `json:"dialog_kind"`
		Payload   json.RawMessage `json:"payload"`
		ToolUseID string          `json:"tool_use_id"`
	}
	if err := json.Unmarshal(request, &q); err != nil {
		return nil, fmt.Errorf("reading request_user_dialog: %w", err)
	}
	answer, err := contained(s, "OnDialog", func() (json.RawMessage, error) {
		return show(ctx, &Dialog{Kind: q.Kind, Payload: q.Payload, ToolUseID: q.ToolUseID})
	})
	if err != nil || answer == nil {
		if err != nil {
			s.opts.Logger.WarnContext(ctx, "claude-code: dialog failed", "kind", q.Kind, "error", err)
		}
		return map[string]string{"behavior": "cancelled"}, nil
	}
	return struct {
		Behavior string          `json:"behavior"`
		Result   json.RawMessage `json:"result"`
	}{"completed", answer}, nil
}
