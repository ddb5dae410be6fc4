package mcpauth

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// ErrNotFound reports that a [TokenStore] has nothing under a key.
var ErrNotFound = errors.New("mcpauth: no stored credentials")

// Credentials is what is kept for one server: the client it was given, the tokens of that client,
// and where to refresh them. Its text and log forms show no secret.
type Credentials struct {
	// ServerURL is the MCP endpoint that the tokens are for.
	ServerURL string `json:"serverUrl"`
	// Resource is the RFC 8707 resource indicator that was asked for; it is sent again with each
	// refresh.
	Resource string `json:"resource,omitempty"`
	// Issuer is the authorization server that issued client and tokens. Credentials of one issuer
	// are never sent to another.
	Issuer string `json:"issuer,omitempty"`

	TokenEndpoint      string `json:"tokenEndpoint,omitempty"`
	RevocationEndpoint string `json:"revocationEndpoint,omitempty"`

	ClientID     string `json:"clientId,omitempty"`
	ClientSecret string `json:"clientSecret,omitempty"`
	// ClientSecretExpiry is zero when the secret does not expire.
	ClientSecretExpiry time.Time `json:"clientSecretExpiry,omitzero"`
	// AuthMethod is the token endpoint's authentication method: "none", "client_secret_basic" or
	// "client_secret_post". Empty means none without a secret, else client_secret_basic.
	AuthMethod string `json:"authMethod,omitempty"`
	// RedirectURL is the address that the client was registered with.
	RedirectURL string `json:"redirectUrl,omitempty"`

	AccessToken  string `json:"accessToken,omitempty"`
	RefreshToken string `json:"refreshToken,omitempty"`
	// TokenType is empty for bearer tokens.
	TokenType string `json:"tokenType,omitempty"`
	// Expiry is zero when the server did not say when the access token ends.
	Expiry time.Time `json:"expiry,omitzero"`
	Scopes []string  `json:"scopes,omitempty"`
}

// Valid reports whether the access token can be used at the time now.
func (c *Credentials) Valid(now time.Time) bool {
	return c != nil && c.AccessToken != "" && (c.Expiry.IsZero() || now.Before(c.Expiry))
}

// String names server and client, and no secret.
func (c *Credentials) String() string {
	if c == nil {
		return "no credentials"
	}
	return "credentials for " + MaskURL(c.ServerURL) + " (client " + c.ClientID + ", issuer " + MaskURL(c.Issuer) + ")"
}

// GoString is String, so that %#v shows no secret either.
func (c *Credentials) GoString() string { return c.String() }

// LogValue is what slog shows: no secret.
func (c *Credentials) LogValue() slog.Value { return slog.StringValue(c.String()) }

func (c *Credentials) clone() *Credentials {
	if c == nil {
		return nil
	}
	d := *c
	d.Scopes = slices.Clone(c.Scopes)
	return &d
}

// A TokenStore keeps credentials under keys made by [Key]. Implementations are safe for concurrent
// use.
type TokenStore interface {
	// Load returns what is stored under key, or [ErrNotFound].
	Load(ctx context.Context, key string) (*Credentials, error)

	// Update calls fn with what is stored under key (nil if nothing is, or nothing that can be
	// used) and stores what fn returns; nil deletes. While fn runs, nobody else updates the same
	// key, in this process or, for stores that outlive it, in another one. If fn fails nothing is
	// changed and its error is returned. fn may take as long as a network request.
	Update(ctx context.Context, key string, fn func(old *Credentials) (*Credentials, error)) error
}

// NewMemoryStore returns a store that ends with the process.
func NewMemoryStore() TokenStore {
	return &memoryStore{locks: newKeyLocks(), byKey: make(map[string]*Credentials)}
}

type memoryStore struct {
	locks *keyLocks

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

// keyLocks is one lock a key, which a waiter can give up by its context.
type keyLocks struct {
	mu    sync.Mutex // guards byKey
	byKey map[string]*keyLock
}

type keyLock struct {
	held    chan struct{} // one token: whoever put it holds the lock
	waiters int           // guarded by keyLocks.mu
}

func newKeyLocks() *keyLocks { return &keyLocks{byKey: make(map[string]*keyLock)} }

func (l *keyLocks) lock(ctx context.Context, key string) (unlock func(), err error) {
	l.mu.Lock()
	k := l.byKey[key]
	if k == nil {
		k = &keyLock{held: make(chan struct{}, 1)}
		l.byKey[key] = k
	}
	k.waiters++
	l.mu.Unlock()

	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if k.waiters--; k.waiters == 0 {
			delete(l.byKey, key)
		}
	}
	select {
	case k.held <- struct{}{}:
		return func() { <-k.held; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}
