//go:build !unix

package mcpconfig

import (
	"io/fs"
	"os"
)

// keepOwner does nothing: the file takes the permissions of its folder.
func keepOwner(*os.File, fs.FileInfo) {}
