package mcpauth_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/tenon-sdk/tenon/mcpauth"
)

// What every store owes.
func TestStores(t *testing.T) {
	keyring.MockInit()
	stores := map[string]func(t *testing.T) (mcpauth.TokenStore, error){
		"memory":  func(*testing.T) (mcpauth.TokenStore, error) { return mcpauth.NewMemoryStore(), nil },
		"dir":     func(t *testing.T) (mcpauth.TokenStore, error) { return mcpauth.NewDirStore(t.TempDir()) },
		"keyring": func(t *testing.T) (mcpauth.TokenStore, error) { return mcpauth.NewKeyringStore("tenon", t.TempDir()) },
	}
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			s, err := open(t)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Load(t.Context(), "k"); !errors.Is(err, mcpauth.ErrNotFound) {
				t.Errorf("empty store: %v, want ErrNotFound", err)
			}
			put := func(c *mcpauth.Credentials, failure error) error {
				return s.Update(t.Context(), "k", func(*mcpauth.Credentials) (*mcpauth.Credentials, error) { return c, failure })
			}
			if err := put(&mcpauth.Credentials{AccessToken: "a", Scopes: []string{"x"}}, nil); err != nil {
				t.Fatal(err)
			}
			boom := errors.New("boom")
			if err := put(&mcpauth.Credentials{AccessToken: "b"}, boom); !errors.Is(err, boom) {
				t.Errorf("got %v, want fn's error", err)
			}
			c, err := s.Load(t.Context(), "k")
			if err != nil || c.AccessToken != "a" || len(c.Scopes) != 1 {
				t.Errorf("got %v, %v; want what was stored before the failure", c, err)
			}
			if err := put(nil, nil); err != nil {
				t.Fatal(err)
			}
			if err := put(nil, nil); err != nil {
				t.Errorf("deleting nothing: %v", err)
			}
			if _, err := s.Load(t.Context(), "k"); !errors.Is(err, mcpauth.ErrNotFound) {
				t.Errorf("after the deletion: %v", err)
			}
		})
	}
}

// A waiter for a lock can leave; the holder is not disturbed.
func TestUpdateGivesUpWithItsContext(t *testing.T) {
	for name, s := range map[string]mcpauth.TokenStore{"memory": mcpauth.NewMemoryStore()} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			err := s.Update(t.Context(), "k", func(*mcpauth.Credentials) (*mcpauth.Credentials, error) {
				cancel()
				err := s.Update(ctx, "k", func(*mcpauth.Credentials) (*mcpauth.Credentials, error) {
					t.Error("two updates of one key at once")
					return nil, nil
				})
				return nil, err
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want canceled", err)
			}
		})
	}
}

func TestKeyringWithoutAServiceName(t *testing.T) {
	if _, err := mcpauth.NewKeyringStore("", t.TempDir()); err == nil {
		t.Error("taken")
	}
}

// damage overwrites the one entry of a directory store.
func damage(t *testing.T, dir string) string {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	if len(files) != 1 {
		t.Fatalf("files %v, want one", files)
	}
	if err := os.WriteFile(files[0], []byte("{half"), 0o600); err != nil {
		t.Fatal(err)
	}
	return files[0]
}

// An entry that is no credentials any more names its place, and both ways out are open: another login and a logout.
func TestDamagedLoginIsReplacedAndDeleted(t *testing.T) {
	f := newFake(t)
	dir := t.TempDir()
	store, err := mcpauth.NewDirStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	f.expired(store, time.Hour)
	file := damage(t, dir)
	if _, err := store.Load(t.Context(), mcpauth.Key(f.url())); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("got %v, want the name of the file in it", err)
	}
	o := f.person()
	o.Store = store
	a, c := f.client(o)
	if err := a.Login(t.Context()); err != nil {
		t.Fatalf("the login after the damage: %v", err)
	}
	mustGet(t, f, c)
	damage(t, dir)
	if err := a.Logout(t.Context()); err != nil {
		t.Errorf("the logout after the damage: %v", err)
	}
	if _, err := store.Load(t.Context(), mcpauth.Key(f.url())); !errors.Is(err, mcpauth.ErrNotFound) {
		t.Errorf("after the logout: %v", err)
	}
}

// A login that cannot be stored is no success for whoever asked for it, but it is not thrown away either.
func TestLoginThatCannotBeStoredSaysSo(t *testing.T) {
	f := newFake(t)
	o := f.person()
	o.Store = &fullStore{TokenStore: mcpauth.NewMemoryStore(), full: true}
	a, c := f.client(o)
	err := a.Login(t.Context())
	if !errors.As(err, new(*mcpauth.StoreError)) || !strings.Contains(err.Error(), "is lost when this process ends") {
		t.Errorf("got %v, want that the login could not be stored", err)
	}
	mustGet(t, f, c)
	if n := f.asked("/token"); n != 1 {
		t.Errorf("%d logins, want the one that could not be stored", n)
	}
	_, other := f.client(o)
	mustGet(t, f, other) // a request that needs a login goes through with it, too
}
