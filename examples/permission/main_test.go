package main

import (
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tenon-sdk/tenon/agent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPermission(t *testing.T) {
	const asked = " wants to run with "
	tests := []struct {
		name     string
		answers  string
		asked    int
		contains []string
	}{
		{"yes to each", "y\nyes\nY\n", 3, []string{"-> milk\n", "-> milk, bread, butter, jam\n", "(0 calls were denied)"}},
		{"always is remembered", "a\n", 1, []string{"-> milk, bread, butter, jam\n", "(0 calls were denied)"}},
		{"no, then what is no answer, then always", "n\nperhaps\na\n", 3, []string{"-> The user does not want this call", "-> milk, butter, jam\n", "(1 calls were denied)"}},
		{"nobody is there", "", 3, []string{"-> milk\n", "nobody is there to ask", "(3 calls were denied)"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("ANTHROPIC_API_KEY", "")
			t.Chdir(t.TempDir()) // no configuration files
			var out strings.Builder
			if err := run(t.Context(), strings.NewReader(test.answers), &out); err != nil {
				t.Fatal(err)
			}
			if first, _, _ := strings.Cut(out.String(), "\n"); !strings.Contains(first, "offline model") {
				t.Errorf("the first line does not say that it is offline: %s", first)
			}
			if n := strings.Count(out.String(), asked); n != test.asked {
				t.Errorf("asked %d times, want %d", n, test.asked)
			}
			for _, want := range test.contains {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in\n%s", want, out.String())
				}
			}
		})
	}
}

// To quit ends the turn with an error result.
func TestQuit(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "")
	t.Chdir(t.TempDir()) // no configuration files
	var out strings.Builder
	err := run(t.Context(), strings.NewReader("q\n"), &out)
	if result := (*agent.ResultError)(nil); !errors.As(err, &result) {
		t.Errorf("the error is %v, want a *agent.ResultError", err)
	}
	if strings.Contains(out.String(), "bread,") || strings.Contains(out.String(), "butter") {
		t.Errorf("it went on:\n%s", out.String())
	}
}
