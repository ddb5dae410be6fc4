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
)

// updateTries bounds the attempts to update a file that other programs change.
const updateTries = 10

// lockWait bounds the wait for other updates of the file. lockRetry is the interval between attempts.
const (
	lockWait  = 10 * time.Second
	lockRetry = 5 * time.Millisecond
)

// ErrBusy is the error of a file that changed before each attempt to write it, or of an update that waited
// too long for another one.
var ErrBusy = errors.New("the file keeps changing")

// UpdateFile replaces the content of a file by the result of edit, which receives the current content, or nil
// without a file. The file is replaced atomically. If another program changes the file in the meantime, edit
// is called again. A lock in the user's cache folder serializes the updates of the user's processes. Mode and,
// if possible, owner are kept; a new file gets mode. For a symbolic link, the target is replaced. If edit
// returns an error or the same content, nothing is written.
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
		done, err := replace(target, before, after, info, mode)
		if err != nil {
			return fmt.Errorf("mcpconfig: writing %s: %w", target, plain(err))
		}
		if done {
			return nil
		}
	}
	return fmt.Errorf("mcpconfig: writing %s: %w", path, ErrBusy)
}

// lockPath locks out other updates of a file until unlock is called. The lock is a file in the user's cache
// folder, because others could hold a lock in the folder of the file. Without a cache folder there is no lock;
// UpdateFile still compares the content before it replaces the file.
func lockPath(path string) (unlock func(), err error) {
	none := func() {}
	name, ok := lockName(path)
	if !ok {
		return none, nil
	}
	lock := flock.New(name, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	deadline := time.NewTimer(lockWait)
	defer deadline.Stop()
	retry := time.NewTicker(lockRetry)
	defer retry.Stop()
	for {
		held, err := lock.TryLock()
		if held || err != nil {
			return func() { _ = lock.Close() }, nil // after an error without a lock
		}
		select {
		case <-retry.C:
		case <-deadline.C:
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
	path = filepath.Join(withoutLinks(filepath.Dir(path)), filepath.Base(path))
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(dir, hex.EncodeToString(sum[:16])), true
}

// linkTarget follows symbolic links. The target need not exist.
func linkTarget(path string) (string, error) {
	for range 40 {
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

// plain removes the name of the temporary file from an error.
func plain(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// replace replaces the content of a file unless it is no longer before.
func replace(path string, before, after []byte, info fs.FileInfo, mode fs.FileMode) (done bool, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return false, err
	}
	defer func() {
		if !done {
			_ = os.Remove(f.Name())
		}
	}()
	if info != nil {
		mode = info.Mode()
		keepOwner(f, info)
	}
	_, err = f.Write(after)
	err = errors.Join(err, f.Chmod(mode.Perm()), f.Sync(), f.Close())
	if err != nil {
		return false, err
	}
	now, nowInfo, err := snapshot(path)
	if err != nil || (nowInfo == nil) != (info == nil) || !bytes.Equal(now, before) {
		return false, err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return false, err
	}
	return true, nil
}
