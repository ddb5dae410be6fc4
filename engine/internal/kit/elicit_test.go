package kit

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
)

// What the callback does not answer is declined; only a question that was withdrawn is an error.
func TestElicitDeclinesWhatIsNotAnswered(t *testing.T) {
	ended, end := context.WithCancelCause(t.Context())
	end(errors.New("withdrawn"))
	tests := []struct {
		name   string
		ctx    context.Context
		answer func() (*mcp.ElicitResult, error)
		want   string // the action, or the error
	}{
		{"accepted", t.Context(), func() (*mcp.ElicitResult, error) { return &mcp.ElicitResult{Action: "accept"}, nil }, "accept"},
		{"cancelled", t.Context(), func() (*mcp.ElicitResult, error) { return &mcp.ElicitResult{Action: "cancel"}, nil }, "cancel"},
		{"no answer", t.Context(), func() (*mcp.ElicitResult, error) { return nil, nil }, "decline"},
		{"error", t.Context(), func() (*mcp.ElicitResult, error) { return nil, errors.New("no screen") }, "decline"},
		{"panic", t.Context(), func() (*mcp.ElicitResult, error) { panic("no screen") }, "decline"},
		{"withdrawn", ended, func() (*mcp.ElicitResult, error) { return nil, errors.New("gave up") }, "withdrawn"},
		{"answered all the same", ended, func() (*mcp.ElicitResult, error) { return &mcp.ElicitResult{Action: "accept"}, nil }, "accept"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := &agent.Options{Logger: slog.New(slog.DiscardHandler), OnElicitation: func(_ context.Context, server string, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
				if server != "s" || p.Mode != "form" {
					t.Errorf("asked by %q in mode %q", server, p.Mode)
				}
				return tt.answer()
			}}
			question := &mcp.ElicitParams{Message: "?"}
			res, err := Elicit(o)(tt.ctx, "s", question)
			got := ""
			if err != nil {
				got = err.Error()
			} else {
				got = res.Action
			}
			if got != tt.want || question.Mode != "" {
				t.Errorf("got %q, want %q; the question is %+v", got, tt.want, question)
			}
		})
	}
	if Elicit(&agent.Options{}) != nil {
		t.Error("without a callback there is someone to ask")
	}
}
