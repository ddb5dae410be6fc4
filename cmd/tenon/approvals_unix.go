//go:build unix

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// private reports an error for a file or folder that somebody else could have written, or a symbolic link that is
// somebody else's. One that is not there is fine.
func private(path string) error {
	link, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w: no project is trusted", path, pathCause(err))
	}
	switch {
	case !own(link) || !own(info):
		return fmt.Errorf("%s belongs to another user: no project is trusted; make it yours, or remove it", path)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("others can write to %s: no project is trusted; forbid it: chmod go-w %s", path, path)
	}
	return nil
}

func own(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(st.Uid) == os.Geteuid()
}
