package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tenon-sdk/tenon/mcpconfig"
	"github.com/tenon-sdk/tenon/mcphost"
)

const doctorLong = `Look at the configuration, connect to every server, and say for each fault what is wrong and what to do about it,
with what the server wrote to its standard error. The exit status is 1 if anything is wrong.`

func newDoctorCommand(p *process, f *mcpFlags) *cobra.Command {
	return f.command(p, &cobra.Command{
		Use:   "doctor [flags]",
		Short: "Find out what is wrong with the servers and what to do",
		Long:  doctorLong,
		Args:  wantArgs(0, 0, "no arguments"),
	}, "", (*session).doctor)
}

func (s *session) doctor(context.Context, []string) error {
	status := s.host.Status()
	s.progress.stop()
	var b strings.Builder
	for _, pr := range s.problems {
		word := "wrong"
		if pr.Level == mcpconfig.LevelNote {
			word = "note "
		}
		fmt.Fprintf(&b, "%s  %s\n", word, problemText(pr))
	}
	for _, st := range status {
		diagnose(&b, st)
	}
	if len(status)+len(s.problems) == 0 {
		b.WriteString("No servers are configured. Add one: tenon mcp add NAME -- PROGRAM [ARG ...]\n")
	}
	_, err := io.WriteString(s.out, b.String())
	if err == nil && !allWell(status, s.problems) {
		err = errReported
	}
	return err
}

// diagnose writes the state of a server and what to do about it.
func diagnose(b *strings.Builder, s mcphost.ServerStatus) {
	name := printable(s.Name)
	switch s.Status {
	case mcphost.StatusConnected:
		fmt.Fprintf(b, "fine   %s: %s, connected in %s, protocol %s\n", name, count(s.ToolCount, "tool"), seconds(s.ConnectTime), printable(s.ProtocolVersion))
	case mcphost.StatusDisabled:
		fmt.Fprintf(b, "off    %s: %s\n", name, cmp.Or(oneLine(s.Error), "disabled in its configuration"))
	default:
		fmt.Fprintf(b, "wrong  %s: %s\n", name, shortReason(s))
		if a := advice(s); a != "" {
			fmt.Fprintf(b, "       do: %s\n", oneLine(a))
		}
		for line := range strings.Lines(s.Stderr) {
			fmt.Fprintf(b, "       stderr: %s\n", printable(strings.TrimRight(line, "\r\n")))
		}
	}
	for _, r := range s.Rejected {
		fmt.Fprintf(b, "note   %s: left out tool %q: %s\n", name, r.Name, oneLine(r.Reason))
	}
	if s.Noise > 0 {
		fmt.Fprintf(b, "note   %s: wrote to its standard output what is no message (%s), such as %q; that belongs on standard error\n",
			name, count(s.Noise, "line"), strings.Join(s.NoiseHead[:min(1, len(s.NoiseHead))], ""))
	}
}

const statusLong = `Show the status of the servers like 'tenon mcp list'. With --watch it stays connected and prints a line for
each change of a server's status or of its tools, until Ctrl-C.`

func newStatusCommand(p *process, f *mcpFlags) *cobra.Command {
	var watch bool
	c := f.command(p, &cobra.Command{
		Use:   "status [flags]",
		Short: "Show the status of the servers, or watch it",
		Long:  statusLong,
		Args:  wantArgs(0, 0, "no arguments"),
		PreRunE: func(*cobra.Command, []string) error {
			if watch && f.asJSON {
				return usagef("--watch prints lines as they come; leave --json out")
			}
			return nil
		},
	}, "print JSON", func(s *session, ctx context.Context, _ []string) error {
		if !watch {
			return s.list(false)
		}
		events := s.host.Watch(ctx) // before the list, so that nothing is missed in between
		if err := s.list(false); err != nil {
			return err
		}
		return s.watch(ctx, events)
	})
	c.Flags().BoolVar(&watch, "watch", false, "go on and print every change")
	return c
}

func (s *session) watch(ctx context.Context, events <-chan mcphost.Event) error {
	for e := range events {
		line := fmt.Sprintf("%s  %s  %s", e.Time.Format("15:04:05"), e.Server, e.Status)
		if e.Tools {
			line += "  tools changed"
		}
		if e.Err != nil {
			line += "  " + e.Err.Error()
		}
		if _, err := fmt.Fprintln(s.out, printable(line)); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

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
	state := map[mcphost.Status]string{
		mcphost.StatusPending:   "still connecting",
		mcphost.StatusFailed:    "not connected",
		mcphost.StatusNeedsAuth: "not connected: it wants a login",
	}[s.Status]
	text := fmt.Sprintf("server %q is %s", s.Name, cmp.Or(state, string(s.Status)))
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
