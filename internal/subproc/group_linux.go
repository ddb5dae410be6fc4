package subproc

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// tieToParent has the kernel kill the child when the thread that started it ends, with
// this process; see run.
func tieToParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// awaitExit waits for the end of the child without reaping it, so that no other process
// group can have its number. It reports whether it succeeded.
func (g group) awaitExit() bool {
	for {
		err := unix.Waitid(unix.P_PID, g.pgid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

// allZombies reports whether the group consists of ended processes that nobody reaps:
// in a container the first process often does not.
func (g group) allZombies() bool {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return false
	}
	want := []byte(strconv.Itoa(g.pgid))
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it ended meanwhile
		}
		// pid (name) state ppid pgrp: the name may hold anything, ")" too.
		fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
		if len(fields) > 2 && bytes.Equal(fields[2], want) && fields[0][0] != 'Z' && fields[0][0] != 'X' {
			return false
		}
	}
	return true
}
