package mcpauth

import (
	"cmp"
	"context"
	"crypto"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// A ClientCredentialsGrant gets tokens without a person (RFC 6749 section 4.4, MCP SEP-1046). Set
// either ClientSecret or PrivateKeyPEM.
type ClientCredentialsGrant struct {
	ClientID     string // required
	ClientSecret string
	// PrivateKeyPEM is a PKCS #8, PKCS #1 or SEC 1 key that signs the client's assertion
	// (private_key_jwt, RFC 7523).
	PrivateKeyPEM []byte
	// Algorithm is the JWS name of the signature. Empty means RS256, ES256, ES384, ES512 or EdDSA,
	// depending on the key.
	Algorithm string
	// KeyID is the kid in the assertion's header. Empty means none.
	KeyID string
}

func (g *ClientCredentialsGrant) validate() error {
	switch {
	case g == nil:
		return nil
	case g.ClientID == "":
		return errors.New("mcpauth: Grant.ClientID is empty")
	case (g.ClientSecret == "") == (len(g.PrivateKeyPEM) == 0):
		return errors.New("mcpauth: Grant wants one of ClientSecret and PrivateKeyPEM")
	}
	if g.ClientSecret == "" {
		_, _, err := g.signer()
		return err
	}
	return nil
}

func (g *ClientCredentialsGrant) signer() (crypto.PrivateKey, jwt.SigningMethod, error) {
	var key crypto.PrivateKey
	name := g.Algorithm
	if k, err := jwt.ParseRSAPrivateKeyFromPEM(g.PrivateKeyPEM); err == nil {
		key, name = k, cmp.Or(name, "RS256")
	} else if k, err := jwt.ParseECPrivateKeyFromPEM(g.PrivateKeyPEM); err == nil {
		key, name = k, cmp.Or(name, map[int]string{256: "ES256", 384: "ES384", 521: "ES512"}[k.Params().BitSize])
	} else if k, err := jwt.ParseEdPrivateKeyFromPEM(g.PrivateKeyPEM); err == nil {
		key, name = k, cmp.Or(name, "EdDSA")
	} else {
		// The parsers' errors may quote the key's bytes.
		return nil, nil, errors.New("mcpauth: Grant.PrivateKeyPEM is no RSA, EC or Ed25519 private key in PEM form")
	}
	method := jwt.GetSigningMethod(name)
	if method == nil || strings.HasPrefix(name, "HS") || name == "none" {
		return nil, nil, fmt.Errorf("mcpauth: Grant.Algorithm %q cannot sign with a private key", name)
	}
	return key, method, nil
}

// assertionLife is the time until an assertion expires.
const assertionLife = 5 * time.Minute

func (g *ClientCredentialsGrant) assertion(audience string, now time.Time) (string, error) {
	key, method, err := g.signer()
	if err != nil {
		return "", err
	}
	tok := jwt.NewWithClaims(method, jwt.RegisteredClaims{
		Issuer:    g.ClientID,
		Subject:   g.ClientID,
		Audience:  jwt.ClaimStrings{audience},
		IssuedAt:  jwt.NewNumericDate(now),
		ExpiresAt: jwt.NewNumericDate(now.Add(assertionLife)),
		ID:        rand.Text(),
	})
	if g.KeyID != "" {
		tok.Header["kid"] = g.KeyID
	}
	s, err := tok.SignedString(key)
	if err != nil {
		return "", fmt.Errorf("signing the client's assertion: %w", err)
	}
	return s, nil
}

// grantToken gets a token with the client's own credentials from the token endpoint of c.
func (a *Authenticator) grantToken(ctx context.Context, c *Credentials) (*Credentials, error) {
	g := a.opts.Grant
	form := url.Values{"grant_type": {"client_credentials"}}
	if c.Resource != "" {
		form.Set("resource", c.Resource)
	}
	scopes := a.wantedScopes(c.Scopes)
	if len(scopes) > 0 {
		form.Set("scope", strings.Join(scopes, " "))
	}
	asking := c.clone()
	asking.ClientID, asking.ClientSecret = g.ClientID, g.ClientSecret
	if g.ClientSecret == "" {
		asking.AuthMethod = methodJWT
		assertion, err := g.assertion(c.Issuer, a.now())
		if err != nil {
			return nil, err
		}
		form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		form.Set("client_assertion", assertion)
	}
	tok, err := a.requestToken(ctx, asking, form)
	if err != nil {
		return nil, err
	}
	got := c.withToken(tok, scopes)
	got.ClientID = g.ClientID
	return got, nil
}
