package mcpauth_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenon-sdk/tenon/mcpauth"
)

func mustGet(t *testing.T, f *fake, c *http.Client) {
	t.Helper()
	if status, err := f.get(c); err != nil || status != http.StatusOK {
		t.Fatalf("request: status %d, error %v; want 200", status, err)
	}
}

// Nobody to ask: the reason and the remedy reach the caller as a typed error. // D62 D63 D64
func TestNeedsAuthWithoutAPerson(t *testing.T) {
	f := newFake(t)
	f.scope = "files:read"
	_, c := f.client(nil)
	_, err := f.get(c)
	var need *mcpauth.NeedsAuthError
	if !errors.As(err, &need) {
		t.Fatalf("got %v, want a NeedsAuthError", err)
	}
	if need.Reason != mcpauth.ReasonNoCredentials || !slices.Equal(need.Scopes, []string{"files:read"}) {
		t.Errorf("got %+v", need)
	}
	if n := f.asked("/register") + f.asked("/token"); n != 0 {
		t.Errorf("%d requests to the authorization server, want none", n)
	}
}

func TestServerWithoutAuthorizationIsLeftAlone(t *testing.T) {
	f := newFake(t)
	f.open = true
	_, c := f.client(nil)
	mustGet(t, f, c)
	if f.seen[0] != "" {
		t.Errorf("sent %q to a server that wants nothing", f.seen[0])
	}
}

// Pain 21 and field case F35: discovery in its forms.
func TestDiscovery(t *testing.T) {
	tests := []struct {
		name    string
		arrange func(*fake, *mcpauth.Options)
	}{
		{"resource metadata at the path", func(*fake, *mcpauth.Options) {}},
		{"resource metadata at the root", func(f *fake, _ *mcpauth.Options) { f.resource = "root" }},
		{"resource metadata where the challenge says", func(f *fake, _ *mcpauth.Options) { f.resource = "header" }},
		{"OpenID Connect discovery", func(f *fake, _ *mcpauth.Options) { f.metaAt = "/.well-known/openid-configuration" }},
		{"odd members are as good as absent", func(f *fake, _ *mcpauth.Options) {
			f.meta["scopes_supported"] = "all"
			f.meta["client_id_metadata_document_supported"] = "yes"
		}},
		{"explicit metadata address", func(f *fake, o *mcpauth.Options) {
			f.resource, f.metaAt = "none", "/odd/place"
			o.MetadataURL = f.as.URL + "/odd/place"
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t)
			o := f.person()
			tt.arrange(f, o)
			_, c := f.client(o)
			mustGet(t, f, c)
			q := f.lastAuth
			if q.Get("code_challenge_method") != "S256" || q.Get("resource") == "" || q.Get("client_id") != "dynamic-client" ||
				q.Get("redirect_uri") != "http://localhost:3118/callback" {
				t.Errorf("authorization request %v", q)
			}
			if got := f.forms[0].Get("resource"); got != q.Get("resource") {
				t.Errorf("token request for resource %q, want %q", got, q.Get("resource"))
			}
		})
	}
}

// Field case F35 (c): no metadata of any kind; the server's origin has the default endpoints.
// fault F21
func TestDiscoveryWithoutAnyMetadata(t *testing.T) {
	f := newFake(t)
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", f.serve)
	mux.HandleFunc("/authorize", f.authorize)
	mux.HandleFunc("/token", f.token)
	mux.HandleFunc("/register", f.register)
	both := httptest.NewServer(mux)
	defer both.Close()
	a, err := mcpauth.New(both.URL+"/mcp", f.person())
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := a.Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if c.Issuer != both.URL || c.TokenEndpoint != both.URL+"/token" || c.RevocationEndpoint != "" || c.ClientID != "dynamic-client" ||
		c.Resource != both.URL+"/mcp" || c.AccessToken != "access-2" || c.RefreshToken != "refresh-2" {
		t.Errorf("got %+v of %v", *c, c)
	}
	if q := f.lastAuth; q.Get("resource") != both.URL+"/mcp" || q.Get("code_challenge_method") != "S256" {
		t.Errorf("authorization request %v", q)
	}
}

