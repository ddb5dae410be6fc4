package mcpconfig

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// Without trust a checkout does not stand in for a server that decides in the run, in any spelling, nor switch one off.
// fault A2
func TestCheckoutKeepsAwayFromGuards(t *testing.T) {
	hook := []ToolHook{{Server: "my guard", Tool: "check"}}
	const (
		same  = `{"mcpServers": {"my_guard": {"command": "x"}, "free": {"command": "x"}}}`
		off   = `{"disabledMcpjsonServers": ["my_guard", "free"]}`
		asked = "the tool that is asked for permission is of a server of that name"
		calls = "a hook calls a server of that name"
	)
	noSettings := func(file string, _ []byte) bool { return filepath.Base(file) == ProjectFile }
	for _, tt := range []struct {
		name, mcp, settings string
		trust               func(string, []byte) bool
		hooks               []ToolHook
		prompt              string
		on                  string // the servers that are used and not disabled
		report              string
	}{
		{"nobody decides", same, "", nil, nil, "", "free my_guard", ""},
		{"a hook", same, "", nil, hook, "", "free", `server "my_guard" is not used without trust: ` + calls},
		{"the beginning of a name", `{"mcpServers": {"my": {"command": "x"}, "my_guard__x": {"command": "x"}}}`, "", nil, hook, "", "my", `server "my_guard__x" is not used without trust: ` + calls},
		{"an entry that is refused", `{"mcpServers": {"my.guard": {"command": 1}}}`, "", nil, hook, "", "", `server "my.guard" is not used without trust: ` + calls},
		{"the one that is asked", same, "", nil, nil, "mcp__my_guard__ask", "free", `server "my_guard" is not used without trust: ` + asked},
		{"a server beside it", same, "", nil, nil, "mcp__my_guardian__ask", "free my_guard", ""},
		{"with trust", same, "", trusted, hook, "mcp__my_guard__ask", "free my_guard", ""},
		{"switched off without trust", same, off, noSettings, hook, "", "my_guard", `server "my_guard" is not disabled by work/.claude/settings.json without trust: ` + calls},
		{"switched off with trust", same, off, trusted, hook, "", "", ""},
		{"switched off, and nobody needs it", same, off, noSettings, nil, "", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{"work/.git/HEAD": "", "work/.mcp.json": tt.mcp}
			if tt.settings != "" {
				files["work/.claude/settings.json"] = tt.settings
			}
			root := tree(t, files)
			cfg, _ := Load(&LoadOptions{Dir: filepath.Join(root, "work"), LookupEnv: env(), TrustFile: tt.trust})
			problems := cfg.KeepGuards(tt.hooks, tt.prompt)
			var on, reports []string
			for _, name := range cfg.Names() {
				if !cfg.Servers[name].Disabled {
					on = append(on, name)
				}
			}
			for _, p := range problems {
				if p.Level != LevelUntrusted || p.Line != 1 || filepath.Base(p.File) != ProjectFile || p.Server == "" {
					t.Errorf("the report is %+v", p)
				}
				reports = append(reports, filepath.ToSlash(strings.ReplaceAll(p.Message, root+string(filepath.Separator), "")))
			}
			if got := strings.Join(on, " "); got != tt.on || strings.Join(reports, "\n") != tt.report {
				t.Errorf("servers %q, want %q; reports %q, want %q", got, tt.on, reports, tt.report)
			}
		})
	}
}

// A switch of a file that is trusted counts, whatever another file says as well.
// fault A2
func TestTrustedSwitchesCount(t *testing.T) {
	root := tree(t, map[string]string{
		"home/.claude/settings.json":       `{"disabledMcpjsonServers": ["guard"]}`,
		"work/.mcp.json":                   `{"mcpServers": {"guard": {"command": "x"}}}`,
		"work/.claude/settings.local.json": `{"disabledMcpjsonServers": ["guard"]}`,
	})
	cfg, _ := Load(&LoadOptions{
		Dir: filepath.Join(root, "work"), LookupEnv: env("HOME", root+"/home", "USERPROFILE", root+"/home"),
		TrustFile: func(file string, _ []byte) bool { return filepath.Base(file) == ProjectFile },
	})
	if problems := cfg.KeepGuards([]ToolHook{{Server: "guard"}}, ""); len(problems) > 0 || !cfg.Servers["guard"].Disabled {
		t.Errorf("got %+v, %v", cfg.Servers, problems)
	}
}

