package mcphost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/tenon-sdk/tenon/internal/secret"
	"github.com/tenon-sdk/tenon/internal/subproc"
	"github.com/tenon-sdk/tenon/mcpauth"
	"github.com/tenon-sdk/tenon/mcphost/internal/transport"
)

// fault returns the error of a failed attempt or a lost connection. l is its link, nil if there was
// none.
func (d *dialer) fault(ctx context.Context, phase string, err error, l link) *ConnectError {
	if ctx.Err() != nil && !errors.Is(err, ErrClosed) {
		if cause := context.Cause(ctx); errors.Is(cause, ErrTimeout) || errors.Is(cause, ErrClosed) {
			err = cause
		} else if cause != nil {
			err = ctx.Err()
		}
	}
	e := &ConnectError{Server: d.name, Transport: d.cfg.transport(), Phase: phase, failed: time.Now()}
	switch c := d.cfg.(type) {
	case Stdio:
		e.Command, e.Args = c.Command, d.mask.HideAll(c.Args)
	case HTTP:
		e.URL = secret.SafeRawURL(c.URL)
	case SSE:
		e.URL = secret.SafeRawURL(c.URL)
	}
	if r, ok := l.(*remoteLink); ok {
		if exit, ok := d.fromLink(ctx, e, r); ok && !errors.Is(err, ErrTimeout) && ctx.Err() == nil {
			err = fmt.Errorf("%w: the server process %v", ErrConnectionLost, exit)
			if phase != PhaseSession {
				err = fmt.Errorf("the server process %v", exit)
			}
		}
	}
	var he *HTTPError
	if errors.As(err, &he) {
		e.HTTPStatus, e.Body, e.NeedsAuth = he.Status, he.Body, he.NeedsAuth
	}
	var need *mcpauth.NeedsAuthError
	if errors.As(err, &need) {
		e.HTTPStatus, e.Body, e.NeedsAuth = need.Status, need.Body, true
	}
	e.Transient = isTransient(err, he, e)
	e.Hint = hint(e, he, err)
	e.Err = maskError(d.mask, err)
	return e
}

// fromLink adds what the connection knows about its end.
func (d *dialer) fromLink(ctx context.Context, e *ConnectError, l *remoteLink) (exit subproc.Exit, exited bool) {
	if l.proc != nil && ctx.Err() == nil && l.Failed() {
		l.proc.AwaitExit(ctx, transport.ExitWait) // for its exit code, and the last of stderr
	}
	diag := l.diagnostics()
	e.Stderr = d.mask.Hide(diag.stderr)
	e.Noise = diag.noise
	for _, n := range diag.noiseHead {
		e.NoiseHead = append(e.NoiseHead, d.mask.Hide(n))
	}
	if l.proc == nil {
		return exit, false
	}
	select {
	case <-l.proc.Exited():
		exit = l.proc.Exit()
		e.Exited, e.ExitCode, e.Signal = true, exit.Code, exit.Signal
	default:
	}
	return exit, e.Exited
}

// A diedError reports that the server's process ended.
type diedError struct {
	err    error
	stderr string // the end of what it wrote there, without secrets
}

func (e *diedError) Error() string { return e.err.Error() }
func (e *diedError) Unwrap() error { return e.err }

// lastWords adds to an error of a broken connection how the server's process ended, and the end of
// its stderr.
func (d *dialer) lastWords(ctx context.Context, l link, err error) error {
	r, ok := l.(*remoteLink)
	if !ok || r.proc == nil || !errors.Is(err, ErrConnectionLost) || !r.proc.AwaitExit(ctx, transport.ExitWait) {
		return err
	}
	if exit := r.proc.Exit(); !strings.Contains(err.Error(), exit.String()) { // a write fails before the end is known
		err = fmt.Errorf("%w: the server process %v", err, exit)
	}
	return &diedError{err, d.mask.Hide(r.proc.Stderr())}
}

