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
		p.warn(problemText(pr))
	}
}

func problemText(pr mcpconfig.Problem) string { return oneLine(fmt.Sprint(pr)) }

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

// connecting names the servers that are still connecting. It returns "" if there are none.
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

// reason says in one line why a server is not connected. It returns "" for a connected server.
func reason(s mcphost.ServerStatus) string {
	if s.Status == mcphost.StatusConnected || s.Error == "" {
		return ""
	}
	text := s.Error
	for _, opening := range []string{"connecting to MCP server %q: ", "MCP server %q: "} {
		text = strings.TrimPrefix(text, fmt.Sprintf(opening, s.Name)) // the row has the name
	}
	return oneLine(text)
}

// reportServers writes a line for each server that is not connected and for each tool that was left out.
func reportServers(p *process, status []mcphost.ServerStatus) (failed bool) {
	for _, s := range status {
		if s.Status != mcphost.StatusConnected && !switchedOff(s) {
			failed = true
			p.warn(serverLine(s))
		}
		for _, r := range s.Rejected {
			p.warn(fmt.Sprintf("server %q: left out tool %q: %s", s.Name, r.Name, oneLine(r.Reason)))
		}
	}
	return failed
}

// switchedOff reports whether a server is disabled on purpose.
func switchedOff(s mcphost.ServerStatus) bool {
	return s.Status == mcphost.StatusDisabled && s.Error == ""
}

// serverLine describes a server that is not connected.
func serverLine(s mcphost.ServerStatus) string {
	text := fmt.Sprintf("server %q is %s", s.Name, stateWords(s.Status))
	if r := reasonWithRemedy(s); r != "" {
		text += ": " + r
	}
	return text
}

func stateWords(s mcphost.Status) string {
	switch s {
	case mcphost.StatusPending:
		return "still connecting"
	case mcphost.StatusFailed:
		return "not connected"
	case mcphost.StatusNeedsAuth:
		return "not connected: it wants a login"
	}
	return string(s)
}

// shortReason is the reason without the parts that the doctor shows on lines of their own.
func shortReason(s mcphost.ServerStatus) string {
	text := reason(s)
	var ce *mcphost.ConnectError
	if errors.As(s.Err, &ce) && ce.Hint != "" {
		text = strings.TrimSuffix(text, "; "+oneLine(ce.Hint))
	}
	text, _, _ = strings.Cut(text, "; stderr: ")
	return text
}

// reasonWithRemedy is the reason with what to do about it in words of this program, where those of the host are for programs.
func reasonWithRemedy(s mcphost.ServerStatus) string {
	if s.Status == mcphost.StatusNeedsAuth {
		return shortReason(s) + "; " + oneLine(advice(s))
	}
	return reason(s)
}

// advice returns the remedy for a server that is not connected: that of the host, or one for the cause.
func advice(s mcphost.ServerStatus) string {
	var (
		ce  *mcphost.ConnectError
		dns *net.DNSError
	)
	errors.As(s.Err, &ce)
	var plain tls.RecordHeaderError
	switch {
	case s.Status == mcphost.StatusNeedsAuth:
		return fmt.Sprintf("log in: tenon mcp login %s; or put a token into the entry's headers", s.Name)
	case ce != nil && ce.Hint != "":
		return ce.Hint
	case s.Status == mcphost.StatusPending, errors.Is(s.Err, mcphost.ErrTimeout):
		return "see whether it answers at all; if it is only slow, give it more time: connectTimeout in its entry, --connect-timeout or MCP_TIMEOUT"
	case errors.Is(s.Err, http.ErrSchemeMismatch), errors.As(s.Err, &plain):
		return "the server speaks no TLS there: write http:// in the url, or give the port that does"
	case errors.As(s.Err, &dns):
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

// costs reports whether a problem is more than a note.
func isFault(pr mcpconfig.Problem) bool { return pr.Level != mcpconfig.LevelNote }
