package mcpauth

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// A registration is the metadata of a client (RFC 7591 section 2).
type registration struct {
	ClientName              string   `json:"client_name"`
	RedirectURIs            []string `json:"redirect_uris"`
	GrantTypes              []string `json:"grant_types"`
	ResponseTypes           []string `json:"response_types"`
	TokenEndpointAuthMethod string   `json:"token_endpoint_auth_method"`
	ApplicationType         string   `json:"application_type"`
	Scope                   string   `json:"scope,omitempty"`
}

// registered is the response to a registration or its error (RFC 7591 section 3.2). A member of a
// wrong type counts as absent.
type registered struct {
	ClientID, ClientSecret, AuthMethod string
	SecretExpiresAt                    int64 // in seconds since 1970; 0 means never
	Error, Description                 string
}

// UnmarshalJSON decodes each member by itself.
func (r *registered) UnmarshalJSON(data []byte) error {
	return unmarshalMembers(data, map[string]any{
		"client_id":                  &r.ClientID,
		"client_secret":              &r.ClientSecret,
		"token_endpoint_auth_method": &r.AuthMethod,
		"client_secret_expires_at":   &r.SecretExpiresAt,
		"error":                      &r.Error,
		"error_description":          &r.Description,
	})
}

// register registers a client dynamically (RFC 7591).
func (a *Authenticator) register(ctx context.Context, found *Discovery, c *Credentials) error {
	endpoint := found.Server.RegistrationEndpoint
	if endpoint == "" {
		return fmt.Errorf("the authorization server %s does not support dynamic registration: register a client there and configure its ID", MaskURL(found.Issuer))
	}
	meta := &registration{
		ClientName:              a.opts.ClientName,
		RedirectURIs:            []string{a.opts.RedirectURL},
		GrantTypes:              []string{"authorization_code", "refresh_token"},
		ResponseTypes:           []string{"code"},
		TokenEndpointAuthMethod: registrationMethod(found.Server.AuthMethods),
		ApplicationType:         applicationType(a.opts.RedirectURL),
		Scope:                   strings.Join(a.scopesFor(ctx, found, nil), " "),
	}
	got, err := a.net.register(ctx, endpoint, meta)
	if err != nil {
		return fmt.Errorf("registering a client at %s (a configured client ID avoids this): %w", MaskURL(endpoint), err)
	}
	c.ClientID, c.ClientSecret, c.AuthMethod = got.ClientID, got.ClientSecret, cmp.Or(got.AuthMethod, meta.TokenEndpointAuthMethod)
	if got.SecretExpiresAt > 0 {
		c.ClientSecretExpiry = time.Unix(got.SecretExpiresAt, 0)
	}
	return nil
}

func (n *network) register(ctx context.Context, endpoint string, meta *registration) (*registered, error) {
	data, err := json.Marshal(meta)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(data))
	if err != nil {
		return nil, errors.New("not an address")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := n.post.Do(req)
	if err != nil {
		return nil, urlCause(err)
	}
	body, err := readBody(resp)
	if err != nil {
		return nil, err
	}
	var got registered
	decoding := json.Unmarshal(body, &got) // its text quotes at most one character
	switch {
	case resp.StatusCode != http.StatusCreated && resp.StatusCode != http.StatusOK:
		text := fmt.Sprintf("HTTP %d %s%s", resp.StatusCode, http.StatusText(resp.StatusCode), redirectNote(resp.StatusCode))
		if got.Error != "" {
			text += " " + clipped(got.Error, 100)
		}
		if got.Description != "" {
			text += " (" + clipped(got.Description, 300) + ")"
		}
		return nil, errors.New(text)
	case decoding != nil:
		return nil, fmt.Errorf("the response is not JSON: %w", decoding)
	case got.ClientID == "":
		return nil, errors.New("the response has no client_id")
	}
	return &got, nil
}

// registrationMethod prefers a public client, since a secret on a person's machine protects nothing.
func registrationMethod(supported []string) string {
	if len(supported) == 0 || slices.Contains(supported, methodNone) {
		return methodNone
	}
	return chooseMethod("a secret to come", supported)
}

func applicationType(redirectURL string) string {
	if u, err := url.Parse(redirectURL); err == nil && u.Scheme == "https" && !isLoopback(u.Hostname()) {
		return "web"
	}
	return "native"
}
