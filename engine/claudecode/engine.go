// Package claudecode runs agents on the Claude Code CLI: it starts the CLI as a child process and
// drives it over its control protocol. What a Go program says through package agent works on it
// as it does on engine/native, servers in this process included.
//
//	for msg, err := range agent.Query(ctx, claudecode.New(nil), "How many of AB-00017 are left?", opts) {
//
// The CLI is found on the PATH or where its installers put it. A session is one process; it sees
// the servers and settings that the program gives it and none of the machine's, unless [Options]
// says otherwise. Server configurations travel over the child's stdin and never in its arguments.
package claudecode

import (
	"context"
	"log/slog"
	"slices"

	"github.com/tenon-sdk/tenon/agent"
)

// Options configures an engine. The zero value, like a nil pointer, means the defaults.
type Options struct {
	// Path is the CLI's executable. Empty means that it is looked for; see [NotFoundError].
	Path string
	// BuiltinTools are the CLI's own tools that the model gets, such as "Bash" and "Read"; "default"
	// stands for all. Nil means none: the model has the program's tools, as on every engine.
	BuiltinTools []string
	// SettingSources are the CLI's settings that are read: "user", "project", "local". Nil means none.
	SettingSources []string
	// InheritMCPServers lets the CLI add the MCP servers of its own configuration files.
	InheritMCPServers bool
	// ExtraArgs are passed to the CLI as they are, last.
	ExtraArgs []string
	// Stderr gets each line that the CLI writes to its standard error. Nil means none; the end of it
	// is in the error of a run that failed all the same.
	Stderr func(line string)
}

// An Engine runs agents on the CLI. It is safe for concurrent use, holds no conversation, and
// needs no closing: each session is a process of its own.
type Engine struct {
	opts Options
}

var _ agent.Engine = (*Engine)(nil)

// New returns an engine. It does no I/O.
func New(o *Options) *Engine {
	e := &Engine{}
	if o != nil {
		e.opts = *o
		e.opts.BuiltinTools = slices.Clone(o.BuiltinTools)
		e.opts.SettingSources = slices.Clone(o.SettingSources)
		e.opts.ExtraArgs = slices.Clone(o.ExtraArgs)
	}
	return e
}

// Name returns "claude-code".
func (e *Engine) Name() string { return "claude-code" }

// Open starts the CLI and shakes hands with it. Its error is a [NotFoundError], an
// [agent.UnsupportedError], a [ProcessError] or ctx's.
func (e *Engine) Open(ctx context.Context, o *agent.Options) (agent.Session, error) {
	if fields := unsupported(o); len(fields) > 0 {
		return nil, &agent.UnsupportedError{Engine: e.Name(), Fields: fields}
	}
	path, err := find(e.opts.Path, environ(o.Env))
	if err != nil {
		return nil, err
	}
	s := newSession(e, o)
	if err := s.start(ctx, path); err != nil {
		_ = s.Close()
		return nil, err
	}
	o.Logger.Log(ctx, slog.LevelDebug, "claude-code: session started", "path", path, "pid", s.proc.PID())
	return s, nil
}
