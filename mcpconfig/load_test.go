package mcpconfig

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/internal/skip"
)

// tree writes files below a fresh directory and returns it.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		write(t, filepath.Join(root, name), strings.ReplaceAll(text, "ROOT", filepath.ToSlash(root)))
	}
	return root
}

// write writes a file, with the folders that lead to it.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// symlink makes a symbolic link.
func symlink(t *testing.T, to, path string) {
	t.Helper()
	if err := os.Symlink(to, path); err != nil {
		skip.Missing(t, "no symbolic links here: %v", err)
	}
}

// trusted is a TrustFile that trusts every file.
func trusted(string, []byte) bool { return true }

// servers is a document whose entries say in their command where they stand.
func servers(where string, names ...string) string {
	var parts []string
	for _, n := range names {
		parts = append(parts, fmt.Sprintf(`"%s": {"command": "%s"}`, n, where))
	}
	return `{"mcpServers": {` + strings.Join(parts, ", ") + `}}`
}

// commands are the commands of a configuration by server.
func commands(c *Config) map[string]string {
	out := map[string]string{}
	for n, e := range c.Servers {
		out[n] = e.Command
	}
	return out
}

// layout has a server of each scope and of each pair of neighbouring scopes.
func layout(t *testing.T) string {
	return tree(t, map[string]string{
		"home/.claude.json": `{"numStartups": 3, "mcpServers": {"u": {"command": "user"}, "pu": {"command": "user"}, "all": {"command": "user"}},
			"projects": {"ROOT/parent/work": {"allowedTools": [], "mcpServers": {"l": {"command": "local"}, "lp": {"command": "local"}, "all": {"command": "local"}}},
			             "ROOT/elsewhere": {"mcpServers": {"other": {"command": "other"}}}}}`,
		"parent/.git":           "gitdir: elsewhere",
		"parent/work/.mcp.json": servers("near", "n", "lp", "nf", "all"),
		"parent/.mcp.json":      servers("far", "f", "nf", "pu", "all"),
		"extra.json":            servers("file", "x", "all"),
	})
}

