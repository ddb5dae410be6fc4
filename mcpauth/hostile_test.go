package mcpauth_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sdk/tenon/internal/growth"
	"github.com/tenon-sdk/tenon/mcpauth"
)

// RFC 9207: the right issuer is accepted whether or not it was announced.
// fault C1
func TestIssuerOfTheAnswer(t *testing.T) {
	const as = "https://" + authHost
	tests := []struct {
		name       string
		advertised bool
		iss        []string
		want       string
	}{
		{"right, advertised", true, []string{as}, ""},
		{"right, not advertised", false, []string{as}, ""},
		{"none, not advertised", false, nil, ""},
		{"none, advertised", true, nil, "announces iss in its responses and did not send it"},
		{"wrong, advertised", true, []string{"https://evil.example"}, "the response is from issuer https://evil.example, want " + as},
		{"wrong, not advertised", false, []string{"https://evil.example"}, "the response is from issuer https://evil.example, want " + as},
		{"right but for a slash", true, []string{as + "/"}, "want " + as},
		{"two", true, []string{as, "https://evil.example"}, "iss more than once"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := newInternet()
			n.meta["authorization_response_iss_parameter_supported"] = tt.advertised
			o := n.options()
			o.Authorize = agree(func(q url.Values) { q["iss"] = tt.iss })
			a := n.auth(t, o)
			err := a.Login(t.Context())
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if c, err := a.Token(t.Context()); err != nil || c.AccessToken != "access-1" || c.Issuer != as {
					t.Errorf("got %v, %v", c, err)
				}
				return
			}
			wantError(t, err, []string{tt.want})
			if sent := n.sentTo(as + "/token"); sent != nil {
				t.Errorf("the code was sent: %q", sent)
			}
		})
	}
}

