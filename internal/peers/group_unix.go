//go:build unix

package peers

import (
	"os/exec"
	"syscall"
)

// ownGroup has the process lead a process group of its own.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup ends the whole group. If it is gone already, nothing is to be done.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