// A login to a server that wants none says so, beside what went wrong.
func TestLoginWhereNoneIsAskedFor(t *testing.T) {
	f := newFake(t)
	f.open, f.resource = true, "nowhere"
	a, _ := f.client(f.person())
	err := a.Login(t.Context())
	if err == nil || !strings.Contains(err.Error(), "which answered HTTP 200 without asking for a login") || !strings.Contains(err.Error(), "404 Not Found") {
		t.Errorf("got %v", err)
	}
}

// Pain 19 and field case F35 (a): a configured client is never registered again.
func TestConfiguredClientIsNotRegistered(t *testing.T) {
	for _, endpoint := range []any{nil, "absent", "http://127.0.0.1:1/register"} {
		f := newFake(t)
		if f.meta["registration_endpoint"] = endpoint; endpoint == "absent" {
			delete(f.meta, "registration_endpoint")
		}
		o := f.person()
		o.ClientID, o.ClientSecret = "mine", "s3cret"
		_, c := f.client(o)
		mustGet(t, f, c)
		if f.asked("/register") != 0 || f.lastAuth.Get("client_id") != "mine" {
			t.Errorf("endpoint %v: %d registrations, client id %q", endpoint, f.asked("/register"), f.lastAuth.Get("client_id"))
		}
		if !strings.HasPrefix(f.auths[0], "Basic ") {
			t.Errorf("endpoint %v: the secret went by %q, want Basic", endpoint, f.auths[0])
		}
	}
}

func TestClientMetadataDocument(t *testing.T) {
	f := newFake(t)
	f.meta["client_id_metadata_document_supported"] = true
	o := f.person()
	o.ClientMetadataURL = "https://tenon.example/client.json"
	_, c := f.client(o)
	mustGet(t, f, c)
	if got := f.lastAuth.Get("client_id"); got != o.ClientMetadataURL || f.asked("/register") != 0 {
		t.Errorf("client id %q, %d registrations", got, f.asked("/register"))
	}
}

func TestRegistrationImpossibleSaysWhatToDo(t *testing.T) {
	f := newFake(t)
	delete(f.meta, "registration_endpoint")
	_, c := f.client(f.person())
	_, err := f.get(c)
	if err == nil || !strings.Contains(err.Error(), "configure its ID") {
		t.Errorf("got %v", err)
	}
}

func TestLoginRefusals(t *testing.T) {
	tests := []struct {
		name    string
		arrange func(*fake)
		change  func(url.Values)
		want    string
	}{
		{"state of another login", nil, func(q url.Values) { q.Set("state", "x") }, "state does not match"},
		{"issuer promised and missing", func(f *fake) { f.meta["authorization_response_iss_parameter_supported"] = true }, func(q url.Values) { q.Del("iss") }, "did not"},
		{"issuer of another server", func(f *fake) { f.meta["authorization_response_iss_parameter_supported"] = true }, func(q url.Values) { q.Set("iss", "https://evil.example") }, "the response is from issuer"},
		{"issuer that was not promised", nil, func(q url.Values) { q.Set("iss", "https://evil.example") }, "the response is from issuer"},
		{"metadata of another issuer", func(f *fake) { f.meta["issuer"] = "https://evil.example" }, nil, "RFC 8414"},
		{"no PKCE", func(f *fake) { delete(f.meta, "code_challenge_methods_supported") }, nil, "PKCE"},
		{"token endpoint without TLS", func(f *fake) { f.meta["token_endpoint"] = "http://198.51.100.7/token" }, nil, "neither https"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t)
			if tt.arrange != nil {
				tt.arrange(f)
			}
			o := f.person()
			o.Authorize = browser(t, tt.change)
			_, c := f.client(o)
			_, err := f.get(c)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
			if f.asked("/token") != 0 {
				t.Error("the code was sent all the same")
			}
		})
	}
}

