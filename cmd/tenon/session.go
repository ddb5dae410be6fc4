package main

import (
	"context"
	"errors"
	"fmt"
	"time"

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

// warnVariables reports the variables that cannot be used, while the work goes on.
func (s *session) warnVariables() {
	s.progress.above(func() { reportProblems(s.process, s.variables) })
}

// report writes what is wrong with the configuration and the servers.
func (s *session) report() {
	s.progress.stop()
	reportProblems(s.process, s.problems)
	s.reportNone()
	reportServers(s.process, s.host.Status())
}

// connectedError is err, or, if the server is not connected, the reason of that.
func (s *session) connectedError(server string, err error) error {
	for _, st := range s.host.Status() {
		if st.Name == server && st.Status != mcphost.StatusConnected {
			return errors.New(serverLine(st))
		}
	}
	var ce *mcphost.CallError
	if errors.As(err, &ce) {
		return err // it names the server
	}
	return fmt.Errorf("server %q: %w", server, err)
}

// reportNone says that there are no servers, if so.
func (s *session) reportNone() bool {
	if len(s.configs) > 0 {
		return false
	}
	s.warn("no servers are configured; add some to .mcp.json or give --mcp-config FILE")
	return true
}
