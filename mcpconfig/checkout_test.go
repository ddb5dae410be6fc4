package mcpconfig

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A project's files count in the repository that contains the directory, and never above it; without a repository, in
// the directory alone.
// fault A5
func TestFilesCountInTheRepository(t *testing.T) {
	settings := func(rule string) string { return `{"permissions": {"deny": ["` + rule + `"]}}` }
	files := map[string]string{
		".mcp.json": servers("x", "above"), ".claude/settings.json": settings("above"), ".claude/settings.local.json": settings("above"),
		"repo/.mcp.json": servers("x", "root"), "repo/.claude/settings.json": settings("root"), "repo/.claude/settings.local.json": settings("localroot"),
		"repo/a/b/.mcp.json": servers("x", "dir"), "repo/a/b/.claude/settings.json": settings("dir"),
	}
	for name, git := range map[string]string{"a folder": "repo/.git/HEAD", "a file": "repo/.git", "none": "", "one above": ".git/HEAD"} {
		root := tree(t, files)
		if git != "" {
			write(t, filepath.Join(root, git), "gitdir: elsewhere")
		}
		want := []string{"dir", "root"}
		rules := []string{"root", "dir", "localroot"}
		switch name {
		case "none":
			want, rules = []string{"dir"}, []string{"dir"}
		case "one above":
			want, rules = []string{"above", "dir", "root"}, []string{"above", "root", "dir", "above", "localroot"}
		}
		dir := filepath.Join(root, "repo", "a", "b")
		cfg, problems := Load(&LoadOptions{Dir: dir, LookupEnv: env()})
		if got := cfg.Names(); !slices.Equal(got, want) || len(problems) > 0 {
			t.Errorf(".git is %s: servers %q, want %q; %v", name, got, want, problems)
		}
		s, problems := LoadSettings(&SettingsOptions{Dir: dir, LookupEnv: env()})
		if diff := cmp.Diff(rules, s.Deny); diff != "" || len(problems) > 0 {
			t.Errorf(".git is %s: rules (-want +got):\n%s%v", name, diff, problems)
		}
	}
}

// The repository is that of the folder itself, not of the link that leads to it.
// fault A5
func TestRepositoryBehindALink(t *testing.T) {
	root := tree(t, map[string]string{
		"mine/.git/HEAD": "", "mine/.mcp.json": servers("x", "mine"),
		"theirs/.git/HEAD": "", "theirs/.mcp.json": servers("x", "theirs"), "theirs/sub/x": "",
	})
	symlink(t, filepath.Join(root, "theirs", "sub"), filepath.Join(root, "mine", "link"))
	cfg, problems := Load(&LoadOptions{Dir: filepath.Join(root, "mine", "link"), LookupEnv: env()})
	if got := cfg.Names(); !slices.Equal(got, []string{"theirs"}) || len(problems) > 0 {
		t.Errorf("servers %q, want those of the repository that the folder is in; %v", got, problems)
	}
}

// The user's own settings are none of a checkout's, also where the home directory is in a repository.
func TestUserSettingsAreNoProjects(t *testing.T) {
	root := tree(t, map[string]string{".git/HEAD": "", ".claude/settings.json": `{"permissions": {"allow": ["mine"]}}`, "work/.claude/settings.json": `{"permissions": {"deny": ["theirs"]}}`})
	o := &SettingsOptions{Dir: filepath.Join(root, "work"), LookupEnv: env("HOME", root, "USERPROFILE", root)}
	s, problems := LoadSettings(o)
	if !slices.Equal(s.Allow, []string{"mine"}) || !slices.Equal(s.Deny, []string{"theirs"}) || len(problems) > 0 {
		t.Errorf("%+v, %v", s, problems)
	}
	o.SettingSources = []Scope{ScopeProject}
	s, problems = LoadSettings(o)
	if len(s.Allow) != 0 || !slices.Equal(s.Deny, []string{"theirs"}) || len(problems) > 0 {
		t.Errorf("of the project alone: %+v, %v", s, problems)
	}
}

// A file of a checkout is read up to a bound, in a bounded number of folders, and links that lead nowhere end.
func TestCheckoutIsBounded(t *testing.T) {
	root := tree(t, map[string]string{".mcp.json": servers("x", "big") + strings.Repeat(" ", maxCheckoutBytes)})
	cfg, problems := Load(&LoadOptions{Dir: root, LookupEnv: env()})
	if len(cfg.Servers) != 0 || len(problems) != 1 || !strings.Contains(problems[0].Message, "more than the 1048576 bytes") {
		t.Errorf("servers %v, problems %v", cfg.Servers, problems)
	}
	deep := filepath.Join(append([]string{root}, slices.Repeat([]string{"d"}, maxParents+1)...)...)
	write(t, filepath.Join(deep, "x"), "")
	write(t, filepath.Join(root, ".git"), "")
	if got := openCheckout(deep); len(got.dirs) != 1 {
		t.Errorf("%d folders are looked at, want the directory alone", len(got.dirs))
	}
	symlink(t, ".mcp.json", filepath.Join(deep, "loop"))
	symlink(t, "loop", filepath.Join(deep, ".mcp.json"))
	if _, problems := Load(&LoadOptions{Dir: deep, LookupEnv: env()}); len(problems) != 1 || problems[0].Level != LevelFile {
		t.Errorf("problems of a link to itself: %v", problems)
	}
}
