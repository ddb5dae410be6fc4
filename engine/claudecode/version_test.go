package claudecode

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/agent"
)

// A CLI that is too old to start as this package starts it: the error says which it is, which is needed and
// what to do. One that fails for another reason is not taken for old.
//
// fault D12
func TestCLIThatIsTooOld(t *testing.T) {
	e, o := fake("ancient")
	launched := New(&Options{Path: "claude", Launcher: []string{os.Args[0], "-test.run=none"}})
	for _, e := range []*Engine{e, launched} {
		_, err := agent.Open(t.Context(), e, o)
		var ve *VersionError
		var pe *ProcessError
		if !errors.As(err, &ve) || ve.Version != "2.1.197" || ve.Least != oldest || !errors.As(err, &pe) || !strings.Contains(pe.Stderr, "unknown option") {
			t.Fatalf("got %v", err)
		}
		for _, want := range []string{"2.1.197", oldest, "npm install", "Options.Path", "unknown option '--await-initialize'"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("the error does not say %s: %v", want, err)
			}
		}
	}
	// A pool says the same.
	pool := newPool(t, "ancient", nil, nil)
	var ve *VersionError
	if err := pool.Ready(t.Context()); !errors.As(err, &ve) {
		t.Errorf("a pool: %v", err)
	}
	for _, mode := range []string{"dies-at-start", "dies-at-initialize"} {
		e, o := fake(mode)
		if _, err := agent.Open(t.Context(), e, o); errors.As(err, &ve) || err == nil {
			t.Errorf("%s: %v", mode, err)
		}
	}
	// Whoever gives up is not kept by the question.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	pe := &ProcessError{Exit: "exit status 1"}
	if err := e.withVersion(ctx, os.Args[0], o, pe); !errors.Is(err, pe) || errors.As(err, &ve) {
		t.Errorf("given up: %v", err)
	}
}
