package mcpauth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// Defaults of [Options].
const (
	DefaultRefreshBefore = time.Minute
	DefaultClientName    = "Tenon"
)

// Options configures an [Authenticator]. The zero value, like a nil pointer, keeps credentials in
// memory and asks nobody to log in.
type Options struct {
	// Store stores the credentials. Nil means memory.
	Store TokenStore
	// HTTPClient makes the requests to authorization servers. Nil means a client like
	// [http.DefaultClient]. The authenticator uses a copy, which has a timeout of 30 seconds unless the
	// client has one, follows redirects of metadata within one origin only, and refuses addresses that
	// a server must not make its clients connect to: those of this machine and of private networks,
	// unless the server itself is there, link-local ones, and metadata services of clouds.
	//
	// The addresses of a host name are checked when a connection is made. With the client's own
	// RoundTripper or dial function, or with a proxy, only addresses in URLs are checked.
	HTTPClient *http.Client
	// Logger receives events that are not errors of a call. Nil discards them.
	Logger *slog.Logger

	// ClientID is the ID of a client that is already registered. ClientSecret may be empty.
	ClientID, ClientSecret string
	// ClientMetadataURL is the URL of a client ID metadata document, for servers that support it. It is
	// used without ClientID.
	ClientMetadataURL string
	// ClientName is the name for dynamic registration. Empty means [DefaultClientName].
	ClientName string
	// Scopes replace the scopes that the server names. Nil means the server's.
	Scopes []string
	// MetadataURL is the URL of the authorization server's metadata. Empty means discovery.
	MetadataURL string

	// Authorize asks a person for consent. Without it, requests that need a login fail with a
	// [NeedsAuthError].
	Authorize AuthorizeFunc
	// RedirectURL is the URL that the authorization server redirects the browser to, such as
	// [Callback.URL]. Authorize requires it.
	RedirectURL string

	// Grant gets tokens with the client's own credentials, without Authorize.
	Grant *ClientCredentialsGrant

	// RefreshBefore is the time before its expiry when a token is refreshed. Zero means
	// [DefaultRefreshBefore].
	RefreshBefore time.Duration
}

// An AuthorizationRequest is a login that waits for a person's consent.
type AuthorizationRequest struct {
	// URL is the page to open. Whoever completes it chooses the account: show it to the person only.
	URL string
	// RedirectURL is the URL that the page redirects to.
	RedirectURL string
	// State identifies the response; see [ParseRedirect].
	State string
}

// An AuthorizationResponse is the authorization server's response (RFC 6749 section 4.1.2, RFC 9207).
type AuthorizationResponse struct {
	Code, State, Iss string
}

// An AuthorizeFunc shows the request to a person and returns the response. It may take as long as ctx
// allows.
type AuthorizeFunc func(ctx context.Context, req *AuthorizationRequest) (*AuthorizationResponse, error)

// An Authenticator gets, stores and refreshes the token for a server. It is safe for concurrent use and
// needs no closing.
type Authenticator struct {
	opts      Options
	serverURL string
	key       string
	net       *network
	discover  discoverer
	now       func() time.Time
	flight    singleflight.Group

	mu      sync.Mutex   // guards the rest
	cached  *Credentials // the newest credentials, even if they could not be stored
	unsaved bool         // the store does not have cached
	refused string       // the refresh token that the authorization server refused
	refusal error        // the error of the refusal
	scopes  []string     // the scopes of all challenges
}

// New returns an authenticator for the server at serverURL. The URL and [Options.MetadataURL] must be
// https, or http on this machine; otherwise the error matches [ErrInsecureURL]. New makes no request.
func New(serverURL string, o *Options) (*Authenticator, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(serverURL)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("mcpauth: %q is not an address", MaskURL(serverURL))
	}
	if err := checkSecure(u); err != nil {
		return nil, fmt.Errorf("mcpauth: no token is sent there: %w", err)
	}
	if m, err := url.Parse(opts.MetadataURL); err != nil {
		return nil, errors.New("mcpauth: MetadataURL is not an address")
	} else if opts.MetadataURL != "" {
		if err := checkSecure(m); err != nil {
			return nil, fmt.Errorf("mcpauth: MetadataURL: %w", err)
		}
	}
	net := newNetwork(opts.HTTPClient, serverURL, opts.MetadataURL)
	return &Authenticator{
		net:       net,
		opts:      opts,
		serverURL: serverURL,
		key:       Key(serverURL),
		discover:  discoverer{net: net, serverURL: serverURL, metadataURL: opts.MetadataURL},
		now:       time.Now,
	}, nil
}

func (o *Options) withDefaults() (Options, error) {
	var opts Options
	if o != nil {
		opts = *o
	}
	opts.Scopes = slices.Clone(opts.Scopes)
	if opts.Store == nil {
		opts.Store = NewMemoryStore()
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.ClientName == "" {
		opts.ClientName = DefaultClientName
	}
	if opts.RefreshBefore == 0 {
		opts.RefreshBefore = DefaultRefreshBefore
	}
	switch {
	case opts.RefreshBefore < 0:
		return Options{}, fmt.Errorf("mcpauth: RefreshBefore is %v, want 0 or more", opts.RefreshBefore)
	case opts.Authorize != nil && opts.RedirectURL == "":
		return Options{}, errors.New("mcpauth: Authorize is set and RedirectURL is not; a Callback has one")
	case opts.ClientSecret != "" && opts.ClientID == "":
		return Options{}, errors.New("mcpauth: ClientSecret is set and ClientID is not")
	}
	if err := opts.Grant.validate(); err != nil {
		return Options{}, err
	}
	return opts, nil
}

// Credentials returns the stored credentials, or those in memory if they could not be stored. The error
// is [ErrNotFound] or a [StoreError].
func (a *Authenticator) Credentials(ctx context.Context) (*Credentials, error) {
	a.mu.Lock()
	cached, unsaved := a.cached.clone(), a.unsaved
	a.mu.Unlock()
	if unsaved {
		return cached, nil
	}
	c, err := a.opts.Store.Load(ctx, a.key)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (a *Authenticator) remember(c *Credentials, saved bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cached, a.unsaved = c.clone(), !saved
}

func (a *Authenticator) needsAuth(reason Reason, err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return &NeedsAuthError{ServerURL: a.serverURL, Reason: reason, Scopes: slices.Clone(a.scopes), Err: err}
}

// Same reports whether a and b use the same tokens: they have the same server, equal options, and the
// same store. Stores are the same if they are equal or keep their entries in the same place. An
// authenticator with [Options.Authorize] is only the same as itself.
func (a *Authenticator) Same(b *Authenticator) bool {
	if a == b || a == nil || b == nil {
		return a == b
	}
	x, y := a.opts, b.opts
	if x.Authorize != nil || y.Authorize != nil || a.serverURL != b.serverURL || !sameStore(x.Store, y.Store) || x.HTTPClient != y.HTTPClient {
		return false
	}
	// What is left is data.
	x.Store, y.Store = nil, nil
	x.HTTPClient, y.HTTPClient = nil, nil
	x.Logger, y.Logger = nil, nil
	return reflect.DeepEqual(x, y)
}

func sameStore(a, b TokenStore) bool {
	la, oka := a.(*lockedStore)
	lb, okb := b.(*lockedStore)
	if oka && okb {
		return la.dir == lb.dir && la.slots == lb.slots
	}
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	return va.Type() == vb.Type() && va.Comparable() && va.Equal(vb)
}
