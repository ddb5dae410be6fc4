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

// Discovery is what was found out about who issues tokens for a server.
type Discovery struct {
	// Resource is the RFC 8707 resource indicator.
	Resource string
	// Issuer is the authorization server.
	Issuer string
	// Scopes are those that a login should ask for: the challenge's, else the resource's. Nil means
	// none were named, and none are asked for.
	Scopes []string
	Server AuthServer
	// Guessed is set when no metadata was found and the endpoints are the default ones of the
	// 2025-03-26 specification.
	Guessed bool
	tried   []error // what went wrong on the way
}

// AuthServer is the part of an authorization server's metadata (RFC 8414, OpenID Connect discovery)
// that a client acts on. A member of a wrong type counts as absent: one odd member must not make a
// server unusable.
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

// A discoverer asks in the order of the MCP specification: the address in the challenge, the
// well-known address with the server's path, the one at the root; then each form of the
// authorization server's metadata.
type discoverer struct {
	net         *network
	serverURL   string
	metadataURL string // explicit metadata of the authorization server, or empty
}

// maxAuthServers bounds how many of a resource's authorization servers are looked at.
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
	// The first that can be used: one that cannot must not spoil the others.
	for i, issuer := range servers {
		if i == maxAuthServers {
			tried = append(tried, fmt.Errorf("%d more authorization servers were not looked at", len(servers)-i))
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

// joinedErrors is [errors.Join] in one line.
type joinedErrors []error

func (e joinedErrors) Error() string {
	texts := make([]string, len(e))
	for i, err := range e {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (e joinedErrors) Unwrap() []error { return e }

// resourceMetadata is the part of a protected resource's metadata (RFC 9728) that a client acts on.
// A member of a wrong type counts as absent, as in AuthServer.
type resourceMetadata struct {
	Resource             string
	AuthorizationServers []string
	ScopesSupported      []string
}

// UnmarshalJSON takes each member by itself.
func (m *resourceMetadata) UnmarshalJSON(data []byte) error {
	return unmarshalMembers(data, map[string]any{
		"resource":              &m.Resource,
		"authorization_servers": &m.AuthorizationServers,
		"scopes_supported":      &m.ScopesSupported,
	})
}

// unmarshalMembers decodes an object's members that it knows. Of one with a wrong type the value
// stays what it was.
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
				v.Set(reflect.ValueOf(old)) // not the half of it
			}
		}
	}
	return nil
}

// resource finds the protected resource's metadata (RFC 9728), or makes it up as the 2025-03-26
// specification says: the server's origin issues its tokens. tried is what went wrong on the way.
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

// checkResource holds the resource that the metadata claims against the server's address. RFC 9728
// wants them equal; servers in the field claim their origin or a parent path as well, which is no
// less safe: a token for it is good for the whole of that tree, and another origin stays refused.
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
		ok, err := d.net.getJSON(ctx, address, &as)
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
		if err := d.check(ctx, &as, address); err != nil {
			return nil, err
		}
		as.Issuer = cmp.Or(as.Issuer, d.metadataURL) // else it would be one with every other that names none
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

// sameIssuer forgives a final slash, as RFC 8414 servers write both.
func sameIssuer(a, b string) bool {
	return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/")
}

// check refuses metadata that would send a person or a secret to a wrong place.
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

// checkPKCE is the MCP specification's rule: a client must refuse a server that does not say that
// it supports PKCE.
func (a *AuthServer) checkPKCE() error {
	if slices.Contains(a.pkce, "S256") {
		return nil
	}
	return fmt.Errorf("the authorization server %s does not say that it supports PKCE with S256 (code_challenge_methods_supported is %s)", MaskURL(a.Issuer), clip(fmt.Sprintf("%q", a.pkce), 200))
}

// UnmarshalJSON takes each member by itself.
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
