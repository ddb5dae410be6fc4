//go:build !unix

package mcphost

import "time"

// cpuTime is not known here: the ratios of CPU time are 0.
func cpuTime() time.Duration { return 0 }
