package enginetest

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// childVariable makes the test binary run serveChild.
const childVariable = "ENGINETEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		serveChild(context.Background())
		return
	}
	// Runs read configuration files of the user unless the test says otherwise.
	home, err := os.MkdirTemp("", "tenon-home")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if err := os.Setenv(name, home); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	_ = os.Unsetenv("CLAUDE_CONFIG_DIR")
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(home)
		os.Exit(code)
	}))
}
