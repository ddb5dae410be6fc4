package mcphost

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/mcpauth"
	"github.com/tenon-sdk/tenon/mcphost/internal/transport"
)

var (
	// ErrUnknownTool reports a call to a tool that no server has.
	ErrUnknownTool = errors.New("mcphost: no such tool")
	// ErrUnknownServer reports a name that is not among the servers.
	ErrUnknownServer = errors.New("mcphost: no such server")
	// ErrClosed reports that the host was closed.
	ErrClosed = errors.New("mcphost: host closed")
	// ErrDisabled reports that the server is switched off.
	ErrDisabled = errors.New("server is disabled")
	// ErrTimeout reports a limit in time that ran out. It is also a
	// context.DeadlineExceeded.
	ErrTimeout error = timeoutError{}
	// ErrTooLarge reports a message above the size limit.
	ErrTooLarge = transport.ErrTooLarge
	// ErrConnectionLost reports that the connection broke before a request was answered, or could
	// be made. [CallError.Sent] reports whether the request may have reached the server.
	ErrConnectionLost = transport.ErrConnectionLost
	// ErrUnresponsive reports that the server is connected but does not answer; see [Options.BreakAfter].
	ErrUnresponsive = errors.New("the server answers nothing any more")
	// ErrRemoved reports that [Host.SetServers] took the server out.
	ErrRemoved = errors.New("mcphost: server removed")
	// ErrReplaced reports that [Host.SetServers] gave the server another
	// configuration.
	ErrReplaced = errors.New("mcphost: server replaced by another configuration")
	// ErrReconnected reports that [Host.Reconnect] gave up a connection.
	ErrReconnected = errors.New("mcphost: connection made anew on request")
)

// Phases of connecting, as [ConnectError.Phase] has them.
const (
	PhaseConfig     = "config"     // the configuration cannot work
	PhaseLookup     = "lookup"     // the program was not found
	PhaseStart      = "start"      // the process or the request could not be started
	PhaseInitialize = "initialize" // the handshake failed
	PhaseList       = "list"       // the tool list could not be had
	PhaseSession    = "session"    // the connection broke while in use
)

// A ConnectError is why a server could not be connected, or was lost. Secrets
// of its configuration are masked in all its texts.
type ConnectError struct {
	Server    string
	Transport string
	Phase     string
	// Command and Args, URL: what was tried.
	Command string
	Args    []string
	URL     string
	// Exited reports that the process ended, with ExitCode, or by Signal if
	// that is not empty.
	Exited   bool
	ExitCode int
	Signal   string
	// Stderr is the end of what the process wrote there. Noise counts the lines
	// on its stdout that were no messages, NoiseHead has the first few.
	Stderr    string
	Noise     int
	NoiseHead []string
	// HTTPStatus and Body are of the response that was refused; 0 without one.
	HTTPStatus int
	Body       string
	// NeedsAuth reports that the server demands a login.
	NeedsAuth bool
	// Transient reports that the same attempt may succeed later.
	Transient bool
	// Elapsed is how long the attempt took until it failed, without the closing
	// of what it left behind.
	Elapsed time.Duration
	// Hint says what to do, if that is known.
	Hint string
	Err  error

	failed time.Time
}

