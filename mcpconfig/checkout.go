package mcpconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	// maxCheckoutBytes is the size up to which a file of a checkout is read.
	maxCheckoutBytes = 1 << 20
	// maxParents is how many folders are looked at for the root of a repository.
	maxParents = 128
	// maxLinks is how many symbolic links on the way to a file are followed.
	maxLinks = 40
)

// A checkout is the repository that contains a directory: the folders in which a project's files count.
type checkout struct {
	// dirs are the directory and those above it up to the root of the repository, the nearest first.
	dirs []string
	// user is the user's own settings file, if it is known. It is none of the checkout's, though the home directory may be
	// in one.
	user string
}

// openCheckout finds the repository that contains a directory: the nearest folder with .git, a folder or a file, at or
// above it. Without one, the checkout is the directory alone. A .git that somebody else put there does not count.
func openCheckout(dir string) checkout {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real // the folders that are above it, whatever name it was reached by
	}
	c := checkout{dirs: []string{dir}}
	for range maxParents {
		last := c.dirs[len(c.dirs)-1]
		if info, err := os.Lstat(filepath.Join(last, ".git")); err == nil && ownedByUs(info) {
			return c
		}
		parent := filepath.Dir(last)
		if parent == last {
			break
		}
		c.dirs = append(c.dirs, parent)
	}
	c.dirs = c.dirs[:1]
	return c
}

// ProjectFiles returns the places of .mcp.json for a directory, the nearest first: the directory and those above it in the
// repository that contains it. Without a repository it is the directory alone.
func ProjectFiles(dir string) []string { return openCheckout(dir).files(ProjectFile) }

// userSettings is the path of the user's own settings file, without symbolic links in its folder.
func userSettings(lookup func(string) (string, bool)) string {
	dir := settingsDir(lookup)
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return filepath.Join(dir, "settings.json")
}

// files are the places of a file in the folders of the checkout, the nearest first.
func (c checkout) files(name ...string) []string {
	var out []string
	for _, dir := range c.dirs {
		if path := filepath.Join(append([]string{dir}, name...)...); path != c.user {
			out = append(out, path)
		}
	}
	return out
}

// read reads a file of the checkout. It refuses one that is not safe: see verify.
func (c checkout) read(path string) ([]byte, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err // most are not there, and nothing is wrong with that
	}
	target, err := c.verify(path)
	if err != nil {
		return nil, err
	}
	data, err := readFile(target, maxCheckoutBytes, false)
	if err == nil && len(data) > maxCheckoutBytes {
		return nil, fmt.Errorf("it has more than the %d bytes that are read", maxCheckoutBytes)
	}
	return data, err
}

// verify checks the file and each folder between the root of the repository and the file; where a symbolic link leads
// out of the repository, each folder from the root of the file system. None of them may belong to anybody but the user
// and root, and none may be one that others can write to. It returns the path behind the links: what is to be opened.
func (c checkout) verify(path string) (target string, err error) {
	from := c.dirs[len(c.dirs)-1]
	for range maxLinks {
		next, err := verifyWay(from, path)
		if err != nil || next == "" {
			return path, err
		}
		path = next
		if !within(from, path) {
			from = filepath.VolumeName(path) + string(filepath.Separator)
		}
	}
	return "", errors.New("too many symbolic links lead to it")
}

// verifyWay checks what lies between a folder and a path below it, both included. At a symbolic link it stops and
// returns where that leads.
func verifyWay(from, path string) (next string, err error) {
	rest, err := filepath.Rel(from, path)
	if err != nil {
		return "", err
	}
	at := from
	for _, name := range append([]string{"."}, strings.Split(rest, string(filepath.Separator))...) {
		at = filepath.Join(at, name)
		info, err := os.Lstat(at)
		if err != nil {
			return "", err
		}
		if err := safe(at, info); err != nil {
			return "", err
		}
		if info.Mode().Type() != fs.ModeSymlink {
			continue
		}
		link, err := os.Readlink(at)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(link) {
			link = filepath.Join(filepath.Dir(at), link)
		}
		behind, err := filepath.Rel(at, path)
		if err != nil {
			return "", err
		}
		return filepath.Join(link, behind), nil
	}
	return "", nil
}

// within reports whether a path is a folder or below it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
