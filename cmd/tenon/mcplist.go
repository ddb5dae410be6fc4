package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/tenon-sdk/tenon/mcpconfig"
	"github.com/tenon-sdk/tenon/mcphost"
)

const listLong = `Connect to every configured server and show its status, transport, number of tools, the time that
connecting took, and the reason if it is not connected: the exit status and the end of the standard error of
a process, the HTTP status, or the time limit that ran out.

The exit status is 0 even if servers failed, since the list is the answer; with --check it is 1 unless every
server is connected (or disabled on purpose) and every configuration entry is good.`

func newListCommand(p *process, f *mcpFlags) *cobra.Command {
	var check bool
	c := f.command(p, &cobra.Command{
		Use:     "list [flags]",
		Aliases: []string{"ls"},
		Short:   "Show the status of the servers",
		Long:    listLong,
		Args:    wantArgs(0, 0, "no arguments"),
	}, "print JSON", func(s *session, _ context.Context, _ []string) error { return s.list(check) })
	c.Flags().BoolVar(&check, "check", false, "exit with status 1 if anything is wrong")
	return c
}

func (s *session) list(check bool) error {
	status := s.host.Status()
	s.progress.stop()
	reportProblems(s.process, s.problems)
	var err error
	if s.asJSON || !s.reportNone() {
		err = s.print(serverList{MCPServers: s.rows(status), Problems: append([]mcpconfig.Problem{}, s.problems...)}, s.statusTable(status))
	}
	if err == nil && check && !allWell(status, s.problems) {
		err = errReported
	}
	return err
}

// allWell reports whether every server is connected or disabled, and no configuration entry was lost.
func allWell(status []mcphost.ServerStatus, problems []mcpconfig.Problem) bool {
	for _, s := range status {
		if s.Status != mcphost.StatusConnected && !switchedOff(s) {
			return false
		}
	}
	return !slices.ContainsFunc(problems, isFault)
}

func (s *session) statusTable(status []mcphost.ServerStatus) *table {
	t := s.newTable()
	if _, ok := terminal(s.out); ok && s.ansi() {
		t.style = styleStatus
	}
	t.add("NAME", "STATUS", "TRANSPORT", "TOOLS", "TIME", "REASON")
	for _, st := range status {
		tools, took := "-", "-"
		if st.Status == mcphost.StatusConnected || st.ToolCount > 0 {
			tools = strconv.Itoa(st.ToolCount)
		}
		if d := s.connectTime(st); d > 0 {
			took = fmt.Sprintf("%.2fs", d.Seconds())
		}
		t.add(st.Name, string(st.Status), st.Transport, tools, took, listReason(st))
	}
	return t
}

// listReason returns why a server is not connected, or what is wrong with one that is.
func listReason(s mcphost.ServerStatus) string {
	r := reasonWithRemedy(s)
	switch {
	case r != "" && s.Attempt > 1:
		r += fmt.Sprintf("; that was attempt %d", s.Attempt) // the time in the row is that of all
	case r == "" && len(s.Rejected) > 0:
		r = fmt.Sprintf("left out tool %q: %s", s.Rejected[0].Name, s.Rejected[0].Reason)
		if n := len(s.Rejected) - 1; n > 0 {
			r += fmt.Sprintf(" (and %d more)", n)
		}
	}
	return r
}

// connectTime returns how long connecting took, or how long all attempts took of a server that is
// not connected. Zero means that it is not known.
func (s *session) connectTime(st mcphost.ServerStatus) time.Duration {
	switch st.Status {
	case mcphost.StatusConnected:
		return st.ConnectTime
	case mcphost.StatusDisabled:
		return 0
	}
	return max(0, st.Since.Sub(s.started))
}

// styleStatus colours the cells of the status table.
func styleStatus(row, column int, cell string) string {
	colour := 33 // yellow
	switch {
	case row == 0:
		colour = 1 // bold
	case column != 1:
		return cell
	case cell == string(mcphost.StatusConnected):
		colour = 32 // green
	case cell == string(mcphost.StatusFailed):
		colour = 31 // red
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", colour, cell)
}

// serverList is the JSON form of 'tenon mcp list'. Its rows have the keys of the Claude Code CLI's
// mcp_status, and more.
type serverList struct {
	MCPServers []statusRow         `json:"mcpServers"`
	Problems   []mcpconfig.Problem `json:"problems"`
}

type statusRow struct {
	Name            string              `json:"name"`
	Status          mcphost.Status      `json:"status"`
	Transport       string              `json:"transport"`
	Scope           string              `json:"scope,omitempty"`
	Source          string              `json:"source,omitempty"`
	URL             string              `json:"url,omitempty"`
	Error           string              `json:"error,omitempty"`
	Failure         *failureRow         `json:"failure,omitempty"`
	ServerInfo      *mcp.Implementation `json:"serverInfo,omitempty"`
	ProtocolVersion string              `json:"protocolVersion,omitempty"`
	Tools           []toolName          `json:"tools"`
	Rejected        []rejectedRow       `json:"rejectedTools,omitempty"`
	ConnectMS       int64               `json:"connectMs"`
	PID             int                 `json:"pid,omitempty"`
	Stderr          string              `json:"stderr,omitempty"`
	Limits          limitsRow           `json:"limits"`
}

type toolName struct {
	Name     string `json:"name"`
	FullName string `json:"fullName"`
}

type rejectedRow struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// failureRow is why a server could not be connected, as far as it is known.
type failureRow struct {
	Phase      string `json:"phase"`
	ExitCode   *int   `json:"exitCode,omitempty"`
	Signal     string `json:"signal,omitempty"`
	HTTPStatus int    `json:"httpStatus,omitempty"`
	Body       string `json:"body,omitempty"`
	Hint       string `json:"hint,omitempty"`
}

// limitsRow are the limits in milliseconds; 0 means none.
type limitsRow struct {
	ConnectMS int64 `json:"connectMs"`
	CallMS    int64 `json:"callMs"`
	IdleMS    int64 `json:"idleMs"`
}

func (s *session) rows(status []mcphost.ServerStatus) []statusRow {
	rows := []statusRow{}
	for _, st := range status {
		row := statusRow{
			Name: st.Name, Status: st.Status, Transport: st.Transport, Scope: st.Scope, Source: st.Source, URL: st.URL,
			Error: st.Error, ServerInfo: st.ServerInfo, ProtocolVersion: st.ProtocolVersion,
			Tools: []toolName{}, ConnectMS: s.connectTime(st).Milliseconds(), PID: st.PID, Stderr: st.Stderr,
			Limits: limitsRow{st.ConnectTimeout.Milliseconds(), st.CallTimeout.Milliseconds(), st.IdleTimeout.Milliseconds()},
		}
		if ce, ok := errors.AsType[*mcphost.ConnectError](st.Err); ok {
			row.Failure = &failureRow{Phase: ce.Phase, Signal: ce.Signal, HTTPStatus: ce.HTTPStatus, Body: ce.Body, Hint: ce.Hint}
			if ce.Exited && ce.Signal == "" {
				row.Failure.ExitCode = &ce.ExitCode
			}
		}
		for _, t := range st.Tools {
			row.Tools = append(row.Tools, toolName{t.Name, t.FullName})
		}
		for _, r := range st.Rejected {
			row.Rejected = append(row.Rejected, rejectedRow{r.Name, r.Reason})
		}
		rows = append(rows, row)
	}
	return rows
}
