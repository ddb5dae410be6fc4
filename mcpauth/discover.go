package mcpauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// Discovery is what was found out about who issues tokens for a server.
type Discovery struct {
	// Resource is the RFC 8707 resource indicator.
	Resource string
	// Issuer is the authorization server.
	Issuer string
	// Scopes are those that a login should ask for: the challenge's, else the
	// resource's. Nil means none were named, and none are asked for.
	Scopes []string
	Server AuthServer
	// Guessed is set when no metadata was found and the endpoints are the
	// default ones of the 2025-03-26 specification.
	Guessed bool
}

// AuthServer is the part of an authorization server's metadata (RFC 8414,
// OpenID Connect discovery) that a client acts on. A member of a wrong type
// counts as absent: one odd member must not make a server unusable.
type AuthServer struct {
	Issuer                string
	AuthorizationEndpoint string
	TokenEndpoint         string
	RegistrationEndpoint  string // empty: no dynamic registration
	RevocationEndpoint    string
	ScopesSupported       []string
	AuthMethods           []string // token_endpoint_auth_methods_supported
	ClientIDMetadata      bool     // client_id_metadata_document_supported
	IssParameter          bool     // authorization_response_iss_parameter_supported
	pkce                  []string // code_challenge_methods_supported
}

// challenge is what a 401 or 403 asked for.
type challenge struct {
	metadataURL string
	scopes      []string
	err         string // "insufficient_scope" and the like
	unasked     int    // the HTTP status of an answer that asked for no login; 0 of one that did
}

