//go:build unix

package file

import (
	"io/fs"
	"syscall"
)

// Owner returns the user and the group of a file.
func Owner(info fs.FileInfo) (uid, gid int, known bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(st.Uid), int(st.Gid), true
}