// Error implements error. It is one line: what failed and why, how long it took,
// what the server said, what to do.
func (e *ConnectError) Error() string {
	var b strings.Builder
	var store *mcpauth.StoreError
	if errors.As(e.Err, &store) { // it begins with the words that hosts show for that
		return fmt.Sprintf("%v (MCP server %q)", store, e.Server)
	}
	if e.Phase == PhaseSession {
		fmt.Fprintf(&b, "MCP server %q", e.Server)
	} else {
		fmt.Fprintf(&b, "connecting to MCP server %q", e.Server)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if e.Elapsed >= time.Millisecond && !errors.Is(e.Err, ErrTimeout) { // a limit that ran out says itself how long that was
		fmt.Fprintf(&b, " (after %v)", e.Elapsed.Round(time.Millisecond))
	}
	if e.Stderr != "" {
		fmt.Fprintf(&b, "; stderr: %s", lastLines(e.Stderr, 5, transport.BodyHead))
	}
	if len(e.NoiseHead) > 0 {
		fmt.Fprintf(&b, "; stdout: %q", clip.Text(e.NoiseHead[0], 200))
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, "; %s", e.Hint)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *ConnectError) Unwrap() error { return e.Err }

// A CallError is a call that could not be made or was not answered. A tool that
// ran and reports a failure is not a CallError but a result.
type CallError struct {
	Server, Tool string
	// Code is that of the server's JSON-RPC error; 0 if Err is not one.
	Code int64
	// Sent reports that the request may have reached the tool.
	Sent bool
	// Stderr is the end of what the server's process wrote there, if the call
	// was lost because it ended. It holds no secrets of the configuration.
	Stderr string
	Err    error
}

const mayHaveRun = "; the tool may have run"

// Error implements error.
func (e *CallError) Error() string {
	text := fmt.Sprintf("MCP server %q", e.Server)
	if e.Tool != "" { // else it is a request of another kind
		text += fmt.Sprintf(", tool %q", e.Tool)
	}
	text += fmt.Sprintf(": %v", e.Err)
	if e.mayHaveRun() && !strings.HasSuffix(text, mayHaveRun) { // a server may have said it
		text += mayHaveRun
	}
	if e.Stderr != "" {
		text += "; stderr: " + lastLines(e.Stderr, 5, transport.BodyHead)
	}
	return text
}

// mayHaveRun reports whether a tool may have run without anybody having heard of
// its end: the call was sent and not answered.
func (e *CallError) mayHaveRun() bool {
	return e.Tool != "" && e.Sent && (errors.Is(e.Err, ErrTimeout) || errors.Is(e.Err, ErrConnectionLost) || errors.Is(e.Err, transport.ErrSessionLost) ||
		errors.As(e.Err, new(*cutError)) || errors.Is(e.Err, transport.ErrClosed) || errors.Is(e.Err, ErrTooLarge))
}

// Unwrap returns the cause.
func (e *CallError) Unwrap() error { return e.Err }

// A NotReadyError lists the required servers that are not connected.
type NotReadyError struct {
	// Servers are their states at the end of the wait, sorted by name.
	Servers []ServerStatus
}

// Error implements error.
func (e *NotReadyError) Error() string {
	var b strings.Builder
	b.WriteString("mcphost: required MCP servers are not connected:")
	for i, s := range e.Servers {
		if i > 0 {
			b.WriteByte(';')
		}
		fmt.Fprintf(&b, " %s is %s", s.Name, s.Status)
		if s.Error != "" {
			fmt.Fprintf(&b, " (%s)", s.Error)
		}
	}
	return b.String()
}

// An HTTPError is a response that refuses a request.
type HTTPError = transport.HTTPError

// timeoutError is the type of ErrTimeout. Like net.Error's, it says Timeout.
type timeoutError struct{}

func (timeoutError) Error() string        { return "timed out" }
func (timeoutError) Timeout() bool        { return true }
func (timeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// A cutError is a request that was cut off because its connection was closed on
// request.
type cutError struct{ why error }

func (e *cutError) Error() string { return fmt.Sprintf("cut off: %v", e.why) }
func (e *cutError) Unwrap() error { return e.why }

// traceLine finds the lines of stderr that tell of places in a program and not
// of what is wrong: Node.js prints them after the reason, as Go does.
var traceLine = regexp.MustCompile(`^(\s*|\s+at .*|\s*\^+|Node\.js v\S+|goroutine \d+ .*:|\t\S+:\d+( \+0x\w+)?|\w\S*\(.*\)|exit status \d+)$`)

// lastLines returns the last lines of a text that tell anything, in one line of
// at most n bytes.
func lastLines(s string, lines, n int) string {
	all := strings.Split(strings.TrimSpace(s), "\n")
	if telling := slices.DeleteFunc(slices.Clone(all), traceLine.MatchString); len(telling) > 0 {
		all = telling
	}
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return clip.Text(strings.Join(all, " | "), n)
}