// readChallenge never fails: a header that cannot be parsed asks for nothing.
func readChallenge(h http.Header) challenge {
	var c challenge
	parsed, err := oauthex.ParseWWWAuthenticate(h.Values("WWW-Authenticate"))
	if err != nil {
		return c
	}
	for _, p := range parsed {
		if p.Scheme != "bearer" {
			continue
		}
		c.metadataURL = or(c.metadataURL, p.Params["resource_metadata"])
		c.err = or(c.err, p.Params["error"])
		if c.scopes == nil {
			c.scopes = strings.Fields(p.Params["scope"])
		}
	}
	return c
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// A discoverer asks in the order of the MCP specification: the address in the
// challenge, the well-known address with the server's path, the one at the
// root; then each form of the authorization server's metadata.
type discoverer struct {
	client      *http.Client
	serverURL   string
	metadataURL string // explicit metadata of the authorization server, or empty
}

func (d *discoverer) discover(ctx context.Context, ch challenge) (*Discovery, error) {
	server, err := url.Parse(d.serverURL)
	if err != nil {
		return nil, fmt.Errorf("mcpauth: the server's address cannot be parsed: %w", errors.Unwrap(err))
	}
	res, err := d.resource(ctx, server, ch)
	if err != nil {
		return nil, err
	}
	found := &Discovery{Resource: res.Resource, Scopes: ch.scopes}
	if len(found.Scopes) == 0 {
		found.Scopes = res.ScopesSupported
	}
	issuer := res.AuthorizationServers[0]
	as, err := d.authServer(ctx, issuer)
	if err != nil {
		return nil, err
	}
	if as == nil {
		found.Guessed = true
		as = defaultEndpoints(issuer)
	}
	found.Issuer, found.Server = as.Issuer, *as
	return found, nil
}

// resource finds the protected resource's metadata (RFC 9728), or makes it up
// as the 2025-03-26 specification says: the server's origin issues its tokens.
func (d *discoverer) resource(ctx context.Context, server *url.URL, ch challenge) (*oauthex.ProtectedResourceMetadata, error) {
	var tried []string
	for _, address := range resourceMetadataURLs(server, ch.metadataURL) {
		var meta oauthex.ProtectedResourceMetadata
		ok, err := d.getJSON(ctx, address, &meta)
		if err != nil {
			tried = append(tried, err.Error())
			continue
		}
		if !ok {
			continue
		}
		if err := checkResource(meta.Resource, server); err != nil {
			return nil, fmt.Errorf("the resource metadata at %s is not for this server: %w", MaskURL(address), err)
		}
		if len(meta.AuthorizationServers) == 0 {
			if d.metadataURL == "" {
				return nil, fmt.Errorf("the resource metadata at %s names no authorization server", MaskURL(address))
			}
			meta.AuthorizationServers = []string{d.metadataURL}
		}
		return &meta, nil
	}
	if ch.metadataURL != "" && len(tried) > 0 && d.metadataURL == "" {
		return nil, fmt.Errorf("no usable resource metadata: %s", strings.Join(tried, "; "))
	}
	origin := url.URL{Scheme: server.Scheme, Host: server.Host}
	return &oauthex.ProtectedResourceMetadata{
		Resource:             canonical(server),
		AuthorizationServers: []string{origin.String()},
	}, nil
}

func resourceMetadataURLs(server *url.URL, fromChallenge string) []string {
	const wellKnown = "/.well-known/oauth-protected-resource"
	var urls []string
	if fromChallenge != "" {
		urls = append(urls, fromChallenge)
	}
	root := url.URL{Scheme: server.Scheme, Host: server.Host, Path: wellKnown}
	if path := strings.Trim(server.Path, "/"); path != "" {
		withPath := root
		withPath.Path += "/" + path
		urls = append(urls, withPath.String())
	}
	return append(urls, root.String())
}

// checkResource holds the resource that the metadata claims against the
// server's address. RFC 9728 wants them equal; servers in the field claim
// their origin or a parent path as well, which is no less safe: a token for it
// is good for the whole of that tree, and another origin stays refused.
func checkResource(claimed string, server *url.URL) error {
	c, err := url.Parse(claimed)
	if err != nil || c.Host == "" {
		return fmt.Errorf("it says %q", clip(claimed, 200))
	}
	have, want := canonical(c), canonical(server)
	if have == want || strings.HasPrefix(want, have+"/") || strings.HasPrefix(want, have+"?") {
		return nil
	}
	return fmt.Errorf("it is for %s, the server is %s", MaskURL(claimed), MaskURL(server.String()))
}

// authServer returns nil if there is no metadata anywhere.
func (d *discoverer) authServer(ctx context.Context, issuer string) (*AuthServer, error) {
	addresses := authServerMetadataURLs(issuer)
	if d.metadataURL != "" {
		addresses = []string{d.metadataURL}
	}
	if len(addresses) == 0 {
		return nil, fmt.Errorf("the authorization server %q is not an address", clip(issuer, 200))
	}
	var tried []error
	for _, address := range addresses {
		var as AuthServer
		ok, err := d.getJSON(ctx, address, &as)
		if err != nil {
			tried = append(tried, err)
			continue
		}
		if !ok {
			continue
		}
		// With an address given by the user there is no issuer to compare with.
		if d.metadataURL == "" && !sameIssuer(as.Issuer, issuer) {
			return nil, fmt.Errorf("the authorization server's metadata at %s is of issuer %s, not of %s (RFC 8414 section 3.3)", MaskURL(address), MaskURL(as.Issuer), MaskURL(issuer))
		}
		if err := as.check(address); err != nil {
			return nil, err
		}
		return &as, nil
	}
	if d.metadataURL != "" && len(tried) == 0 {
		return nil, fmt.Errorf("there is no authorization server metadata at the configured address %s", MaskURL(d.metadataURL))
	}
	return nil, errors.Join(tried...)
}

func authServerMetadataURLs(issuer string) []string {
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" {
		return nil
	}
	at := func(path string) string {
		return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: path}).String()
	}
	path := strings.Trim(u.Path, "/")
	if path == "" {
		return []string{at("/.well-known/oauth-authorization-server"), at("/.well-known/openid-configuration")}
	}
	return []string{
		at("/.well-known/oauth-authorization-server/" + path),
		at("/.well-known/openid-configuration/" + path),
		at("/" + path + "/.well-known/openid-configuration"),
	}
}

func defaultEndpoints(issuer string) *AuthServer {
	base := strings.TrimSuffix(issuer, "/")
	return &AuthServer{
		Issuer:                issuer,
		AuthorizationEndpoint: base + "/authorize",
		TokenEndpoint:         base + "/token",
		RegistrationEndpoint:  base + "/register",
	}
}

