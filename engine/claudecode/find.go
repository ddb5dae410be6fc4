package claudecode

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
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

// find returns the CLI's executable: the one given, else the first on the PATH, at the usual
// places of its installers, and in the npm packages of the folders above.
func find(given string, env []string) (string, error) {
	if given != "" {
		path, err := subproc.LookPath(given, "", env)
		if err != nil {
			return "", &NotFoundError{Path: given, Err: err}
		}
		return path, nil
	}
	path, err := subproc.LookPath("claude", "", env)
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
	return "", &NotFoundError{Searched: searched, Err: err}
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
	exe, homeVar := "claude", "HOME"
	if runtime.GOOS == "windows" {
		exe, homeVar = "claude.exe", "USERPROFILE"
	}
	var all []string
	for _, kv := range env {
		home, ok := strings.CutPrefix(kv, homeVar+"=")
		if !ok || home == "" {
			continue
		}
		for _, dir := range []string{".local/bin", ".claude/local", ".npm-global/bin", "node_modules/.bin", ".yarn/bin", ".bun/bin"} {
			all = append(all, filepath.Join(home, filepath.FromSlash(dir), exe))
		}
	}
	if runtime.GOOS != "windows" {
		all = append(all, "/usr/local/bin/claude", "/opt/homebrew/bin/claude")
	}
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	system := map[string]string{"windows": "win32"}[runtime.GOOS]
	if system == "" {
		system = runtime.GOOS
	}
	dir, err := os.Getwd()
	for err == nil {
		modules := filepath.Join(dir, "node_modules")
		all = append(all,
			filepath.Join(modules, ".bin", exe),
			filepath.Join(modules, "@anthropic-ai", "claude-code-"+system+"-"+arch, exe))
		parent := filepath.Dir(dir)
		if parent == dir {
			break
		}
		dir = parent
	}
	return all
}
