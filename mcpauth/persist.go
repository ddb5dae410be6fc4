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

	"github.com/tenon-sdk/tenon/internal/file"
)

// A StoreError reports a store that cannot be read, written or locked, such as a locked keychain.
// Hosts show the server as failed and not as "needs-auth".
type StoreError struct {
	Op  string // "read", "write" or "lock"
	Err error
}

// Error begins with the words that hosts show for an unreadable store.
func (e *StoreError) Error() string {
	return fmt.Sprintf("Couldn't %s the stored credentials: %v", e.Op, e.Err)
}

func (e *StoreError) Unwrap() error { return e.Err }

// NewDirStore returns a store with one JSON file for each server in dir. It creates dir with mode 0700
// when something is first stored. Files have mode 0600 and are replaced atomically. A lock file beside
// each excludes other processes during an update.
//
// The store refuses a directory that others can write to, a file that others can read, and either of
// another user, with a [StoreError] that names the remedy. On Windows it does not check permissions.
func NewDirStore(dir string) (TokenStore, error) {
	if dir == "" {
		return nil, errors.New("mcpauth: a directory store needs a directory")
	}
	return &lockedStore{dir: dir, slots: dirSlots(dir)}, nil
}

// UserStore returns a [NewDirStore] in tenon/credentials below $XDG_CONFIG_HOME or, without it,
// [os.UserConfigDir]. "tenon mcp login" uses the same store, so a program with it uses the logins that
// its user made in a shell. A nil lookup means [os.LookupEnv].
func UserStore(lookup func(name string) (string, bool)) (TokenStore, error) {
	if lookup == nil {
		lookup = os.LookupEnv
	}
	dir, _ := lookup("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		var err error
		if dir, err = os.UserConfigDir(); err == nil && !filepath.IsAbs(dir) {
			err = errors.New("the home directory is no absolute path")
		}
		if err != nil {
			return nil, fmt.Errorf("mcpauth: finding a place for tokens: %w", err)
		}
	}
	return NewDirStore(filepath.Join(dir, "tenon", "credentials"))
}

// NewKeyringStore returns a store in the system's keyring (the macOS keychain, the Secret Service on
// Linux, the Windows Credential Manager) under the given service name. Lock files in lockDir, which
// is created with mode 0700, exclude other processes during an update. They have no secrets.
//
// On Windows an entry has at most 2,560 bytes. With longer tokens Update fails with a [StoreError];
// use [NewDirStore] there.
func NewKeyringStore(service, lockDir string) (TokenStore, error) {
	if service == "" {
		return nil, errors.New("mcpauth: a keyring store needs a service name")
	}
	return &lockedStore{dir: lockDir, slots: keyringSlots(service)}, nil
}

// slots stores the entries of a lockedStore. The error of a missing entry is fs.ErrNotExist.
type slots interface {
	read(key string) ([]byte, error)
	write(key string, data []byte) error
	remove(key string) error
	place(key string) string // names the entry in messages
}

// A lockedStore updates entries under a lock between processes.
type lockedStore struct {
	dir   string
	locks keyLocks
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

// A damagedError is an entry without valid credentials. It may be replaced and deleted.
type damagedError struct {
	place string
	err   error
}

func (e *damagedError) Error() string {
	return fmt.Sprintf("%s is not what was written there (%v); log in again", e.place, e.err)
}

func (e *damagedError) Unwrap() error { return e.err }

// absent reports whether an error of Load means that there are no credentials.
func absent(err error) bool {
	return errors.Is(err, ErrNotFound) || errors.As(err, new(*damagedError))
}

// lockRetry is the time between attempts to get a lock that another process holds.
const lockRetry = 25 * time.Millisecond

func (s *lockedStore) Update(ctx context.Context, key string, fn func(*Credentials) (*Credentials, error)) error {
	// The lock in memory lets the goroutines of one process wait instead of polling.
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
	lock := flock.New(filepath.Join(s.dir, slotName(key)+".lock"), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		return &StoreError{Op: "lock", Err: err}
	}
	defer lock.Unlock() //nolint:errcheck // closing the file releases the lock in any case

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

// slotName returns a file name for a key: URLs have characters that file systems refuse, and may have
// secrets that a listing would show.
func slotName(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

type dirSlots string

func (d dirSlots) path(key string) string { return filepath.Join(string(d), slotName(key)+".json") }

func (d dirSlots) place(key string) string { return d.path(key) }

func (d dirSlots) read(key string) ([]byte, error) {
	// The directory first: in the user's own nobody else can replace the file.
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

// checkDir refuses a directory in which others could replace files.
func checkDir(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", dir)
	}
	return checkOwn(dir, info, 0o022, "chmod 700")
}

// checkOwn refuses a file that belongs neither to the user nor to root, or has one of the given mode
// bits, which the command mend removes.
func checkOwn(path string, info fs.FileInfo, bits fs.FileMode, mend string) error {
	owner, _, known := file.Owner(info)
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

func (d dirSlots) write(key string, data []byte) error {
	return file.Replace(d.path(key), data, 0o600, nil)
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
