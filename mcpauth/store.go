package mcpauth

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// ErrNotFound reports that a [TokenStore] has no credentials under a key.
var ErrNotFound = errors.New("mcpauth: no stored credentials")

// Credentials are the client and the tokens for one server. Their text and log forms show no secret.
type Credentials struct {
	// ServerURL is the MCP endpoint that the tokens are for.
	ServerURL string `json:"serverUrl"`
	// Resource is the resource indicator (RFC 8707), which each refresh sends again.
	Resource string `json:"resource,omitempty"`
	// Issuer is the authorization server. Its credentials are never sent to another.
	Issuer string `json:"issuer,omitempty"`

	TokenEndpoint      string `json:"tokenEndpoint,omitempty"`
	RevocationEndpoint string `json:"revocationEndpoint,omitempty"`

	ClientID     string `json:"clientId,omitempty"`
	ClientSecret string `json:"clientSecret,omitempty"`
	// ClientSecretExpiry is zero if the secret does not expire.
	ClientSecretExpiry time.Time `json:"clientSecretExpiry,omitzero"`
	// AuthMethod is how the client authenticates to the token endpoint: "none", "client_secret_basic"
	// or "client_secret_post". Empty means client_secret_basic with a secret and none without.
	AuthMethod string `json:"authMethod,omitempty"`
	// RedirectURL is the redirect URL of the client's registration.
	RedirectURL string `json:"redirectUrl,omitempty"`

	AccessToken  string `json:"accessToken,omitempty"`
	RefreshToken string `json:"refreshToken,omitempty"`
	// TokenType is empty for bearer tokens.
	TokenType string `json:"tokenType,omitempty"`
	// Expiry is zero if the authorization server named none.
	Expiry time.Time `json:"expiry,omitzero"`
	Scopes []string  `json:"scopes,omitempty"`
}

// Valid reports whether there is an access token that has not expired at the time now.
func (c *Credentials) Valid(now time.Time) bool {
	return c != nil && c.AccessToken != "" && (c.Expiry.IsZero() || now.Before(c.Expiry))
}

// String returns server, client and issuer.
func (c *Credentials) String() string {
	if c == nil {
		return "no credentials"
	}
	return "credentials for " + MaskURL(c.ServerURL) + " (client " + c.ClientID + ", issuer " + MaskURL(c.Issuer) + ")"
}

// GoString returns String, so that %#v shows no secret.
func (c *Credentials) GoString() string { return c.String() }

// LogValue returns String.
func (c *Credentials) LogValue() slog.Value { return slog.StringValue(c.String()) }

func (c *Credentials) clone() *Credentials {
	if c == nil {
		return nil
	}
	d := *c
	d.Scopes = slices.Clone(c.Scopes)
	return &d
}

// A TokenStore stores credentials under keys of [Key]. It must be safe for concurrent use.
type TokenStore interface {
	// Load returns the credentials under key, or [ErrNotFound].
	Load(ctx context.Context, key string) (*Credentials, error)

	// Update calls fn with the credentials under key, nil if there are none that can be used, and stores
	// the result; nil deletes. While fn runs no other update of the key runs, in this process or, for
	// stores that outlive it, in another. If fn fails, Update changes nothing and returns its error.
	// fn may make a network request.
	Update(ctx context.Context, key string, fn func(old *Credentials) (*Credentials, error)) error
}

// NewMemoryStore returns a store in memory.
func NewMemoryStore() TokenStore {
	return &memoryStore{byKey: make(map[string]*Credentials)}
}

type memoryStore struct {
	locks keyLocks

	mu    sync.Mutex // guards byKey
	byKey map[string]*Credentials
}

func (s *memoryStore) Load(_ context.Context, key string) (*Credentials, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.byKey[key]
	if c == nil {
		return nil, ErrNotFound
	}
	return c.clone(), nil
}

func (s *memoryStore) Update(ctx context.Context, key string, fn func(*Credentials) (*Credentials, error)) error {
	unlock, err := s.locks.lock(ctx, key)
	if err != nil {
		return err
	}
	defer unlock()
	old, err := s.Load(ctx, key)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	c, err := fn(old)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c == nil {
		delete(s.byKey, key)
		return nil
	}
	s.byKey[key] = c.clone()
	return nil
}

// keyLocks holds one lock for each key. A key that nobody holds takes no space.
type keyLocks struct{ held sync.Map } // to a channel that is closed when the lock is released

// lock waits for the lock of key or the end of ctx.
func (l *keyLocks) lock(ctx context.Context, key string) (unlock func(), err error) {
	released := make(chan struct{})
	for {
		other, held := l.held.LoadOrStore(key, released)
		if !held {
			return func() { l.held.Delete(key); close(released) }, nil
		}
		select {
		case <-other.(chan struct{}):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
