//go:build unix

package mcpconfig

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives f the owner of the file that it replaces, where the system lets us: it matters when root edits a
// user's file.
func keepOwner(f *os.File, info fs.FileInfo) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(int(st.Uid), int(st.Gid))
	}
}
