package claudecode

import (
	"os"
	"testing"

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
