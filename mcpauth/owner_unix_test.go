//go:build unix

package mcpauth

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

type fakeInfo struct {
	fs.FileInfo
	mode fs.FileMode
	uid  int
}

func (i fakeInfo) Mode() fs.FileMode { return i.mode }

func (i fakeInfo) Sys() any { return &syscall.Stat_t{Uid: uint32(i.uid)} }

// What others can read, write or own is no place for tokens.
// fault H10
func TestForeignCredentialsAreRefused(t *testing.T) {
	me := os.Geteuid()
	for _, tt := range []struct {
		name string
		info fakeInfo
		bits fs.FileMode
		want string
	}{
		{"own file", fakeInfo{mode: 0o600, uid: me}, 0o077, ""},
		{"root's file", fakeInfo{mode: 0o600, uid: 0}, 0o077, ""},
		{"another's file", fakeInfo{mode: 0o600, uid: me + 4321}, 0o077, "belongs to another user (uid"},
		{"readable for the group", fakeInfo{mode: 0o640, uid: me}, 0o077, `has mode 0640, so other users can get at it: run mend "P"`},
		{"readable for all", fakeInfo{mode: 0o604, uid: me}, 0o077, "has mode 0604"},
		{"own folder", fakeInfo{mode: fs.ModeDir | 0o755, uid: me}, 0o022, ""},
		{"writable for all", fakeInfo{mode: fs.ModeDir | 0o777, uid: me}, 0o022, "has mode 0777"},
		{"writable for the group", fakeInfo{mode: fs.ModeDir | 0o770, uid: me}, 0o022, "has mode 0770"},
		{"another's folder", fakeInfo{mode: fs.ModeDir | 0o700, uid: me + 4321}, 0o022, "belongs to another user"},
	} {
		err := checkOwn("P", tt.info, tt.bits, "mend")
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

// The stores look before they read, write or lock, and say what to do; once that is done they work.
// fault H10
func TestStoresRefuseOpenPlaces(t *testing.T) {
	const key = "https://a.example/mcp"
	keep := func(*Credentials) (*Credentials, error) { return &Credentials{AccessToken: "a"}, nil }
	dir := filepath.Join(t.TempDir(), "credentials")
	store, err := NewDirStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Update(t.Context(), key, keep); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, slotName(key)+".json")
	load := func() error { _, err := store.Load(t.Context(), key); return err }
	update := func() error {
		return store.Update(t.Context(), key, func(*Credentials) (*Credentials, error) {
			t.Error("an update of what cannot be trusted")
			return nil, nil
		})
	}
	for _, tt := range []struct {
		path string
		mode os.FileMode
		op   string
		do   func() error
		want string
	}{
		{dir, 0o777, "read", load, "run chmod 700"},
		{dir, 0o777, "lock", update, "run chmod 700"},
		{file, 0o644, "read", load, "run chmod 600"},
		{file, 0o644, "read", update, "run chmod 600"},
	} {
		info, err := os.Stat(tt.path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(tt.path, tt.mode); err != nil {
			t.Fatal(err)
		}
		err = tt.do()
		var se *StoreError
		if !errors.As(err, &se) || se.Op != tt.op || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.path) {
			t.Errorf("%s with mode %o: got %v, want a StoreError of op %q with %q", tt.path, tt.mode, err, tt.op, tt.want)
		}
		if err := os.Chmod(tt.path, info.Mode()); err != nil {
			t.Fatal(err)
		}
		if err := load(); err != nil {
			t.Errorf("once mended: %v", err)
		}
	}
	keyring, err := NewKeyringStore("tenon", dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	err = keyring.Update(t.Context(), key, keep)
	var se *StoreError
	if !errors.As(err, &se) || se.Op != "lock" {
		t.Errorf("the lock files of a keyring in an open folder: got %v", err)
	}
}
