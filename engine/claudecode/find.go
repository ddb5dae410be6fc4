package claudecode

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/internal/file"
	"github.com/tenon-sdk/tenon/internal/subproc"
)

// A NotFoundError is the error for a missing CLI.
type NotFoundError struct {
	// Path is Options.Path.
	Path string
	// Searched are the places where New looked, in order. It is empty if Path is set.
	Searched []string
	Err      error
}

// Error returns the places and the remedy.
func (e *NotFoundError) Error() string {
	if e.Path != "" {
		return fmt.Sprintf("claude-code: the executable in Options.Path cannot be used: %v", e.Err)
	}
	return fmt.Sprintf("claude-code: the Claude Code CLI was not found; install the npm package @anthropic-ai/claude-code or set Options.Path (looked for: %s)",
		strings.Join(e.Searched, ", "))
}

// Unwrap returns the cause.
func (e *NotFoundError) Unwrap() error { return e.Err }

// find returns the CLI's executable: the given one, or else the first on the PATH and in the places
// where installers put it. It ignores what a checkout may bring along: folders of the PATH that are
// relative, or in the checkout of dir or of this process's directory.
func find(given, dir string, env []string) (string, error) {
	if given != "" {
		path, err := subproc.LookPath(given, "", env)
		if err != nil {
			return "", &NotFoundError{Path: given, Err: err}
		}
		return path, nil
	}
	trusted, ignored := trustedPath(dir, env)
	path, err := subproc.LookPath("claude", "", append(slices.Clone(env), "PATH="+trusted))
	if err == nil {
		return path, nil
	}
	searched := []string{"claude on the PATH"}
	for _, place := range places(env) {
		found, err := subproc.LookPath(place, "", env)
		if err == nil {
			return found, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			place += " (" + reason(err) + ")"
		}
		searched = append(searched, place)
	}
	if le, ok := errors.AsType[*subproc.LookupError](err); ok {
		searched[0] = "claude on the PATH " + le.Path
	}
	for _, entry := range ignored {
		if found, err := subproc.LookPath(filepath.Join(entry, "claude"), "", env); err == nil {
			searched = append(searched, "not "+found+", which is in the checkout")
		}
	}
	return "", &NotFoundError{Searched: searched, Err: err}
}

// trustedPath returns the PATH without the folders that a checkout can fill: relative folders, those in
// the checkout of dir or of this process's directory, and those that npm puts first for either. It also
// returns the absolute folders that it left out.
func trustedPath(dir string, env []string) (path string, ignored []string) {
	var within, bins []string
	home := homeOf(env)
	for _, d := range []string{dir, "."} {
		d = realPath(d)
		if root := checkoutOf(d); home == "" || !isWithin(realPath(home), root) { // the checkout is not the whole home directory
			within = append(within, root)
		}
		for at := d; ; at = filepath.Dir(at) {
			bins = append(bins, filepath.Join(at, "node_modules", ".bin"))
			if at == filepath.Dir(at) {
				break
			}
		}
	}
	var kept []string
	for _, entry := range filepath.SplitList(variable(env, "PATH")) {
		if !filepath.IsAbs(entry) {
			continue
		}
		real := realPath(entry)
		if slices.Contains(bins, real) || slices.ContainsFunc(within, func(root string) bool { return isWithin(real, root) }) {
			ignored = append(ignored, entry)
			continue
		}
		kept = append(kept, entry)
	}
	return strings.Join(kept, string(filepath.ListSeparator)), ignored
}

// checkoutOf returns the root of the repository that contains dir, or dir.
func checkoutOf(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			return dir
		}
	}
}

// realPath returns the absolute path with symbolic links resolved, if the path exists.
func realPath(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return file.Real(path)
}

// isWithin reports whether path is root or in it.
func isWithin(path, root string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(rel)
}

// homeOf returns the user's home directory, or "" if it is not known.
func homeOf(env []string) string {
	name := "HOME"
	if runtime.GOOS == "windows" {
		name = "USERPROFILE"
	}
	if home := variable(env, name); filepath.IsAbs(home) {
		return home
	}
	return ""
}

// reason returns why a file cannot be executed.
func reason(err error) string {
	if le, ok := errors.AsType[*subproc.LookupError](err); ok {
		err = le.Err
	}
	return err.Error()
}

// places returns the paths where installers put the CLI, in the order of the search.
func places(env []string) []string {
	exe := "claude"
	if runtime.GOOS == "windows" {
		exe = "claude.exe"
	}
	var all []string
	if home := homeOf(env); home != "" {
		for _, dir := range []string{".local/bin", ".claude/local", ".npm-global/bin", "node_modules/.bin", ".yarn/bin", ".bun/bin"} {
			all = append(all, filepath.Join(home, filepath.FromSlash(dir), exe))
		}
	}
	if runtime.GOOS != "windows" {
		all = append(all, "/usr/local/bin/claude", "/opt/homebrew/bin/claude")
	}
	return all
}
