package claudecode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/internal/kit"
	"github.com/tenon-sdk/tenon/internal/subproc"
)

// Versions of the CLI (requirements D23, D30, D66).
const (
	// oldest is the oldest version that this engine supports.
	oldest = "2.1.332"
	// startupWaitSince is the first version with CLAUDE_CODE_MCP_STARTUP_WAIT_MS.
	startupWaitSince = "2.1.274"
)

// versionWait limits the time for asking a CLI that did not start for its version.
const versionWait = 10 * time.Second

// A VersionError is the error of a CLI that did not start because it is too old.
type VersionError struct {
	Path string
	// Version is the version of the CLI, Least the oldest version that this package supports.
	Version, Least string
	// Err is the error of the start.
	Err error
}

// Error returns both versions and the remedy.
func (e *VersionError) Error() string {
	return fmt.Sprintf("claude-code: the CLI %s has version %s, and at least %s is needed: install a newer one (npm install -g @anthropic-ai/claude-code@latest; "+
		"npm takes an old one if Node.js is too old for the others) or name it in Options.Path\n%v", e.Path, e.Version, e.Least, e.Err)
}

// Unwrap returns the error of the start.
func (e *VersionError) Unwrap() error { return e.Err }

// withVersion returns a VersionError for err, the error of the start, if the CLI is too old.
func (e *Engine) withVersion(ctx context.Context, path string, o *agent.Options, err error) error {
	var pe *ProcessError
	if !errors.As(err, &pe) || pe.Exit == "" || ctx.Err() != nil {
		return err
	}
	version, _, _ := strings.Cut(e.askVersion(ctx, path, o), " ")
	if !olderThan(version, oldest) {
		return err
	}
	return &VersionError{Path: path, Version: version, Least: oldest, Err: err}
}

// askVersion returns what the CLI prints for --version, or "".
func (e *Engine) askVersion(ctx context.Context, path string, o *agent.Options) string {
	ctx, cancel := context.WithTimeout(ctx, versionWait)
	defer cancel()
	name, words := command(&e.opts, path, []string{"--version"})
	proc, err := subproc.Start(ctx, subproc.Options{Command: name, Args: words, Env: childEnv(&e.opts, o), Dir: o.Dir, Grace: e.grace})
	if err != nil {
		return ""
	}
	stop := context.AfterFunc(ctx, func() { _ = proc.Close() })
	defer stop()
	_ = proc.Stdin.Close()
	out, err := io.ReadAll(io.LimitReader(proc.Stdout, 200))
	_ = proc.Close()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// warnOfVersion logs, once for each session, what the CLI is too old for.
func (s *session) warnOfVersion(ctx context.Context, version string) {
	startupWait, _ := kit.Lookup(s.opts.Env)("CLAUDE_CODE_MCP_STARTUP_WAIT_MS")
	switch {
	case version == "":
	case olderThan(version, startupWaitSince) && startupWait != "":
		s.opts.Logger.WarnContext(ctx, "claude-code: CLAUDE_CODE_MCP_STARTUP_WAIT_MS has no effect on this CLI", "version", version, "needs", startupWaitSince)
	case olderThan(version, oldest):
		s.opts.Logger.WarnContext(ctx, "claude-code: this CLI is older than what the engine is tested on", "version", version, "tested", oldest)
	}
}

// olderThan compares versions number by number. A version that cannot be read is not older.
func olderThan(version, than string) bool {
	var all [2][3]int
	for i, text := range []string{version, than} {
		if _, err := fmt.Sscanf(text, "%d.%d.%d", &all[i][0], &all[i][1], &all[i][2]); err != nil {
			return false
		}
	}
	return slices.Compare(all[0][:], all[1][:]) < 0
}
