package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/mcpconfig"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/permission"
)

// serverFlags are the flags that say which servers there are.
type serverFlags struct {
	configs []string
	strict  bool
	sources sourceList
	more    string // --settings, where a command has it
	trusted bool   // --trust-project

	// promptTool is the tool that is asked for permission, where a command has one.
	promptTool string

	trust *projectTrust // set by load
}

func (f *serverFlags) register(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.configs, "mcp-config", nil, "servers from `FILE`, or from JSON given in place; may be repeated")
	fs.BoolVar(&f.strict, "strict-mcp-config", false, "use the servers of --mcp-config only")
	fs.BoolVar(&f.trusted, "trust-project", false, "trust what the project's files say, also rules that allow, hooks and environment (also TENON_TRUST_PROJECT=1; see 'tenon trust')")
	f.sources.names = allSources()
	fs.Var(&f.sources, "setting-sources",
		"the `SOURCES` to read beside --mcp-config: user and local (~/.claude.json), project (.mcp.json here or in a parent directory of the repository), and the settings files of each")
}

func allSources() []string { return []string{"user", "project", "local"} }

// load reads the configuration. What is wrong in one of its parts is a problem and costs that part; only a
// flag that cannot be meant is an error.
func (f *serverFlags) load(ctx context.Context, p *process) (*mcpconfig.Config, *mcpconfig.Settings, []mcpconfig.Problem, error) {
	if _, err := p.workDir(); err != nil {
		return nil, nil, nil, err
	}
	if err := f.readPipes(ctx, p); err != nil {
		return nil, nil, nil, err
	}
	scopes := []mcpconfig.Scope{}
	for _, s := range f.sources.names {
		scope := mcpconfig.Scope(s)
		if !slices.Contains([]mcpconfig.Scope{mcpconfig.ScopeUser, mcpconfig.ScopeProject, mcpconfig.ScopeLocal}, scope) {
			return nil, nil, nil, usagef("--setting-sources: unknown source %q; give any of user, project, local", s)
		}
		scopes = append(scopes, scope)
	}
	if f.trust == nil {
		f.trust = p.newProjectTrust(f.trusted)
	}
	clear(f.trust.files)
	clear(f.trust.untrusted)
	// Their other problems are told of by the run that they are for.
	settings, _ := mcpconfig.LoadSettings(&mcpconfig.SettingsOptions{
		Dir: p.dir, SettingSources: scopes, Settings: f.more, TrustFile: f.trust.trusts, LookupEnv: p.lookupEnv,
	})
	lookupEnv := func(name string) (string, bool) {
		if v, ok := settings.Env[name]; ok {
			return v, true
		}
		return p.lookupEnv(name)
	}
	cfg, problems := mcpconfig.Load(&mcpconfig.LoadOptions{
		Dir:            p.dir,
		SettingSources: scopes,
		MCPConfigs:     f.configs,
		Strict:         f.strict,
		TrustFile:      f.trust.trusts,
		LookupEnv:      lookupEnv,
	})
	for _, pr := range problems {
		if pr.Level == mcpconfig.LevelFile && f.names(p, pr.File) {
			if !strings.HasPrefix(pr.File, "--mcp-config") {
				pr.File = "--mcp-config: " + pr.File
			}
			pr.Level = mcpconfig.LevelNote // the run ends here, and it goes without saying that nothing is used
			return nil, nil, nil, usagef("%s", problemText(pr))
		}
	}
	return cfg, settings, problems, nil
}

// readPipes reads the files of --mcp-config and --settings that are none on a disk, and puts their text in the place of
// their names: a pipe, such as the shell's <(...), can be read once, and nobody may ever write to it.
func (f *serverFlags) readPipes(ctx context.Context, p *process) error {
	read := func(flag string, value *string) error {
		info, err := os.Stat(p.path(*value))
		if err != nil || info.Mode().IsRegular() || info.IsDir() {
			return nil //nolint:nilerr // JSON, or what is wrong with the file is reported where it is read
		}
		text, err := readNamed(ctx, p.path(*value))
		switch {
		case ctx.Err() != nil:
			return err
		case err != nil:
			return usagef("%s: reading %s: %v", flag, *value, pathCause(err))
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

// names reports whether --mcp-config names the file of a problem, or has the JSON itself.
func (f *serverFlags) names(p *process, file string) bool {
	if strings.HasPrefix(file, "--mcp-config") { // perhaps with the number of it
		return true
	}
	for _, given := range f.configs {
		if abs, err := filepath.Abs(p.path(given)); given == file || err == nil && abs == file {
			return true
		}
	}
	return false
}

// servers are the entries of a configuration, ready to be connected.
type servers struct {
	configs  map[string]mcphost.ServerConfig
	problems []mcpconfig.Problem
	env      map[string]string                  // of the settings files
	rules    map[permission.ToolPolicy][]string // the policies of single tools, as full names
}

// complete offers the names of servers for the first argument of a command. Nothing is connected for that.
func (f *serverFlags) complete(p *process) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault // perhaps files
		}
		cfg, _, _, err := f.load(c.Context(), p)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return cfg.Names(), cobra.ShellCompDirectiveNoFileComp
	}
}

