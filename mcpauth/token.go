package mcpauth

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// The authentication methods of a token endpoint (RFC 7591 section 2, RFC 7523).
const (
	methodNone  = "none"
	methodBasic = "client_secret_basic"
	methodPost  = "client_secret_post"
	methodJWT   = "private_key_jwt"
)

// requestToken sends form and the client's authentication to the token endpoint of c.
//
// It uses clientcredentials since that package takes any grant type and the resource of RFC 8707,
// which a refresh by oauth2.Config cannot send.
func (a *Authenticator) requestToken(ctx context.Context, c *Credentials, form url.Values) (*oauth2.Token, error) {
	// If the request ended with its caller, a new refresh token could be lost.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	cfg := clientcredentials.Config{
		ClientID:       c.ClientID,
		ClientSecret:   c.ClientSecret,
		TokenURL:       c.TokenEndpoint,
		EndpointParams: form,
		AuthStyle:      authStyle(c),
	}
	tok, err := cfg.Token(context.WithValue(ctx, oauth2.HTTPClient, a.net.post))
	if err != nil {
		return nil, tokenError(c.TokenEndpoint, err, append(formSecrets(form), c.secrets()...))
	}
	if t := tok.TokenType; t != "" && !strings.EqualFold(t, "bearer") {
		return nil, errors.New("the token endpoint issued a token of type " + clipped(t, 40) + "; only bearer tokens can be used")
	}
	return tok, nil
}

func authStyle(c *Credentials) oauth2.AuthStyle {
	switch {
	case c.ClientSecret == "", c.AuthMethod == methodNone, c.AuthMethod == methodPost, c.AuthMethod == methodJWT:
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleInHeader
}

// chooseMethod returns how a client authenticates. The default is client_secret_basic (RFC 8414).
func chooseMethod(secret string, supported []string) string {
	if secret == "" {
		return methodNone
	}
	if !slices.Contains(supported, methodBasic) && slices.Contains(supported, methodPost) {
		return methodPost
	}
	return methodBasic
}

// withToken returns c with the tokens of tok. Without a new refresh token the old one stays valid.
func (c *Credentials) withToken(tok *oauth2.Token, asked []string) *Credentials {
	d := c.clone()
	d.AccessToken, d.TokenType, d.Expiry = tok.AccessToken, tok.TokenType, tok.Expiry
	if tok.RefreshToken != "" {
		d.RefreshToken = tok.RefreshToken
	}
	if s, ok := tok.Extra("scope").(string); ok && s != "" {
		d.Scopes = firstScopes(strings.Fields(s))
	} else if asked != nil {
		// RFC 6749 section 5.1: a response without scope grants the requested one.
		d.Scopes = asked
	}
	return d
}