// expired puts credentials into the store whose access token has ended, and
// whose refresh token the server knows.
func (f *fake) expired(store mcpauth.TokenStore, left time.Duration) {
	f.t.Helper()
	f.mu.Lock()
	f.refresh["refresh-0"] = ""
	f.access["access-0"] = ""
	f.mu.Unlock()
	err := store.Update(f.t.Context(), mcpauth.Key(f.url()), func(*mcpauth.Credentials) (*mcpauth.Credentials, error) {
		return &mcpauth.Credentials{
			ServerURL: f.url(), Resource: f.url(), Issuer: f.as.URL, TokenEndpoint: f.as.URL + "/token", RevocationEndpoint: f.as.URL + "/revoke",
			ClientID: "mine", AccessToken: "access-0", RefreshToken: "refresh-0", Expiry: time.Now().Add(left),
		}, nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

// Pains 17 and 18: many callers, one refresh; the rotated token is kept, the resource goes along.
func TestRefreshOnceForAllCallers(t *testing.T) {
	f := newFake(t)
	store := mcpauth.NewMemoryStore()
	f.expired(store, -time.Hour)
	a, c := f.client(&mcpauth.Options{Store: store})
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if status, err := f.get(c); err != nil || status != http.StatusOK {
				t.Errorf("status %d, error %v", status, err)
			}
		})
	}
	wg.Wait()
	if n := f.asked("/token"); n != 1 {
		t.Errorf("%d refreshes, want 1", n)
	}
	if got := f.forms[0].Get("resource"); got != f.url() {
		t.Errorf("refreshed for resource %q", got)
	}
	cred, err := a.Credentials(t.Context())
	if err != nil || cred.RefreshToken == "refresh-0" || cred.RefreshToken == "" {
		t.Errorf("stored %+v, %v; want the rotated refresh token", cred.RefreshToken, err)
	}
}

func TestRefreshTokenStaysWhereNoneIsSent(t *testing.T) {
	f := newFake(t)
	f.rotate = false
	store := mcpauth.NewMemoryStore()
	f.expired(store, -time.Hour)
	a, c := f.client(&mcpauth.Options{Store: store})
	mustGet(t, f, c)
	if cred, err := a.Credentials(t.Context()); err != nil || cred.RefreshToken != "refresh-0" {
		t.Errorf("refresh token %v, error %v; want the old one kept", cred, err)
	}
}

