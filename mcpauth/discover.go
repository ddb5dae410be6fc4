package mcpauth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
)

// A Discovery is the result of discovering a server's authorization server.
type Discovery struct {
	Resource string // the resource indicator (RFC 8707)
	Issuer   string // the authorization server
	// Scopes are the scopes to request: those of the challenge, or those of the resource's metadata.
	Scopes []string
	Server AuthServer
	// Guessed reports that there is no metadata and the endpoints are the default ones of MCP
	// 2025-03-26.
	Guessed bool
	tried   []error // the failures before
}

// AuthServer is the part of an authorization server's metadata (RFC 8414, OpenID Connect Discovery)
// that a client uses. A member of a wrong type counts as absent.
type AuthServer struct {
	Issuer                string
	AuthorizationEndpoint string
	TokenEndpoint         string
	RegistrationEndpoint  string // empty means no dynamic registration
	RevocationEndpoint    string
	ScopesSupported       []string
	AuthMethods           []string // token_endpoint_auth_methods_supported
	ClientIDMetadata      bool     // client_id_metadata_document_supported
	IssParameter          bool     // authorization_response_iss_parameter_supported
	pkce                  []string // code_challenge_methods_supported
}

// A discoverer proceeds in the order of the MCP specification: the URL in the challenge, the well-known
// URL with the server's path, the one at the root; then each form of the authorization server's
// metadata.
type discoverer struct {
	net         *network
	serverURL   string
	metadataURL string // the configured metadata of the authorization server, or empty
}

// maxAuthServers limits how many of a resource's authorization servers are tried.
const maxAuthServers = 3

func (d *discoverer) discover(ctx context.Context, ch challenge) (*Discovery, error) {
	server, err := url.Parse(d.serverURL)
	if err != nil {
		return nil, fmt.Errorf("mcpauth: the server's address cannot be parsed: %w", errors.Unwrap(err))
	}
	res, tried, err := d.resource(ctx, server, ch)
	if err != nil {
		return nil, err
	}
	found := &Discovery{Resource: res.Resource, Scopes: ch.scopes}
	if len(found.Scopes) == 0 {
		found.Scopes = res.ScopesSupported
	}
	servers := res.AuthorizationServers
	if d.metadataURL != "" {
		servers = servers[:1]
	}
	// The first usable one.
	for i, issuer := range servers {
		if i == maxAuthServers {
			tried = append(tried, fmt.Errorf("%d more authorization servers were not tried", len(servers)-i))
			break
		}
		as, err := d.authServer(ctx, issuer)
		if err == nil && as == nil {
			found.Guessed = true
			as = defaultEndpoints(issuer)
			err = d.check(ctx, as, issuer)
		}
		if err == nil {
			found.Issuer, found.Server, found.tried = as.Issuer, *as, tried
			return found, nil
		}
		found.Guessed = false
		tried = append(tried, err)
	}
	return nil, joinedErrors(tried)
}

// joinedErrors is like [errors.Join] in one line.
type joinedErrors []error

func (e joinedErrors) Error() string {
	texts := make([]string, len(e))
	for i, err := range e {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (e joinedErrors) Unwrap() []error { return e }

// resourceMetadata is the part of a protected resource's metadata (RFC 9728) that a client uses. A
// member of a wrong type counts as absent.
type resourceMetadata struct {
	Resource             string
	AuthorizationServers []string
	ScopesSupported      []string
}

// UnmarshalJSON decodes each member by itself.
func (m *resourceMetadata) UnmarshalJSON(data []byte) error {
	return unmarshalMembers(data, map[string]any{
		"resource":              &m.Resource,
		"authorization_servers": &m.AuthorizationServers,
		"scopes_supported":      &m.ScopesSupported,
	})
}

// unmarshalMembers decodes the known members of an object. The value of one with a wrong type does not
// change.
func unmarshalMembers(data []byte, known map[string]any) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return err
	}
	for name, to := range known {
		if raw, ok := members[name]; ok {
			v := reflect.ValueOf(to).Elem()
			old := v.Interface()
			if json.Unmarshal(raw, to) != nil {
				v.Set(reflect.ValueOf(old)) // it may have been decoded in part
			}
		}
	}
	return nil
}

