package mcpauth_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/mcpauth"
)

// A login that cannot be deleted is no logout, and stays in use.
// fault F2
func TestLogoutSaysThatTheStoreFailed(t *testing.T) {
	f := newFake(t)
	store := &fullStore{TokenStore: mcpauth.NewMemoryStore()}
	f.expired(store, time.Hour)
	a, c := f.client(&mcpauth.Options{Store: store})
	store.full = true
	err := a.Logout(t.Context())
	var se *mcpauth.StoreError
	if !errors.As(err, &se) || err.Error() != "Couldn't write the stored credentials: disk full" {
		t.Errorf("got %v, want the store's error", err)
	}
	if cred, err := a.Credentials(t.Context()); err != nil || cred.AccessToken != "access-0" {
		t.Errorf("stored %v, %v; want what could not be deleted", cred, err)
	}
	mustGet(t, f, c)
	store.full = false
	if err := a.Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Credentials(t.Context()); !errors.Is(err, mcpauth.ErrNotFound) {
		t.Errorf("after the logout: %v", err)
	}
}

// How a client is registered, and how it authenticates then, follows what the authorization server takes.
// fault F3
func TestClientAuthentication(t *testing.T) {
	const as = "https://" + authHost
	for _, tt := range []struct {
		name       string
		methods    any    // token_endpoint_auth_methods_supported; nil is none
		answer     string // the answer's token_endpoint_auth_method
		secret     string
		registered string // as what
		sent       string // header, body or none
	}{
		{"none advertised", nil, "", "", "none", "none"},
		{"none advertised, a secret all the same", nil, "client_secret_basic", "pw", "none", "header"},
		{"an empty list", []string{}, "", "", "none", "none"},
		{"no list", "client_secret_post", "", "", "none", "none"},
		{"public only", []string{"none"}, "", "", "none", "none"},
		{"public too", []string{"client_secret_basic", "none"}, "", "", "none", "none"},
		{"basic only", []string{"client_secret_basic"}, "", "pw", "client_secret_basic", "header"},
		{"post only", []string{"client_secret_post"}, "", "pw", "client_secret_post", "body"},
		{"post and basic", []string{"client_secret_post", "client_secret_basic"}, "", "pw", "client_secret_basic", "header"},
		{"basic, and the answer says post", []string{"client_secret_basic"}, "client_secret_post", "pw", "client_secret_post", "body"},
		{"only what is not spoken here", []string{"tls_client_auth"}, "", "pw", "client_secret_basic", "header"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newInternet()
			if tt.methods != nil {
				n.meta["token_endpoint_auth_methods_supported"] = tt.methods
			}
			var asked string
			n.answers[as+"/register"] = func(w http.ResponseWriter, _ *http.Request) {
				asked = n.body[as+"/register"]
				answer := map[string]any{"client_id": "c"}
				if tt.secret != "" {
					answer["client_secret"] = tt.secret
				}
				if tt.answer != "" {
					answer["token_endpoint_auth_method"] = tt.answer
				}
				writeJSON(w, answer)
			}
			var header string
			n.answers[as+"/token"] = func(w http.ResponseWriter, r *http.Request) {
				header = r.Header.Get("Authorization")
				writeJSON(w, map[string]any{"access_token": "a", "token_type": "bearer"})
			}
			a := n.auth(t, n.options())
			if err := a.Login(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := tt.registered
			if tt.answer == "client_secret_post" {
				want = "client_secret_basic"
			}
			if !strings.Contains(asked, `"token_endpoint_auth_method":"`+want+`"`) {
				t.Errorf("registered %s, want the method %s", asked, want)
			}
			sent := "none"
			switch form := n.body[as+"/token"]; {
			case header != "" && strings.Contains(form, "client_secret"):
				sent = "both"
			case header != "":
				sent = "header"
			case strings.Contains(form, "client_secret=pw"):
				sent = "body"
			}
			if sent != tt.sent {
				t.Errorf("the secret is in: %s, want %s", sent, tt.sent)
			}
		})
	}
}

// A configured client with a secret, by what the server takes.
// fault F3
func TestConfiguredSecretGoesAsTheServerTakesIt(t *testing.T) {
	for want, methods := range map[string]any{"": []string{"client_secret_post"}, "Basic bWluZTpwdw==": nil} {
		n := newInternet()
		if methods != nil {
			n.meta["token_endpoint_auth_methods_supported"] = methods
		}
		header := "not asked"
		n.answers["https://"+authHost+"/token"] = func(w http.ResponseWriter, r *http.Request) {
			header = r.Header.Get("Authorization")
			writeJSON(w, map[string]any{"access_token": "a", "token_type": "bearer"})
		}
		o := n.options()
		o.ClientID, o.ClientSecret = "mine", "pw"
		if err := n.auth(t, o).Login(t.Context()); err != nil {
			t.Fatal(err)
		}
		if header != want {
			t.Errorf("methods %v: Authorization %q, want %q", methods, header, want)
		}
	}
}

