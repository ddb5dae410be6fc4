package claudecode

import (
	"context"
	"fmt"
	"strings"
)

// The CLI's versions from which something works (requirements D23, D30, D66).
const (
	// oldest is the oldest version that this engine is tested on.
	oldest = "2.1.332"
	// startupWaitSince is the first version with CLAUDE_CODE_MCP_STARTUP_WAIT_MS.
	startupWaitSince = "2.1.274"
)

// warnOfVersion logs, once a session, what the CLI is too old for.
func (s *session) warnOfVersion(ctx context.Context, version string) {
	startupWait, _ := s.lookupEnv("CLAUDE_CODE_MCP_STARTUP_WAIT_MS")
	switch {
	case version == "":
	case olderThan(version, startupWaitSince) && startupWait != "":
		s.opts.Logger.WarnContext(ctx, "claude-code: CLAUDE_CODE_MCP_STARTUP_WAIT_MS has no effect on this CLI", "version", version, "needs", startupWaitSince)
	case olderThan(version, oldest):
		s.opts.Logger.WarnContext(ctx, "claude-code: this CLI is older than what the engine is tested on", "version", version, "tested", oldest)
	}
}

// olderThan compares versions number by number. What cannot be read is not older.
func olderThan(version, than string) bool {
	var a, b [3]int
	if _, err := fmt.Sscanf(strings.ReplaceAll(version, ".", " "), "%d %d %d", &a[0], &a[1], &a[2]); err != nil {
		return false
	}
	if _, err := fmt.Sscanf(strings.ReplaceAll(than, ".", " "), "%d %d %d", &b[0], &b[1], &b[2]); err != nil {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}
