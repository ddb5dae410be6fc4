package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tenon-sdk/tenon/internal/file"
	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/mcpconfig"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/permission"
)

// serverFlags are the flags that select the servers.
type serverFlags struct {
	configs    []string
	strict     bool
	sources    []string      // --setting-sources
	trusted    bool          // --trust-project
	more       string        // --settings, where a command has it
	promptTool string        // --permission-prompt-tool, where a command has it
	trust      *projectTrust // set by load
}

func newServerFlags() *serverFlags {
	return &serverFlags{sources: []string{"user", "project", "local"}}
}

func (f *serverFlags) register(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.configs, "mcp-config", nil, "servers from `FILE`, or from JSON given in place; may be repeated")
	fs.BoolVar(&f.strict, "strict-mcp-config", false, "use the servers of --mcp-config only")
	fs.BoolVar(&f.trusted, "trust-project", false, "trust what the project's files say, also rules that allow, hooks and environment (also TENON_TRUST_PROJECT=1; see 'tenon trust')")
	fs.StringSliceVar(&f.sources, "setting-sources", newServerFlags().sources,
		"the `SOURCES` to read beside --mcp-config: user and local (~/.claude.json), project (.mcp.json here or in a parent directory of the repository), and the settings files of each")
	fs.Lookup("setting-sources").DefValue = "user,project,local"
}

// loaded is a configuration with the problems in it.
type loaded struct {
	cfg      *mcpconfig.Config
	settings *mcpconfig.Settings
	problems []mcpconfig.Problem
}

// load reads the configuration. Only a fault of a flag is an error; any other is a problem.
func (f *serverFlags) load(ctx context.Context, p *process) (*loaded, error) {
	if _, err := workDir(); err != nil {
		return nil, err
	}
	if err := f.readPipes(ctx, p); err != nil {
		return nil, err
	}
	scopes := []mcpconfig.Scope{}
	for i, s := range f.sources {
		f.sources[i] = strings.TrimSpace(s)
		scope := mcpconfig.Scope(f.sources[i])
		if !slices.Contains(editScopes, scope) {
			return nil, usagef("--setting-sources: unknown source %q; give any of user, project, local", s)
		}
		scopes = append(scopes, scope)
	}
	if f.trust == nil {
		f.trust = p.newProjectTrust(f.trusted)
	}
	clear(f.trust.files)
	clear(f.trust.untrusted)
	// The run that the settings are for reports their other problems.
	settings, _ := mcpconfig.LoadSettings(&mcpconfig.SettingsOptions{
		SettingSources: scopes, Settings: f.more, TrustFile: f.trust.trusts, LookupEnv: p.lookupEnv,
	})
	cfg, problems := mcpconfig.Load(&mcpconfig.LoadOptions{
		SettingSources: scopes, MCPConfigs: f.configs, Strict: f.strict, TrustFile: f.trust.trusts,
		LookupEnv: func(name string) (string, bool) {
			if v, ok := settings.Env[name]; ok {
				return v, true
			}
			return p.lookupEnv(name)
		},
	})
	for _, pr := range problems {
		if pr.Level == mcpconfig.LevelFile && pr.Named {
			if !strings.HasPrefix(pr.File, "--mcp-config") {
				pr.File = "--mcp-config: " + pr.File
			}
			pr.Level = mcpconfig.LevelNote // the command ends, so nothing has to say that the file is not used
			return nil, usagef("%s", problemText(pr))
		}
	}
	return &loaded{cfg, settings, problems}, nil
}

// readPipes replaces the names of pipes in --mcp-config and --settings by the text that is read from
// them. A pipe, such as the shell's <(...), can be read once, and may have no writer.
func (f *serverFlags) readPipes(ctx context.Context, p *process) error {
	read := func(flag string, value *string) error {
		info, err := os.Stat(*value)
		if err != nil || info.Mode().IsRegular() || info.IsDir() {
			return nil //nolint:nilerr // JSON, or a fault that the reader of the file reports
		}
		text, err := readNamed(ctx, *value)
		switch {
		case ctx.Err() != nil:
			return err
		case err != nil:
			return usagef("%s: reading %s: %v", flag, *value, file.Cause(err))
		}
		if text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))); !bytes.HasPrefix(text, []byte("{")) {
			return usagef("%s: %s holds no JSON object", flag, *value)
		}
		*value = string(text)
		return nil
	}
	for i := range f.configs {
		if err := read("--mcp-config", &f.configs[i]); err != nil {
			return err
		}
	}
	return read("--settings", &f.more)
}

