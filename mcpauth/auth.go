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

// DefaultRefreshBefore is how long before its end a token is refreshed.
const DefaultRefreshBefore = time.Minute

// DefaultClientName is what an authorization server shows to the person who
// logs in, unless [Options.ClientName] says otherwise.
const DefaultClientName = "Tenon"

// Options configures an [Authenticator]. The zero value, like a nil pointer,
// means: credentials that live as long as the process, nobody to ask.
type Options struct {
	// Store keeps the credentials. If nil, they are kept in memory.
	Store TokenStore
	// HTTPClient makes the requests to authorization servers. If nil, one like
	// [http.DefaultClient] is used. The client stays as it is: a copy of it
	// gets a limit of 30 seconds a request if it has none, follows redirects
	// of metadata within one origin and no others, and refuses addresses that
	// a server must not send its clients to: those of this machine and of
	// private networks, unless the server itself is there, and link-local ones
	// and metadata services of clouds.
	//
	// Names are looked at when a connection to them is made. Where the client
	// has a RoundTripper or a function to dial of its own, or a proxy, that is
	// up to those: then addresses are refused by their text alone.
	HTTPClient *http.Client
	// Logger gets what is worth knowing and fails nothing. Nil discards.
	Logger *slog.Logger

	// ClientID is a client that was registered beforehand; with it, no other
	// way of getting one is tried. ClientSecret may be empty.
	ClientID, ClientSecret string
	// ClientMetadataURL is the address of a client id metadata document. It is
	// used with servers that support it and where no ClientID is set.
	ClientMetadataURL string
	// ClientName is used for dynamic registration. If empty, DefaultClientName.
	ClientName string
	// Scopes are asked for instead of those that the server names. If nil,
	// the server's are.
	Scopes []string
	// MetadataURL is the address of the authorization server's metadata, for
	// servers whose discovery leads nowhere. If empty, it is discovered.
	MetadataURL string

	// Authorize is asked to get a person's consent when a login is needed. If
	// nil, nobody is asked: requests fail with a [NeedsAuthError].
	Authorize AuthorizeFunc
	// RedirectURL is where the authorization server sends the person back to.
	// It must be set if Authorize is. [Callback.URL] is one.
	RedirectURL string

	// Grant replaces the person: tokens are got by the client's own
	// credentials. With it, Authorize is not used.
	Grant *ClientCredentialsGrant

	// RefreshBefore is how long before its end a token is refreshed. If zero,
	// DefaultRefreshBefore; it must not be negative.
	RefreshBefore time.Duration
}

// An AuthorizationRequest is what a person has to agree to.
type AuthorizationRequest struct {
	// URL is the page to open. It holds no secret, but who completes it first
	// decides whose account is used: show it to the person only.
	URL string
	// RedirectURL is where the page leads to in the end.
	RedirectURL string
	// State is what the answer must carry; [ParseRedirect] checks it.
	State string
}

// An AuthorizationResponse is what the authorization server sent back with the
// person (RFC 6749 section 4.1.2, RFC 9207).
type AuthorizationResponse struct {
	Code, State, Iss string
}

// An AuthorizeFunc shows the request to a person and returns what came back.
// It may take as long as the person does; ctx ends it.
type AuthorizeFunc func(ctx context.Context, req *AuthorizationRequest) (*AuthorizationResponse, error)

// An Authenticator gets and keeps the token for one server. It is safe for
// concurrent use and needs no closing.
type Authenticator struct {
	opts      Options
	serverURL string
	key       string
	net       *network
	discover  discoverer
	now       func() time.Time
	flight    singleflight.Group

	mu      sync.Mutex   // guards the rest
	cached  *Credentials // the newest that we know of; what cannot be stored lives on here
	unsaved bool         // cached did not reach the store
	refused string       // the refresh token that was refused: not sent again
	refusal error        // what was said of it
	scopes  []string     // what challenges asked for so far
}

// New returns an authenticator for the server at serverURL, which must be
// https, or http on this machine: any other makes an error that wraps
// [ErrInsecureURL]. The same is true of [Options.MetadataURL]. It makes no
// request.
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

// Credentials returns what is known for the server: from the store, or, where
// that failed to take it, from memory. The error is [ErrNotFound] or a
// [StoreError].
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

// Same reports whether b gets the tokens that a gets: it is for the same server,
// with equal options and the same store. Two stores count as the same if they
// are one value, or keep their entries in one place. Functions cannot be
// compared: with an [Options.Authorize], only a itself is the same.
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
