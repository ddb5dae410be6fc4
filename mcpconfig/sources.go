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
	dir       string  // absolute
	scopes    []Scope // nil means all
	lookupEnv lookupFunc
	trustFile func(file string, contents []byte) bool
	checkout  checkout
	problems  []Problem
}

// newSourceReader returns a reader for a session in dir. If dir cannot be made absolute, ok is false and
// problems has the reason.
func newSourceReader(dir string, scopes []Scope, lookupEnv lookupFunc, trustFile func(string, []byte) bool) (r *sourceReader, ok bool) {
	r = &sourceReader{scopes: scopes, lookupEnv: lookupEnv, trustFile: trustFile}
	if r.lookupEnv == nil {
		r.lookupEnv = os.LookupEnv
	}
	var err error
	if r.dir, err = filepath.Abs(dir); err != nil {
		r.report(Problem{Level: LevelFile, File: dir, Message: fmt.Sprintf("the directory cannot be found: %v", err)})
		return r, false
	}
	r.checkout = openCheckout(r.dir)
	if user := settingsDir(r.lookupEnv); user != "" {
		r.checkout.user = filepath.Join(file.Real(user), "settings.json")
	}
	return r, true
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
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, false
	case err != nil:
		r.report(unreadable(path, err))
		return nil, false, false
	}
	return data, s == ScopeUser || r.trustFile != nil && r.trustFile(path, data), true
}

// path resolves a path that the caller gives: against the session's directory, and "~/" against the home
// directory.
func (r *sourceReader) path(p string) string {
	rest, ok := strings.CutPrefix(p, "~/")
	if home := homeDir(r.lookupEnv); home != "" && (ok || p == "~") {
		return filepath.Join(home, strings.TrimPrefix(rest, "~"))
	}
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(r.dir, p)
}

// reportLostHome reports a variable that should name the folder of the user's files and is a relative path.
func (r *sourceReader) reportLostHome() {
	name := configVariable
	if dir, _ := r.lookupEnv(name); dir == "" {
		name = homeVariable()
	}
	if dir, _ := r.lookupEnv(name); dir != "" && absolute(dir) == "" {
		r.report(Problem{Level: LevelNote, Message: name + " is not an absolute path: the user's configuration is not read"})
	}
}

// UserFile returns the path of the user's configuration: .claude.json in $CLAUDE_CONFIG_DIR, or else in
// the home directory. It is empty if neither is an absolute path. A nil lookup means [os.LookupEnv].
func UserFile(lookup func(name string) (string, bool)) string {
	if lookup == nil {
		lookup = os.LookupEnv
	}
	dir := homeDir(lookup)
	if v, _ := lookup(configVariable); v != "" {
		dir = absolute(v)
	}
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, ".claude.json")
}

// configVariable names the folder of the user's configuration, instead of the home directory.
const configVariable = "CLAUDE_CONFIG_DIR"

// settingsDir returns the folder of the user's settings, or "".
func settingsDir(lookup lookupFunc) string {
	if dir, _ := lookup(configVariable); dir != "" {
		return absolute(dir)
	}
	if home := homeDir(lookup); home != "" {
		return filepath.Join(home, ".claude")
	}
	return ""
}

func homeVariable() string {
	if runtime.GOOS == "windows" {
		return "USERPROFILE"
	}
	return "HOME"
}

// homeDir returns the home directory, or "".
func homeDir(lookup lookupFunc) string {
	dir, _ := lookup(homeVariable())
	return absolute(dir)
}

// absolute returns an absolute path, or "": with a relative path, files of a checkout would be the user's.
func absolute(path string) string {
	if filepath.IsAbs(path) {
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
