package mcpauth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	"github.com/zalando/go-keyring"
)

// A StoreError is a credential store that could not be read or written: a locked keychain, a file
// of someone else's, broken JSON. It is not a missing login, so a server that meets it is failed
// and not needs-auth.
type StoreError struct {
	// Op is "read", "write" or "lock".
	Op  string
	Err error
}

// Error begins with the words that hosts show for an unreadable store.
func (e *StoreError) Error() string {
	switch e.Op {
	case "read":
		return fmt.Sprintf("Couldn't read the stored credentials: %v", e.Err)
	case "lock":
		return fmt.Sprintf("Couldn't lock the stored credentials: %v", e.Err)
	}
	return fmt.Sprintf("Couldn't write the stored credentials: %v", e.Err)
}

func (e *StoreError) Unwrap() error { return e.Err }

// NewDirStore keeps one JSON file a server in dir, which is created with mode 0700 when something
// is first stored. Files have mode 0600 and are replaced in one step, so a reader never sees half
// of one. A lock file beside each keeps other processes out during an update.
//
// A directory that others can write to, a file that others can read, and either of another user are
// refused with a [StoreError] that says how to mend it. On Windows permissions are not looked at.
func NewDirStore(dir string) (TokenStore, error) {
	if dir == "" {
		return nil, errors.New("mcpauth: a directory store needs a directory")
	}
	return &lockedStore{dir: dir, locks: newKeyLocks(), slots: dirSlots(dir)}, nil
}

// UserStore keeps credentials as [NewDirStore] does, in tenon/credentials below the user's
// configuration directory: $XDG_CONFIG_HOME, else [os.UserConfigDir]. It is where "tenon mcp login"
// keeps them, so a program with this store uses the logins that its user made in a shell. A nil
// lookup means os.LookupEnv.
func UserStore(lookup func(name string) (string, bool)) (TokenStore, error) {
	if lookup == nil {
		lookup = os.LookupEnv
	}
	dir, _ := lookup("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		var err error
		if dir, err = os.UserConfigDir(); err != nil {
			return nil, fmt.Errorf("mcpauth: finding a place for tokens: %w", err)
		}
		if !filepath.IsAbs(dir) {
			return nil, errors.New("mcpauth: finding a place for tokens: the home directory is no absolute path")
		}
	}
	return NewDirStore(filepath.Join(dir, "tenon", "credentials"))
}

// NewKeyringStore keeps credentials in the system's keyring (the macOS keychain, the Secret Service
// on Linux, the Windows Credential Manager) under the given service name. lockDir is a directory
// for the lock files that keep other processes out during an update; it holds no secret, and is
// created with mode 0700 at the first.
//
// Windows bounds an entry at 2,560 bytes: with longer tokens Update fails there with a
// [StoreError], and [NewDirStore] is the way.
func NewKeyringStore(service, lockDir string) (TokenStore, error) {
	if service == "" {
		return nil, errors.New("mcpauth: a keyring store needs a service name")
	}
	return &lockedStore{dir: lockDir, locks: newKeyLocks(), slots: keyringSlots(service)}, nil
}

// slots is where a lockedStore keeps its entries; missing entries are fs.ErrNotExist.
type slots interface {
	read(key string) ([]byte, error)
	write(key string, data []byte) error
	remove(key string) error
	// place is where the entry is, for messages.
	place(key string) string
}

// lockedStore is a store of entries under a lock that other processes respect.
type lockedStore struct {
	dir   string
	locks *keyLocks
	slots slots
}

func (s *lockedStore) Load(_ context.Context, key string) (*Credentials, error) {
	data, err := s.slots.read(key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, &StoreError{Op: "read", Err: err}
	}
	var c Credentials
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, &StoreError{Op: "read", Err: &damagedError{place: s.slots.place(key), err: err}}
	}
	return &c, nil
}

// A damagedError is an entry that can be read and is no credentials. Nothing in it is worth
// keeping: it may be replaced and deleted.
type damagedError struct {
	place string
	err   error
}

func (e *damagedError) Error() string {
	return fmt.Sprintf("%s is not what was written there (%v); log in again", e.place, e.err)
}

func (e *damagedError) Unwrap() error { return e.err }