// The text of an error that is not the authorization server's own is shown neither in an error nor in the browser.
// fault C2
func TestErrorOfAForeignIssuerIsNotShown(t *testing.T) {
	const as = "https://" + authHost
	const text = "Call+1-555-0100+to+unlock"
	for _, tt := range []struct {
		name, iss  string
		advertised bool
		want       []string
		not        []string
	}{
		{"foreign", "https://evil.example", false, []string{"want " + as}, []string{"unlock", "access_denied"}},
		{"foreign, advertised", "https://evil.example", true, []string{"want " + as}, []string{"unlock", "access_denied"}},
		{"none, advertised", "", true, []string{"did not"}, []string{"unlock", "access_denied"}},
		{"its own", as, true, []string{"access_denied (Call 1-555-0100 to unlock)"}, nil},
		{"none", "", false, []string{"access_denied (Call 1-555-0100 to unlock)"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newInternet()
			n.meta["authorization_response_iss_parameter_supported"] = tt.advertised
			cb, err := mcpauth.NewCallback(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			defer cb.Close()
			answer := func(state string) string {
				q := "?error=access_denied&error_description=" + text + "&state=" + state
				if tt.iss != "" {
					q += "&iss=" + url.QueryEscape(tt.iss)
				}
				return cb.URL() + q
			}
			o := n.options()
			o.RedirectURL = cb.URL()
			byBrowser := func(_ context.Context, r *mcpauth.AuthorizationRequest) error {
				if _, page := visit(t, answer(r.State)); strings.Contains(page, "unlock") || strings.Contains(page, "access_denied") {
					t.Errorf("the page shows what a stranger said: %s", page)
				}
				return nil
			}
			o.Authorize = mcpauth.Interactive(cb, byBrowser, nil)
			wantError(t, n.auth(t, o).Login(t.Context()), tt.want, tt.not...)

			var state string
			show := func(_ context.Context, r *mcpauth.AuthorizationRequest) error { state = r.State; return nil }
			o.Authorize = mcpauth.Interactive(nil, show, func(context.Context, error) (string, error) { return answer(state), nil })
			wantError(t, n.auth(t, o).Login(t.Context()), tt.want, tt.not...)
		})
	}
}

// Metadata is read from the origin that was asked, over any number of redirects up to a bound.
// fault C3
func TestRedirectsOfMetadata(t *testing.T) {
	const (
		resource = "https://" + mcpHost + "/.well-known/oauth-protected-resource/mcp"
		authMeta = "https://" + authHost + "/.well-known/oauth-authorization-server"
		named    = "https://" + mcpHost + "/named"
	)
	for _, from := range []string{resource, authMeta, named} {
		host, _ := url.Parse(from)
		for _, tt := range []struct{ name, to, want string }{
			{"to http", "http://" + host.Host + "/there", "redirects to http://" + host.Host + "/there"},
			{"to another origin", "https://" + otherHost + "/there", "redirects to https://" + otherHost + "/there"},
			{"to another port", "https://" + host.Host + ":8443/there", ":8443/there"},
			{"to a link-local address", "http://169.254.169.254/latest/meta-data/", "redirects to http://169.254.169.254/latest/meta-data/"},
			{"to this machine", "http://127.0.0.1:1/there", "redirects to http://127.0.0.1:1/there"},
			{"in a circle", from, "redirects more than 5 times"},
		} {
			for _, caller := range []string{"the default", "one that follows all"} {
				t.Run(from+" "+tt.name+", client: "+caller, func(t *testing.T) {
					n := newInternet()
					n.redirect(from, http.StatusTemporaryRedirect, tt.to)
					n.scheme = `Bearer resource_metadata="` + or(map[bool]string{true: named}[from == named], resource) + `"`
					o := n.options()
					if caller != "the default" {
						o.HTTPClient.CheckRedirect = func(*http.Request, []*http.Request) error { return nil }
					}
					if from == named { // and nothing at the well-known address
						n.answers[resource] = http.NotFound
					}
					wantError(t, n.auth(t, o).Login(t.Context()), []string{tt.want})
					if sent := n.sentTo(tt.to); tt.to != from && sent != nil {
						t.Errorf("it was followed: %q", sent)
					}
				})
			}
		}
	}
	t.Run("within the origin", func(t *testing.T) {
		n := newInternet()
		n.redirect(resource, http.StatusFound, "/moved")
		n.json("https://"+mcpHost+"/moved", n.resource)
		if err := n.auth(t, n.options()).Login(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// A token is sent over TLS or to this machine, whoever names the address.
// fault C4
func TestPlainHTTPIsRefused(t *testing.T) {
	for address, ok := range map[string]bool{
		"https://a.example/mcp": true, "http://localhost:3000/mcp": true, "http://LOCALHOST./mcp": true, "http://127.0.0.1/mcp": true, "http://[::1]:3000/mcp": true,
		"http://a.example/mcp": false, "http://192.168.1.5/mcp": false, "http://localhost.evil.example/mcp": false, "http://127.0.0.1.evil.example/mcp": false,
		"http://localhost@evil.example/mcp": false, "ftp://a.example/mcp": false, "ws://localhost/mcp": false,
	} {
		_, err := mcpauth.New(address, nil)
		if ok != (err == nil) || !ok && !errors.Is(err, mcpauth.ErrInsecureURL) {
			t.Errorf("%s: got %v, want it taken: %v", address, err, ok)
		}
		_, err = mcpauth.New("https://a.example/mcp", &mcpauth.Options{MetadataURL: address})
		if ok != (err == nil) || !ok && !errors.Is(err, mcpauth.ErrInsecureURL) {
			t.Errorf("MetadataURL %s: got %v, want it taken: %v", address, err, ok)
		}
	}
	for _, member := range []string{"authorization_endpoint", "token_endpoint", "registration_endpoint", "revocation_endpoint"} {
		n := newInternet()
		n.meta[member] = "http://" + authHost + "/there"
		wantError(t, n.auth(t, n.options()).Login(t.Context()), []string{member + " in the metadata at ", "neither https nor on this machine"})
		if sent := n.sentTo("http://"); sent != nil {
			t.Errorf("%s: sent %q", member, sent)
		}
	}
	// What an earlier version has stored is not sent in clear, either.
	n := newInternet()
	o := n.options()
	loggedIn(t, o)
	_ = o.Store.Update(t.Context(), mcpauth.Key(serverURL), func(c *mcpauth.Credentials) (*mcpauth.Credentials, error) {
		c.TokenEndpoint, c.RevocationEndpoint = "http://"+authHost+"/token", "http://"+authHost+"/revoke"
		return c, nil
	})
	a := n.auth(t, o)
	_, err := a.Token(t.Context())
	wantError(t, err, []string{"neither https nor on this machine"})
	wantError(t, a.Logout(t.Context()), []string{"neither https nor on this machine"})
	if sent := n.sentTo("http://"); sent != nil {
		t.Errorf("sent %q", sent)
	}
}

// What an authorization server repeats of a request is masked in errors.
// fault C6
func TestEchoedSecretsAreMasked(t *testing.T) {
	const endpoint = "https://" + authHost + "/token"
	for _, kind := range []string{"application/json", "application/x-www-form-urlencoded", "text/html"} {
		n := newInternet()
		o := n.options()
		loggedIn(t, o)
		n.answers[endpoint] = func(w http.ResponseWriter, r *http.Request) {
			secrets := []string{"refresh-0-secret", "s3cret-of-the-client", r.Header.Get("Authorization"), n.body[endpoint]}
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(http.StatusBadRequest)
			text := strings.Join(secrets, " ")
			switch kind {
			case "application/json":
				fmt.Fprintf(w, `{"error":"bad %s","error_description":%q}`, secrets[0], text)
			case "text/html":
				fmt.Fprint(w, text)
			default:
				fmt.Fprint(w, url.Values{"error": {secrets[0]}, "error_description": {text}}.Encode())
			}
		}
		_, err := n.auth(t, o).Token(t.Context())
		wantError(t, err, []string{"HTTP 400"}, "refresh-0-secret", "s3cret-of-the-client", "access-0-secret")
	}

	// The server repeats the token in its challenge, in the text of its refusal and in its metadata.
	const token = "access-0-secret"
	n := newInternet()
	o := n.options()
	loggedIn(t, o)
	_ = o.Store.Update(t.Context(), mcpauth.Key(serverURL), func(c *mcpauth.Credentials) (*mcpauth.Credentials, error) {
		c.Expiry, c.RefreshToken = time.Time{}, ""
		return c, nil
	})
	n.answers[serverURL] = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer scope="read `+token+`", resource_metadata="https://`+mcpHost+`/`+token+`", error="`+token+`"`)
		w.WriteHeader(http.StatusUnauthorized)
		// A text whose visible part ends within the token.
		fmt.Fprint(w, token+" "+strings.Repeat(" ", 8<<10-len(token)-6)+token)
	}
	n.resource["resource"] = "https://" + mcpHost + "/" + token
	for name, authorize := range map[string]mcpauth.AuthorizeFunc{"nobody": nil, "somebody": o.Authorize} {
		o.Authorize = authorize
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, serverURL, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = n.auth(t, o).Transport(n).RoundTrip(req) //nolint:bodyclose // there is none
		t.Log(name, err)
		wantError(t, err, []string{"***"}, token, token[:6])
	}
	if sent := n.sentTo("https://" + mcpHost + "/" + token); sent != nil {
		t.Errorf("the token was put into an address: %q", sent)
	}
}

// Nothing that carries a secret follows a redirect, whatever the caller's client does.
// fault H1
func TestSecretsFollowNoRedirect(t *testing.T) {
	const as = "https://" + authHost
	const elsewhere = "https://" + otherHost + "/there"
	register := func(a *mcpauth.Authenticator, ctx context.Context) error { return a.Login(ctx) }
	refresh := func(a *mcpauth.Authenticator, ctx context.Context) error { _, err := a.Token(ctx); return err }
	logout := func(a *mcpauth.Authenticator, ctx context.Context) error { return a.Logout(ctx) }
	for _, tt := range []struct {
		name, endpoint string
		stored         bool
		do             func(*mcpauth.Authenticator, context.Context) error
	}{
		{"registration", as + "/register", false, register},
		{"code", as + "/token", false, register},
		{"refresh", as + "/token", true, refresh},
		{"revocation", as + "/revoke", true, logout},
	} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			for _, to := range []string{elsewhere, as + "/moved"} {
				for _, caller := range []string{"plain", "follows all"} {
					t.Run(fmt.Sprint(tt.name, " ", status, " ", to, " ", caller), func(t *testing.T) {
						n := newInternet()
						n.redirect(tt.endpoint, status, to)
						o := n.options()
						if caller != "plain" {
							o.HTTPClient.CheckRedirect = func(*http.Request, []*http.Request) error { return nil }
						}
						if tt.stored {
							loggedIn(t, o)
						}
						err := tt.do(n.auth(t, o), t.Context())
						wantError(t, err, []string{fmt.Sprintf("HTTP %d", status), "a redirect, which is not followed"}, "refresh-0-secret")
						if sent := n.sentTo(to); sent != nil {
							t.Errorf("followed: %q with %q", sent, n.body[to])
						}
						if o.HTTPClient.Transport != n || (caller == "plain") != (o.HTTPClient.CheckRedirect == nil) {
							t.Error("the caller's client was changed")
						}
					})
				}
			}
		}
	}
}

// A server on the internet cannot send its clients to what only they can get at.
// fault H6
func TestPrivateAddressesFromAPublicServer(t *testing.T) {
	for _, host := range []string{
		"127.0.0.1:8080", "[::1]", "localhost:8080", "localhost.", "x.localhost", "0.0.0.0", "[::]",
		"10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "[fd12:3456::1]", "[fc00::1]", "100.64.0.1", "100.127.255.255",
		"169.254.169.254", "[fe80::1]", "[fe80::1%25eth0]", "[fd00:ec2::254]", "100.100.100.200", "168.63.129.16", "192.0.0.192", "metadata.google.internal", "METADATA.google.internal.",
		"[::ffff:10.0.0.1]", "[::ffff:127.0.0.1]", "[::127.0.0.1]", "[64:ff9b::10.0.0.1]", "[64:ff9b::a9fe:a9fe]", "[2002:a00:1::]", "224.0.0.1", "[ff02::1]", "255.255.255.255",
	} {
		for _, scheme := range []string{"https://", "http://"} {
			bad := scheme + host
			for name, arrange := range map[string]func(*internet){
				"resource metadata": func(n *internet) {
					n.scheme = `Bearer resource_metadata="` + bad + `/there"`
					n.answers["https://"+mcpHost+"/.well-known/oauth-protected-resource/mcp"] = http.NotFound
				},
				"authorization server": func(n *internet) { n.resource["authorization_servers"] = []string{bad} },
				"authorization":        func(n *internet) { n.meta["authorization_endpoint"] = bad + "/there" },
				"registration":         func(n *internet) { n.meta["registration_endpoint"] = bad + "/there" },
				"token":                func(n *internet) { n.meta["token_endpoint"] = bad + "/there" },
				"revocation":           func(n *internet) { n.meta["revocation_endpoint"] = bad + "/there" },
			} {
				n := newInternet()
				arrange(n)
				if err := n.auth(t, n.options()).Login(t.Context()); err == nil {
					t.Errorf("%s at %s: taken", name, bad)
				}
				if sent := n.sentTo(bad); sent != nil {
					t.Errorf("%s at %s: sent %q", name, bad, sent)
				}
			}
		}
	}
}

// A server in a private network, or on this machine, may have its authorization server there, and the caller may name any place.
// fault H6
func TestPrivateAddressesWhereTheServerIs(t *testing.T) {
	const wellKnown = "/.well-known/oauth-protected-resource/mcp"
	for _, tt := range []struct {
		server, issuer, metadataURL string
		ok                          bool
	}{
		{"https://10.0.0.1", "https://10.0.0.2", "", true},
		{"https://10.0.0.1", "https://[fd12::1]", "", true},
		{"https://10.0.0.1", "https://203.0.113.6", "", true},
		{"https://10.0.0.1", "http://127.0.0.1:1", "", false},
		{"https://10.0.0.1", "https://169.254.169.254", "", false},
		{"https://[fd12::1]", "https://[fd00:ec2::254]", "", false},
		{"http://127.0.0.1:1", "http://localhost:2", "", true},
		{"http://127.0.0.1:1", "https://10.0.0.2", "", true},
		{"http://127.0.0.1:1", "https://169.254.169.254", "", false},
		{"https://169.254.10.1", "https://169.254.10.1:8443", "", true},
		{"https://169.254.10.1", "https://169.254.169.254", "", false},
		{"https://203.0.113.5", "https://10.0.0.2", "https://10.0.0.3/meta", true},
		{"https://203.0.113.5", "http://127.0.0.1:1", "http://localhost:9/meta", true},
	} {
		n := newInternet()
		n.answers[tt.server+"/mcp"] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }
		n.json(tt.server+wellKnown, map[string]any{"resource": tt.server + "/mcp", "authorization_servers": []string{tt.issuer}})
		meta := map[string]any{"issuer": tt.issuer, "code_challenge_methods_supported": []string{"S256"}}
		for _, e := range []string{"authorization", "token", "registration"} {
			meta[e+"_endpoint"] = tt.issuer + "/" + e
		}
		n.json(or(tt.metadataURL, tt.issuer+"/.well-known/oauth-authorization-server"), meta)
		n.json(tt.issuer+"/registration", map[string]any{"client_id": "c"})
		n.json(tt.issuer+"/token", map[string]any{"access_token": "a", "token_type": "bearer"})
		o := n.options()
		o.MetadataURL = tt.metadataURL
		a, err := mcpauth.New(tt.server+"/mcp", o)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Login(t.Context()); tt.ok != (err == nil) {
			t.Errorf("server %s, issuer %s: got %v, want it to work: %v", tt.server, tt.issuer, err, tt.ok)
		}
		if sent := n.sentTo(tt.issuer + "/"); !tt.ok && sent != nil {
			t.Errorf("server %s: sent %q", tt.server, sent)
		}
	}
}

// A resource may have several authorization servers: those that cannot be used do not spoil the others, and a few are looked at.
func TestAuthorizationServersInTurn(t *testing.T) {
	n := newInternet()
	n.resource["authorization_servers"] = []string{"http://198.51.100.7", "javascript:alert(1)", "https://" + authHost}
	a := n.auth(t, n.options())
	if err := a.Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c, err := a.Credentials(t.Context()); err != nil || c.Issuer != "https://"+authHost {
		t.Errorf("got %v, %v", c, err)
	}

	var many []string
	for i := range 10_000 {
		many = append(many, fmt.Sprintf("https://198.51.100.7:%d", i+1))
		n.answers[many[i]+"/.well-known/oauth-authorization-server"] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	}
	n.resource["authorization_servers"] = many
	wantError(t, n.auth(t, n.options()).Login(t.Context()), []string{"HTTP 502", "9997 more authorization servers were not tried"})
	if sent := n.sentTo("https://198.51.100.7:"); len(sent) != 6 { // two addresses each
		t.Errorf("%d requests: %q", len(sent), sent)
	}
}

// Scopes are bounded in number and length, and what is left out is logged.
func TestScopesAreBounded(t *testing.T) {
	many := make([]string, 100_000)
	for i := range many {
		many[i] = fmt.Sprint("s", i)
	}
	for name, arrange := range map[string]func(*internet){
		"of the resource":  func(n *internet) { n.resource["scopes_supported"] = many },
		"of the challenge": func(n *internet) { n.scheme = `Bearer scope="` + strings.Join(many[:10_000], " ") + `"` },
		"too long":         func(n *internet) { n.resource["scopes_supported"] = []string{strings.Repeat("x", 257), "s0"} },
	} {
		n := newInternet()
		arrange(n)
		n.json("https://"+authHost+"/token", map[string]any{"access_token": "a", "token_type": "bearer", "scope": strings.Join(many, " ")})
		var asked []string
		var log strings.Builder
		o := n.options()
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		o.Authorize = func(ctx context.Context, r *mcpauth.AuthorizationRequest) (*mcpauth.AuthorizationResponse, error) {
			u, _ := url.Parse(r.URL)
			asked = strings.Fields(u.Query().Get("scope"))
			return agree(nil)(ctx, r)
		}
		a := n.auth(t, o)
		if err := a.Login(t.Context()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(asked) > 256 || asked[0] != "s0" {
			t.Errorf("%s: asked for %d scopes, the first %q", name, len(asked), asked[0])
		}
		if !strings.Contains(log.String(), "more scopes than are requested") {
			t.Errorf("%s: logged %q", name, log.String())
		}
		if c, err := a.Credentials(t.Context()); err != nil || len(c.Scopes) != 256 {
			t.Errorf("%s: %d scopes are stored, %v", name, len(c.Scopes), err)
		}
	}
}

// Answers are bounded in size, also after decompression, and in depth.
func TestHostileDocuments(t *testing.T) {
	const huge = 64 << 20
	plain := func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.Copy(w, io.LimitReader(endless('1'), huge))
	}
	bomb := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.Copy(z, io.LimitReader(endless('1'), huge))
		_ = z.Close()
	}
	deep := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"x":`+strings.Repeat(`{"x":[`, 100_000))
	}
	brotli := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "br")
		fmt.Fprint(w, "\x8b\x00")
	}
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
	}{{"plain", plain}, {"gzip", bomb}, {"deep", deep}, {"an unasked coding", brotli}} {
		for _, at := range []string{"/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server", "/register", "/token", "/revoke"} {
			t.Run(tt.name+" "+at, func(t *testing.T) {
				var self *httptest.Server
				mux := http.NewServeMux()
				mux.HandleFunc("/mcp", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
				mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
					switch r.URL.Path {
					case at:
						tt.answer(w, r)
					case "/.well-known/oauth-protected-resource/mcp":
						writeJSON(w, map[string]any{"resource": self.URL + "/mcp", "authorization_servers": []string{self.URL}})
					case "/.well-known/oauth-authorization-server":
						m := newInternet().meta
						for name, v := range m {
							if s, ok := v.(string); ok {
								m[name] = strings.Replace(s, "https://"+authHost, self.URL, 1)
							}
						}
						writeJSON(w, m)
					case "/register":
						writeJSON(w, map[string]any{"client_id": "c"})
					case "/token":
						writeJSON(w, map[string]any{"access_token": "a", "refresh_token": "r", "token_type": "bearer"})
					}
				})
				self = httptest.NewServer(mux)
				defer self.Close()
				o := newInternet().options()
				o.HTTPClient = nil
				a, err := mcpauth.New(self.URL+"/mcp", o)
				if err != nil {
					t.Fatal(err)
				}
				growth.AtMost(t, 16<<20, []int{huge}, func(int) int {
					return growth.Bytes(func() { err = a.Login(t.Context()) })
				})
				switch at {
				case "/revoke": // its body says nothing
					err = errors.Join(err, a.Logout(t.Context()))
					fallthrough
				case "/.well-known/oauth-protected-resource/mcp": // then the server's origin issues the tokens
					if err != nil {
						t.Error(err)
					}
					return
				}
				if err == nil || len(err.Error()) > 2000 {
					t.Errorf("got an error of %d bytes: %.300v", len(fmt.Sprint(err)), err)
				}
			})
		}
	}
}

type endless byte

func (b endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(b)
	}
	return len(p), nil
}
