package mcpconfig

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/tenon-sdk/tenon/internal/file"
)

const (
	// updateTries bounds the attempts to update a file that other programs change.
	updateTries = 10
	// lockWait bounds the wait for other updates of the file. lockRetry is the interval of attempts.
	lockWait  = 10 * time.Second
	lockRetry = 5 * time.Millisecond
)

// ErrBusy is the error of a file that changed before each attempt to write it, or of an update that
// waited too long for another one.
var ErrBusy = errors.New("the file keeps changing")

// UpdateFile replaces the content of a file by the result of edit, which receives the current
// content, or nil without a file. The file is replaced atomically. If another program changes the
// file in the meantime, edit is called again. A lock in the user's cache folder serializes the
// updates of the user's processes. Mode and, if possible, owner are kept; a new file gets mode. For
// a symbolic link, the target is replaced. If edit returns an error or the same content, nothing is
// written.
func UpdateFile(path string, mode fs.FileMode, edit func(doc []byte) ([]byte, error)) error {
	target, err := linkTarget(path)
	if err != nil {
		return fmt.Errorf("mcpconfig: %w", err)
	}
	unlock, err := lockPath(target)
	if err != nil {
		return fmt.Errorf("mcpconfig: writing %s: %w", path, err)
	}
	defer unlock()
	for range updateTries {
		before, info, err := snapshot(target)
		if err != nil {
			return fmt.Errorf("mcpconfig: %w", err)
		}
		after, err := edit(bytes.Clone(before))
		if err != nil {
			return err
		}
		if info != nil && bytes.Equal(before, after) {
			return nil
		}
		switch err := replace(target, before, after, info, mode); {
		case err == nil:
			return nil
		case !errors.Is(err, ErrBusy):
			return fmt.Errorf("mcpconfig: writing %s: %w", target, file.Cause(err))
		}
	}
	return fmt.Errorf("mcpconfig: writing %s: %w", path, ErrBusy)
}

// lockPath locks out other updates of a file until unlock is called. The lock is a file in the
// user's cache folder, because others could hold a lock in the folder of the file. Without a cache
// folder there is no lock; UpdateFile still compares the content before it replaces the file.
func lockPath(path string) (unlock func(), err error) {
	name, ok := lockName(path)
	if !ok {
		return func() {}, nil
	}
	lock := flock.New(name, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	deadline := time.After(lockWait)
	for {
		if held, err := lock.TryLock(); held || err != nil {
			return func() { _ = lock.Close() }, nil //nolint:nilerr // after an error without a lock
		}
		select {
		case <-time.After(lockRetry):
		case <-deadline:
			return nil, fmt.Errorf("%w: another update of it holds the lock %s", ErrBusy, name)
		}
	}
}

// lockName returns the path of the lock of a file, in a folder that only the user can open.
func lockName(path string) (name string, ok bool) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", false
	}
	if _, err := os.Stat(filepath.Dir(cache)); err != nil {
		return "", false // a missing home directory is not created
	}
	dir := filepath.Join(cache, "tenon", "locks")
	if os.MkdirAll(dir, 0o700) != nil {
		return "", false
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", false
	}
	path = filepath.Join(file.Real(filepath.Dir(path)), filepath.Base(path))
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(dir, hex.EncodeToString(sum[:16])), true
}

// linkTarget follows symbolic links. The target need not exist.
func linkTarget(path string) (string, error) {
	for range maxLinks {
		link, err := os.Readlink(path)
		if err != nil {
			return path, nil //nolint:nilerr // snapshot reports errors
		}
		if !filepath.IsAbs(link) {
			link = filepath.Join(filepath.Dir(path), link)
		}
		path = link
	}
	return "", fmt.Errorf("%s: too many symbolic links", path)
}

// snapshot reads a file. Without one, both results are nil.
func snapshot(path string) ([]byte, fs.FileInfo, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil
	case err != nil:
		return nil, nil, err
	case !info.Mode().IsRegular():
		return nil, nil, fmt.Errorf("%s is not a regular file", path)
	case info.Size() > maxBytes:
		return nil, nil, fmt.Errorf("%s has more than %d bytes", path, maxBytes)
	}
	data, err := os.ReadFile(path)
	return data, info, err
}

// replace replaces the content of a file. It returns ErrBusy if the content is no longer before.
func replace(path string, before, after []byte, info fs.FileInfo, mode fs.FileMode) error {
	if info != nil {
		mode = info.Mode()
	}
	return file.Replace(path, after, mode, func(f *os.File) error {
		if info != nil {
			if uid, gid, ok := file.Owner(info); ok {
				_ = f.Chown(uid, gid) // matters if root edits a user's file
			}
		}
		now, nowInfo, err := snapshot(path)
		if err == nil && ((nowInfo == nil) != (info == nil) || !bytes.Equal(now, before)) {
			err = ErrBusy
		}
		return err
	})
}
