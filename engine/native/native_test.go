package native

import (
	"context"
	"errors"
	"testing"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/modeltest"
)

// testEngine is an engine on a scripted model.
func testEngine(m *modeltest.Model) *Engine {
	return New(&Options{APIKey: "test", BaseURL: "http://model.test", HTTPClient: m.Client()})
}

// collect runs a query and returns what it yields.
func collect(t *testing.T, ctx context.Context, e agent.Engine, prompt string, o *agent.Options) ([]agent.Message, error) {
	t.Helper()
	var msgs []agent.Message
	for m, err := range agent.Query(ctx, e, prompt, o) {
		if err != nil {
			return msgs, err
		}
		msgs = append(msgs, m)
	}
	return msgs, nil
}

// last is the last message of a kind.
func last[M agent.Message](msgs []agent.Message) M {
	var found M
	for _, m := range msgs {
		if m, ok := m.(M); ok {
			found = m
		}
	}
	return found
}

func TestAnswer(t *testing.T) {
	model := modeltest.New(t, modeltest.Text("pong"))
	msgs, err := collect(t, t.Context(), testEngine(model), "ping", nil)
	if err != nil {
		t.Fatal(err)
	}
	r := last[*agent.Result](msgs)
	if r == nil || r.Result != "pong" || r.Subtype != agent.SubtypeSuccess || r.NumTurns != 1 || r.StopReason != "end_turn" {
		t.Errorf("result %+v", r)
	}
}

func TestNoCredentials(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	for _, v := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE", "ANTHROPIC_FEDERATION_RULE_ID", "ANTHROPIC_CONFIG_DIR"} {
		t.Setenv(v, "")
	}
	msgs, err := collect(t, t.Context(), New(nil), "ping", nil)
	if !errors.Is(err, ErrNoCredentials) || len(msgs) != 0 {
		t.Errorf("got %d messages and %v, want none and ErrNoCredentials", len(msgs), err)
	}
}
