package claudecode

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// children are the programs this test binary can play when it is started as a child.
var children = map[string]func(){}

func TestMain(m *testing.M) {
	if child := children[os.Getenv("CLAUDECODE_TEST_CHILD")]; child != nil {
		child()
		return
	}
	goleak.VerifyTestMain(m)
}

// testPatience is after how long a test takes it that what it waits for will not come. It is no measurement.
const testPatience = 3 * time.Minute

// limited is the test's context with an end and its cause, for what would hang if it failed.
func limited(t *testing.T, what string) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), testPatience, fmt.Errorf("waited %v for %s", testPatience, what))
	t.Cleanup(cancel)
	return ctx
}

// await waits for a value, or for a channel to be closed.
func await[T any](t *testing.T, from <-chan T, what string) {
	t.Helper()
	ctx := limited(t, what)
	select {
	case <-from:
	case <-ctx.Done():
		t.Fatal(context.Cause(ctx))
	}
}
