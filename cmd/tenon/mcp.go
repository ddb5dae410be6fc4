package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tenon-sdk/tenon/mcpconfig"
	"github.com/tenon-sdk/tenon/mcphost"
)

func newMCPCommand(p *process) *cobra.Command {
	c := &cobra.Command{
		Use:   "mcp",
		Short: "Inspect MCP servers and call their tools, without a model",
		Long: `Inspect MCP servers and call their tools, without a model, and edit their configuration.

The servers are those of .mcp.json here or in a parent directory of the repository (the nearest wins), of the
user's and the local configuration in ~/.claude.json, and of --mcp-config. What is wrong with a configuration
entry is reported on standard error, and the other entries are used. Servers of a project that is not trusted
are asked about on a terminal, and elsewhere not started: see 'tenon trust'.`,
		Args: cobra.ArbitraryArgs,
		RunE: groupRun,
	}
	for _, make := range []func(*process, *mcpFlags) *cobra.Command{
		newListCommand, newStatusCommand, newDoctorCommand, newToolsCommand, newSearchCommand, newCallCommand,
		newResourcesCommand, newReadCommand, newPromptsCommand, newPromptCommand,
	} {
		f := new(mcpFlags)
		sub := make(p, f)
		f.register(sub.Flags())
		if strings.Contains(sub.Use, "SERVER") {
			sub.ValidArgsFunction = f.complete(p)
		}
		c.AddCommand(sub)
	}
	c.AddCommand(newGetCommand(p), newAddCommand(p), newRemoveCommand(p), newImportCommand(p), newLoginCommand(p), newLogoutCommand(p))
	return c
}

// mcpFlags are the flags of the 'tenon mcp' commands that connect to servers.
type mcpFlags struct {
	serverFlags
	connectTimeout time.Duration
	verbose        bool
	asJSON         bool
}

func (f *mcpFlags) register(fs *pflag.FlagSet) {
	f.serverFlags.register(fs)
	fs.DurationVar(&f.connectTimeout, "connect-timeout", 0, "the `TIME` that a server has to connect, such as 5s (default MCP_TIMEOUT in milliseconds, else 30s)")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "show what the servers write to their standard error")
}

// command adds to a command what connects the servers and runs do. If the command has an argument
// SERVER, and one is given, only that server is connected. jsonUsage describes the flag --json.
func (f *mcpFlags) command(p *process, c *cobra.Command, jsonUsage string, do func(*session, context.Context, []string) error) *cobra.Command {
	if jsonUsage != "" {
		c.Flags().BoolVar(&f.asJSON, "json", false, jsonUsage)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		var names []string
		if strings.Contains(c.Use, "SERVER") {
			names = args[:min(1, len(args))]
		}
		return f.with(c.Context(), p, names, func(s *session) error { return do(s, c.Context(), args) })
	}
	return c
}

// A session is the state of a command that is connected to servers.
type session struct {
	*process
	*servers
	*mcpFlags
	host     *mcphost.Host
	progress *progress
	started  time.Time // when connecting began
	// variables are the problems of the environment, for commands that report nothing else.
	variables []mcpconfig.Problem
}

// with connects the servers of these names, or without names all, runs do, and closes them again.
// Before do runs, each server has been connected or has failed.
func (f *mcpFlags) with(ctx context.Context, p *process, names []string, do func(*session) error) error {
	if f.connectTimeout < 0 {
		return usagef("--connect-timeout is %v; give more than 0, such as 5s", f.connectTimeout)
	}
	srv, err := f.servers(ctx, p, projectStart{only: names})
	if err != nil {
		return err
	}
	if err := srv.only(names); err != nil {
		return err
	}
	pr := startProgress(p)
	defer pr.stop()
	env := srv.environment(p)
	variables := variableProblems(env)
	srv.problems = append(srv.problems, variables...)
	o := mcphost.Options{Servers: srv.configs, Env: env, ConnectTimeout: f.connectTimeout}
	if f.verbose {
		report := newReporter(p, pr)
		defer report.close()
		o.OnStderr = report.stderr
	}
	host, err := mcphost.New(&o)
	if err != nil {
		return err
	}
	defer host.Close()
	p.kill.set(func() []int { return processIDs(host.Status()) })
	started := time.Now()
	host.Start(ctx)
	stop := pr.follow(func() { pr.set("%s", connecting(host.Status())) })
	err = host.Ready(ctx)
	stop()
	if err != nil {
		return err
	}
	pr.set("")
	return do(&session{p, srv, f, host, pr, started, variables})
}

// warnVariables reports the variables that cannot be used, above the progress.
func (s *session) warnVariables() {
	s.progress.above(func() { reportProblems(s.process, s.variables) })
}

// report ends the progress and writes what is wrong with the configuration and the servers. It
// reports whether a server is not connected.
func (s *session) report() (failed bool) {
	s.progress.stop()
	reportProblems(s.process, s.problems)
	s.reportNone()
	for _, st := range s.host.Status() {
		if st.Status != mcphost.StatusConnected && !switchedOff(st) {
			failed = true
			s.warn("%s", serverLine(st))
		}
		for _, r := range st.Rejected {
			s.warn("server %q: left out tool %q: %s", st.Name, r.Name, oneLine(r.Reason))
		}
	}
	return failed
}

// print writes a value with --json, else the table.
func (s *session) print(value any, t *table) error {
	if s.asJSON {
		return writeJSON(s.process, value)
	}
	return t.write(s.out)
}

// connectedError returns err, or the reason if the server is not connected.
func (s *session) connectedError(server string, err error) error {
	if st, ok := s.host.ServerStatus(server); ok && st.Status != mcphost.StatusConnected {
		return errors.New(serverLine(st))
	}
	if _, ok := errors.AsType[*mcphost.CallError](err); ok {
		return err // it names the server
	}
	return fmt.Errorf("server %q: %w", server, err)
}

// reportNone reports whether there are no servers, and writes that.
func (s *session) reportNone() bool {
	if len(s.configs) > 0 {
		return false
	}
	s.warn("no servers are configured; add some to .mcp.json or give --mcp-config FILE")
	return true
}