// resource returns the protected resource's metadata (RFC 9728) or, without any, that of MCP
// 2025-03-26: the server's origin issues its tokens. tried are the failures before.
func (d *discoverer) resource(ctx context.Context, server *url.URL, ch challenge) (res *resourceMetadata, tried []error, err error) {
	for _, address := range resourceMetadataURLs(server, ch.metadataURL) {
		var meta resourceMetadata
		ok, err := d.net.getJSON(ctx, address, &meta)
		if err != nil {
			tried = append(tried, err)
			continue
		}
		if !ok {
			continue
		}
		if err := checkResource(meta.Resource, server); err != nil {
			return nil, nil, fmt.Errorf("the resource metadata at %s is not for this server: %w", MaskURL(address), err)
		}
		if len(meta.AuthorizationServers) == 0 {
			if d.metadataURL == "" {
				return nil, nil, fmt.Errorf("the resource metadata at %s names no authorization server", MaskURL(address))
			}
			meta.AuthorizationServers = []string{d.metadataURL}
		}
		return &meta, nil, nil
	}
	if ch.metadataURL != "" && len(tried) > 0 && d.metadataURL == "" {
		return nil, nil, fmt.Errorf("no usable resource metadata: %w", joinedErrors(tried))
	}
	origin := url.URL{Scheme: server.Scheme, Host: server.Host}
	return &resourceMetadata{
		Resource:             canonical(server),
		AuthorizationServers: []string{origin.String()},
	}, tried, nil
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

// checkResource compares the resource in the metadata with the server's URL. RFC 9728 demands that
// they are equal. Existing servers also name their origin or a parent path, which is as safe: a token
// for it is valid for the whole tree, and no other origin is accepted.
func checkResource(claimed string, server *url.URL) error {
	c, err := url.Parse(claimed)
	if err != nil || c.Host == "" {
		return fmt.Errorf("it says %q", clipped(claimed, 200))
	}
	have, want := canonical(c), canonical(server)
	if have == want || strings.HasPrefix(want, have+"/") || strings.HasPrefix(want, have+"?") {
		return nil
	}
	return fmt.Errorf("it is for %s, the server is %s", MaskURL(claimed), MaskURL(server.String()))
}

// authServer returns nil if there is no metadata.
func (d *discoverer) authServer(ctx context.Context, issuer string) (*AuthServer, error) {
	addresses := authServerMetadataURLs(issuer)
	if d.metadataURL != "" {
		addresses = []string{d.metadataURL}
	}
	if len(addresses) == 0 {
		return nil, fmt.Errorf("the authorization server %q is not an address", clipped(issuer, 200))
	}
	var tried []error
	for _, address := range addresses {
		var as AuthServer
		ok, err := d.net.getJSON(ctx, address, &as)
		if err != nil {
			tried = append(tried, err)
			continue
		}
		if !ok {
			continue
		}
		// With a configured URL there is no issuer to compare with.
		if d.metadataURL == "" && !sameIssuer(as.Issuer, issuer) {
			return nil, fmt.Errorf("the authorization server's metadata at %s is of issuer %s, not of %s (RFC 8414 section 3.3)", MaskURL(address), MaskURL(as.Issuer), MaskURL(issuer))
		}
		if err := d.check(ctx, &as, address); err != nil {
			return nil, err
		}
		as.Issuer = cmp.Or(as.Issuer, d.metadataURL) // tells apart those that name none
		return &as, nil
	}
	if d.metadataURL != "" && len(tried) == 0 {
		return nil, fmt.Errorf("there is no authorization server metadata at the configured address %s", MaskURL(d.metadataURL))
	}
	if len(tried) == 0 {
		return nil, nil
	}
	return nil, joinedErrors(tried)
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

// sameIssuer ignores a final slash, which servers write or not.
func sameIssuer(a, b string) bool {
	return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/")
}

// check refuses endpoints to which no person or secret may be sent.
func (d *discoverer) check(ctx context.Context, a *AuthServer, from string) error {
	for _, e := range []struct{ name, address string }{
		{"authorization_endpoint", a.AuthorizationEndpoint},
		{"token_endpoint", a.TokenEndpoint},
		{"registration_endpoint", a.RegistrationEndpoint},
		{"revocation_endpoint", a.RevocationEndpoint},
	} {
		if e.address == "" {
			continue
		}
		u, err := url.Parse(e.address)
		if err != nil {
			return fmt.Errorf("%s in the metadata at %s: not an address", e.name, MaskURL(from))
		}
		if err := d.net.reach.check(ctx, u); err != nil {
			return fmt.Errorf("%s in the metadata at %s: %w", e.name, MaskURL(from), err)
		}
	}
	if a.TokenEndpoint == "" {
		return fmt.Errorf("the metadata at %s names no token_endpoint", MaskURL(from))
	}
	return nil
}

// checkPKCE refuses a server that does not announce PKCE, as the MCP specification demands.
func (a *AuthServer) checkPKCE() error {
	if slices.Contains(a.pkce, "S256") {
		return nil
	}
	return fmt.Errorf("the authorization server %s does not say that it supports PKCE with S256 (code_challenge_methods_supported is %s)", MaskURL(a.Issuer), clipped(fmt.Sprintf("%q", a.pkce), 200))
}

// UnmarshalJSON decodes each member by itself.
func (a *AuthServer) UnmarshalJSON(data []byte) error {
	return unmarshalMembers(data, map[string]any{
		"issuer":                                         &a.Issuer,
		"authorization_endpoint":                         &a.AuthorizationEndpoint,
		"token_endpoint":                                 &a.TokenEndpoint,
		"registration_endpoint":                          &a.RegistrationEndpoint,
		"revocation_endpoint":                            &a.RevocationEndpoint,
		"scopes_supported":                               &a.ScopesSupported,
		"token_endpoint_auth_methods_supported":          &a.AuthMethods,
		"client_id_metadata_document_supported":          &a.ClientIDMetadata,
		"authorization_response_iss_parameter_supported": &a.IssParameter,
		"code_challenge_methods_supported":               &a.pkce,
	})
}
