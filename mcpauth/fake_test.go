package mcpauth_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tenon-sdk/tenon/mcpauth"
)

// fake is an authorization server and the resource that it guards, on
// addresses of their own. Its fields are set before the first request.
type fake struct {
	t        *testing.T
	as, rs   *httptest.Server
	meta     map[string]any // the authorization server's metadata; "" values are left out
	metaAt   string         // path of the metadata; empty: none anywhere
	resource string         // resource metadata: "path", "root", "header" or "none"
	scopes   []string       // scopes_supported of the resource
	scope    string         // scope in the challenge
	expires  int            // seconds that an access token lives
	rotate   bool           // a refresh gives a new refresh token and ends the old one
	noToken  bool           // the resource refuses every token
	need     string         // a token without this scope gets 403
	open     bool           // the resource wants no token

	mu       sync.Mutex // guards the rest
	n        int
	codes    map[string]url.Values // code -> authorization request
	access   map[string]string     // access token -> scope
	refresh  map[string]string     // refresh token -> scope
	counts   map[string]int        // requests by path
	forms    []url.Values          // token requests
	auths    []string              // their Authorization headers
	reg      []map[string]any      // registrations
	seen     []string              // Authorization headers at the resource
	lastAuth url.Values
}

func newFake(t *testing.T) *fake {
	f := &fake{
		t: t, metaAt: "/.well-known/oauth-authorization-server", resource: "path", expires: 3600, rotate: true,
		codes: map[string]url.Values{}, access: map[string]string{}, refresh: map[string]string{}, counts: map[string]int{},
	}
	as := http.NewServeMux()
	as.HandleFunc("/authorize", f.authorize)
	as.HandleFunc("POST /token", f.token)
	as.HandleFunc("POST /register", f.register)
	as.HandleFunc("POST /revoke", func(w http.ResponseWriter, r *http.Request) { f.count(r) })
	as.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		f.count(r)
		if r.URL.Path != f.metaAt {
			http.NotFound(w, r)
			return
		}
		writeJSON(w, f.meta)
	})
	f.as = httptest.NewServer(as)
	t.Cleanup(f.as.Close)
	f.meta = map[string]any{
		"issuer":                           f.as.URL,
		"authorization_endpoint":           f.as.URL + "/authorize",
		"token_endpoint":                   f.as.URL + "/token",
		"registration_endpoint":            f.as.URL + "/register",
		"revocation_endpoint":              f.as.URL + "/revoke",
		"code_challenge_methods_supported": []string{"S256"},
	}
	rs := http.NewServeMux()
	rs.HandleFunc("/mcp", f.serve)
	rs.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		f.count(r)
		at := map[string]string{"path": "/.well-known/oauth-protected-resource/mcp", "root": "/.well-known/oauth-protected-resource", "header": "/elsewhere"}[f.resource]
		if r.URL.Path != at {
			http.NotFound(w, r)
			return
		}
		m := map[string]any{"resource": f.rs.URL + "/mcp", "authorization_servers": []string{f.as.URL}}
		if f.resource == "root" {
			m["resource"] = f.rs.URL
		}
		if f.scopes != nil {
			m["scopes_supported"] = f.scopes
		}
		writeJSON(w, m)
	})
	f.rs = httptest.NewServer(rs)
	t.Cleanup(f.rs.Close)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	return f
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (f *fake) url() string { return f.rs.URL + "/mcp" }

func (f *fake) count(r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[r.URL.Path]++
}

func (f *fake) asked(path string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[path]
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	f.count(r)
	tok := r.Header.Get("Authorization")
	f.mu.Lock()
	f.seen = append(f.seen, tok)
	scope, ok := f.access[strings.TrimPrefix(tok, "Bearer ")]
	f.mu.Unlock()
	ch := `Bearer realm="mcp"`
	if f.resource == "header" {
		ch += fmt.Sprintf(", resource_metadata=%q", f.rs.URL+"/elsewhere")
	}
	switch {
	case f.open:
	case !ok || f.noToken:
		if f.scope != "" {
			ch += fmt.Sprintf(`, scope=%q`, f.scope)
		}
		w.Header().Set("WWW-Authenticate", ch)
		w.WriteHeader(http.StatusUnauthorized)
		return
	case f.need != "" && !slices.Contains(strings.Fields(scope), f.need):
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`%s, error="insufficient_scope", scope=%q`, ch, f.need))
		w.WriteHeader(http.StatusForbidden)
		return
	}
	fmt.Fprint(w, "ok")
}

