package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

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