// Without trust a checkout has no server whose tools could be taken for those of the user's: its name begins like
// one of theirs, or theirs like its.
// faults A4 A6
func TestCheckoutBeginsNoName(t *testing.T) {
	root := tree(t, map[string]string{
		"home/.claude.json": `{"mcpServers": {"pay": {"command": "user"}, "a__b": {"command": "user"}, "off__x": {"command": 1}}}`,
		"work/.mcp.json":    servers("project", "pay__eu", "pay_eu", "a", "off", "pay__us__x"),
	})
	o := &LoadOptions{Dir: filepath.Join(root, "work"), LookupEnv: env("HOME", root+"/home", "USERPROFILE", root+"/home")}
	cfg, problems := Load(o)
	if diff := gocmp.Diff(map[string]string{"pay": "user", "a__b": "user", "pay_eu": "project"}, commands(cfg)); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
	reported := map[string]string{}
	for _, p := range problems {
		if p.Level == LevelUntrusted {
			reported[p.Server] = p.Message
		}
	}
	for name, by := range map[string]string{"pay__eu": "pay", "pay__us__x": "pay", "a": "a__b", "off": "off__x"} {
		if !strings.Contains(reported[name], `could be taken for those of server "`+by+`"`) {
			t.Errorf("about %s: %q", name, reported[name])
		}
	}
	o.TrustFile = trusted
	cfg, _ = Load(o)
	if got := slices.Sorted(maps.Keys(cfg.Servers)); len(got) != 7 {
		t.Errorf("with trust there are %q", got)
	}
}

// What a project's file says of variables does not make files of the checkout the user's own, which nobody approves.
// fault A5
func TestTrustedFilesAreNotPassedOn(t *testing.T) {
	root := tree(t, map[string]string{
		"work/.claude/settings.json":       `{"env": {"CLAUDE_CONFIG_DIR": "ROOT/work/own", "HOME": "ROOT/work/own", "KEPT": "1"}}`,
		"work/.claude/settings.local.json": `{"env": {"USERPROFILE": "ROOT/work/own", "XDG_CONFIG_HOME": "ROOT/work/own", "AppData": "ROOT/work/own"}}`,
		"home/.claude/settings.json":       `{"env": {"CLAUDE_CONFIG_DIR": "ROOT/home/other"}}`,
	})
	for _, tt := range []struct {
		trust   func(string, []byte) bool
		want    string
		reports int
	}{{trusted, "CLAUDE_CONFIG_DIR KEPT", 5}, {nil, "CLAUDE_CONFIG_DIR", 2}} {
		s, problems := LoadSettings(&SettingsOptions{Dir: filepath.Join(root, "work"), LookupEnv: env("HOME", root+"/home", "USERPROFILE", root+"/home"), TrustFile: tt.trust})
		if got := strings.Join(slices.Sorted(maps.Keys(s.Env)), " "); got != tt.want || len(problems) != tt.reports || s.Env["CLAUDE_CONFIG_DIR"] != filepath.ToSlash(root)+"/home/other" {
			t.Errorf("variables %v, want %s; problems %v", s.Env, tt.want, problems)
		}
	}
}

// The user's own files are not looked for below the working directory, whatever the variables say: there they are a
// checkout's.
// fault A5
func TestOwnFilesAreNotRelative(t *testing.T) {
	root := tree(t, map[string]string{
		"own/.claude.json":          servers("own", "s"),
		"own/.claude/settings.json": `{"permissions": {"allow": ["mcp__s"]}}`,
		"own/settings.json":         `{"permissions": {"allow": ["mcp__s"]}}`,
	})
	t.Chdir(root)
	for _, name := range []string{homeVariable(), configVariable} {
		cfg, problems := Load(&LoadOptions{LookupEnv: env(name, "own")})
		s, more := LoadSettings(&SettingsOptions{LookupEnv: env(name, "own")})
		if len(cfg.Servers) > 0 || len(s.Allow) > 0 || len(problems) != 1 || len(more) != 1 || !strings.Contains(more[0].String(), name+" is not an absolute path") {
			t.Errorf("%s: servers %v, rules %q, problems %v and %v", name, cfg.Names(), s.Allow, problems, more)
		}
	}
}