// Pain 17: a refused early refresh must not cost a token that is still good.
func TestRefusedEarlyRefreshKeepsTheToken(t *testing.T) {
	f := newFake(t)
	store := mcpauth.NewMemoryStore()
	f.expired(store, 30*time.Second) // within RefreshBefore
	f.mu.Lock()
	delete(f.refresh, "refresh-0")
	f.mu.Unlock()
	var log bytes.Buffer
	a, c := f.client(&mcpauth.Options{Store: store, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	mustGet(t, f, c)
	mustGet(t, f, c)
	if want := `msg="mcpauth: token not refreshed; the old one is still valid" server=` + f.url() + " error="; !strings.Contains(log.String(), want) {
		t.Errorf("the log is %s, want %s", &log, want)
	}
	if n := f.asked("/token"); n != 1 {
		t.Errorf("a refused refresh token was sent %d times, want once", n)
	}
	if cred, err := a.Credentials(t.Context()); err != nil || cred.AccessToken != "access-0" {
		t.Errorf("stored %v, %v; want it untouched", cred, err)
	}
}

// The loser of a race with another process finds the winner's token and leaves it.
func TestRefreshFindsTheWinnersToken(t *testing.T) {
	f := newFake(t)
	store := mcpauth.NewMemoryStore()
	f.expired(store, -time.Hour)
	racing := &racingStore{TokenStore: store, before: func() {
		f.mu.Lock()
		delete(f.refresh, "refresh-0")
		f.access["winner"] = ""
		f.mu.Unlock()
		_ = store.Update(t.Context(), mcpauth.Key(f.url()), func(c *mcpauth.Credentials) (*mcpauth.Credentials, error) {
			c.AccessToken, c.RefreshToken, c.Expiry = "winner", "winner-refresh", time.Now().Add(time.Hour)
			return c, nil
		})
	}}
	a, c := f.client(&mcpauth.Options{Store: racing})
	mustGet(t, f, c)
	if f.asked("/token") != 0 {
		t.Error("the loser asked for a token")
	}
	if cred, _ := a.Credentials(t.Context()); cred.RefreshToken != "winner-refresh" {
		t.Errorf("stored %q, want the winner's", cred.RefreshToken)
	}
}

type racingStore struct {
	mcpauth.TokenStore
	once   sync.Once
	before func()
}

func (s *racingStore) Update(ctx context.Context, key string, fn func(*mcpauth.Credentials) (*mcpauth.Credentials, error)) error {
	s.once.Do(s.before)
	return s.TokenStore.Update(ctx, key, fn)
}

// Pain 18: processes share a directory; a single-use refresh token is used once.
func TestRefreshOnceForAllProcesses(t *testing.T) {
	f := newFake(t)
	dir := t.TempDir()
	store, err := mcpauth.NewDirStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	f.expired(store, -time.Hour)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), "MCPAUTH_TEST_CHILD=refresh", "DIR="+dir, "SERVER="+f.url())
			if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "ok" {
				t.Errorf("child: %v: %s", err, out)
			}
		})
	}
	wg.Wait()
	if n := f.asked("/token"); n != 1 {
		t.Errorf("%d refreshes over four processes, want 1", n)
	}
}

