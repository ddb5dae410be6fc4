package mcpauth_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// children are the programs this test binary can play when it is started as a child.
var children = map[string]func(){
	"refresh": refreshChild,
}

func TestMain(m *testing.M) {
	if child := children[os.Getenv("MCPAUTH_TEST_CHILD")]; child != nil {
		child()
		return
	}
	goleak.VerifyTestMain(m)
}
