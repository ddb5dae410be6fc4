package mcpauth_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenon-sdk/tenon/mcpauth"
)

// The addresses of an internet in memory. They are literal ones, so that nothing
// looks up a name, and public.
const (
	mcpHost   = "203.0.113.5"
	authHost  = "203.0.113.6"
	otherHost = "203.0.113.7"
	serverURL = "https://" + mcpHost + "/mcp"
)

// internet is a RoundTripper that serves all hosts from memory: a server at
// mcpHost that wants a token, its authorization server at authHost. Its fields
// are set before the first request.
type internet struct {
	resource map[string]any // the server's resource metadata
	meta     map[string]any // the authorization server's metadata
	answers  map[string]http.HandlerFunc
	scheme   string // that of WWW-Authenticate; empty means a plain Bearer challenge

	mu   sync.Mutex // guards the rest
	sent []string   // "METHOD URL" of each request
	body map[string]string
}

func newInternet() *internet {
	as := "https://" + authHost
	return &internet{
		resource: map[string]any{"resource": serverURL, "authorization_servers": []string{as}},
		meta: map[string]any{
			"issuer":                           as,
			"authorization_endpoint":           as + "/authorize",
			"token_endpoint":                   as + "/token",
			"registration_endpoint":            as + "/register",
			"revocation_endpoint":              as + "/revoke",
			"code_challenge_methods_supported": []string{"S256"},
		},
		answers: map[string]http.HandlerFunc{},
		body:    map[string]string{},
	}
}

func (n *internet) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r.Body.Close()
	}
	address := r.URL.String()
	n.mu.Lock()
	n.sent = append(n.sent, r.Method+" "+address)
	n.body[address] = string(body)
	n.mu.Unlock()
	w := httptest.NewRecorder()
	if h := n.answers[address]; h != nil {
		h(w, r)
	} else {
		n.serve(w, address)
	}
	return w.Result(), nil
}

func (n *internet) serve(w http.ResponseWriter, address string) {
	as := "https://" + authHost
	switch address {
	case serverURL:
		w.Header().Set("WWW-Authenticate", or(n.scheme, "Bearer"))
		w.WriteHeader(http.StatusUnauthorized)
	case "https://" + mcpHost + "/.well-known/oauth-protected-resource/mcp":
		writeJSON(w, n.resource)
	case as + "/.well-known/oauth-authorization-server":
		writeJSON(w, n.meta)
	case as + "/register":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]any{"client_id": "dynamic"})
	case as + "/token":
		writeJSON(w, map[string]any{"access_token": "access-1", "refresh_token": "refresh-1", "token_type": "Bearer", "expires_in": 3600})
	case as + "/revoke":
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// sentTo are the requests whose address begins with a prefix.
func (n *internet) sentTo(prefix string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var sent []string
	for _, s := range n.sent {
		if _, address, _ := strings.Cut(s, " "); strings.HasPrefix(address, prefix) {
			sent = append(sent, s)
		}
	}
	return sent
}

// redirect answers an address with a redirect.
func (n *internet) redirect(from string, status int, to string) {
	n.answers[from] = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", to)
		w.WriteHeader(status)
	}
}

// json answers an address with a JSON document.
func (n *internet) json(at string, v any) {
	n.answers[at] = func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, v) }
}

// options are those of a person who agrees at once.
func (n *internet) options() *mcpauth.Options {
	return &mcpauth.Options{
		HTTPClient:  &http.Client{Transport: n},
		RedirectURL: "http://localhost:3118/callback",
		Authorize:   agree(nil),
		Store:       mcpauth.NewMemoryStore(),
	}
}

// agree answers as an authorization server does whose person agrees; change may
// make something else of the answer.
func agree(change func(url.Values)) mcpauth.AuthorizeFunc {
	return func(_ context.Context, req *mcpauth.AuthorizationRequest) (*mcpauth.AuthorizationResponse, error) {
		q := url.Values{"code": {"code-1"}, "state": {req.State}}
		if change != nil {
			change(q)
		}
		return mcpauth.ParseRedirect(req.RedirectURL+"?"+q.Encode(), req.State)
	}
}

func (n *internet) auth(t *testing.T, o *mcpauth.Options) *mcpauth.Authenticator {
	t.Helper()
	a, err := mcpauth.New(serverURL, o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// loggedIn puts credentials into the store of o, whose access token has ended.
func loggedIn(t *testing.T, o *mcpauth.Options) {
	t.Helper()
	err := o.Store.Update(t.Context(), mcpauth.Key(serverURL), func(*mcpauth.Credentials) (*mcpauth.Credentials, error) {
		return &mcpauth.Credentials{
			ServerURL: serverURL, Resource: serverURL, Issuer: "https://" + authHost,
			TokenEndpoint: "https://" + authHost + "/token", RevocationEndpoint: "https://" + authHost + "/revoke",
			ClientID: "mine", ClientSecret: "s3cret-of-the-client", AccessToken: "access-0-secret", RefreshToken: "refresh-0-secret", Expiry: time.Unix(1, 0),
		}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// wantError fails t unless err has all the words and none of the others.
func wantError(t *testing.T, err error, words []string, not ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one with %q", words)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("got %v, want %q in it", err, w)
		}
	}
	for _, w := range not {
		if strings.Contains(err.Error(), w) || strings.Contains(fmt.Sprintf("%+v", err), w) {
			t.Errorf("got %v, want no %q in it", err, w)
		}
	}
}
