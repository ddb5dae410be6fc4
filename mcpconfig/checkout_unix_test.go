//go:build unix

package mcpconfig

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gofrs/flock"

	"github.com/tenon-sdk/tenon/internal/skip"
)

// A file that others can write to, or a folder on the way to it, or one that somebody else owns, is refused with a
// message that names it and says what to do; so is what a link leads to.
// fault A5
func TestUnsafeFilesAreRefused(t *testing.T) {
	foreign := func(t *testing.T, path string) {
		if os.Geteuid() != 0 {
			skip.For(t, skip.Privilege, "only root can give a file away")
		}
		if err := os.Lchown(path, 12345, 0); err != nil {
			t.Fatal(err)
		}
	}
	chmod := func(t *testing.T, path string, mode os.FileMode) {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name string
		make func(t *testing.T, root string)
		// at is the path below the root that the message names, and remedy what it says to do; both empty if the file counts.
		at, remedy string
	}{
		{"safe", func(*testing.T, string) {}, "", ""},
		{"a file that everybody can write to", func(t *testing.T, root string) { chmod(t, root+"/repo/sub/.mcp.json", 0o666) }, "repo/sub/.mcp.json", "chmod o-w "},
		{"a folder that everybody can write to", func(t *testing.T, root string) { chmod(t, root+"/repo/sub", 0o777) }, "repo/sub", "chmod o-w "},
		{"the repository", func(t *testing.T, root string) { chmod(t, root+"/repo", 0o777) }, "repo", "chmod o-w "},
		{"a folder above the repository", func(t *testing.T, root string) { chmod(t, root, 0o777) }, "", ""},
		{"a folder with the sticky bit", func(t *testing.T, root string) { chmod(t, root+"/repo", 0o777|os.ModeSticky) }, "", ""},
		{"the user's group", func(t *testing.T, root string) {
			chmod(t, root+"/repo/sub/.mcp.json", 0o664)
			if err := os.Chown(root+"/repo/sub/.mcp.json", -1, os.Getegid()); err != nil {
				t.Fatal(err)
			}
		}, "", ""},
		{"another group", func(t *testing.T, root string) {
			if err := os.Chown(root+"/repo/sub", -1, 12345); err != nil {
				skip.For(t, skip.Privilege, "only root can give a folder to any group")
			}
			chmod(t, root+"/repo/sub", 0o775)
		}, "repo/sub", "chmod g-w "},
		{"somebody else's file", func(t *testing.T, root string) { foreign(t, root+"/repo/sub/.mcp.json") }, "repo/sub/.mcp.json", "chown 0 "},
		{"somebody else's folder", func(t *testing.T, root string) { foreign(t, root+"/repo/sub") }, "repo/sub", "chown 0 "},
		{"a link to a safe file elsewhere", func(t *testing.T, root string) { relink(t, root, root+"/safe/mcp.json") }, "", ""},
		{"a link to a folder of somebody else's", func(t *testing.T, root string) {
			relink(t, root, root+"/safe/mcp.json")
			foreign(t, root+"/safe")
		}, "safe", "chown 0 "},
		{"a link that goes through somebody else's", func(t *testing.T, root string) {
			symlink(t, root+"/safe", root+"/way")
			foreign(t, root+"/way")
			relink(t, root, root+"/way/mcp.json")
		}, "way", "chown 0 "},
		{"a link whose way back is another", func(t *testing.T, root string) {
			// As text this is the safe file; the system goes to open/mcp.json.
			symlink(t, root+"/open/in", root+"/repo/sub/in")
			relink(t, root, "in/../mcp.json")
			write(t, root+"/repo/sub/mcp.json", servers("x", "text"))
		}, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := tree(t, map[string]string{
				"repo/.git/HEAD": "", "repo/sub/.mcp.json": servers("x", "s"), "safe/mcp.json": servers("x", "s"),
				"open/mcp.json": servers("evil", "evil"), "open/in/x": "",
			})
			chmod(t, root+"/open", 0o777)
			tt.make(t, root)
			cfg, problems := Load(&LoadOptions{Dir: filepath.Join(root, "repo", "sub"), LookupEnv: env(), TrustFile: trusted})
			if _, evil := cfg.Servers["evil"]; evil {
				t.Error("a file that others can write to counts")
			}
			if tt.at == "" {
				if len(cfg.Servers) != 1 || len(problems) > 0 {
					t.Errorf("servers %v, problems %v", commands(cfg), problems)
				}
				return
			}
			if len(cfg.Servers) != 0 || len(problems) != 1 || problems[0].Level != LevelFile || !strings.Contains(problems[0].Message, tt.remedy+filepath.Join(root, tt.at)) {
				t.Errorf("servers %v, problems %v, want one that says %q and names %s", commands(cfg), problems, tt.remedy, tt.at)
			}
		})
	}
}

// relink puts a link in the place of the project's file.
func relink(t *testing.T, root, to string) {
	t.Helper()
	path := filepath.Join(root, "repo", "sub", ".mcp.json")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	symlink(t, to, path)
}

// A .git that somebody else made, in a folder like /tmp, does not make that a repository.
// fault A5
func TestForeignGitFolder(t *testing.T) {
	if os.Geteuid() != 0 {
		skip.For(t, skip.Privilege, "only root can give a folder away")
	}
	root := tree(t, map[string]string{".git/HEAD": "", "work/x": ""})
	if err := os.Chown(filepath.Join(root, ".git"), 12345, 0); err != nil {
		t.Fatal(err)
	}
	if got := openCheckout(filepath.Join(root, "work")); len(got.dirs) != 1 {
		t.Errorf("files count in %q", got.dirs)
	}
}

// A lock on the project's folder, which anybody who can read it can take, holds nobody up: edits lock what only their
// owner can open, and who waits for another edit is told what is in the way.
// fault H8
func TestNobodyElseCanLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.json")
	edit := func([]byte) ([]byte, error) { return []byte("{}"), nil }
	for _, squatted := range []string{filepath.Dir(path), path} {
		lock := flock.New(squatted, flock.SetFlag(os.O_RDONLY))
		if held, err := lock.TryLock(); !held && !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("no lock on %s: %v", squatted, err)
		}
		calls := 0
		if err := UpdateFile(path, 0o644, func(doc []byte) ([]byte, error) { calls++; return edit(doc) }); err != nil || calls != 1 {
			t.Errorf("with a lock on %s: %v, %d calls", squatted, err, calls)
		}
		if err := lock.Close(); err != nil {
			t.Fatal(err)
		}
	}
	name, ok := lockName(path)
	if !ok {
		t.Fatal("there is no place for locks")
	}
	for at, want := range map[string]os.FileMode{name: 0o600, filepath.Dir(name): 0o700 | os.ModeDir} {
		if info, err := os.Stat(at); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v; want %v", at, info, err, want)
		}
	}
	other, _ := lockName(filepath.Join(filepath.Dir(path), "y.json"))
	if same, _ := lockName(filepath.Join(filepath.Dir(path), ".", "x.json")); same != name || other == name {
		t.Errorf("the locks of one file are %s and %s, that of another %s", name, same, other)
	}
}