// absent reports whether an error of Load means that there is nothing to keep.
func absent(err error) bool {
	return errors.Is(err, ErrNotFound) || errors.As(err, new(*damagedError))
}

// lockRetry is how often a waiter for another process's lock looks again.
const lockRetry = 25 * time.Millisecond

func (s *lockedStore) Update(ctx context.Context, key string, fn func(*Credentials) (*Credentials, error)) error {
	// The file lock is per open file: goroutines of one process are kept apart by the lock in
	// memory, so that they queue instead of polling.
	unlock, err := s.locks.lock(ctx, key)
	if err != nil {
		return err
	}
	defer unlock()
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return &StoreError{Op: "lock", Err: err}
	}
	if err := checkDir(s.dir); err != nil {
		return &StoreError{Op: "lock", Err: err}
	}
	file := flock.New(filepath.Join(s.dir, slotName(key)+".lock"), flock.SetPermissions(0o600))
	if _, err := file.TryLockContext(ctx, lockRetry); err != nil {
		return &StoreError{Op: "lock", Err: err}
	}
	defer file.Unlock() //nolint:errcheck // closing the file lets go of the lock in any case

	old, err := s.Load(ctx, key)
	if err != nil && !absent(err) {
		return err
	}
	c, err := fn(old)
	if err != nil {
		return err
	}
	if c == nil {
		if err := s.slots.remove(key); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &StoreError{Op: "write", Err: err}
		}
		return nil
	}
	data, err := json.Marshal(c)
	if err != nil {
		return &StoreError{Op: "write", Err: err}
	}
	if err := s.slots.write(key, data); err != nil {
		return &StoreError{Op: "write", Err: err}
	}
	return nil
}

// slotName makes a file name of a key: server addresses have characters that file systems refuse,
// and may carry what nobody should read in a listing.
func slotName(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

type dirSlots string

func (d dirSlots) path(key string) string { return filepath.Join(string(d), slotName(key)+".json") }

func (d dirSlots) place(key string) string { return d.path(key) }

func (d dirSlots) read(key string) ([]byte, error) {
	// The folder first: in one that is the user's own nobody exchanges a file.
	if err := checkDir(string(d)); err != nil {
		return nil, err
	}
	f, err := os.Open(d.path(key))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := checkOwn(f.Name(), info, 0o077, "chmod 600"); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, bodyLimit+1))
	if err == nil && len(data) > bodyLimit {
		return nil, fmt.Errorf("%s has more than %d bytes: delete it and log in again", f.Name(), bodyLimit)
	}
	return data, err
}

// checkDir refuses a folder in which others could exchange files.
func checkDir(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", dir)
	}
	return checkOwn(dir, info, 0o022, "chmod 700")
}

// checkOwn refuses what belongs neither to the user nor to root, or has one of the given mode bits,
// which mend takes away.
func checkOwn(path string, info fs.FileInfo, bits fs.FileMode, mend string) error {
	owner, known := ownerOf(info)
	if !known {
		return nil
	}
	if owner != 0 && owner != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user (uid %d): delete it, or keep credentials elsewhere", path, owner)
	}
	if mode := info.Mode().Perm(); mode&bits != 0 {
		return fmt.Errorf("%s has mode %04o, so other users can get at it: run %s %q", path, mode, mend, path)
	}
	return nil
}

func (d dirSlots) remove(key string) error { return os.Remove(d.path(key)) }

func (d dirSlots) write(key string, data []byte) (err error) {
	f, err := os.CreateTemp(string(d), slotName(key)+"-*.tmp") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(data)
	// The rotated token must be on disk before the old one is gone.
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), d.path(key))
}

type keyringSlots string

func (k keyringSlots) place(key string) string {
	return fmt.Sprintf("the entry %s of %q in the keyring", slotName(key), string(k))
}

func (k keyringSlots) read(key string) ([]byte, error) {
	s, err := keyring.Get(string(k), slotName(key))
	return []byte(s), keyringError(err)
}

func (k keyringSlots) write(key string, data []byte) error {
	return keyringError(keyring.Set(string(k), slotName(key), string(data)))
}

func (k keyringSlots) remove(key string) error {
	return keyringError(keyring.Delete(string(k), slotName(key)))
}

func keyringError(err error) error {
	if errors.Is(err, keyring.ErrNotFound) {
		return fs.ErrNotExist
	}
	return err
}
