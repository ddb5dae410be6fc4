//go:build unix && !linux

package subproc

import "syscall"

// tieToParent does nothing: these systems have no parent death signal.
func tieToParent(*syscall.SysProcAttr) {}

// awaitExit does nothing: these systems cannot wait without reaping.
func (g group) awaitExit() bool { return false }

func (g group) allZombies() bool { return false }