func TestLoadPrecedence(t *testing.T) {
	root := layout(t)
	dir := filepath.Join(root, "parent", "work")
	all := map[string]string{"u": "user", "pu": "far", "l": "local", "lp": "local", "n": "near", "nf": "near", "f": "far", "all": "local"}
	with := func(pairs ...string) map[string]string {
		out := map[string]string{}
		for k, v := range all {
			out[k] = v
		}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i]] = pairs[i+1]
		}
		return out
	}
	tests := []struct {
		name string
		o    LoadOptions
		want map[string]string
	}{
		// D04 D06 D07: by default every source is on.
		{"default", LoadOptions{}, all},
		// D08: sources without project.
		{"user and local", LoadOptions{SettingSources: []Scope{ScopeUser, ScopeLocal}}, map[string]string{"u": "user", "pu": "user", "all": "local", "l": "local", "lp": "local"}},
		{"user", LoadOptions{SettingSources: []Scope{ScopeUser}}, map[string]string{"u": "user", "pu": "user", "all": "user"}},
		{"project", LoadOptions{SettingSources: []Scope{ScopeProject}}, map[string]string{"n": "near", "lp": "near", "nf": "near", "f": "far", "pu": "far", "all": "near"}},
		{"none", LoadOptions{SettingSources: []Scope{}}, map[string]string{}},
		{"a file over them", LoadOptions{MCPConfigs: []string{filepath.Join(root, "extra.json")}}, with("x", "file", "all", "file")},
		{"a relative path", LoadOptions{MCPConfigs: []string{"../../extra.json"}}, with("x", "file", "all", "file")},
		{"a path below home", LoadOptions{MCPConfigs: []string{"~/../extra.json"}}, with("x", "file", "all", "file")},
		{"JSON in place", LoadOptions{MCPConfigs: []string{servers("json", "all")}}, with("all", "json")},
		{"the last of several", LoadOptions{MCPConfigs: []string{servers("one", "all", "a"), "  \n" + servers("two", "all")}}, with("all", "two", "a", "one")},
		{"strict", LoadOptions{Strict: true, MCPConfigs: []string{servers("json", "a")}}, map[string]string{"a": "json"}},
		{"strict without any", LoadOptions{Strict: true}, map[string]string{}},
		{"another directory", LoadOptions{Dir: filepath.Join(root, "home")}, map[string]string{"u": "user", "pu": "user", "all": "user"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.o.Dir == "" {
				tt.o.Dir = dir
			}
			tt.o.LookupEnv, tt.o.TrustFile = env("HOME", filepath.Join(root, "home"), "USERPROFILE", filepath.Join(root, "home")), trusted
			cfg, problems := Load(&tt.o)
			for _, p := range problems {
				t.Errorf("problem: %v", p)
			}
			if d := cmp.Diff(tt.want, commands(cfg)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestLoadTellsWhereEntriesStand(t *testing.T) {
	root := layout(t)
	dir := filepath.Join(root, "parent", "work")
	cfg, _ := Load(&LoadOptions{Dir: dir, UserFile: filepath.Join(root, "home", ".claude.json"), LookupEnv: env(), TrustFile: trusted, MCPConfigs: []string{servers("json", "j")}})
	got := map[string]string{}
	for n, e := range cfg.Servers {
		rel, err := filepath.Rel(root, e.Source)
		if err != nil {
			rel = e.Source
		}
		got[n] = string(e.Scope) + " " + filepath.ToSlash(rel)
	}
	want := map[string]string{
		"u": "user home/.claude.json", "pu": "project parent/.mcp.json", "l": "local home/.claude.json", "lp": "local home/.claude.json",
		"n": "project parent/work/.mcp.json", "nf": "project parent/work/.mcp.json", "f": "project parent/.mcp.json", "all": "local home/.claude.json", "j": "dynamic --mcp-config",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	var over []string
	for _, e := range cfg.Overridden {
		over = append(over, e.Name+" "+string(e.Scope)+" "+e.Command)
	}
	wantOver := []string{"all project near", "lp project near", "all project far", "nf project far", "all user user", "pu user user"}
	if d := cmp.Diff(wantOver, over); d != "" {
		t.Errorf("overridden (-want +got):\n%s", d)
	}
}

func TestLoadFindsTheUsersFile(t *testing.T) {
	root := tree(t, map[string]string{"home/.claude.json": servers("home", "a"), "conf/.claude.json": servers("conf", "a")})
	for _, tt := range []struct {
		env  []string
		want map[string]string
	}{
		{[]string{"HOME", root + "/home", "USERPROFILE", root + "/home"}, map[string]string{"a": "home"}},
		{[]string{"HOME", root + "/home", "USERPROFILE", root + "/home", "CLAUDE_CONFIG_DIR", root + "/conf"}, map[string]string{"a": "conf"}},
		{nil, map[string]string{}},
	} {
		cfg, problems := Load(&LoadOptions{Dir: filepath.Join(root, "conf"), LookupEnv: env(tt.env...)})
		if len(problems) > 0 || cmp.Diff(tt.want, commands(cfg)) != "" {
			t.Errorf("%q: got %v, %v; want %v", tt.env, commands(cfg), problems, tt.want)
		}
	}
}

// One broken file costs itself; a refused entry keeps its name, so that nothing else runs under it.
func TestLoadIsolatesFaults(t *testing.T) {
	root := tree(t, map[string]string{
		"home/.claude.json": `{"mcpServers": {"u": {"command": "user"}, "both": {"command": "user"}}}`,
		"p/w/.mcp.json":     `{"mcpServers": {"both": {"command": 7}, "ok": {"command": "near"}}}`,
		"p/.mcp.json":       `{"mcpServers": {`,
		"p/.git/HEAD":       "",
		"broken.json":       `{"mcpServers": [}`,
		"p/w/dir/x":         "",
	})
	cfg, problems := Load(&LoadOptions{
		Dir: filepath.Join(root, "p", "w"), LookupEnv: env("HOME", root+"/home", "USERPROFILE", root+"/home"),
		TrustFile:  trusted,
		MCPConfigs: []string{"../../broken.json", "missing.json", "dir", "", servers("json", "j")},
	})
	if d := cmp.Diff(map[string]string{"u": "user", "ok": "near", "j": "json"}, commands(cfg)); d != "" {
		t.Errorf("servers (-want +got):\n%s", d)
	}
	var got []string
	for _, p := range problems {
		s := strings.ReplaceAll(p.String(), root+string(filepath.Separator), "")
		got = append(got, string(p.Level)+" "+filepath.ToSlash(s))
	}
	want := []string{
		`file --mcp-config (number 4): is empty, want the path of a file, or JSON (nothing of this file is used)`,
		`file p/w/dir: cannot be read: it is a directory (nothing of this file is used)`,
		`file p/w/missing.json: there is no such file, want the path of a file, or JSON (nothing of this file is used)`,
		`file broken.json:1:17: invalid JSON: invalid character '}' at start of value, want JSON like {"mcpServers": {"NAME": {"command": "…"}}} (nothing of this file is used)`,
		`entry p/w/.mcp.json:1:37: mcpServers.both.command: is a number, want a string: the program to start; write it in quotation marks (this server is left out)`,
		`file p/.mcp.json:1:17: the JSON ends too soon: a bracket, a quotation mark or a comment is not closed, want JSON like {"mcpServers": {"NAME": {"command": "…"}}} (nothing of this file is used)`,
		`note home/.claude.json:1:1: mcpServers.both: is not used: the faulty entry in p/w/.mcp.json comes before it`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("problems (-want +got):\n%s", d)
	}
}

func TestLoadDisabledProjectServers(t *testing.T) {
	root := tree(t, map[string]string{
		"home/.claude.json":             `{"projects": {"ROOT/w": {"disabledMcpjsonServers": ["a"]}}, "mcpServers": {"u": {"command": "user"}}}`,
		"home/.claude/settings.json":    `{"disabledMcpjsonServers": ["b"]}`,
		"w/.claude/settings.json":       `{"disabledMcpjsonServers": ["c", 7]}`,
		"w/.claude/settings.local.json": `{"disabledMcpjsonServers": ["u"]}`,
		"w/.mcp.json":                   servers("project", "a", "b", "c", "d"),
	})
	load := func(o LoadOptions) ([]string, []Problem) {
		o.Dir, o.LookupEnv = filepath.Join(root, "w"), env("HOME", root+"/home", "USERPROFILE", root+"/home")
		cfg, problems := Load(&o)
		var off []string
		for _, n := range cfg.Names() {
			if cfg.Servers[n].Disabled {
				off = append(off, n)
			}
		}
		return off, problems
	}
	off, problems := load(LoadOptions{})
	if !slices.Equal(off, []string{"a", "b", "c"}) || len(problems) != 4 {
		t.Errorf("got %q disabled, %v; want a, b, c with a note each, and one about the number", off, problems)
	}
	// A source that is off has no say.
	if off, _ := load(LoadOptions{SettingSources: []Scope{ScopeProject}}); !slices.Equal(off, []string{"c"}) {
		t.Errorf("project alone: got %q disabled, want c", off)
	}
}

func TestLoadDoesNotWaitForAPipe(t *testing.T) {
	root := tree(t, nil)
	if err := os.Mkdir(filepath.Join(root, ".mcp.json"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, problems := Load(&LoadOptions{Dir: root, LookupEnv: env()})
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "directory") {
		t.Errorf("got %v, want one problem", problems)
	}
}
