package subproc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// LookPath finds the program that command names. A bare name is looked up on
// the PATH of env; a path is resolved against dir, and one that begins with "~/"
// against the home directory of env. The error is a *[LookupError].
func LookPath(command, dir string, env []string) (string, error) {
	if rest, ok := strings.CutPrefix(command, "~/"); ok {
		if home := getenv(env, homeVar()); home != "" {
			command = filepath.Join(home, rest)
		}
	}
	if strings.ContainsRune(command, '/') || strings.ContainsRune(command, filepath.Separator) {
		path := command
		if !filepath.IsAbs(path) {
			abs, err := filepath.Abs(filepath.Join(dir, path))
			if err != nil {
				return "", &LookupError{Command: command, Path: path, Err: err}
			}
			path = abs
		}
		found, err := findProgram(path, env)
		if err != nil {
			return "", &LookupError{Command: command, Path: path, Err: err}
		}
		return found, nil
	}
	search := getenv(env, "PATH")
	for _, d := range filepath.SplitList(search) {
		if !filepath.IsAbs(d) {
			continue // the working directory is not a place for programs
		}
		if found, err := findProgram(filepath.Join(d, command), env); err == nil {
			return found, nil
		}
	}
	return "", &LookupError{Command: command, Path: search, Err: fs.ErrNotExist}
}

// findProgram finds an executable file at path, on Windows also with one of the
// extensions of PATHEXT.
func findProgram(path string, env []string) (string, error) {
	if runtime.GOOS != "windows" {
		return path, executable(path)
	}
	exts := getenv(env, "PATHEXT")
	if exts == "" {
		exts = ".COM;.EXE;.BAT;.CMD"
	}
	for ext := range strings.SplitSeq(exts, ";") {
		if strings.EqualFold(filepath.Ext(path), ext) && executable(path) == nil {
			return path, nil
		}
	}
	for ext := range strings.SplitSeq(exts, ";") {
		if executable(path+ext) == nil {
			return path + ext, nil
		}
	}
	return "", fs.ErrNotExist
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return withoutPath(err)
	case info.IsDir():
		return errors.New("is a directory")
	case runtime.GOOS != "windows" && info.Mode()&0o111 == 0:
		return fs.ErrPermission
	}
	return nil
}

func homeVar() string {
	if runtime.GOOS == "windows" {
		return "USERPROFILE"
	}
	return "HOME"
}

// getenv returns the last value of a variable, as the kernel's users read it.
func getenv(env []string, key string) string {
	value := ""
	for _, kv := range env {
		k, v, ok := strings.Cut(kv, "=")
		if ok && (k == key || runtime.GOOS == "windows" && strings.EqualFold(k, key)) {
			value = v
		}
	}
	return value
}
