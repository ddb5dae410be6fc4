package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tenon-sdk/tenon/mcpconfig"
	"github.com/tenon-sdk/tenon/mcphost"
)

// serverFlags are the flags that say which servers there are.
type serverFlags struct {
	configs []string
	strict  bool
	sources []string
}

func (f *serverFlags) register(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.configs, "mcp-config", nil, "servers from `FILE`, or from JSON given in place; may be repeated")
	fs.BoolVar(&f.strict, "strict-mcp-config", false, "use the servers of --mcp-config only")
	fs.StringSliceVar(&f.sources, "setting-sources", []string{"user", "project", "local"},
		"the `SOURCES` to read beside --mcp-config: user and local (~/.claude.json), project (.mcp.json here or in a parent directory)")
}

// load reads the configuration. What is wrong in one of its parts is a problem and costs that part; only a
// flag that cannot be meant is an error.
func (f *serverFlags) load(p *process) (*mcpconfig.Config, []mcpconfig.Problem, error) {
	scopes := []mcpconfig.Scope{}
	for _, s := range f.sources {
		scope := mcpconfig.Scope(strings.TrimSpace(s))
		known := []mcpconfig.Scope{mcpconfig.ScopeUser, mcpconfig.ScopeProject, mcpconfig.ScopeLocal}
		switch {
		case scope == "": // --setting-sources= reads none
		case slices.Contains(known, scope):
			scopes = append(scopes, scope)
		default:
			return nil, nil, usagef("--setting-sources: unknown source %q; give any of user, project, local", s)
		}
	}
	cfg, problems := mcpconfig.Load(&mcpconfig.LoadOptions{
		Dir:            p.dir,
		SettingSources: scopes,
		MCPConfigs:     f.configs,
		Strict:         f.strict,
		LookupEnv:      p.lookupEnv,
	})
	return cfg, problems, nil
}

// servers are the entries of a configuration, ready to be connected.
type servers struct {
	configs  map[string]mcphost.ServerConfig
	problems []mcpconfig.Problem
}

func (f *serverFlags) servers(p *process) (*servers, error) {
	cfg, problems, err := f.load(p)
	if err != nil {
		return nil, err
	}
	configs, more := cfg.ServerConfigs()
	return &servers{configs, append(problems, more...)}, nil
}

// names are the servers' names, sorted.
func (s *servers) names() []string { return slices.Sorted(maps.Keys(s.configs)) }

// only keeps one server, so that nothing else is started.
func (s *servers) only(name string) error {
	cfg, ok := s.configs[name]
	if !ok {
		return s.unknown(name)
	}
	s.configs = map[string]mcphost.ServerConfig{name: cfg}
	return nil
}

// unknown is the error for a server that is not configured. A problem of that very entry is the better answer.
func (s *servers) unknown(name string) error {
	for _, pr := range s.problems {
		if pr.Server == name && pr.Level != mcpconfig.LevelNote {
			return fmt.Errorf("server %q cannot be used: %s", name, problemText(pr))
		}
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

// reportProblems writes each problem on a line of its own.
func reportProblems(p *process, problems []mcpconfig.Problem) {
	for _, pr := range problems {
		fmt.Fprintf(p.err, "tenon: %s\n", problemText(pr))
	}
}

func problemText(pr mcpconfig.Problem) string { return oneLine(printable(fmt.Sprint(pr))) }

// processIDs are the ids of the servers' processes, each the leader of its process group.
func processIDs(status []mcphost.ServerStatus) []int {
	var pids []int
	for _, s := range status {
		if s.PID != 0 {
			pids = append(pids, s.PID)
		}
	}
	return pids
}

// connecting says which servers are still being connected; empty when none is.
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

// reason says in one line why a server is not connected. For a server that is, it is empty.
func reason(s mcphost.ServerStatus) string {
	if s.Status == mcphost.StatusConnected || s.Error == "" {
		return ""
	}
	return oneLine(printable(s.Error))
}
