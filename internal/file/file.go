// Package file reads files within bounds and replaces them atomically.
package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Read reads a file of at most limit bytes, which may be a pipe or a device.
func Read(path string, limit int64) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, errors.New("it is a directory")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, fmt.Errorf("it has more than the %d bytes that are read", limit)
	}
	return data, err
}

// ReadRegular is like [Read] for a regular file or a link to one. It refuses others: a read of a
// pipe without a writer does not end.
func ReadRegular(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	return Read(path, limit)
}

// Replace writes data to a temporary file and renames it to path. The file has the content on disk
// before it is renamed, and gets mode. If check is not nil, it is called with the temporary file
// before the renaming; its error prevents that. After an error the file at path is unchanged.
func Replace(path string, data []byte, mode fs.FileMode, check func(*os.File) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode.Perm()), f.Sync())
	if err == nil && check != nil {
		err = check(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Cause returns the cause of a file error without the name of the file.
func Cause(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// Real returns a path without symbolic links, or the path itself if it does not exist.
func Real(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
