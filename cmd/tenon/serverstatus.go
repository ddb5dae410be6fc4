package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/tenon-sdk/tenon/mcpconfig"
	"github.com/tenon-sdk/tenon/mcphost"
)

// reportProblems writes each problem on a line.
func reportProblems(p *process, problems []mcpconfig.Problem) {
	for _, pr := range problems {
		p.warn("%s", problemText(pr))
	}
}

func problemText(pr mcpconfig.Problem) string { return oneLine(pr.String()) }

// isFault reports whether a problem is more than a note.
func isFault(pr mcpconfig.Problem) bool { return pr.Level != mcpconfig.LevelNote }

// processIDs returns the IDs of the servers' process groups.
func processIDs(status []mcphost.ServerStatus) []int {
	var pids []int
	for _, s := range status {
		if s.PID != 0 {
			pids = append(pids, s.PID)
		}
	}
	return pids
}

// connecting returns the names of the servers that are still connecting, or "".
func connecting(status []mcphost.ServerStatus) string {
	var pending []string
	for _, s := range status {
		if s.Status == mcphost.StatusPending {
			pending = append(pending, s.Name)
		}
	}
	if len(pending) == 0 {
		return ""
	}
	return fmt.Sprintf("connecting to %s (%d of %d done)", strings.Join(pending, ", "), len(status)-len(pending), len(status))
}

// reason returns in one line why a server is not connected, or "".
func reason(s mcphost.ServerStatus) string {
	if s.Status == mcphost.StatusConnected {
		return ""
	}
	text := s.Error
	for _, opening := range []string{"connecting to MCP server %q: ", "MCP server %q: "} {
		text = strings.TrimPrefix(text, fmt.Sprintf(opening, s.Name)) // the row has the name
	}
	return oneLine(text)
}

// switchedOff reports whether a server is disabled on purpose.
func switchedOff(s mcphost.ServerStatus) bool {
	return s.Status == mcphost.StatusDisabled && s.Error == ""
}

// serverLine describes a server that is not connected.
func serverLine(s mcphost.ServerStatus) string {
	state := string(s.Status)
	switch s.Status {
	case mcphost.StatusPending:
		state = "still connecting"
	case mcphost.StatusFailed:
		state = "not connected"
	case mcphost.StatusNeedsAuth:
		state = "not connected: it wants a login"
	}
	text := fmt.Sprintf("server %q is %s", s.Name, state)
	if r := reasonWithRemedy(s); r != "" {
		text += ": " + r
	}
	return text
}

// shortReason returns the reason without the parts that the doctor shows on lines of their own.
func shortReason(s mcphost.ServerStatus) string {
	text := reason(s)
	if ce, ok := errors.AsType[*mcphost.ConnectError](s.Err); ok && ce.Hint != "" {
		text = strings.TrimSuffix(text, "; "+oneLine(ce.Hint))
	}
	text, _, _ = strings.Cut(text, "; stderr: ")
	return text
}

// reasonWithRemedy returns the reason with the remedy. The host's remedy for a missing login is for
// programs; this one is for users.
func reasonWithRemedy(s mcphost.ServerStatus) string {
	if s.Status == mcphost.StatusNeedsAuth {
		return shortReason(s) + "; " + oneLine(advice(s))
	}
	return reason(s)
}

// advice returns the remedy for a server that is not connected: that of the host, or one for the cause.
func advice(s mcphost.ServerStatus) string {
	ce, _ := errors.AsType[*mcphost.ConnectError](s.Err)
	_, noHost := errors.AsType[*net.DNSError](s.Err)
	_, noTLS := errors.AsType[tls.RecordHeaderError](s.Err)
	switch {
	case s.Status == mcphost.StatusNeedsAuth:
		return fmt.Sprintf("log in: tenon mcp login %s; or put a token into the entry's headers", s.Name)
	case ce != nil && ce.Hint != "":
		return ce.Hint
	case s.Status == mcphost.StatusPending, errors.Is(s.Err, mcphost.ErrTimeout):
		return "see whether it answers at all; if it is only slow, give it more time: connectTimeout in its entry, --connect-timeout or MCP_TIMEOUT"
	case noTLS, errors.Is(s.Err, http.ErrSchemeMismatch):
		return "the server speaks no TLS there: write http:// in the url, or give the port that does"
	case noHost:
		return "mend the host's name in the url, or the network"
	case errors.Is(s.Err, syscall.ECONNREFUSED):
		return "start the server, or mend the address in the url: nothing listens there"
	case ce != nil && ce.Exited && strings.TrimSpace(s.Stderr) == "":
		return "run the program by itself to see why it ends: it wrote nothing to its standard error"
	case ce != nil && ce.Exited:
		return "mend what its standard error says, or run the program by itself to see why it ends"
	case ce != nil && ce.HTTPStatus >= http.StatusInternalServerError:
		return "look at the server's own log: it failed to answer"
	}
	return ""
}