// isTransient reports whether another attempt may succeed.
func isTransient(err error, he *HTTPError, e *ConnectError) bool {
	var ne net.Error
	var dns *net.DNSError
	switch {
	case e.Phase == PhaseConfig || e.Phase == PhaseLookup || e.NeedsAuth || errors.Is(err, transport.ErrRedirect) || transport.Permanent(err):
		return false
	case errors.Is(err, transport.ErrSessionLost) && (he == nil || he.Status != http.StatusUnauthorized):
		return true
	case he != nil:
		return he.Status >= 500 || he.Status == http.StatusTooManyRequests || he.Status == http.StatusRequestTimeout
	case errors.As(err, &dns):
		return !dns.IsNotFound
	case errors.Is(err, ErrTimeout), errors.Is(err, ErrConnectionLost),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &ne):
		return true
	}
	return false
}

// hint returns what a person can do about a fault, or "".
func hint(e *ConnectError, he *HTTPError, err error) string {
	var lookup *subproc.LookupError
	switch {
	case errors.As(err, &lookup):
		return lookupHint(lookup)
	case e.Phase == PhaseStart && e.Transport == TransportStdio:
		return startHint(err)
	case errors.As(err, new(*mcpauth.StoreError)):
		return "see to the store of credentials, such as a locked keyring or a file that others wrote; or configure an Authorization header"
	case e.NeedsAuth:
		return "log in, or configure an Authorization header"
	case he != nil && (he.Status == http.StatusUnauthorized || he.Status == http.StatusForbidden):
		return "the server rejected the configured Authorization header"
	case he != nil && he.Status == http.StatusNotFound:
		return "check the URL: there is no MCP endpoint"
	case he != nil && (he.Status == http.StatusMethodNotAllowed || he.Status == http.StatusNotAcceptable) && e.Transport == TransportHTTP:
		return "perhaps the server speaks the older transport (type sse)"
	case he != nil && e.Transport == TransportSSE && he.Status >= 400 && he.Status < 500:
		return "perhaps the server speaks streamable HTTP (type http)"
	case he != nil && he.Status >= 200 && he.Status < 300:
		return "the URL answers, but not as an MCP server"
	case e.Transport == TransportStdio && errors.Is(err, ErrTimeout) && len(e.NoiseHead) > 0:
		return "the program writes to stdout, but no MCP messages: is it an MCP server for stdio?"
	case e.Phase == PhaseSession || e.Phase == PhaseConfig:
		return "" // it was there, and is connected anew; or the text says what is wrong
	case errors.Is(err, ErrTimeout):
		return "see whether it answers at all; if it is only slow, give it more time: connectTimeout in its entry, or MCP_TIMEOUT"
	case errors.As(err, new(*net.DNSError)):
		return "mend the host's name in the url, or the network"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "start the server, or mend the address in the url: nothing listens there"
	case e.Exited && e.Stderr == "":
		return "run the program by itself to see why it ends: it wrote nothing to its standard error"
	case e.Exited:
		return "mend what its standard error says, or run the program by itself to see why it ends"
	case he != nil && he.Status >= http.StatusInternalServerError:
		return "look at the server's own log: it failed to answer"
	}
	return ""
}

// lookupHint returns the hint for a program that is not found or not executable.
func lookupHint(e *subproc.LookupError) string {
	if !strings.ContainsAny(e.Command, `/\`) {
		return "install the program, give its full path, or set PATH in the server's env"
	}
	info, err := os.Stat(e.Path)
	switch {
	case err == nil && info.IsDir():
		return "that is a directory: give the path of the program in it"
	case err == nil && errors.Is(e, fs.ErrPermission):
		return notExecutable
	case errors.Is(e, fs.ErrPermission):
		return "let this user into the directories that the path leads through, or correct the path"
	}
	return "install the program there, or correct the path"
}

const notExecutable = "make the file executable (chmod +x), or give the program that runs it as command and the file among the args"

// startHint returns the hint for a program that does not start.
func startHint(err error) string {
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return "give the program that runs the file as command and the file among the args, or begin a script with #! and its interpreter"
	case errors.Is(err, fs.ErrNotExist):
		return "see whether the working directory exists, and the interpreter that a script names after #!"
	case errors.Is(err, fs.ErrPermission):
		return "let this user execute the file, the interpreter that a script names after #!, and enter the working directory"
	}
	return ""
}