func (f *fake) authorize(w http.ResponseWriter, r *http.Request) {
	f.count(r)
	q := r.URL.Query()
	f.mu.Lock()
	f.n++
	code := fmt.Sprintf("code-%d", f.n)
	f.codes[code] = q
	f.lastAuth = q
	f.mu.Unlock()
	back, _ := url.Parse(q.Get("redirect_uri"))
	v := url.Values{"code": {code}, "state": {q.Get("state")}}
	if f.meta["authorization_response_iss_parameter_supported"] == true {
		v.Set("iss", f.as.URL)
	}
	back.RawQuery = v.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

func (f *fake) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[r.URL.Path]++
	f.forms = append(f.forms, r.PostForm)
	f.auths = append(f.auths, r.Header.Get("Authorization"))
	var scope string
	switch r.PostForm.Get("grant_type") {
	case "authorization_code":
		q, ok := f.codes[r.PostForm.Get("code")]
		sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
		if !ok || base64.RawURLEncoding.EncodeToString(sum[:]) != q.Get("code_challenge") {
			f.refuse(w, "invalid_grant")
			return
		}
		delete(f.codes, r.PostForm.Get("code"))
		scope = q.Get("scope")
	case "refresh_token":
		old := r.PostForm.Get("refresh_token")
		var ok bool
		if scope, ok = f.refresh[old]; !ok {
			f.refuse(w, "invalid_grant")
			return
		}
		if f.rotate {
			delete(f.refresh, old)
		}
	case "client_credentials":
		scope = r.PostForm.Get("scope")
	default:
		f.refuse(w, "unsupported_grant_type")
		return
	}
	f.n++
	access, refresh := fmt.Sprintf("access-%d", f.n), fmt.Sprintf("refresh-%d", f.n)
	f.access[access] = scope
	answer := map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": f.expires}
	if f.rotate || r.PostForm.Get("grant_type") == "authorization_code" {
		f.refresh[refresh] = scope
		answer["refresh_token"] = refresh
	}
	writeJSON(w, answer)
}

func (f *fake) refuse(w http.ResponseWriter, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": code, "error_description": "no such grant"})
}

func (f *fake) register(w http.ResponseWriter, r *http.Request) {
	var m map[string]any
	_ = json.NewDecoder(r.Body).Decode(&m)
	f.mu.Lock()
	f.counts[r.URL.Path]++
	f.reg = append(f.reg, m)
	f.mu.Unlock()
	m["client_id"] = "dynamic-client"
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(m)
}

// browser is a person who agrees: it follows the address to its redirect.
func browser(t *testing.T, change func(url.Values)) mcpauth.AuthorizeFunc {
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return func(ctx context.Context, req *mcpauth.AuthorizationRequest) (*mcpauth.AuthorizationResponse, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, req.URL, nil)
		if err != nil {
			return nil, err
		}
		resp, err := client.Do(r)
		if err != nil {
			return nil, err
		}
		resp.Body.Close()
		u, err := resp.Location()
		if err != nil {
			return nil, err
		}
		q := u.Query()
		if change != nil {
			change(q)
		}
		return &mcpauth.AuthorizationResponse{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
	}
}

// person returns options of someone who can log in.
func (f *fake) person() *mcpauth.Options {
	return &mcpauth.Options{Authorize: browser(f.t, nil), RedirectURL: "http://localhost:3118/callback"}
}

func (f *fake) client(o *mcpauth.Options) (*mcpauth.Authenticator, *http.Client) {
	f.t.Helper()
	a, err := mcpauth.New(f.url(), o)
	if err != nil {
		f.t.Fatal(err)
	}
	return a, &http.Client{Transport: a.Transport(nil)}
}

// get asks the resource with a body, as an MCP client does.
func (f *fake) get(c *http.Client) (int, error) {
	req, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, f.url(), strings.NewReader(`{"jsonrpc":"2.0"}`))
	if err != nil {
		return 0, err
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, err
	}
	resp.Body.Close()
	return resp.StatusCode, nil
}
