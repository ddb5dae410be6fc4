//go:build unix

package soak

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// children are the programs this test binary can play when it is started as a child.
var children = map[string]func(){
	oldStdio: oldChild,
	newStdio: newChild,
}

func TestMain(m *testing.M) {
	if child := children[os.Getenv("SOAK_TEST_CHILD")]; child != nil {
		note(os.Getenv("SOAK_LEDGER"), "pid", os.Getpid())
		child()
		return
	}
	goleak.VerifyTestMain(m)
}
