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
	"time"
)

const (
	// closeGrace is how long the CLI has to exit by itself, and again after it was asked to.
	closeGrace = time.Second
	// closeWait is how long Close waits for callbacks and servers of the program that do not heed their contexts.
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
