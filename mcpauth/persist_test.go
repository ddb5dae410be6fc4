package mcpauth_test

import (
	"context"
	"errors"
	"testing"

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
