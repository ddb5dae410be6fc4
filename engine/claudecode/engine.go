// Package claudecode runs agents on the Claude Code CLI. It starts the CLI as a child process and
// drives it over its control protocol. A program that uses package agent works on this engine as it
// does on engine/native, with servers in this process.
//
//	for msg, err := range agent.Query(ctx, claudecode.New(nil), "How many of AB-00017 are left?", opts) {
//
// The CLI is found on the PATH or where its installers put it. A CLI in the checkout that the program
// runs in is never used unless Options.Path names it. A session is one process. It sees the servers
// and settings that the program gives it, and those of the machine that agent.Options.SettingSources
// names. Without named sources, the CLI reads no configuration file: this package reads what a
// project's files may say without trust and passes it on. Server configurations travel over the
// child's stdin, never in its arguments.
//
// Package event decodes messages that only the CLI has. Package transcript reads stored sessions.
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

const (
	// closeGrace is how long the CLI has to exit by itself, and again after it was asked to.
	closeGrace = time.Second
	// closeWait is how long Close waits for callbacks and servers that ignore their contexts.
	closeWait = 10 * time.Second
	// callWait is how long a question about a call waits for the message with the call.
	callWait = time.Second
)

// An Engine runs agents on the CLI. It is safe for concurrent use and needs no closing: each session
// is a process of its own.
type Engine struct {
	opts Options
	// grace, patience and callWait are closeGrace, closeWait and callWait except in tests.
	grace, patience, callWait time.Duration
}

// New returns an engine. It does no I/O. The slices and maps in o must not be modified afterwards.
func New(o *Options) *Engine {
	e := &Engine{grace: closeGrace, patience: closeWait, callWait: callWait}
	if o != nil {
		e.opts = *o
	}
	return e
}

// Name returns "claude-code".
func (e *Engine) Name() string { return "claude-code" }

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
	if pe, ok := errors.AsType[*ProcessError](err); !ok || pe.Exit == "" || ctx.Err() != nil {
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
