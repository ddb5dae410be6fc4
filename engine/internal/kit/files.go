// Package kit has what the engines have in common, so that a run means the same on each of them: the
// configuration files, the running of hooks, and the wait for servers.
package kit

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/mcpconfig"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/permission"
)

// Files are the configuration files of a run.
type Files struct {
	// Settings are never nil. Apply adds them to the options, except Model and Hooks.
	Settings *mcpconfig.Settings
	// Servers are the servers of the files. A faulty entry is an [mcphost.Invalid].
	Servers map[string]mcphost.ServerConfig
	// Policies are the permission policies by server and tool. Apply removes those of unused servers.
	Policies map[string]map[string]permission.ToolPolicy
	// Problems are faulty parts of the files, and parts that have no effect without trust.
	Problems []mcpconfig.Problem
	// Denied are servers that the Claude Code CLI finds by itself and must not use.
	Denied []string

	places map[string]mcpconfig.Entry // of Servers
	cli    *Files                     // what the Claude Code CLI reads itself; nil for other engines
	above  []string                   // servers of files above the repository, which the CLI would use
}

// ReadFiles reads the files of o.SettingSources and o.Settings. Faulty files are problems. If o.Settings
// cannot be used, the error is an [agent.OptionError].
func ReadFiles(o *agent.Options) (*Files, error) {
	sources := o.SettingSources
	if sources == nil {
		sources = []agent.SettingSource{agent.SourceProject}
	}
	return read(o, sources, o.Settings)
}

func read(o *agent.Options, sources []agent.SettingSource, settings string) (*Files, error) {
	f := &Files{}
	scopes := scopesOf(sources)
	f.Settings, f.Problems = mcpconfig.LoadSettings(&mcpconfig.SettingsOptions{
		Dir: o.Dir, SettingSources: scopes, Settings: settings, LookupEnv: Lookup(o.Env), TrustFile: TrustFile(o),
	})
	for _, p := range f.Problems {
		if p.Level == mcpconfig.LevelFile && settings != "" && p.Named {
			p.Level = mcpconfig.LevelNote
			if p.File == "--settings" {
				p.File = "the JSON"
			}
			return nil, &agent.OptionError{Field: "Settings", Problem: "cannot be used: " + p.String(), Remedy: "set the path of a settings file, or a JSON object"}
		}
	}
	env := maps.Clone(f.Settings.Env)
	maps.Copy(env, o.Env)
	f.readServers(o, scopes, env)
	return f, nil
}

func scopesOf(sources []agent.SettingSource) []mcpconfig.Scope {
	scopes := []mcpconfig.Scope{} // nil would mean all
	for _, source := range sources {
		scopes = append(scopes, mcpconfig.Scope(source))
	}
	return scopes
}

// readServers reads the servers of the files.
func (f *Files) readServers(o *agent.Options, scopes []mcpconfig.Scope, env map[string]string) {
	if o.StrictMCPConfig || len(scopes) == 0 {
		return
	}
	cfg, problems := mcpconfig.Load(&mcpconfig.LoadOptions{Dir: o.Dir, SettingSources: scopes, LookupEnv: Lookup(env), TrustFile: TrustFile(o)})
	guards := cfg.KeepGuards(slices.Concat(f.Settings.Hooks, otherHooks(o)), o.PermissionPromptTool)
	var more []mcpconfig.Problem
	f.Servers, more = cfg.ServerConfigs()
	f.Policies = cfg.Policies()
	f.Problems = slices.Concat(f.Problems, problems, guards, more)
	f.places = maps.Clone(cfg.Servers)
	for name, r := range cfg.Refused {
		f.places[name] = r.Entry
	}
}

// TrustFile returns the function that decides about the files of a checkout. Without one of the program's,
// the sources that the program names are trusted.
func TrustFile(o *agent.Options) func(file string, contents []byte) bool {
	switch {
	case o.TrustFile != nil:
		return o.TrustFile
	case o.SettingSources != nil:
		return func(string, []byte) bool { return true }
	}
	return nil
}

// Lookup returns a function that looks a variable up in an overlay, then in the process environment.
func Lookup(env map[string]string) func(name string) (string, bool) {
	return func(name string) (string, bool) {
		if v, ok := env[name]; ok {
			return v, true
		}
		return os.LookupEnv(name)
	}
}