// servers are those that the flags come to. The start is what the command is about to do with those of a project.
func (f *serverFlags) servers(ctx context.Context, p *process, start projectStart) (*servers, error) {
	cfg, env, problems, err := f.decided(ctx, p, start)
	if err != nil {
		return nil, err
	}
	configs, more := cfg.ServerConfigs()
	return &servers{configs, append(problems, more...), env, policyRules(cfg.Policies())}, nil
}

// decided loads the configuration and settles what becomes of the servers of a project that is not trusted. After an
// approval the files are read again, and asked about again if they have changed meanwhile.
func (f *serverFlags) decided(ctx context.Context, p *process, start projectStart) (*mcpconfig.Config, map[string]string, []mcpconfig.Problem, error) {
	for {
		cfg, settings, problems, err := f.load(ctx, p)
		if err != nil {
			return nil, nil, nil, err
		}
		if start.run {
			problems = append(problems, cfg.KeepGuards(settings.Hooks, f.promptTool)...)
		}
		if approved, err := f.trust.decide(ctx, p, cfg, start); err != nil {
			return nil, nil, nil, err
		} else if !approved {
			return cfg, settings.Env, problems, nil
		}
	}
}

// environment is the process's with that of the settings files on top, as in Claude Code.
func (s *servers) environment(p *process) map[string]string {
	env := p.envMap()
	maps.Copy(env, s.env)
	return env
}

// variableProblems are the variables that cannot be used.
func variableProblems(env map[string]string) []mcpconfig.Problem {
	var problems []mcpconfig.Problem
	for _, v := range mcphost.EnvProblems(func(name string) (string, bool) { value, ok := env[name]; return value, ok }) {
		problems = append(problems, mcpconfig.Problem{Level: mcpconfig.LevelNote, Message: v.String()})
	}
	return problems
}

// policyRules turns the policies of single tools into rules for them.
func policyRules(policies map[string]map[string]permission.ToolPolicy) map[permission.ToolPolicy][]string {
	rules := map[permission.ToolPolicy][]string{}
	for _, server := range slices.Sorted(maps.Keys(policies)) {
		for _, tool := range slices.Sorted(maps.Keys(policies[server])) {
			policy := policies[server][tool]
			rules[policy] = append(rules[policy], toolname.Fit(server, tool, mcphost.DefaultNameLimit))
		}
	}
	return rules
}

// names are the servers' names, sorted.
func (s *servers) names() []string { return slices.Sorted(maps.Keys(s.configs)) }

// only keeps the servers of these names, so that nothing else is started.
func (s *servers) only(names []string) error {
	kept := map[string]mcphost.ServerConfig{}
	for _, name := range names {
		cfg, ok := s.configs[name]
		if !ok {
			return s.unknown(name)
		}
		kept[name] = cfg
	}
	s.configs = kept
	s.problems = slices.DeleteFunc(s.problems, func(pr mcpconfig.Problem) bool { return pr.Server != "" && !slices.Contains(names, pr.Server) })
	return nil
}

// unknown is the error for a server that is not configured. A problem of that very entry is the better answer, and so
// is one of a file that it may stand in.
func (s *servers) unknown(name string) error {
	for _, pr := range s.problems {
		if pr.Server == name && isFault(pr) {
			return fmt.Errorf("server %q cannot be used: %s", name, problemText(pr))
		}
	}
	var lost []string
	for _, pr := range s.problems {
		if pr.Level == mcpconfig.LevelFile {
			lost = append(lost, problemText(pr))
		}
	}
	if len(lost) > 0 {
		return fmt.Errorf("no server %q could be found: %s", name, strings.Join(lost, "; "))
	}
	names := s.names()
	switch hint := didYouMean(name, names); {
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
