package kit

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/internal/file"
	"github.com/tenon-sdk/tenon/mcpconfig"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/permission"
)

// ReadForCLI reads the files that the Claude Code CLI must not read itself, and returns the sources that it
// may read. The CLI does not know trust, so it reads only sources that the program names without TrustFile,
// unless a file of the checkout is refused. o.Settings is left to the engine.
//
// [Files.Apply] adds the servers, rules, mode, directories and variables of all files to the options of the
// CLI. Other settings of trusted files are in [mcpconfig.Settings.Trusted]. Files that the CLI reads are
// included, because it does not trust all of a project's files.
func ReadForCLI(o *agent.Options) (f *Files, cli []agent.SettingSource, err error) {
	cli = []agent.SettingSource{}
	own := []agent.SettingSource{}
	switch {
	case o.SettingSources == nil:
		own = append(own, agent.SourceProject)
	case o.TrustFile == nil:
		cli = slices.Clone(o.SettingSources)
	default:
		for _, s := range o.SettingSources {
			if s == agent.SourceUser {
				cli = append(cli, s)
			} else {
				own = append(own, s)
			}
		}
	}
	theirs, above, refused := readTheirs(o, cli)
	if refused {
		cli = slices.DeleteFunc(cli, func(s agent.SettingSource) bool {
			if s != agent.SourceUser {
				own = append(own, s)
			}
			return s != agent.SourceUser
		})
		theirs, above, _ = readTheirs(o, cli)
	}
	if f, err = read(o, own, ""); err != nil {
		return nil, nil, err
	}
	f.withoutLogins()
	f.cli, f.above = theirs, above
	a, b := theirs.Settings, f.Settings
	b.Allow, b.Deny, b.Ask = slices.Concat(a.Allow, b.Allow), slices.Concat(a.Deny, b.Deny), slices.Concat(a.Ask, b.Ask)
	b.Directories, b.Mode = slices.Concat(a.Directories, b.Directories), cmp.Or(b.Mode, a.Mode)
	env := map[string]string{}
	maps.Copy(env, a.Env)
	maps.Copy(env, b.Env)
	b.Env = env
	if refused {
		f.Problems = append(f.Problems, mcpconfig.Problem{
			Level:   mcpconfig.LevelNote,
			Message: "a file of the project is refused, so the Claude Code CLI is given none of them: what else it would read of the project, such as CLAUDE.md, skills and agents, has no effect",
		})
	}
	return f, cli, nil
}

// readTheirs reads what the CLI will find in its sources, and the names of servers in files above. refused
// reports that a file of the checkout is refused.
func readTheirs(o *agent.Options, sources []agent.SettingSource) (f *Files, above []string, refused bool) {
	f = &Files{Settings: &mcpconfig.Settings{}}
	if len(sources) == 0 {
		return f, nil, false
	}
	scopes := scopesOf(sources)
	var problems []mcpconfig.Problem
	f.Settings, problems = mcpconfig.LoadSettings(&mcpconfig.SettingsOptions{Dir: o.Dir, SettingSources: scopes, LookupEnv: Lookup(o.Env), TrustFile: TrustFile(o)})
	env := maps.Clone(f.Settings.Env)
	maps.Copy(env, o.Env)
	f.readServers(o, scopes, env)
	f.withoutLogins()
	isProject := slices.ContainsFunc(sources, func(s agent.SettingSource) bool { return s != agent.SourceUser })
	for _, p := range slices.Concat(problems, f.Problems) {
		ofProject := filepath.Base(p.File) == mcpFile || filepath.Base(filepath.Dir(p.File)) == ".claude"
		refused = refused || isProject && p.Level == mcpconfig.LevelFile && ofProject
	}
	if o.StrictMCPConfig || !slices.Contains(sources, agent.SourceProject) {
		return f, nil, refused
	}
	above, ok := serversAbove(o.Dir)
	return f, above, refused || !ok
}

// withoutLogins leaves the logins of servers to the CLI, except those that an entry configures.
func (f *Files) withoutLogins() {
	for name, config := range f.Servers {
		if f.places[name].OAuth != nil {
			continue
		}
		switch c := config.(type) {
		case mcphost.HTTP:
			c.Auth = nil
			f.Servers[name] = c
		case mcphost.SSE:
			c.Auth = nil
			f.Servers[name] = c
		}
	}
}

// addCLIServers adds the servers that the CLI would find, and denies those that are left out.
func (f *Files) addCLIServers(o *agent.Options) {
	if f.cli == nil {
		return
	}
	own := ServerNames(o)
	free := f.cli.free(o)
	for name := range f.cli.Servers {
		if !slices.Contains(free, name) && !slices.Contains(own, name) { // of two with one name the CLI uses the program's
			f.Denied = append(f.Denied, name)
		}
	}
	f.cli.addServers(o, free)
	if f.Policies == nil {
		f.Policies = map[string]map[string]permission.ToolPolicy{}
	}
	maps.Copy(f.Policies, f.cli.Policies)
	for _, name := range f.above {
		_, passed := o.MCPServers[name]
		_, found := f.cli.Servers[name]
		if !passed && !found && !slices.Contains(own, name) {
			f.Denied = append(f.Denied, name)
		}
	}
	slices.Sort(f.Denied)
	f.Denied = slices.Compact(f.Denied)
}

const (
	mcpFile = ".mcp.json"
	// maxMCPFile bounds the size of such a file, and maxFolders the number of folders above.
	maxMCPFile = 1 << 20
	maxFolders = 256
)

// serversAbove returns the names of the servers in dir and the folders above it, where the CLI looks for
// them. It reports false if a file cannot be read.
func serversAbove(dir string) (names []string, ok bool) {
	at, err := filepath.Abs(dir)
	if err != nil {
		return nil, false
	}
	for range maxFolders {
		path := filepath.Join(at, mcpFile)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			data, err := file.Read(path, maxMCPFile)
			if err != nil {
				return nil, false
			}
			var doc struct {
				Servers map[string]json.RawMessage `json:"mcpServers"`
			}
			if json.Unmarshal(data, &doc) == nil { // the CLI ignores invalid files
				names = slices.AppendSeq(names, maps.Keys(doc.Servers))
			}
		}
		if at == filepath.Dir(at) {
			return names, true
		}
		at = filepath.Dir(at)
	}
	return nil, false
}
