//go:build unix

package mcpauth

import (
	"io/fs"
	"syscall"
)

// ownerOf is the user id of a file's owner.
func ownerOf(info fs.FileInfo) (uid int, known bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}
