//go:build !unix

package peers

import "os/exec"

// ownGroup does nothing: there are no process groups here.
func ownGroup(*exec.Cmd) {}

// killGroup ends the process alone.
func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
