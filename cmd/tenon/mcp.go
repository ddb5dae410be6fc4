package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tenon-sdk/tenon/mcpconfig"
	"github.com/tenon-sdk/tenon/mcphost"
)

// mcpFlags are the flags of the 'tenon mcp' commands that connect to servers.
type mcpFlags struct {
	serverFlags
	connectTimeout time.Duration
	verbose        bool
}

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
	c.AddCommand(newGetCommand(p), newAddCommand(p), newRemoveCommand(p), newImportCommand(p),
		newLoginCommand(p), newLogoutCommand(p))
	return c
}

func (f *mcpFlags) register(fs *pflag.FlagSet) {
	f.serverFlags.register(fs)
	fs.DurationVar(&f.connectTimeout, "connect-timeout", 0, "the `TIME` that a server has to connect, such as 5s (default MCP_TIMEOUT in milliseconds, else 30s)")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "show what the servers write to their standard error")
}

// A session is what a command has at hand while it talks to the servers.
type session struct {
	*process
	*servers
	host     *mcphost.Host
	progress *progress
	started  time.Time // when connecting began
	// variables are those among the problems that are of the environment, for commands that tell of nothing else.
	variables []mcpconfig.Problem
}

// with connects the servers, or only the named one, runs do, and closes them again. Before do runs, each server
// has been connected or has failed.
func (f *mcpFlags) with(ctx context.Context, p *process, server string, do func(*session) error) error {
	if server == "" {
		return f.withServers(ctx, p, nil, do)
	}
	return f.withServers(ctx, p, []string{server}, do)
}

// withServers does the same with the servers of these names; nil means all.
func (f *mcpFlags) withServers(ctx context.Context, p *process, names []string, do func(*session) error) error {
	if f.connectTimeout < 0 {
		return usagef("--connect-timeout is %v; give more than 0, such as 5s", f.connectTimeout)
	}
	srv, err := f.servers(ctx, p, startNamed(names))
	if err != nil {
		return err
	}
	if names != nil {
		if err := srv.only(names); err != nil {
			return err
		}
	}
	pr := startProgress(p)
	defer pr.stop()
	env := srv.environment(p)
	variables := variableProblems(env)
	srv.problems = append(srv.problems, variables...)
	o := mcphost.Options{Servers: srv.configs, Dir: p.dir, Env: env, ConnectTimeout: f.connectTimeout}
	if f.verbose {
		lines := newStderrView(p, pr)
		defer lines.close()
		o.OnStderr = lines.line
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
	return do(&session{p, srv, host, pr, started, variables})
}

// tellVariables reports the variables that cannot be used, while the work goes on.
func (s *session) tellVariables() {
	s.progress.above(func() { reportProblems(s.process, s.variables) })
}
