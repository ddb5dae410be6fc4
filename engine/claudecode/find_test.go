package claudecode

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/internal/skip"
)

// program puts an executable file at a path.
func program(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), mode); err != nil {
		t.Fatal(err)
	}
}

// The option wins, then the PATH, then what an installer left at each of its places, nearest first;
// what is no program is passed over, and named with the reason if there is none at all.
func TestOrderOfTheSearch(t *testing.T) {
	if runtime.GOOS == "windows" {
		skip.For(t, skip.Platform, "the names of programs are others on Windows")
	}
	root := t.TempDir()
	given := filepath.Join(root, "given", "claude")
	program(t, given, 0o755)
	order := []string{
		"bin/claude",
		"home/.local/bin/claude", "home/.claude/local/claude", "home/.npm-global/bin/claude", "home/node_modules/.bin/claude", "home/.yarn/bin/claude", "home/.bun/bin/claude",
	}
	for _, place := range order {
		program(t, filepath.Join(root, place), 0o755)
	}
	env := []string{"PATH=" + filepath.Join(root, "none") + ":" + filepath.Join(root, "bin"), "HOME=" + filepath.Join(root, "home")}
	if got, err := find(given, root, env); err != nil || got != given {
		t.Errorf("with Options.Path: %s, %v", got, err)
	}
	dir := filepath.Join(root, "elsewhere")
	for i, place := range order {
		path := filepath.Join(root, place)
		got, err := find("", dir, env)
		if err != nil || got != path {
			t.Errorf("found %s, %v; want %s", got, err, path)
		}
		switch { // a wrong file at a place is passed over like none
		case i%3 == 1:
			err = os.Chmod(path, 0o600)
		case i%3 == 2:
			if err = os.Remove(path); err == nil {
				err = os.Mkdir(path, 0o755)
			}
		default:
			err = os.Remove(path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	got, err := find("", dir, env)
	var nf *NotFoundError
	if err == nil {
		skip.For(t, skip.OwnCLI, "this machine has a CLI at %s, which no environment hides", got)
	}
	if !errors.As(err, &nf) {
		t.Fatalf("got %v", err)
	}
	all := strings.Join(nf.Searched, "\n")
	at := 0
	for _, want := range append([]string{"claude on the PATH " + env[0][len("PATH="):]}, order[1:]...) {
		next := strings.Index(all[at:], want)
		if next < 0 {
			t.Fatalf("%s is not named, or not in order, in\n%s", want, all)
		}
		at += next
	}
	for _, want := range []string{order[1] + " (permission denied)", order[2] + " (is a directory)", "/usr/local/bin/claude", "/opt/homebrew/bin/claude"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
}

// A program called claude that a checkout brings along is never found by itself: not in the folders of
// npm packages of the run's directory, this process's, and those above, nor by a PATH that is relative or
// leads into the checkout. It is named, so that whoever wants it can name it.
//
// fault A8
func TestNothingOfACheckoutIsRun(t *testing.T) {
	if runtime.GOOS == "windows" {
		skip.For(t, skip.Platform, "the names of programs are others on Windows")
	}
	outer := t.TempDir()
	repo := filepath.Join(outer, "repo")
	sub := filepath.Join(repo, "sub")
	bins := []string{
		filepath.Join(outer, "node_modules", ".bin"), filepath.Join(repo, "node_modules", ".bin"), filepath.Join(sub, "node_modules", ".bin"),
		filepath.Join(repo, "bin"), sub,
	}
	for _, dir := range append(bins, filepath.Join(repo, "node_modules", "@anthropic-ai", "claude-code-linux-x64")) {
		program(t, filepath.Join(dir, "claude"), 0o755)
	}
	if err := os.Mkdir(filepath.Join(repo, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(outer, "link")
	if err := os.Symlink(filepath.Join(repo, "bin"), link); err != nil {
		t.Fatal(err)
	}
	elsewhere, other := t.TempDir(), t.TempDir()
	good := filepath.Join(elsewhere, "claude")
	program(t, good, 0o755)
	tests := []struct{ name, path, home string }{
		{"no PATH at all", "", elsewhere},
		{"relative", strings.Join([]string{".", "", "bin", "node_modules/.bin", "../bin"}, ":"), elsewhere},
		{"what npm puts there", strings.Join(bins[:3], ":"), elsewhere},
		{"into the checkout", strings.Join(bins[3:], ":"), elsewhere},
		{"by a link", link, elsewhere},
		{"home is the directory", "", "."},
		{"home is above, and npm", strings.Join(bins[1:3], ":"), filepath.Join(outer, "home")},
	}
	for _, tt := range tests {
		for _, at := range []struct{ cwd, dir string }{{sub, ""}, {sub, sub}, {other, sub}, {sub, other}} {
			t.Run(tt.name, func(t *testing.T) {
				t.Chdir(at.cwd)
				got, err := find("", at.dir, []string{"PATH=" + tt.path, "HOME=" + tt.home})
				if err == nil && strings.HasPrefix(got, outer) {
					t.Errorf("in %s for %q: runs %s", at.cwd, at.dir, got)
				}
				if got, err := find("", at.dir, []string{"PATH=" + tt.path + ":" + elsewhere, "HOME=" + tt.home}); err != nil || got != good {
					t.Errorf("in %s for %q, with a good one last: %s, %v", at.cwd, at.dir, got, err)
				}
				var nf *NotFoundError
				if errors.As(err, &nf) && tt.name == "into the checkout" && !strings.Contains(err.Error(), "not "+bins[3]+"/claude, which is in the checkout") {
					t.Errorf("it is not named: %v", err)
				}
			})
		}
	}
	if got, err := find(filepath.Join(bins[1], "claude"), sub, nil); err != nil || got != filepath.Join(bins[1], "claude") {
		t.Errorf("what the program names: %s, %v", got, err)
	}
}

// An option that names no program is an error, whatever else there is: nothing is put in its place.
func TestGivenPathIsNotReplaced(t *testing.T) {
	root := t.TempDir()
	program(t, filepath.Join(root, "bin", "claude"), 0o755)
	program(t, filepath.Join(root, "plain"), 0o600)
	for _, given := range []string{filepath.Join(root, "missing"), filepath.Join(root, "plain"), root} {
		_, err := find(given, "", []string{"PATH=" + filepath.Join(root, "bin"), "HOME=" + root})
		var nf *NotFoundError
		if !errors.As(err, &nf) || nf.Path != given || nf.Err == nil || !strings.Contains(err.Error(), "Options.Path") {
			t.Errorf("%s: got %v", given, err)
		}
	}
}