func refreshChild() {
	store, err := mcpauth.NewDirStore(os.Getenv("DIR"))
	if err == nil {
		var a *mcpauth.Authenticator
		if a, err = mcpauth.New(os.Getenv("SERVER"), &mcpauth.Options{Store: store}); err == nil {
			_, err = a.Token(context.Background())
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ok")
}

// A refreshed token that cannot be stored is used and kept, not lost.
func TestTokenThatCannotBeStoredIsKept(t *testing.T) {
	f := newFake(t)
	store := &fullStore{TokenStore: mcpauth.NewMemoryStore()}
	f.expired(store, -time.Hour)
	store.full = true
	a, c := f.client(&mcpauth.Options{Store: store})
	mustGet(t, f, c)
	mustGet(t, f, c)
	if n := f.asked("/token"); n != 1 {
		t.Errorf("%d refreshes, want 1", n)
	}
	store.full = false
	f.mu.Lock()
	clear(f.access) // the server forgets the access token: it has to be refreshed by what was kept
	f.mu.Unlock()
	mustGet(t, f, c)
	if cred, err := store.Load(t.Context(), mcpauth.Key(f.url())); err != nil || cred.RefreshToken == "refresh-0" {
		t.Errorf("stored %v, %v; want the newest refresh token", cred, err)
	}
	_ = a
}

type fullStore struct {
	mcpauth.TokenStore
	full bool
}

func (s *fullStore) Update(ctx context.Context, key string, fn func(*mcpauth.Credentials) (*mcpauth.Credentials, error)) error {
	if !s.full {
		return s.TokenStore.Update(ctx, key, fn)
	}
	old, _ := s.Load(ctx, key)
	if _, err := fn(old); err != nil {
		return err
	}
	return &mcpauth.StoreError{Op: "write", Err: errors.New("disk full")}
}

// An unreadable store is not a missing login. // D65
func TestUnreadableStoreIsNotNeedsAuth(t *testing.T) {
	f := newFake(t)
	dir := t.TempDir()
	store, err := mcpauth.NewDirStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	f.expired(store, time.Hour)
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	if len(files) != 1 {
		t.Fatalf("files %v, want one", files)
	}
	if info, _ := os.Stat(files[0]); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want 0600", info.Mode())
	}
	if err := os.WriteFile(files[0], []byte("{half"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, c := f.client(&mcpauth.Options{Store: store})
	_, err = f.get(c)
	var se *mcpauth.StoreError
	if !errors.As(err, &se) || !strings.HasPrefix(se.Error(), "Couldn't read the stored credentials") {
		t.Errorf("got %v", err)
	}
	if errors.As(err, new(*mcpauth.NeedsAuthError)) {
		t.Error("it counts as a missing login")
	}
}

// A token that the server rejects early is refreshed once, then the login is asked for.
func TestRejectedTokenIsRefreshedThenAskedFor(t *testing.T) {
	f := newFake(t)
	store := mcpauth.NewMemoryStore()
	f.expired(store, time.Hour)
	f.mu.Lock()
	delete(f.access, "access-0")
	f.mu.Unlock()
	_, c := f.client(&mcpauth.Options{Store: store})
	mustGet(t, f, c)
	if f.asked("/token") != 1 {
		t.Errorf("%d refreshes", f.asked("/token"))
	}
	f.noToken = true
	_, err := f.get(c)
	var need *mcpauth.NeedsAuthError
	if !errors.As(err, &need) || need.Reason != mcpauth.ReasonRejected {
		t.Errorf("got %v", err)
	}
}

func TestStepUpKeepsGrantedScopes(t *testing.T) {
	f := newFake(t)
	f.scope, f.need = "read", "write"
	_, c := f.client(f.person())
	mustGet(t, f, c)
	if got := f.lastAuth.Get("scope"); got != "read write" {
		t.Errorf("step up asked for %q, want what was granted and what is new", got)
	}
	if n := f.asked("/authorize"); n != 2 {
		t.Errorf("%d logins, want 2", n)
	}
}

func TestRefusalsAreNotAskedForEver(t *testing.T) {
	f := newFake(t)
	f.noToken = true
	_, c := f.client(f.person())
	status, err := f.get(c)
	if err != nil || status != http.StatusUnauthorized {
		t.Errorf("status %d, error %v; want the server's 401", status, err)
	}
	if n := f.asked("/authorize"); n > 2 {
		t.Errorf("%d logins for one request", n)
	}
}

// Credentials of one authorization server are not shown to another.
func TestAnotherIssuerGetsAnotherClient(t *testing.T) {
	f := newFake(t)
	store := mcpauth.NewMemoryStore()
	f.expired(store, -time.Hour)
	_ = store.Update(t.Context(), mcpauth.Key(f.url()), func(c *mcpauth.Credentials) (*mcpauth.Credentials, error) {
		c.Issuer, c.TokenEndpoint, c.RefreshToken = "https://old.example", "https://old.example/token", ""
		return c, nil
	})
	o := f.person()
	o.Store = store
	_, c := f.client(o)
	mustGet(t, f, c)
	if f.lastAuth.Get("client_id") != "dynamic-client" {
		t.Errorf("client %q of the old issuer was used", f.lastAuth.Get("client_id"))
	}
}

func TestRegisteredClientIsUsedAgain(t *testing.T) {
	f := newFake(t)
	a, c := f.client(f.person())
	mustGet(t, f, c)
	if err := a.Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := f.asked("/register"); n != 1 {
		t.Errorf("%d registrations, want 1", n)
	}
}

func TestOfflineAccessIsAskedForWhereKnown(t *testing.T) {
	f := newFake(t)
	f.meta["scopes_supported"] = []string{"a", "offline_access"}
	f.scopes = []string{"a"}
	_, c := f.client(f.person())
	mustGet(t, f, c)
	if got := f.lastAuth.Get("scope"); got != "a offline_access" {
		t.Errorf("scope %q", got)
	}
}

// The token stays with the server's origin, also over a redirect. // D60
func TestTokenStaysWithItsOrigin(t *testing.T) {
	f := newFake(t)
	store := mcpauth.NewMemoryStore()
	f.expired(store, time.Hour)
	var got string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Authorization") }))
	defer other.Close()
	_, c := f.client(&mcpauth.Options{Store: store})
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, other.URL, nil)
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got != "" {
		t.Errorf("another origin was sent %q", got)
	}
}

func TestLogoutRevokesAndForgets(t *testing.T) {
	f := newFake(t)
	store := mcpauth.NewMemoryStore()
	f.expired(store, time.Hour)
	a, _ := f.client(&mcpauth.Options{Store: store})
	if err := a.Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f.asked("/revoke") != 1 {
		t.Error("not revoked")
	}
	if _, err := a.Credentials(t.Context()); !errors.Is(err, mcpauth.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}

func TestClientCredentialsGrant(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		grant mcpauth.ClientCredentialsGrant
		check func(t *testing.T, f *fake)
	}{
		{"secret", mcpauth.ClientCredentialsGrant{ClientID: "svc", ClientSecret: "pw"}, func(t *testing.T, f *fake) {
			if !strings.HasPrefix(f.auths[0], "Basic ") {
				t.Errorf("authorization %q", f.auths[0])
			}
		}},
		{"private key", mcpauth.ClientCredentialsGrant{ClientID: "svc", PrivateKeyPEM: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})}, func(t *testing.T, f *fake) {
			if strings.Count(f.forms[0].Get("client_assertion"), ".") != 2 || f.forms[0].Get("client_assertion_type") == "" {
				t.Errorf("form %v", f.forms[0])
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t)
			f.scopes = []string{"svc:use"}
			_, c := f.client(&mcpauth.Options{Grant: &tt.grant})
			mustGet(t, f, c)
			if f.forms[0].Get("grant_type") != "client_credentials" || f.forms[0].Get("scope") != "svc:use" || f.forms[0].Get("resource") != f.url() {
				t.Errorf("form %v", f.forms[0])
			}
			tt.check(t, f)
		})
	}
}

