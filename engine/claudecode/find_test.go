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
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		skip.For(t, skip.Platform, "the names of the npm packages are those of Linux on x64")
	}
	root := t.TempDir()
	work := filepath.Join(root, "work", "sub")
	given := filepath.Join(root, "given", "claude")
	program(t, given, 0o755)
	order := []string{
		"bin/claude",
		"home/.local/bin/claude", "home/.claude/local/claude", "home/.npm-global/bin/claude", "home/node_modules/.bin/claude", "home/.yarn/bin/claude", "home/.bun/bin/claude",
		"work/sub/node_modules/.bin/claude", "work/sub/node_modules/@anthropic-ai/claude-code-linux-x64/claude",
		"work/node_modules/.bin/claude", "work/node_modules/@anthropic-ai/claude-code-linux-x64/claude",
	}
	for _, place := range order {
		program(t, filepath.Join(root, place), 0o755)
	}
	if err := os.MkdirAll(work, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(work)
	env := []string{"PATH=" + filepath.Join(root, "none") + ":" + filepath.Join(root, "bin"), "HOME=" + filepath.Join(root, "home")}
	if got, err := find(given, env); err != nil || got != given {
		t.Errorf("with Options.Path: %s, %v", got, err)
	}
	for i, place := range order {
		path := filepath.Join(root, place)
		got, err := find("", env)
		if err == nil && !strings.HasPrefix(got, root) {
			skip.For(t, skip.OwnCLI, "this machine has a CLI at %s, which no environment hides", got)
		}
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
	_, err := find("", env)
	var nf *NotFoundError
	if err == nil {
		skip.For(t, skip.OwnCLI, "this machine has a CLI above its folder for temporary files")
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

// An option that names no program is an error, whatever else there is: nothing is put in its place.
func TestGivenPathIsNotReplaced(t *testing.T) {
	root := t.TempDir()
	program(t, filepath.Join(root, "bin", "claude"), 0o755)
	program(t, filepath.Join(root, "plain"), 0o600)
	for _, given := range []string{filepath.Join(root, "missing"), filepath.Join(root, "plain"), root} {
		_, err := find(given, []string{"PATH=" + filepath.Join(root, "bin"), "HOME=" + root})
		var nf *NotFoundError
		if !errors.As(err, &nf) || nf.Path != given || nf.Err == nil || !strings.Contains(err.Error(), "Options.Path") {
			t.Errorf("%s: got %v", given, err)
		}
	}
}
