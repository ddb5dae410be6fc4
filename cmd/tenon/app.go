package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// The exit statuses, beside 128+n for signal n.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// run is the whole program: it runs the command line args and returns the exit status. The end of ctx is
// the user's wish to stop; its cause, if it is a *signalError, decides the exit status.
func run(ctx context.Context, args []string, p *process) int {
	if p.kill == nil {
		p.kill = new(killList)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	own := *p
	answers := &answerWriter{w: p.out, cancel: cancel}
	own.out = answers
	own.err = &lockedWriter{w: p.err}
	root := newRootCommand(&own)              //nolint:contextcheck // cobra carries it from ExecuteContext to the commands
	root.SetArgs(append([]string{}, args...)) // nil would mean os.Args
	root.SetIn(own.in)
	root.SetOut(own.out)
	root.SetErr(own.err)
	started := false
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	err := root.ExecuteContext(ctx)
	var usage *usageError
	if err != nil && !started && !errors.As(err, &usage) {
		err = usagef("%v; try 'tenon --help'", err) // cobra's own complaint about the arguments
	}
	if err == nil {
		err = answers.failure() // not every writer of a line looks at that
	}
	return exitStatus(ctx, err, own.err)
}

// exitStatus reports err on stderr in one line and gives the exit status that stands for it.
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

// message is an error's text for the terminal: one line, without the names of our packages in front, and with
// flags in place of the options that they set.
func message(err error) string {
	text := oneLine(err.Error())
	for _, pkg := range []string{"agent: ", "mcphost: ", "mcpconfig: ", "mcpauth: ", "native: "} {
		text = strings.TrimPrefix(text, pkg)
	}
	return optionName.ReplaceAllStringFunc(text, func(option string) string {
		if flag, ok := flagOf(strings.TrimPrefix(option, "Options.")); ok {
			return flag
		}
		return option
	})
}
