// Package claudecode runs agents on the Claude Code CLI: it starts the CLI as a child process and
// drives it over its control protocol. What a Go program says through package agent works on it
// as it does on engine/native, servers in this process included.
//
//	for msg, err := range agent.Query(ctx, claudecode.New(nil), "How many of AB-00017 are left?", opts) {
//
// The CLI is found on the PATH or where its installers put it; one in the checkout that the program runs in
// is never used unless Options.Path names it. A session is one process; it sees
// the servers and settings that the program gives it, and those of the machine that
// agent.Options.SettingSources names. The CLI itself reads no file that the program did not name: without
// named sources, this package reads what a project's files may say without trust and passes it on. Server configurations travel over the child's stdin and never in its arguments.
package claudecode

import (
	"context"
	"log/slog"
	"time"

	"github.com/tenon-sdk/tenon/agent"
)

// An Engine runs agents on the CLI. It is safe for concurrent use, holds no conversation, and
// needs no closing: each session is a process of its own.
type Engine struct {
	opts  Options
	grace time.Duration // how long the CLI has to end by itself, and again after it was told to
	// patience is how long callbacks and servers of the program have to return once a session is closed.
	patience time.Duration
	// callWait is how long a question about a call waits for the message with the call.
	callWait time.Duration
	// listWait is how long the start of the CLI waits for the tools of servers in this process.
	listWait time.Duration
}

var _ agent.Engine = (*Engine)(nil)

// New returns an engine. It does no I/O.
func New(o *Options) *Engine {
	e := &Engine{grace: closeGrace, patience: closeWait, callWait: callWait, listWait: listWait}
	if o != nil {
		e.opts = o.clone()
	}
	return e
}

// Name returns "claude-code".
func (e *Engine) Name() string { return "claude-code" }

// Open starts the CLI and shakes hands with it. Servers that the CLI cannot connect as they are
// configured (logins, computed headers, an HTTP client, limits other than that of a call, a
// directory or an environment of their own), and with Options.Stderr all child processes, are
// connected by this process and offered to the CLI. Open waits for those as a first turn has to. It
// asks servers in this process for their tools, so that the CLI need not, and waits for the answers
// at most 50 ms before it starts the CLI and 250 ms after; the variable
// CLAUDE_AGENT_SDK_DISABLE_MCP_MANIFESTS leaves that to the CLI.
// Its error is a [NotFoundError], a [VersionError], a [ProcessError], that of a required server, or ctx's.
func (e *Engine) Open(ctx context.Context, o *agent.Options) (agent.Session, error) {
	if err := unsupported(e.Name(), o); err != nil {
		return nil, err
	}
	if err := e.opts.check(o); err != nil {
		return nil, err
	}
	run, err := e.withFiles(o)
	if err != nil {
		return nil, err
	}
	path := e.opts.Path
	if len(e.opts.Launcher) == 0 {
		if path, err = find(path, o.Dir, environ(o.Env)); err != nil {
			return nil, err
		}
	}
	s := newSession(run, o)
	if err := s.start(ctx, path); err != nil {
		_ = s.Close() //nolint:contextcheck // the session's own life, which it ends
		return nil, e.withVersion(ctx, path, o, err)
	}
	o.Logger.Log(ctx, slog.LevelDebug, "claude-code: session started", "path", path, "pid", s.proc.PID())
	return s, nil
}

// unsupported refuses what the CLI cannot do: it takes no conversation but those that it keeps itself.
func unsupported(engine string, o *agent.Options) error {
	switch {
	case o.HistoryUsage != (agent.HistoryUsage{}):
		return &agent.UnsupportedError{
			Engine: engine, Fields: []string{"HistoryUsage"},
			Remedy: "the CLI keeps its conversations itself: go on with one by Options.Resume, or use engine/native",
		}
	case len(o.History) == 0:
		return nil
	}
	return &agent.UnsupportedError{
		Engine: engine, Fields: []string{"History"},
		Remedy: "the CLI keeps its conversations itself: go on with one by Options.Resume, or use engine/native",
	}
}