// A challenge that names metadata that is not there does not keep the well-known places from being asked; when nothing is
// anywhere the error tells what was tried.
// fault F4
func TestChallengeThatNamesAbsentMetadata(t *testing.T) {
	const (
		named     = "https://" + mcpHost + "/named"
		wellKnown = "https://" + mcpHost + "/.well-known/oauth-protected-resource/mcp"
	)
	broken := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	for _, tt := range []struct {
		name     string
		named    http.HandlerFunc
		at       http.HandlerFunc // the well-known place; nil has the metadata
		explicit bool
		want     string
	}{
		{"absent", http.NotFound, nil, false, ""},
		{"broken", broken, nil, false, ""},
		{"broken, and nothing elsewhere", broken, http.NotFound, false, "no usable resource metadata: reading " + named + ": HTTP 502"},
		{"broken, and broken elsewhere", broken, broken, false, "no usable resource metadata: reading " + named + ": HTTP 502; reading " + wellKnown + ": HTTP 502"},
		{"broken, with a configured address", broken, http.NotFound, true, ""},
		{"absent, and nothing elsewhere", http.NotFound, http.NotFound, false, "HTTP 404"}, // the origin's default endpoints
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newInternet()
			n.scheme = `Bearer resource_metadata="` + named + `"`
			n.answers[named] = tt.named
			if tt.at != nil {
				n.answers[wellKnown] = tt.at
			}
			o := n.options()
			if tt.explicit {
				o.MetadataURL = "https://" + authHost + "/.well-known/oauth-authorization-server"
			}
			err := n.auth(t, o).Login(t.Context())
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "":
				wantError(t, err, []string{tt.want})
			}
			if sent := n.sentTo(named); len(sent) != 1 {
				t.Errorf("the named address was asked %d times", len(sent))
			}
		})
	}
}

// A store of the program's own may wrap ErrNotFound: that is a missing login, for every way in.
// fault F17
func TestWrappedErrNotFoundIsAMissingLogin(t *testing.T) {
	f := newFake(t)
	o := f.person()
	o.Store = &wrapping{mcpauth.NewMemoryStore()}
	a, c := f.client(o)
	var need *mcpauth.NeedsAuthError
	if _, err := a.Token(t.Context()); !errors.As(err, &need) || need.Reason != mcpauth.ReasonNoCredentials {
		t.Errorf("got %v, want a missing login", err)
	}
	mustGet(t, f, c) // with the login that it takes
	if cred, err := a.Token(t.Context()); err != nil || cred.AccessToken == "" {
		t.Errorf("got %v, %v", cred, err)
	}
}

type wrapping struct{ mcpauth.TokenStore }

func (s *wrapping) Load(ctx context.Context, key string) (*mcpauth.Credentials, error) {
	c, err := s.TokenStore.Load(ctx, key)
	if err != nil {
		err = fmt.Errorf("vault: %w", err)
	}
	return c, err
}

