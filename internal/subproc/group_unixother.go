//go:build unix && !linux

package subproc

import "syscall"

// tieToParent does nothing: these systems have no such tie. The child sees its stdin end.
func tieToParent(*syscall.SysProcAttr) {}

// awaitExit cannot wait without reaping here. For the moment until the group is
// told to end, its number could be another's, if the group is empty and the
// numbers wrap around just then.
func (g group) awaitExit() bool { return false }

func (g group) allZombies() bool { return false }
