package native

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/tenon-sdk/tenon/engine/enginetest"
)

// childVariable makes this program an MCP server when it is started as a child.
const childVariable = "NATIVE_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		enginetest.Child(context.Background())
		return
	}
	// Runs read the machine's configuration files unless they are told otherwise: ours have a home without any.
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
