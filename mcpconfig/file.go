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

// updateTries is how often an update is begun anew because the file changed meanwhile.
const updateTries = 10

// lockWait is how long an update waits for others of the same file, lockRetry how often it looks.
const (
	lockWait  = 10 * time.Second
	lockRetry = 5 * time.Millisecond
)

// ErrBusy reports that a file changed each time it was about to be written, or that another update did not end.
var ErrBusy = errors.New("the file keeps changing")

// UpdateFile edits a file: it reads it, passes the text to edit (nil when there is no file) and puts what edit returns
// in its place, at once and whole: whoever reads it meanwhile sees the old text or the new. A file that another program changes between
// reading and writing is edited anew, and of several updates by one user, in any number of processes, one is made at a time, by
// a lock in the user's cache folder. Mode and, where the system lets it, owner are kept; a new file gets mode. A symbolic link
// stays one, and its target is written. When edit returns an error, or the text unchanged, nothing is written.
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

// lockPath keeps other updates of a file out until unlock is called. The lock is a file in the user's own cache folder
// and not the folder of the file: anybody who can read that could hold it. Where there is no such folder there is no
// lock: the file is looked at before it is replaced all the same.
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
			return func() { _ = lock.Close() }, nil // no lock: see above
		}
		select {
		case <-retry.C:
		case <-deadline.C:
			return nil, fmt.Errorf("%w: another update of it holds the lock %s", ErrBusy, name)
		}
	}
}

// lockName is the lock of a file, in a folder that only the user can open.
func lockName(path string) (name string, ok bool) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", false
	}
	if _, err := os.Stat(filepath.Dir(cache)); err != nil {
		return "", false // a home directory that is not there is not made for a lock
	}
	dir := filepath.Join(cache, "tenon", "locks")
	if os.MkdirAll(dir, 0o700) != nil {
		return "", false
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", false
	}
	if parent, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(parent, filepath.Base(path))
	}
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(dir, hex.EncodeToString(sum[:16])), true
}

// linkTarget follows symbolic links, also to a file that is not there yet.
func linkTarget(path string) (string, error) {
	for range 40 {
		link, err := os.Readlink(path)
		if err != nil {
			return path, nil //nolint:nilerr // no link, or nothing there: that is for the reading to report
		}
		if !filepath.IsAbs(link) {
			link = filepath.Join(filepath.Dir(path), link)
		}
		path = link
	}
	return "", fmt.Errorf("%s: too many symbolic links", path)
}

// snapshot reads a file; both results are nil when there is none.
func snapshot(path string) ([]byte, fs.FileInfo, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil
	case err != nil:
		return nil, nil, err
	case !info.Mode().IsRegular():
		return nil, nil, fmt.Errorf("%s is no regular file", path)
	case info.Size() > maxBytes:
		return nil, nil, fmt.Errorf("%s has more than %d bytes", path, maxBytes)
	}
	data, err := os.ReadFile(path)
	return data, info, err
}

// plain drops from an error the name of the file that has only just been made, which tells nobody anything.
func plain(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// replace puts the new text in place unless the old one has changed.
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