// sameIssuer forgives a final slash, as RFC 8414 servers write both.
func sameIssuer(a, b string) bool {
	return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/")
}

// check refuses metadata that would send a person or a secret to a wrong place.
func (a *AuthServer) check(from string) error {
	for name, address := range map[string]string{
		"authorization_endpoint": a.AuthorizationEndpoint,
		"token_endpoint":         a.TokenEndpoint,
		"registration_endpoint":  a.RegistrationEndpoint,
		"revocation_endpoint":    a.RevocationEndpoint,
	} {
		if address == "" {
			continue
		}
		if err := checkSecure(address); err != nil {
			return fmt.Errorf("%s in the metadata at %s: %w", name, MaskURL(from), err)
		}
	}
	if a.TokenEndpoint == "" {
		return fmt.Errorf("the metadata at %s names no token_endpoint", MaskURL(from))
	}
	return nil
}

// checkPKCE is the MCP specification's rule: a client must refuse a server
// that does not say that it supports PKCE.
func (a *AuthServer) checkPKCE() error {
	if slices.Contains(a.pkce, "S256") {
		return nil
	}
	return fmt.Errorf("the authorization server %s does not say that it supports PKCE with S256 (code_challenge_methods_supported is %q)", MaskURL(a.Issuer), a.pkce)
}

// UnmarshalJSON takes each member by itself.
func (a *AuthServer) UnmarshalJSON(data []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return err
	}
	take := func(name string, to any) {
		if raw, ok := members[name]; ok {
			_ = json.Unmarshal(raw, to) // a member of a wrong type counts as absent
		}
	}
	take("issuer", &a.Issuer)
	take("authorization_endpoint", &a.AuthorizationEndpoint)
	take("token_endpoint", &a.TokenEndpoint)
	take("registration_endpoint", &a.RegistrationEndpoint)
	take("revocation_endpoint", &a.RevocationEndpoint)
	take("scopes_supported", &a.ScopesSupported)
	take("token_endpoint_auth_methods_supported", &a.AuthMethods)
	take("client_id_metadata_document_supported", &a.ClientIDMetadata)
	take("authorization_response_iss_parameter_supported", &a.IssParameter)
	take("code_challenge_methods_supported", &a.pkce)
	return nil
}

// metadataLimit bounds a metadata document, in bytes.
const metadataLimit = 1 << 20

// getJSON reports false for an answer of 4xx, or one that is not JSON at all
// (a web page for every address is common): nothing is there.
func (d *discoverer) getJSON(ctx context.Context, address string, to any) (bool, error) {
	if err := checkSecure(address); err != nil {
		return false, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := d.client.Do(req)
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", MaskURL(address), urlCause(err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, metadataLimit+1))
	switch {
	case err != nil:
		return false, fmt.Errorf("reading %s: %w", MaskURL(address), err)
	case len(body) > metadataLimit:
		return false, fmt.Errorf("reading %s: more than %d bytes", MaskURL(address), metadataLimit)
	case resp.StatusCode >= 500:
		return false, fmt.Errorf("reading %s: HTTP %d", MaskURL(address), resp.StatusCode)
	case resp.StatusCode != http.StatusOK:
		return false, nil
	}
	trimmed := strings.TrimSpace(string(body))
	if !strings.HasPrefix(trimmed, "{") || trimmed == "{}" {
		return false, nil
	}
	if err := json.Unmarshal(body, to); err != nil {
		return false, fmt.Errorf("reading %s: %w", MaskURL(address), err)
	}
	return true, nil
}

// checkSecure demands https, or http on this machine.
func checkSecure(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return errors.New("not an address")
	}
	switch {
	case u.Scheme == "https" && u.Host != "":
		return nil
	case u.Scheme == "http" && isLoopback(u.Hostname()):
		return nil
	}
	return fmt.Errorf("%s is neither https nor on this machine", MaskURL(address))
}

func isLoopback(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// urlCause drops the address that net/http puts into its errors: it may carry
// a secret in its query.
func urlCause(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		return ue.Err
	}
	return err
}
