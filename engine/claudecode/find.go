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

	"github.com/tenon-sdk/tenon/internal/subproc"
)

// A NotFoundError says where the CLI was looked for.
type NotFoundError struct {
	// Path is Options.Path, if that was set.
	Path string
	// Searched are the places, in order.
	Searched []string
	Err      error
}

// Error names the places and the remedy.
func (e *NotFoundError) Error() string {
	if e.Path != "" {
		return fmt.Sprintf("claude-code: the executable in Options.Path cannot be used: %v", e.Err)
	}
	return fmt.Sprintf("claude-code: the Claude Code CLI was not found; install the npm package @anthropic-ai/claude-code or set Options.Path (looked for: %s)",
		strings.Join(e.Searched, ", "))
}

// Unwrap returns the cause.
func (e *NotFoundError) Unwrap() error { return e.Err }

// find returns the CLI's executable: the one given, else the first on the PATH and at the usual places of
// its installers. It runs nothing that a checkout brings along: folders of the PATH that are relative, or
// in the checkout of dir or of this process's directory, are passed over.
func find(given, dir string, env []string) (string, error) {
	if given != "" {
		path, err := subproc.LookPath(given, "", env)
		if err != nil {
			return "", &NotFoundError{Path: given, Err: err}
		}
		return path, nil
	}
	trusted, passedOver := trustedPath(dir, env)
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
	var le *subproc.LookupError
	if errors.As(err, &le) {
		searched[0] = "claude on the PATH " + le.Path
	}
	for _, entry := range passedOver {
		if found, err := subproc.LookPath(filepath.Join(entry, "claude"), "", env); err == nil {
			searched = append(searched, "not "+found+", which is in the checkout")
		}
	}
	return "", &NotFoundError{Searched: searched, Err: err}
}

// trustedPath is the PATH without the folders that a checkout can fill: relative ones, those in the
// checkout of dir and of this process's directory, and what npm puts before the others for either. It
// returns the absolute ones that it left out.
func trustedPath(dir string, env []string) (path string, passedOver []string) {
	var within, bins []string
	home := homeOf(env)
	for _, d := range []string{dir, "."} {
		d = realPath(d)
		if root := checkoutOf(d); home == "" || !isWithin(realPath(home), root) { // else it is all that is the user's
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
			passedOver = append(passedOver, entry)
			continue
		}
		kept = append(kept, entry)
	}
	return strings.Join(kept, string(filepath.ListSeparator)), passedOver
}

// checkoutOf is the repository that contains dir, else dir.
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

// realPath is the absolute path without links, as far as it is there.
func realPath(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// isWithin reports whether path is root or in it.
func isWithin(path, root string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(rel)
}

// homeOf is the user's home directory; empty if that is not known.
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

// variable is the value of a variable, whose last mention counts; empty if it is not set.
func variable(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if n, value, _ := strings.Cut(kv, "="); n == name || runtime.GOOS == "windows" && strings.EqualFold(n, name) {
			return value
		}
	}
	return ""
}

// reason is what is wrong with a file that is there.
func reason(err error) string {
	var le *subproc.LookupError
	if errors.As(err, &le) {
		err = le.Err
	}
	return err.Error()
}

// places are where installers put the CLI, in the order of the search.
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
