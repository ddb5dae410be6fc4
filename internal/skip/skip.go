// Package skip ends tests that cannot run where they are, and keeps CI from
// losing tests that way: where CI is "true" or TENON_PEERS is "require", as
// `make test` has it, a test that lacks something fails. A test in
// internal/layout finds skips that pass it by.
//
// It is for tests only.
package skip

import (
	"os"
	"testing"
)

// Required reports whether a test must fail where it lacks something.
func Required() bool {
	return os.Getenv("CI") == "true" || os.Getenv("TENON_PEERS") == "require"
}

// Missing ends a test that lacks something that can be had: a program, a
// package, a device. It fails the test if that is required.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	missing(t, Required(), format, args)
}

func missing(t testing.TB, required bool, format string, args []any) {
	t.Helper()
	if required {
		t.Fatalf(format, args...)
	}
	t.Skipf(format+" (CI=true or TENON_PEERS=require makes this an error)", args...)
}

// A Reason is one for which a test may be skipped anywhere. The list is meant to
// stay short: each is something that no CI can be expected to have.
type Reason string

// The reasons of [For].
const (
	// Platform: the test is about another operating system or processor.
	Platform Reason = "platform"
	// Privilege: the test does what takes root, or capabilities of it.
	Privilege Reason = "privilege"
	// OwnCLI: the developer's own Claude Code CLI is in a place where the test
	// has to find none.
	OwnCLI Reason = "own CLI"
)

// For skips a test for one of the reasons that always hold.
func For(t testing.TB, why Reason, format string, args ...any) {
	t.Helper()
	t.Skipf(string(why)+": "+format, args...)
}