func TestBadOptions(t *testing.T) {
	for name, o := range map[string]*mcpauth.Options{
		"RefreshBefore": {RefreshBefore: -1},
		"RedirectURL":   {Authorize: browser(t, nil)},
		"ClientID":      {ClientSecret: "x"},
		"PrivateKeyPEM": {Grant: &mcpauth.ClientCredentialsGrant{ClientID: "x", PrivateKeyPEM: []byte("nonsense")}},
		"Grant":         {Grant: &mcpauth.ClientCredentialsGrant{ClientID: "x"}},
	} {
		if _, err := mcpauth.New("https://a.example/mcp", o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := mcpauth.New("not an address", nil); err == nil {
		t.Error("an address that is none was taken")
	}
}

func TestNothingShowsASecret(t *testing.T) {
	c := &mcpauth.Credentials{ServerURL: "https://u:pw@a.example/mcp?key=k1", ClientID: "id", ClientSecret: "s1", AccessToken: "a1", RefreshToken: "r1"}
	for _, s := range []string{fmt.Sprint(c), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", c), c.LogValue().String(), (&mcpauth.NeedsAuthError{ServerURL: c.ServerURL}).Error()} {
		for _, secret := range []string{"pw", "k1", "s1", "a1", "r1"} {
			if strings.Contains(s, secret) {
				t.Errorf("%q shows %q", s, secret)
			}
		}
	}
}

func TestKeyForgivesWhatDoesNotTellServersApart(t *testing.T) {
	same := []string{"https://A.example/mcp", "https://a.example:443/mcp/", "https://a.example/mcp#x", "https://u@a.example/mcp"}
	for _, s := range same {
		if got := mcpauth.Key(s); got != mcpauth.Key(same[0]) {
			t.Errorf("Key(%q) = %q, want %q", s, got, mcpauth.Key(same[0]))
		}
	}
	if mcpauth.Key("https://a.example/mcp") == mcpauth.Key("https://a.example/other") {
		t.Error("two servers have one key")
	}
}

// Two authenticators are the same if they get the same tokens.
func TestSame(t *testing.T) {
	dir := t.TempDir()
	file := func(dir string) mcpauth.TokenStore {
		s, err := mcpauth.NewDirStore(dir)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	memory := mcpauth.NewMemoryStore()
	auth := func(url string, o mcpauth.Options) *mcpauth.Authenticator {
		t.Helper()
		a, err := mcpauth.New(url, &o)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	const url = "https://h/mcp"
	agree := func(context.Context, *mcpauth.AuthorizationRequest) (*mcpauth.AuthorizationResponse, error) {
		return nil, errors.New("no")
	}
	a := auth(url, mcpauth.Options{Store: file(dir), ClientID: "x", Scopes: []string{"s"}})
	for name, tt := range map[string]struct {
		a, b *mcpauth.Authenticator
		want bool
	}{
		"itself":         {a, a, true},
		"made anew":      {a, auth(url, mcpauth.Options{Store: file(dir), ClientID: "x", Scopes: []string{"s"}}), true},
		"another server": {a, auth(url+"/x", mcpauth.Options{Store: file(dir), ClientID: "x", Scopes: []string{"s"}}), false},
		"another client": {a, auth(url, mcpauth.Options{Store: file(dir), ClientID: "y", Scopes: []string{"s"}}), false},
		"other scopes":   {a, auth(url, mcpauth.Options{Store: file(dir), ClientID: "x"}), false},
		"another place":  {a, auth(url, mcpauth.Options{Store: file(t.TempDir()), ClientID: "x", Scopes: []string{"s"}}), false},
		"one memory":     {auth(url, mcpauth.Options{Store: memory}), auth(url, mcpauth.Options{Store: memory}), true},
		"two memories":   {auth(url, mcpauth.Options{}), auth(url, mcpauth.Options{}), false},
		"another kind":   {a, auth(url, mcpauth.Options{ClientID: "x", Scopes: []string{"s"}}), false},
		"another grant": {
			auth(url, mcpauth.Options{Store: memory, Grant: &mcpauth.ClientCredentialsGrant{ClientID: "x", ClientSecret: "1"}}),
			auth(url, mcpauth.Options{Store: memory, Grant: &mcpauth.ClientCredentialsGrant{ClientID: "x", ClientSecret: "2"}}), false,
		},
		"functions": {
			auth(url, mcpauth.Options{Store: memory, Authorize: agree, RedirectURL: "http://localhost"}),
			auth(url, mcpauth.Options{Store: memory, Authorize: agree, RedirectURL: "http://localhost"}), false,
		},
		"none":     {nil, nil, true},
		"only one": {a, nil, false},
	} {
		if tt.a.Same(tt.b) != tt.want || tt.b.Same(tt.a) != tt.want {
			t.Errorf("%s: the same is %v, want %v", name, !tt.want, tt.want)
		}
	}
}

// The user's store makes its directory only when there is something to keep.
func TestUserStore(t *testing.T) {
	config := t.TempDir()
	store, err := mcpauth.UserStore(func(name string) (string, bool) { return config, name == "XDG_CONFIG_HOME" })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Load(t.Context(), "k"); !errors.Is(err, mcpauth.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	dir := filepath.Join(config, "tenon")
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("looking made %s: %v", dir, err)
	}
	keep := func(*mcpauth.Credentials) (*mcpauth.Credentials, error) {
		return &mcpauth.Credentials{AccessToken: "a"}, nil
	}
	if err := store.Update(t.Context(), "k", keep); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "credentials")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory is %v, %v", info, err)
	}
}
