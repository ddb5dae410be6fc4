//go:build unix

package soak

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

var (
	length = flag.Duration("length", 0, "how long TestSoak begins new rounds of faults; 0 means one round")
	seed   = flag.Uint64("seed", 1, "the seed of the order of faults and of what users do")
)

// children are the programs this test binary can play when it is started as a child.
var children = map[string]func(ledger){
	stdio2025: serveStdio2025,
	stdio2026: serveStdio2026,
}

func TestMain(m *testing.M) {
	if child := children[os.Getenv("SOAK_TEST_CHILD")]; child != nil {
		l := ledger(os.Getenv("SOAK_TEST_LEDGER"))
		l.add("process", os.Getpid())
		child(l)
		return
	}
	goleak.VerifyTestMain(m)
}