// What only watches does not make two authenticators different; what makes the requests does.
// fault F17
func TestSameLooksAtWhatMakesTheTokens(t *testing.T) {
	store := mcpauth.NewMemoryStore()
	client := &http.Client{}
	auth := func(o mcpauth.Options) *mcpauth.Authenticator {
		t.Helper()
		o.Store = store
		a, err := mcpauth.New("https://h.example/mcp", &o)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	plain := auth(mcpauth.Options{})
	for name, tt := range map[string]struct {
		a, b *mcpauth.Authenticator
		want bool
	}{
		"loggers":        {auth(mcpauth.Options{Logger: discard()}), auth(mcpauth.Options{Logger: discard()}), true},
		"one logger":     {plain, auth(mcpauth.Options{Logger: discard()}), true},
		"one client":     {auth(mcpauth.Options{HTTPClient: client}), auth(mcpauth.Options{HTTPClient: client}), true},
		"two clients":    {auth(mcpauth.Options{HTTPClient: client}), auth(mcpauth.Options{HTTPClient: &http.Client{}}), false},
		"a client":       {plain, auth(mcpauth.Options{HTTPClient: client}), false},
		"names":          {plain, auth(mcpauth.Options{ClientName: "Other"}), false},
		"default values": {plain, auth(mcpauth.Options{ClientName: mcpauth.DefaultClientName, RefreshBefore: mcpauth.DefaultRefreshBefore}), true},
		"metadata":       {plain, auth(mcpauth.Options{MetadataURL: "https://h.example/m"}), false},
		"refresh":        {plain, auth(mcpauth.Options{RefreshBefore: time.Hour}), false},
	} {
		if tt.a.Same(tt.b) != tt.want || tt.b.Same(tt.a) != tt.want {
			t.Errorf("%s: the same is %v, want %v", name, !tt.want, tt.want)
		}
	}
}

// The texts of errors, with each part that may be missing.
// fault F17
func TestErrorTexts(t *testing.T) {
	cause := errors.New("cause")
	for want, err := range map[string]error{
		"the token endpoint https://a.example/t answered HTTP 400":                                                                       &mcpauth.TokenError{Endpoint: "https://a.example/t", Status: 400},
		"the token endpoint https://a.example/t?… answered HTTP 400 invalid_grant":                                                       &mcpauth.TokenError{Endpoint: "https://a.example/t?k=1", Status: 400, Code: "invalid_grant"},
		"the token endpoint https://a.example/t answered HTTP 401 invalid_client (no such client)":                                       &mcpauth.TokenError{Endpoint: "https://a.example/t", Status: 401, Code: "invalid_client", Description: "no such client"},
		"the token endpoint https://a.example/t answered HTTP 500 (oops)":                                                                &mcpauth.TokenError{Endpoint: "https://a.example/t", Status: 500, Description: "oops"},
		"the token endpoint https://a.example/t answered HTTP 307, a redirect, which is not followed":                                    &mcpauth.TokenError{Endpoint: "https://a.example/t", Status: 307},
		"https://a.example/mcp needs a login: no stored login":                                                                           &mcpauth.NeedsAuthError{ServerURL: "https://a.example/mcp", Reason: mcpauth.ReasonNoCredentials},
		`https://a.example/mcp needs a login: the login has expired (scopes asked for: ["a" "b"]); it answered HTTP 401: go away: cause`: &mcpauth.NeedsAuthError{ServerURL: "https://a.example/mcp", Reason: mcpauth.ReasonExpired, Scopes: []string{"a", "b"}, Status: 401, Body: "go away", Err: cause},
		"https://a.example/mcp needs a login: no stored login; it answered HTTP 403":                                                     &mcpauth.NeedsAuthError{ServerURL: "https://a.example/mcp", Reason: mcpauth.ReasonNoCredentials, Status: 403},
		"Couldn't read the stored credentials: cause":                                                                                    &mcpauth.StoreError{Op: "read", Err: cause},
		"Couldn't lock the stored credentials: cause":                                                                                    &mcpauth.StoreError{Op: "lock", Err: cause},
		"Couldn't write the stored credentials: cause":                                                                                   &mcpauth.StoreError{Op: "write", Err: cause},
		"the authorization server refused: access_denied":                                                                                &mcpauth.RefusedError{Code: "access_denied"},
		"the authorization server refused: access_denied (no)":                                                                           &mcpauth.RefusedError{Code: "access_denied", Description: "no"},
	} {
		if d := cmp.Diff(want, err.Error()); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
	for _, methods := range []any{nil, []string{}, []string{"plain"}} {
		n := newInternet()
		delete(n.meta, "code_challenge_methods_supported")
		if methods != nil {
			n.meta["code_challenge_methods_supported"] = methods
		}
		text := "[]"
		if m, ok := methods.([]string); ok && len(m) > 0 {
			text = `["plain"]`
		}
		wantError(t, n.auth(t, n.options()).Login(t.Context()), []string{
			"logging in to " + serverURL + ": the authorization server https://" + authHost + " does not say that it supports PKCE with S256 (code_challenge_methods_supported is " + text + ")",
		})
	}
}

// A revocation that fails is told, and the login is deleted all the same.
func TestRevocationThatFails(t *testing.T) {
	const revoke = "https://" + authHost + "/revoke"
	n := newInternet()
	n.answers[revoke] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	o := n.options()
	loggedIn(t, o)
	a := n.auth(t, o)
	wantError(t, a.Logout(t.Context()), []string{"revoking the token at " + revoke + ": HTTP 503"})
	if _, err := a.Credentials(t.Context()); !errors.Is(err, mcpauth.ErrNotFound) {
		t.Errorf("after the logout: %v", err)
	}
	if got := n.body[revoke]; got != "client_id=mine&token=refresh-0-secret&token_type_hint=refresh_token" {
		t.Errorf("sent %q", got)
	}
}

// The client authenticates at the revocation as it does for a token.
// fault F3
func TestRevocationAuthenticates(t *testing.T) {
	const revoke = "https://" + authHost + "/revoke"
	for _, tt := range []struct {
		method, secret, refresh string
		header, form            string
	}{
		{"client_secret_basic", "pw", "r", "Basic bWluZTpwdw==", "client_id=mine&token=r&token_type_hint=refresh_token"},
		{"client_secret_post", "pw", "r", "", "client_id=mine&client_secret=pw&token=r&token_type_hint=refresh_token"},
		{"", "pw", "r", "Basic bWluZTpwdw==", "client_id=mine&token=r&token_type_hint=refresh_token"},
		{"none", "", "r", "", "client_id=mine&token=r&token_type_hint=refresh_token"},
		{"none", "", "", "", "client_id=mine&token=a&token_type_hint=access_token"},
	} {
		n := newInternet()
		var header string
		n.answers[revoke] = func(_ http.ResponseWriter, r *http.Request) { header = r.Header.Get("Authorization") }
		o := n.options()
		loggedIn(t, o)
		err := o.Store.Update(t.Context(), mcpauth.Key(serverURL), func(c *mcpauth.Credentials) (*mcpauth.Credentials, error) {
			c.AuthMethod, c.ClientSecret, c.RefreshToken, c.AccessToken = tt.method, tt.secret, tt.refresh, "a"
			return c, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := n.auth(t, o).Logout(t.Context()); err != nil {
			t.Fatal(err)
		}
		if header != tt.header || n.body[revoke] != tt.form {
			t.Errorf("%+v: Authorization %q, form %q", tt, header, n.body[revoke])
		}
	}
}

// An address that is none is its own key.
func TestKeyOfNoAddress(t *testing.T) {
	for _, s := range []string{"", "plain", "/path/", "::", "mailto:a@b.example"} {
		if got := mcpauth.Key(s); got != s {
			t.Errorf("Key(%q) = %q", s, got)
		}
	}
}

// A file of any size is no reason to read it all.
func TestOversizedCredentialsFile(t *testing.T) {
	dir := t.TempDir()
	store, err := mcpauth.NewDirStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	o := newInternet().options()
	o.Store = store
	loggedIn(t, o)
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v", files, err)
	}
	for size, want := range map[int64]string{1 << 20: "is not what was written there", 1<<20 + 1: "has more than 1048576 bytes: delete it and log in again"} {
		if err := os.Truncate(files[0], size); err != nil {
			t.Fatal(err)
		}
		_, err := store.Load(t.Context(), mcpauth.Key(serverURL))
		wantError(t, err, []string{"Couldn't read the stored credentials: " + files[0] + " " + want})
	}
}

// A token that the server rejected is not taken for good because it cannot be renewed just now: the failure is told.
func TestRejectedTokenThatCannotBeRenewed(t *testing.T) {
	const token = "https://" + authHost + "/token"
	n := newInternet()
	n.answers[token] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	o := n.options()
	o.Authorize = nil
	loggedIn(t, o)
	err := o.Store.Update(t.Context(), mcpauth.Key(serverURL), func(c *mcpauth.Credentials) (*mcpauth.Credentials, error) {
		c.Expiry = time.Now().Add(time.Hour)
		return c, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, serverURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = n.auth(t, o).Transport(n).RoundTrip(req) //nolint:bodyclose // there is none
	var te *mcpauth.TokenError
	if !errors.As(err, &te) || te.Status != http.StatusServiceUnavailable || errors.As(err, new(*mcpauth.NeedsAuthError)) {
		t.Errorf("got %v, want the token endpoint's failure", err)
	}
	if sent := n.sentTo(serverURL); len(sent) != 1 {
		t.Errorf("the rejected token was sent %d times", len(sent))
	}
}

// A registration that is refused says with which status and words, in bounds.
func TestRefusedRegistration(t *testing.T) {
	const register = "https://" + authHost + "/register"
	for _, tt := range []struct {
		status     int
		body, want string
	}{
		{400, `{"error":"invalid_redirect_uri","error_description":"not\nthis one"}`, "HTTP 400 Bad Request invalid_redirect_uri (not this one)"},
		{400, `{"error_description":"no"}`, "HTTP 400 Bad Request (no)"},
		{403, `<html>secret page</html>`, "HTTP 403 Forbidden"},
		{201, `<html>secret page</html>`, "the response is not JSON: invalid character '<' looking for beginning of value"},
		{201, `{"client_secret":"pw"}`, "the response has no client_id"},
		{200, `{"client_id":5}`, "the response has no client_id"},
	} {
		n := newInternet()
		n.answers[register] = func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tt.status)
			fmt.Fprint(w, tt.body)
		}
		err := n.auth(t, n.options()).Login(t.Context())
		want := "logging in to " + serverURL + ": registering a client at " + register + " (a configured client ID avoids this): " + tt.want
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// A client secret that ends is used until then, and the client registered anew after.
func TestClientSecretThatEnds(t *testing.T) {
	const register = "https://" + authHost + "/register"
	for ends, registrations := range map[int64]int{0: 1, time.Now().Add(time.Hour).Unix(): 1, 1: 2} {
		n := newInternet()
		n.json(register, map[string]any{"client_id": "c", "client_secret": "pw", "client_secret_expires_at": ends})
		a := n.auth(t, n.options())
		if err := errors.Join(a.Login(t.Context()), a.Login(t.Context())); err != nil {
			t.Fatal(err)
		}
		if sent := n.sentTo(register); len(sent) != registrations {
			t.Errorf("a secret that ends at %d: %d registrations, want %d", ends, len(sent), registrations)
		}
	}
}

// Scopes are sent with one blank between them, by a grant without a person as well.
func TestGrantAsksForItsScopes(t *testing.T) {
	const token = "https://" + authHost + "/token"
	n := newInternet()
	n.resource["scopes_supported"] = []string{"a", "b:c"}
	o := n.options()
	o.Authorize, o.RedirectURL = nil, ""
	o.Grant = &mcpauth.ClientCredentialsGrant{ClientID: "svc", ClientSecret: "pw"}
	if err := n.auth(t, o).Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := "grant_type=client_credentials&resource=" + url.QueryEscape(serverURL) + "&scope=a+b%3Ac"; n.body[token] != want {
		t.Errorf("sent %s, want %s", n.body[token], want)
	}
}

// The text of credentials names the server, the client and the issuer.
func TestTextOfCredentials(t *testing.T) {
	c := &mcpauth.Credentials{ServerURL: "https://a.example/mcp?k=1", ClientID: "c", Issuer: "https://i.example"}
	const want = "credentials for https://a.example/mcp?… (client c, issuer https://i.example)"
	if c.String() != want || c.GoString() != want || c.LogValue().String() != want {
		t.Errorf("got %s, want %s", c, want)
	}
	if got := (*mcpauth.Credentials)(nil).String(); got != "no credentials" {
		t.Errorf("got %q", got)
	}
}

func discard() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// A configured client without a secret names itself, whatever the server takes.
func TestPublicClientsSendNoSecret(t *testing.T) {
	n := newInternet()
	n.meta["token_endpoint_auth_methods_supported"] = []string{"client_secret_basic", "client_secret_post"}
	header, token := "not asked", "https://"+authHost+"/token"
	n.answers[token] = func(w http.ResponseWriter, r *http.Request) {
		header = r.Header.Get("Authorization")
		writeJSON(w, map[string]any{"access_token": "a", "token_type": "bearer"})
	}
	o := n.options()
	o.ClientID = "mine"
	if err := n.auth(t, o).Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	if body := n.body[token]; header != "" || !strings.Contains(body, "client_id=mine") || strings.Contains(body, "secret") {
		t.Errorf("Authorization %q, body %s", header, body)
	}
	c, err := o.Store.Load(t.Context(), mcpauth.Key(serverURL))
	if err != nil || c.AuthMethod != "none" {
		t.Errorf("stored %v, %v; want the method none", c, err)
	}
}

// An address is shown up to its bound, exactly.
func TestAddressesAreShownInPart(t *testing.T) {
	const most = 1000
	address := "https://a.example/" + strings.Repeat("x", most-len("https://a.example/"))
	if got := mcpauth.MaskURL(address); got != address {
		t.Errorf("the longest is shown as %s", got)
	}
	if got := mcpauth.MaskURL(address + "x"); got != address+"…" {
		t.Errorf("a longer one is shown as %s", got)
	}
}

// Metadata may be redirected so many times and not once more.
func TestRedirectsAtTheirLimit(t *testing.T) {
	const most = 5
	for hops, refused := range map[int]bool{most: false, most + 1: true} {
		n := newInternet()
		from := "https://" + authHost + "/.well-known/oauth-authorization-server"
		for i := range hops {
			next := fmt.Sprint("/hop", i)
			n.answers[from] = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", next)
				w.WriteHeader(http.StatusFound)
			}
			from = "https://" + authHost + next
		}
		n.answers[from] = func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, n.meta) }
		err := n.auth(t, n.options()).Login(t.Context())
		if !refused && err != nil || refused && (err == nil || !strings.Contains(err.Error(), "redirects more than 5 times")) {
			t.Errorf("%d redirects: %v", hops, err)
		}
	}
}
