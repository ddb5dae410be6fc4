package permission

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// A PromptResult is the answer to a permission question, from a permission prompt tool or the
// program.
type PromptResult struct {
	// Behavior is Allow or Deny.
	Behavior Behavior
	// UpdatedInput replaces the arguments of an allowed call. Nil keeps them.
	UpdatedInput json.RawMessage
	// UpdatedPermissions apply from the next call on.
	UpdatedPermissions []Update
	// Message is the text of a denied call for the model.
	Message string
	// Interrupt ends the run after a denial.
	Interrupt bool
}

// ErrPromptResult reports an invalid answer. It denies the call, and its text is for the model.
var ErrPromptResult = errors.New("the permission prompt tool returned an invalid permission result")

// promptForm is the form of an answer, for error texts.
const promptForm = `expected {"behavior":"allow","updatedInput":{…}} or {"behavior":"deny","message":"…"}`

// ParsePromptResult parses an answer in JSON:
//
//	{"behavior":"allow","updatedInput":{…},"updatedPermissions":[…]}
//	{"behavior":"deny","message":"…","interrupt":true}
//
// An allowed call requires only behavior, a denied one message too. A null updatedInput counts as
// absent. The error is an [ErrPromptResult] with the reason. It does not quote the answer.
func ParsePromptResult(data []byte) (PromptResult, error) {
	var raw struct {
		Behavior           Behavior
		UpdatedInput       json.RawMessage
		UpdatedPermissions []Update
		Message            *string
		Interrupt          bool
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		what := "it is not JSON"
		if te := (*json.UnmarshalTypeError)(nil); errors.As(err, &te) {
			what = fmt.Sprintf("%q is of JSON type %s", te.Field, te.Value)
		}
		return PromptResult{}, fmt.Errorf("%w: %s; %s", ErrPromptResult, what, promptForm)
	}
	v := PromptResult{Behavior: raw.Behavior, UpdatedPermissions: raw.UpdatedPermissions}
	switch raw.Behavior {
	case Allow:
		in := bytes.TrimSpace(raw.UpdatedInput)
		if len(in) == 0 || string(in) == "null" {
			return v, nil
		}
		if in[0] != '{' {
			return PromptResult{}, fmt.Errorf("%w: updatedInput is not an object; %s", ErrPromptResult, promptForm)
		}
		v.UpdatedInput = in
	case Deny:
		if raw.Message == nil {
			return PromptResult{}, fmt.Errorf("%w: a denial without message; %s", ErrPromptResult, promptForm)
		}
		v.Message, v.Interrupt = *raw.Message, raw.Interrupt
	default:
		return PromptResult{}, fmt.Errorf("%w: behavior is neither allow nor deny; %s", ErrPromptResult, promptForm)
	}
	return v, nil
}

// MarshalJSON returns the form that [ParsePromptResult] parses.
func (v PromptResult) MarshalJSON() ([]byte, error) {
	if v.Behavior == Deny {
		return json.Marshal(struct {
			Behavior  Behavior `json:"behavior"`
			Message   string   `json:"message"`
			Interrupt bool     `json:"interrupt,omitempty"`
		}{v.Behavior, v.Message, v.Interrupt})
	}
	return json.Marshal(struct {
		Behavior           Behavior        `json:"behavior"`
		UpdatedInput       json.RawMessage `json:"updatedInput,omitempty"`
		UpdatedPermissions []Update        `json:"updatedPermissions,omitempty"`
	}{v.Behavior, v.UpdatedInput, v.UpdatedPermissions})
}
