//go:build unix

package subproc

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// A group is the process group that a child leads.
type group struct{ pgid int }

func prepare(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	tieToParent(cmd.SysProcAttr)
}

func newGroup(p *os.Process) group { return group{pgid: p.Pid} }

func (g group) terminate() { g.signal(syscall.SIGTERM) }

func (g group) kill() { g.signal(syscall.SIGKILL) }

func (g group) signal(s syscall.Signal) {
	// An error means that the group is empty, or belongs to another user.
	_ = syscall.Kill(-g.pgid, s)
}

// waitGone waits until the group is empty.
func (g group) waitGone(d time.Duration) bool {
	pause := time.Millisecond
	deadline := time.Now().Add(d)
	for !g.empty() {
		if !time.Now().Before(deadline) {
			return false
		}
		// The end of a process that is not our child is not reported.
		<-time.After(min(pause, time.Until(deadline)))
		pause = min(2*pause, 20*time.Millisecond)
	}
	return true
}

func (g group) empty() bool {
	err := syscall.Kill(-g.pgid, 0)
	return errors.Is(err, syscall.ESRCH) || errors.Is(err, syscall.EPERM) || g.allZombies()
}

func (g group) release() {}

func signalOf(s *os.ProcessState) string {
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ws.Signal().String()
	}
	return ""
}
