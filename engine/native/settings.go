package native

import (
	"maps"
	"slices"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcpconfig"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/permission"
)

// files are what the configuration files of a run come to.
type files struct {
	settings *mcpconfig.Settings
	servers  map[string]mcphost.ServerConfig
	policies map[string]map[string]permission.ToolPolicy
	problems []mcpconfig.Problem
}

// readFiles reads the configuration files that the options name. What is faulty in them is a problem;
// only a file that the program itself names has to be there.
func readFiles(o *agent.Options) (*files, error) {
	sources := o.SettingSources
	if sources == nil {
		sources = []agent.SettingSource{agent.SourceProject}
	}
	scopes := []mcpconfig.Scope{} // nil would mean all
	for _, source := range sources {
		scopes = append(scopes, mcpconfig.Scope(source))
	}
	f := &files{}
	f.settings, f.problems = mcpconfig.LoadSettings(&mcpconfig.SettingsOptions{
		Dir: o.Dir, SettingSources: scopes, Settings: o.Settings, LookupEnv: environ(o.Env).lookup,
	})
	for _, p := range f.problems {
		if p.Level == mcpconfig.LevelFile && o.Settings != "" && p.Named {
			p.Level = mcpconfig.LevelNote // what it costs is said by the error
			if p.File == "--settings" {
				p.File = "the JSON"
			}
			return nil, &agent.OptionError{Field: "Settings", Problem: "cannot be used: " + p.String(), Remedy: "set the path of a settings file, or a JSON object"}
		}
	}
	if o.StrictMCPConfig || len(scopes) == 0 {
		return f, nil
	}
	env := environ(maps.Clone(f.settings.Env))
	maps.Copy(env, o.Env)
	cfg, problems := mcpconfig.Load(&mcpconfig.LoadOptions{Dir: o.Dir, SettingSources: scopes, LookupEnv: env.lookup})
	var more []mcpconfig.Problem
	f.servers, more = cfg.ServerConfigs()
	f.policies = cfg.Policies()
	f.problems = slices.Concat(f.problems, problems, more)
	return f, nil
}

// apply lays the options over the files: what the program says itself counts.
func (f *files) apply(o *agent.Options) {
	found := mcphost.EnvProblems(func(name string) (string, bool) { // of the settings alone: package agent looked at the others
		if _, own := o.Env[name]; own {
			return "", false
		}
		v, ok := f.settings.Env[name]
		return v, ok
	})
	env := maps.Clone(f.settings.Env)
	maps.Copy(env, o.Env)
	o.Env = env
	noteVariables(o, append(found, outputRetriesProblem(environ(env))...))
	for name, config := range f.servers {
		if _, own := o.MCPServers[name]; own {
			delete(f.policies, name)
			continue
		}
		if o.MCPServers == nil {
			o.MCPServers = map[string]mcphost.ServerConfig{}
		}
		o.MCPServers[name] = config
	}
	o.AllowedTools = slices.Concat(o.AllowedTools, f.settings.Allow)
	o.DisallowedTools = slices.Concat(o.DisallowedTools, f.settings.Deny)
	o.AskTools = slices.Concat(o.AskTools, f.settings.Ask)
	o.AdditionalDirectories = slices.Concat(o.AdditionalDirectories, f.settings.Directories)
	if o.PermissionMode == "" {
		o.PermissionMode = f.settings.Mode
	}
	for _, p := range f.problems {
		o.ConfigProblems = append(o.ConfigProblems, agent.MCPServerError{Name: p.Server, Type: "invalid_config", Message: p.String()})
	}
}

// noteVariables adds variables that cannot be used to the problems of the configuration.
func noteVariables(o *agent.Options, problems []mcphost.EnvProblem) {
	for _, p := range problems {
		o.ConfigProblems = append(o.ConfigProblems, agent.MCPServerError{Type: "invalid_environment", Message: p.String()})
	}
}
