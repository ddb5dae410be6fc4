//go:build unix

package mcpconfig

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives f the owner of the file that it replaces, if possible. It matters if root edits a user's
// file.
func keepOwner(f *os.File, info fs.FileInfo) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(int(st.Uid), int(st.Gid))
	}
}

// ownedByUs reports whether a file belongs to the user or to root.
func ownedByUs(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || st.Uid == 0 || int(st.Uid) == os.Geteuid()
}

// safe returns an error unless a file or folder belongs to the user or root and is not writable by others.
// Members of the user's primary group and of root's are not others, because files are often writable by the
// group if each user has one. A folder with the sticky bit, such as /tmp, may be writable: others cannot
// replace the user's files in it.
func safe(path string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	mode := info.Mode()
	switch {
	case !ownedByUs(info):
		return fmt.Errorf("%s belongs to another user (uid %d); make it yours: chown %d %s", path, st.Uid, os.Geteuid(), path)
	case mode.Type() == fs.ModeSymlink, mode.IsDir() && mode&fs.ModeSticky != 0:
		return nil
	case mode.Perm()&0o002 != 0:
		return fmt.Errorf("everybody can write to %s; forbid it: chmod o-w %s", path, path)
	case mode.Perm()&0o020 != 0 && st.Gid != 0 && int(st.Gid) != os.Getegid():
		return fmt.Errorf("the group %d can write to %s; forbid it: chmod g-w %s", st.Gid, path, path)
	}
	return nil
}
