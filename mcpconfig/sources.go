package mcpconfig

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
)

type lookupFunc = func(name string) (string, bool)

// A sourceReader reads the files of the setting sources and collects problems.
type sourceReader struct {
	dir       string  // absolute after open
	scopes    []Scope // nil means all
	lookupEnv lookupFunc
	trustFile func(file string, contents []byte) bool
	checkout  checkout
	problems  []Problem
}

// open finds the checkout. If dir cannot be made absolute, it reports that and returns false.
func (r *sourceReader) open() bool {
	if r.lookupEnv == nil {
		r.lookupEnv = os.LookupEnv
	}
	dir, err := filepath.Abs(r.dir)
	if err != nil {
		r.report(Problem{Level: LevelFile, File: r.dir, Message: fmt.Sprintf("the directory cannot be found: %v", err)})
		return false
	}
	r.dir = dir
	r.checkout = openCheckout(dir)
	if user := userDir(r.lookupEnv, ".claude"); user != "" {
		r.checkout.user = filepath.Join(file.Real(user), "settings.json")
	}
	return true
}

func (r *sourceReader) report(problems ...Problem) { r.problems = append(r.problems, problems...) }

// reads reports whether a source is to be read.
func (r *sourceReader) reads(s Scope) bool { return r.scopes == nil || slices.Contains(r.scopes, s) }

// read reads a file of the user, or of the checkout for another scope. It reports an unreadable file.
func (r *sourceReader) read(s Scope, path string) (data []byte, trusted, ok bool) {
	var err error
	if s == ScopeUser {
		data, err = file.ReadRegular(path, maxBytes)
	} else {
		data, err = r.checkout.read(path)
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			r.report(unreadable(path, err))
		}
		return nil, false, false
	}
	return data, s == ScopeUser || r.trustFile != nil && r.trustFile(path, data), true
}

// A source is a file of a setting source.
type source struct {
	scope Scope
	path  string
}

// settingsFiles returns the settings files to read, those of lower precedence first.
func (r *sourceReader) settingsFiles() []source {
	var all []source
	if dir := userDir(r.lookupEnv, ".claude"); dir != "" {
		all = append(all, source{ScopeUser, filepath.Join(dir, "settings.json")})
	}
	for _, path := range slices.Backward(r.checkout.files(".claude", "settings.json")) {
		all = append(all, source{ScopeProject, path})
	}
	for _, path := range slices.Backward(r.checkout.files(".claude", "settings.local.json")) {
		all = append(all, source{ScopeLocal, path})
	}
	return slices.DeleteFunc(all, func(s source) bool { return !r.reads(s.scope) })
}

// path resolves a path that the caller gives: against the session's directory, and "~/" against the
// home directory.
func (r *sourceReader) path(p string) string {
	rest, ok := strings.CutPrefix(p, "~/")
	if home := absoluteVariable(r.lookupEnv, homeVariable()); home != "" && (ok || p == "~") {
		return filepath.Join(home, strings.TrimPrefix(rest, "~"))
	}
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(r.dir, p)
}

// reportLostHome reports a variable that should name the folder of the user's files and is a
// relative path.
func (r *sourceReader) reportLostHome() {
	for _, name := range []string{configVariable, homeVariable()} {
		if dir, _ := r.lookupEnv(name); dir != "" {
			if !filepath.IsAbs(dir) {
				r.report(Problem{Level: LevelNote, Message: name + " is not an absolute path: the user's configuration is not read"})
			}
			return
		}
	}
}

// UserFile returns the path of the user's configuration: .claude.json in $CLAUDE_CONFIG_DIR, or else
// in the home directory. It is empty if neither is an absolute path. A nil lookup means
// [os.LookupEnv].
func UserFile(lookup func(name string) (string, bool)) string {
	if lookup == nil {
		lookup = os.LookupEnv
	}
	dir := userDir(lookup, "")
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, ".claude.json")
}

// configVariable names the folder of the user's configuration, instead of one in the home directory.
const configVariable = "CLAUDE_CONFIG_DIR"

// userDir returns $CLAUDE_CONFIG_DIR or, without it, the folder with the name in the home directory.
// It returns "" if that is not absolute.
func userDir(lookup lookupFunc, name string) string {
	if dir, _ := lookup(configVariable); dir != "" {
		return absoluteVariable(lookup, configVariable)
	}
	home := absoluteVariable(lookup, homeVariable())
	if home == "" {
		return ""
	}
	return filepath.Join(home, name)
}

func homeVariable() string {
	if runtime.GOOS == "windows" {
		return "USERPROFILE"
	}
	return "HOME"
}

// absoluteVariable returns the absolute path in a variable, or "": with a relative path, files of a
// checkout would be the user's.
func absoluteVariable(lookup lookupFunc, name string) string {
	if path, _ := lookup(name); filepath.IsAbs(path) {
		return path
	}
	return ""
}

// unreadable returns the problem of a file that cannot be read.
func unreadable(path string, err error) Problem {
	p := Problem{Level: LevelFile, File: path, Message: "cannot be read: " + file.Cause(err).Error()}
	if errors.Is(err, fs.ErrNotExist) {
		p.Message, p.Want = "there is no such file", "the path of a file, or JSON"
	}
	return p
}