// Apply adds the files to the options, which take precedence.
func (f *Files) Apply(o *agent.Options) {
	found := mcphost.EnvProblems(func(name string) (string, bool) { // package agent has checked o.Env
		if _, own := o.Env[name]; own {
			return "", false
		}
		v, ok := f.Settings.Env[name]
		return v, ok
	})
	env := maps.Clone(f.Settings.Env)
	maps.Copy(env, o.Env)
	o.Env = env
	NoteVariables(o, found)
	f.addServers(o, f.free(o))
	f.addCLIServers(o)
	o.AllowedTools = slices.Concat(o.AllowedTools, f.Settings.Allow)
	o.DisallowedTools = slices.Concat(o.DisallowedTools, f.Settings.Deny)
	o.AskTools = slices.Concat(o.AskTools, f.Settings.Ask)
	o.AdditionalDirectories = slices.Concat(o.AdditionalDirectories, f.Settings.Directories)
	o.PermissionMode = cmp.Or(o.PermissionMode, f.Settings.Mode)
	problems := f.Problems
	if f.cli != nil {
		problems = slices.Concat(problems, f.cli.Problems)
	}
	for _, p := range problems {
		kind := "invalid_config"
		if p.Level == mcpconfig.LevelUntrusted {
			kind = "untrusted_config"
		}
		reported := func(e agent.MCPServerError) bool { return e.Message == p.String() } // two readers may refuse one file
		if !slices.ContainsFunc(o.ConfigProblems, reported) {
			o.ConfigProblems = append(o.ConfigProblems, agent.MCPServerError{Name: p.Server, Type: kind, Message: p.String()})
		}
	}
}

// addServers adds servers of the files to the program's.
func (f *Files) addServers(o *agent.Options, names []string) {
	for _, name := range names {
		if o.MCPServers == nil {
			o.MCPServers = map[string]mcphost.ServerConfig{}
		}
		o.MCPServers[name] = f.Servers[name]
	}
}

// free returns the servers of the files whose tools have other names than those of the program's servers,
// sorted, and reports the others.
func (f *Files) free(o *agent.Options) []string {
	var names []string
	own := ServerNames(o)
	for _, name := range slices.Sorted(maps.Keys(f.Servers)) {
		place := f.places[name]
		if by, taken := takenBy(own, name, !place.Untrusted); taken {
			delete(f.Policies, name)
			o.ConfigProblems = append(o.ConfigProblems, agent.MCPServerError{
				Name: name, Type: "name_taken",
				Message: fmt.Sprintf("%s:%d: server %q is left out: its tools could not be told from those of the program's server %q; give it another name", place.Source, place.Line, name, by),
			})
			continue
		}
		names = append(names, name)
	}
	return names
}

// ServerNames returns the names of the servers that the program gives, sorted.
func ServerNames(o *agent.Options) []string {
	names := slices.Collect(maps.Keys(o.MCPServers))
	if o.Host != nil {
		for _, s := range o.Host.Status() {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// takenBy returns the server whose tools could have the same names as those of a server. The name of an
// untrusted server must not even begin alike.
func takenBy(names []string, name string, trusted bool) (by string, taken bool) {
	for _, by := range names {
		if toolname.Server(by) == toolname.Server(name) || !trusted && toolname.Overlap(by, name) {
			return by, true
		}
	}
	return "", false
}

// NoteVariables adds invalid variables to the problems of the configuration.
func NoteVariables(o *agent.Options, problems []mcphost.EnvProblem) {
	for _, p := range problems {
		o.ConfigProblems = append(o.ConfigProblems, agent.MCPServerError{Type: "invalid_environment", Message: p.String()})
	}
}

// otherHooks returns the hooks of files that need no trust: the user's and the program's.
func otherHooks(o *agent.Options) []mcpconfig.ToolHook {
	sources := []mcpconfig.Scope{}
	if slices.Contains(o.SettingSources, agent.SourceUser) {
		sources = append(sources, mcpconfig.ScopeUser)
	}
	s, _ := mcpconfig.LoadSettings(&mcpconfig.SettingsOptions{Dir: o.Dir, SettingSources: sources, Settings: o.Settings, LookupEnv: Lookup(o.Env)})
	return s.Hooks
}
