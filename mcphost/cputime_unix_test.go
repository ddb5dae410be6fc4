//go:build unix

package mcphost

import (
	"syscall"
	"time"
)

// cpuTime is what this process and its children that ended have used. On a
// machine with other work it says more than the clock.
func cpuTime() time.Duration {
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err == nil {
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum
}
