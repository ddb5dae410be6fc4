package mcpconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tenon-sdk/tenon/internal/file"
)

const (
	// maxCheckoutBytes bounds a file of a checkout.
	maxCheckoutBytes = 1 << 20
	// maxParents bounds the search for the root of a repository.
	maxParents = 128
	// maxLinks bounds the symbolic links on the path of a file.
	maxLinks = 40
)

// A checkout is the repository that contains a directory.
type checkout struct {
	// dirs are the directory and its parents up to the root of the repository.
	dirs []string
	// user is the user's own settings file, which does not belong to the checkout even if it is in it.
	user string
}

// openCheckout finds the nearest folder with .git, a folder or a file, at or above a directory. Without one,
// the checkout is the directory alone. A .git of another user is ignored.
func openCheckout(dir string) checkout {
	c := checkout{dirs: []string{file.Real(dir)}}
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

// ProjectFiles returns the paths of .mcp.json in a directory and its parents up to the root of the
// repository, the nearest first.
func ProjectFiles(dir string) []string { return openCheckout(dir).files(ProjectFile) }

// files returns the paths of a file in the folders of the checkout, the nearest first.
func (c checkout) files(name ...string) []string {
	var out []string
	for _, dir := range c.dirs {
		if path := filepath.Join(append([]string{dir}, name...)...); path != c.user {
			out = append(out, path)
		}
	}
	return out
}

// read reads a file of the checkout, unless verify refuses it.
func (c checkout) read(path string) ([]byte, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	target, err := c.verify(path)
	if err != nil {
		return nil, err
	}
	return file.ReadRegular(target, maxCheckoutBytes)
}

// verify checks the file and each folder between the root of the repository and the file. If a symbolic link
// leads out of the repository, it checks each folder from the root of the file system. All of them must
// belong to the user or root and not be writable by others. It returns the path without links.
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

// verifyWay checks the folders from a folder to a path below it, inclusive. At a symbolic link it stops and
// returns the path that the link leads to.
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

// within reports whether a path is dir or below it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// ownedByUs reports whether a file belongs to the user or to root.
func ownedByUs(info fs.FileInfo) bool {
	uid, _, known := file.Owner(info)
	return !known || uid == 0 || uid == os.Geteuid()
}

// safe returns an error unless a file or folder belongs to the user or root and is not writable by
// others. Members of the user's primary group and of root's are not others, because files are often
// writable by the group if each user has one. A folder with the sticky bit, such as /tmp, may be
// writable: others cannot replace the user's files in it.
func safe(path string, info fs.FileInfo) error {
	uid, gid, known := file.Owner(info)
	mode := info.Mode()
	switch {
	case !known:
		return nil
	case !ownedByUs(info):
		return fmt.Errorf("%s belongs to another user (uid %d); make it yours: chown %d %s", path, uid, os.Geteuid(), path)
	case mode.Type() == fs.ModeSymlink, mode.IsDir() && mode&fs.ModeSticky != 0:
		return nil
	case mode.Perm()&0o002 != 0:
		return fmt.Errorf("everybody can write to %s; forbid it: chmod o-w %s", path, path)
	case mode.Perm()&0o020 != 0 && gid != 0 && gid != os.Getegid():
		return fmt.Errorf("the group %d can write to %s; forbid it: chmod g-w %s", gid, path, path)
	}
	return nil
}
