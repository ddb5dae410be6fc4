package kit

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/permission"
)

// project writes files below a new directory, which is a repository.
func project(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// both is a project whose files give a server and a rule, from the sources project and local.
func both(t *testing.T) string {
	return project(t, map[string]string{
		".mcp.json":                   `{"mcpServers": {"s": {"command": "x", "tools": [{"name": "a", "permission_policy": "always_ask"}]}, "bad": {"command": 1}}}`,
		".claude/settings.json":       `{"permissions": {"allow": ["mcp__a"], "deny": ["mcp__d"]}, "model": "m"}`,
		".claude/settings.local.json": `{"permissions": {"allow": ["mcp__l"]}, /* kept */ "sandbox": {"enabled": true},}`,
	})
}

// What is read, and what of it counts, follows from the sources that the program names and from its TrustFile. The
// Claude Code CLI is left the sources about which there is nothing to decide; what may be done is passed to it in any
// case.
// fault A1
func TestSources(t *testing.T) {
	dir := both(t)
	user, project, local := agent.SourceUser, agent.SourceProject, agent.SourceLocal
	type sources = []agent.SettingSource
	t.Setenv("HOME", t.TempDir())
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	tests := []struct {
		name    string
		o       agent.Options
		allow   []string // that an engine that reads all counts
		servers bool
		cli     sources // that the CLI reads itself
		forCLI  []string
	}{
		{"nil", agent.Options{}, nil, true, sources{}, nil},
		{"none", agent.Options{SettingSources: sources{}}, nil, false, sources{}, nil},
		{"project", agent.Options{SettingSources: sources{project}}, []string{"mcp__a"}, true, sources{project}, []string{"mcp__a"}},
		{"all", agent.Options{SettingSources: sources{user, project, local}}, []string{"mcp__a", "mcp__l"}, true, sources{user, project, local}, []string{"mcp__a", "mcp__l"}},
		{"strict", agent.Options{SettingSources: sources{project}, StrictMCPConfig: true}, []string{"mcp__a"}, false, sources{project}, []string{"mcp__a"}},
		{"trusted", agent.Options{TrustFile: func(string, []byte) bool { return true }}, []string{"mcp__a"}, true, sources{}, []string{"mcp__a"}},
		{"the user's, and no trust", agent.Options{SettingSources: sources{user, project, local}, TrustFile: func(string, []byte) bool { return false }}, nil, true, sources{user}, nil},
		{"one file", agent.Options{SettingSources: sources{project, local}, TrustFile: func(file string, _ []byte) bool { return filepath.Base(file) == "settings.local.json" }}, []string{"mcp__l"}, true, sources{}, []string{"mcp__l"}},
		{"none, whatever is trusted", agent.Options{SettingSources: sources{}, TrustFile: func(string, []byte) bool { return true }}, nil, false, sources{}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.o.Dir = dir
			f, err := ReadFiles(&tt.o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.allow, f.Settings.Allow); diff != "" || len(f.Servers) != map[bool]int{true: 2}[tt.servers] {
				t.Errorf("%d servers; rules (-want +got):\n%s", len(f.Servers), diff)
			}
			f, cli, err := ReadForCLI(&tt.o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.forCLI, f.Settings.Allow); diff != "" || !slices.Equal(cli, tt.cli) || cli == nil {
				t.Errorf("the CLI reads %q, want %q; rules (-want +got):\n%s", cli, tt.cli, diff)
			}
			if tt.name == "one file" {
				if diff := cmp.Diff([]string{`{"permissions":{"allow":["mcp__l"]},"sandbox":{"enabled":true}}`}, texts(f)); diff != "" {
					t.Errorf("contents that are trusted (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func texts(f *Files) []string {
	var all []string
	for _, text := range f.Settings.Trusted {
		all = append(all, string(text))
	}
	return all
}

// What the program says counts; the files join it. Each problem is in the init message under its type.
func TestApply(t *testing.T) {
	o := &agent.Options{Dir: both(t), DisallowedTools: []string{"mcp__own"}, Env: map[string]string{"A": "1"}}
	f, err := ReadFiles(o)
	if err != nil {
		t.Fatal(err)
	}
	f.Apply(o)
	if _, invalid := o.MCPServers["bad"].(mcphost.Invalid); !invalid || len(o.MCPServers) != 2 {
		t.Errorf("servers %v", o.MCPServers)
	}
	if !slices.Equal(o.DisallowedTools, []string{"mcp__own", "mcp__d"}) || len(o.AllowedTools) != 0 || o.Env["A"] != "1" || f.Policies["s"]["a"] != permission.AlwaysAsk {
		t.Errorf("options %+v, policies %v", o, f.Policies)
	}
	var got []string
	for _, p := range o.ConfigProblems {
		got = append(got, p.Name+" "+p.Type)
	}
	if diff := cmp.Diff([]string{" untrusted_config", " untrusted_config", "bad invalid_config"}, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	for _, settings := range []string{"absent.json", "[]"} {
		_, err := ReadFiles(&agent.Options{Dir: o.Dir, Settings: settings})
		if oe := (*agent.OptionError)(nil); !errors.As(err, &oe) || oe.Field != "Settings" {
			t.Errorf("settings %s: %v", settings, err)
		}
	}
}

// A file that is refused is one problem, though more than one thing is read from it.
func TestRefusedFileIsOneProblem(t *testing.T) {
	o := &agent.Options{Dir: project(t, map[string]string{".claude/settings.json/x": ""})}
	f, err := ReadFiles(o)
	if err != nil {
		t.Fatal(err)
	}
	f.Apply(o)
	if len(o.ConfigProblems) != 1 || !strings.Contains(o.ConfigProblems[0].Message, "it is a directory (nothing of this file is used)") {
		t.Errorf("problems %+v", o.ConfigProblems)
	}
}

// The program's servers, those of its host too, take their names first, as tools have them.
// fault A4
func TestProgramServersTakeTheirNames(t *testing.T) {
	host, err := mcphost.New(&mcphost.Options{Servers: map[string]mcphost.ServerConfig{"shared.one": mcphost.Stdio{Command: "x"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	dir := project(t, map[string]string{".mcp.json": `{"mcpServers": {"db": {"command": "x"}, "my_db": {"command": "x"}, "my db": {"command": "x"}, "shared_one": {"command": "x"},
		"db__more": {"command": "x"}, "d": {"command": "x"}, "db_": {"command": 1}, "free": {"command": "x", "tools": [{"name": "a", "permission_policy": "always_deny"}]}}}`})
	for _, tt := range []struct {
		sources []agent.SettingSource
		want    []string
	}{
		{nil, []string{"d", "db", "free", "my.db"}},
		{[]agent.SettingSource{agent.SourceProject}, []string{"d", "db", "db_", "db__more", "free", "my.db"}},
	} {
		own := mcphost.Stdio{Command: "own"}
		o := &agent.Options{Dir: dir, SettingSources: tt.sources, Host: host, MCPServers: map[string]mcphost.ServerConfig{"db": own, "my.db": own}}
		f, err := ReadFiles(o)
		if err != nil {
			t.Fatal(err)
		}
		f.Apply(o)
		if got := slices.Sorted(maps.Keys(o.MCPServers)); !slices.Equal(got, tt.want) {
			t.Errorf("sources %q: servers %q, want %q", tt.sources, got, tt.want)
		}
		for _, name := range []string{"db", "my.db"} {
			if c, ok := o.MCPServers[name].(mcphost.Stdio); !ok || c.Command != "own" {
				t.Errorf("sources %q: %s is %+v", tt.sources, name, o.MCPServers[name])
			}
		}
		left := 0
		for _, p := range o.ConfigProblems {
			if p.Type == "name_taken" && strings.Contains(p.Message, filepath.Join(dir, ".mcp.json")+":") && f.Policies[p.Name] == nil {
				left++
			}
		}
		if want := 8 - (len(tt.want) - 2); left != want || len(f.Policies) != 1 {
			t.Errorf("sources %q: %d servers are reported as left out, want %d: %+v", tt.sources, left, want, o.ConfigProblems)
		}
	}
}