// complete completes the names of servers for the first argument of a command. It connects nothing.
func (f *serverFlags) complete(p *process) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault // perhaps files
		}
		l, err := f.load(c.Context(), p)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return l.cfg.Names(), cobra.ShellCompDirectiveNoFileComp
	}
}

// servers are the servers of a configuration, ready to be connected.
type servers struct {
	*loaded
	configs map[string]mcphost.ServerConfig
	rules   map[permission.ToolPolicy][]string // the policies of single tools, as full names
}

// servers returns the servers that the flags select. The start is what the command does with those
// of a project.
func (f *serverFlags) servers(ctx context.Context, p *process, start projectStart) (*servers, error) {
	l, err := f.decided(ctx, p, start)
	if err != nil {
		return nil, err
	}
	configs, more := l.cfg.ServerConfigs()
	l.problems = append(l.problems, more...)
	s := &servers{l, configs, map[permission.ToolPolicy][]string{}}
	policies := l.cfg.Policies()
	for _, server := range slices.Sorted(maps.Keys(policies)) {
		for _, tool := range slices.Sorted(maps.Keys(policies[server])) {
			policy := policies[server][tool]
			s.rules[policy] = append(s.rules[policy], toolname.Fit(server, tool, mcphost.DefaultNameLimit))
		}
	}
	return s, nil
}

// decided loads the configuration and decides about the servers of an untrusted project. After an
// approval it reads the files again, and asks again about one that has changed.
func (f *serverFlags) decided(ctx context.Context, p *process, start projectStart) (*loaded, error) {
	for {
		l, err := f.load(ctx, p)
		if err != nil {
			return nil, err
		}
		if start.run {
			l.problems = append(l.problems, l.cfg.KeepGuards(l.settings.Hooks, f.promptTool)...)
		}
		if approved, err := f.trust.decide(ctx, p, l.cfg, start); err != nil || !approved {
			return l, err
		}
	}
}

// environment returns the environment of the process, overridden by that of the settings files.
func (s *servers) environment(p *process) map[string]string {
	env := p.envMap()
	maps.Copy(env, s.settings.Env)
	return env
}

// variableProblems returns the problems of variables that cannot be used.
func variableProblems(env map[string]string) []mcpconfig.Problem {
	var problems []mcpconfig.Problem
	for _, v := range mcphost.EnvProblems(func(name string) (string, bool) { value, ok := env[name]; return value, ok }) {
		problems = append(problems, mcpconfig.Problem{Level: mcpconfig.LevelNote, Message: v.String()})
	}
	return problems
}

// only removes all servers but those of these names, so that nothing else is started. Without names
// all stay.
func (s *servers) only(names []string) error {
	for _, name := range names {
		if s.configs[name] == nil {
			return s.unknown(name)
		}
	}
	if len(names) > 0 {
		maps.DeleteFunc(s.configs, func(name string, _ mcphost.ServerConfig) bool { return !slices.Contains(names, name) })
		s.problems = slices.DeleteFunc(s.problems, func(pr mcpconfig.Problem) bool { return pr.Server != "" && !slices.Contains(names, pr.Server) })
	}
	return nil
}

// unknown returns the error for a server that is not configured: a problem of its entry, or of a
// file that may have it, if there is one.
func (l *loaded) unknown(name string) error {
	var lost []string
	for _, pr := range l.problems {
		switch {
		case pr.Server == name && isFault(pr):
			return fmt.Errorf("server %q cannot be used: %s", name, problemText(pr))
		case pr.Level == mcpconfig.LevelFile:
			lost = append(lost, problemText(pr))
		}
	}
	configs, _ := l.cfg.ServerConfigs() // the refused ones as well
	names := slices.Sorted(maps.Keys(configs))
	switch hint := didYouMean(name, names); {
	case len(lost) > 0:
		return fmt.Errorf("no server %q could be found: %s", name, strings.Join(lost, "; "))
	case len(names) == 0:
		return usagef("no server %q: no servers are configured; add some to .mcp.json or give --mcp-config FILE", name)
	case hint != "":
		return usagef("no server %q%s", name, hint)
	case len(names) <= 8:
		return usagef("no server %q; there is %s", name, orList(names))
	default:
		return usagef("no server %q; 'tenon mcp list' shows the %d that there are", name, len(names))
	}
}
