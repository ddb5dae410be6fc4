// Command tenon asks a Claude model with tools from MCP servers, and calls MCP servers without a
// model.
//
//	tenon run "How many of AB-00017 are left?" --mcp-config servers.json --allowedTools mcp__stock
//	tenon run --offline '@mcp__calc__add {"a":1,"b":2}' --mcp-config servers.json --allowedTools mcp__calc
//	tenon mcp list
//	tenon mcp call files read_file '{"path":"notes.txt"}'
//
// It adds flags and printing to engine/native, mcphost and mcpconfig. Answers go to standard output,
// all else to standard error.
//
// The exit status is 0 after success, 1 after a failure, 2 if the command line is wrong, and 128+n
// after signal n (130 after Ctrl-C, 143 after SIGTERM, 141 if the reader of standard output closed it).
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	p := &process{in: os.Stdin, out: os.Stdout, err: os.Stderr, environ: os.Environ()}
	ctx, stop := watchSignals(context.Background(), &p.kill)
	code := run(ctx, os.Args[1:], p)
	stop()
	os.Exit(code)
}

// The exit statuses, beside 128+n for signal n.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// A usageError says that the command line is wrong, in one line that names the remedy.
type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// errReported is the error of a command that has already reported its failure.
var errReported = errors.New("failed")

// run runs the command line args in p, which it changes, and returns the exit status. The end of ctx
// stops the command; its cause, if it is a *signalError, decides the exit status.
func run(ctx context.Context, args []string, p *process) int {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := &output{w: p.out, closed: func() { cancel(&signalError{syscall.SIGPIPE}) }}
	p.out, p.err = out, &output{w: p.err}
	root := newRootCommand(p)                 // cobra carries it from ExecuteContext to the commands
	root.SetArgs(append([]string{}, args...)) // nil would mean os.Args
	root.SetIn(p.in)
	root.SetOut(p.out)
	root.SetErr(p.err)
	started := false
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	err := root.ExecuteContext(ctx)
	var usage *usageError
	if err != nil && !started && !errors.As(err, &usage) {
		err = usagef("%v; try 'tenon --help'", err) // cobra's own complaint about the arguments
	}
	if err == nil {
		err = out.failure() // some writes ignore it
	}
	return exitStatus(ctx, err, p.err)
}

// exitStatus reports err on stderr in one line and returns the exit status.
func exitStatus(ctx context.Context, err error, stderr io.Writer) int {
	var (
		sig   *signalError
		usage *usageError
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(context.Cause(ctx), &sig):
		if sig.sig != syscall.SIGPIPE {
			fmt.Fprintf(stderr, "tenon: %v\n", sig)
		}
		return 128 + int(sig.sig)
	case errors.Is(err, errReported):
		return exitFailed
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "tenon: %s\n", oneLine(usage.msg))
		return exitUsage
	}
	fmt.Fprintf(stderr, "tenon: %s\n", message(err))
	return exitFailed
}

var optionName = regexp.MustCompile(`Options\.(\w+)`)

// message returns an error's text for the terminal: one line, without the names of our packages,
// and with flags in place of the options that they set.
func message(err error) string {
	text := oneLine(err.Error())
	for _, pkg := range []string{"agent: ", "mcphost: ", "mcpconfig: ", "mcpauth: ", "native: "} {
		text = strings.TrimPrefix(text, pkg)
	}
	return optionName.ReplaceAllStringFunc(text, func(option string) string {
		if flag, ok := flagOf[strings.TrimPrefix(option, "Options.")]; ok {
			return flag
		}
		return option
	})
}
