package main

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native"
	"github.com/tenon-sdk/tenon/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStructured(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "")
	t.Chdir(t.TempDir()) // no configuration files
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if first, _, _ := strings.Cut(out.String(), "\n"); !strings.Contains(first, "offline model") {
		t.Errorf("the first line does not say that it is offline: %s", first)
	}
	for _, want := range []string{"urgency", "\norder 15 of AB-00017, urgency high\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// A model that never matches the schema ends in an error that says so.
func TestNoAnswerMatches(t *testing.T) {
	never := modeltest.Func(func(*modeltest.Request) modeltest.Turn {
		return modeltest.ToolUse("StructuredOutput", json.RawMessage(`{"sku": "AB-00017", "quantity": 0}`))
	})
	engine := native.New(&native.Options{APIKey: "test", HTTPClient: modeltest.New(t, never).Client()})
	_, err := ask[order](t.Context(), engine, "order", &agent.Options{OutputSchema: orderSchema, SettingSources: []agent.SettingSource{}}, io.Discard)
	var result *agent.ResultError
	if !errors.As(err, &result) || result.Result.Subtype != agent.SubtypeErrorStructuredOutput {
		t.Errorf("got %v, want %s", err, agent.SubtypeErrorStructuredOutput)
	}
}
