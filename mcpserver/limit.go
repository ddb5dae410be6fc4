package mcpserver

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// NoTimeout as a time limit means none. Zero means the default.
const NoTimeout time.Duration = -1

// DefaultTimeout is the time limit of calls for which none is set anywhere.
const DefaultTimeout = 60 * time.Second

// The environment variables that set the time limit of calls where code does not.
const (
	envAgentTimeout = "CLAUDE_AGENT_TOOL_TIMEOUT" // seconds, clamped to 1..300
	envToolTimeout  = "MCP_TOOL_TIMEOUT"          // milliseconds
)

var errCallLimit = errors.New("mcpserver: the call's time limit passed")

// effectiveTimeout returns the first limit that is set.
func effectiveTimeout(limits ...time.Duration) time.Duration {
	for _, l := range limits {
		if l < 0 {
			return NoTimeout
		}
		if l > 0 {
			return l
		}
	}
	return DefaultTimeout
}

// envTimeout returns the limit that the environment sets, 0 if none. It calls warn
// for a value that is not a usable number and ignores the value.
func envTimeout(lookup func(string) (string, bool), warn func(name, value string)) time.Duration {
	if seconds, ok := envNumber(lookup, envAgentTimeout, warn); ok {
		return time.Duration(min(max(seconds, 1), 300) * float64(time.Second))
	}
	if ms, ok := envNumber(lookup, envToolTimeout, warn); ok {
		if ms > 0 {
			return time.Duration(min(ms, float64(math.MaxInt64/2/time.Millisecond)) * float64(time.Millisecond))
		}
		value, _ := lookup(envToolTimeout)
		warn(envToolTimeout, value)
	}
	return 0
}

func envNumber(lookup func(string) (string, bool), name string, warn func(name, value string)) (float64, bool) {
	value, ok := lookup(name)
	value = strings.TrimSpace(value)
	if !ok || value == "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) || strings.ContainsAny(value, "xXpP_") {
		warn(name, value)
		return 0, false
	}
	return n, true
}

// showLimit formats whole seconds as seconds: models count in seconds.
func showLimit(d time.Duration) string {
	if d%time.Second == 0 {
		return fmt.Sprintf("%d seconds", d/time.Second)
	}
	return d.String()
}
