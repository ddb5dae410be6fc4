package mcpauth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/oauth2"
)

// Login gets a new token now, whatever is stored: it asks the server for its challenge, then does
// what a refused request would have done. With neither [Options.Authorize] nor [Options.Grant] its
// error is a [NeedsAuthError].
//
// A token that was got and could not be stored is used all the same, by a alone; the error then
// says that the login ends with the process, and wraps that of the store.
func (a *Authenticator) Login(ctx context.Context) error {
	ch, err := a.probe(ctx)
	if err != nil {
		return err
	}
	return a.login(ctx, ch, ReasonNoCredentials)
}

// probe asks for the server's challenge. A server that gives none, or cannot be reached by GET, may
// still be logged in to.
func (a *Authenticator) probe(ctx context.Context) (challenge, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.serverURL, nil)
	if err != nil {
		return challenge{}, fmt.Errorf("asking %s for its challenge: %w", MaskURL(a.serverURL), err)
	}
	req.Header.Set("Accept", "text/event-stream, application/json")
	resp, err := a.net.probe.Do(req)
	if err != nil {
		return challenge{}, fmt.Errorf("asking %s for its challenge: %w", MaskURL(a.serverURL), urlCause(err))
	}
	resp.Body.Close()
	ch := readChallenge(resp.Header)
	if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		ch.unasked = resp.StatusCode
	}
	a.addScopes(ctx, ch.scopes)
	return ch, nil
}

// Logout revokes the tokens where the authorization server can do that and deletes the credentials.
// What could not be revoked is in the error; the credentials are gone all the same, unless the
// store failed.
func (a *Authenticator) Logout(ctx context.Context) error {
	var revoking error
	err := a.opts.Store.Update(ctx, a.key, func(old *Credentials) (*Credentials, error) {
		revoking = a.revoke(ctx, old)
		return nil, nil
	})
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.cached, a.unsaved, a.refused, a.refusal, a.scopes = nil, false, "", nil, nil
	a.mu.Unlock()
	return revoking
}

func (a *Authenticator) revoke(ctx context.Context, c *Credentials) error {
	if c == nil || c.RevocationEndpoint == "" {
		return nil
	}
	token, hint := c.RefreshToken, "refresh_token" // its end is that of the whole grant
	if token == "" {
		token, hint = c.AccessToken, "access_token"
	}
	form := url.Values{"token": {token}, "token_type_hint": {hint}, "client_id": {c.ClientID}}
	if authStyle(c) == oauth2.AuthStyleInParams && c.ClientSecret != "" {
		form.Set("client_secret", c.ClientSecret)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.RevocationEndpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return fmt.Errorf("revoking the token: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if authStyle(c) == oauth2.AuthStyleInHeader {
		req.SetBasicAuth(url.QueryEscape(c.ClientID), url.QueryEscape(c.ClientSecret))
	}
	resp, err := a.net.post.Do(req)
	if err != nil {
		return fmt.Errorf("revoking the token at %s: %w", MaskURL(c.RevocationEndpoint), urlCause(err))
	}
	resp.Body.Close() // RFC 7009 section 2.2: the status says all
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("revoking the token at %s: HTTP %d%s", MaskURL(c.RevocationEndpoint), resp.StatusCode, redirectNote(resp.StatusCode))
	}
	return nil
}

// login gets a new token for the challenge. Of any number of callers one does it; the others wait
// for that one's outcome, each as long as its ctx lets it.
func (a *Authenticator) login(ctx context.Context, ch challenge, reason Reason) error {
	if a.opts.Authorize == nil && a.opts.Grant == nil {
		return a.needsAuth(reason, nil)
	}
	for {
		done := a.flight.DoChan("login", func() (any, error) {
			err := a.loginNow(ctx, ch)
			return ctx.Err() != nil, err
		})
		select {
		case r := <-done:
			if gone, _ := r.Val.(bool); gone && r.Err != nil && ctx.Err() == nil {
				continue // whoever did it went away: now it is our turn
			}
			return r.Err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (a *Authenticator) loginNow(ctx context.Context, ch challenge) error {
	found, err := a.discover.discover(ctx, ch)
	if err != nil {
		return fmt.Errorf("finding out how to log in to %s: %w", MaskURL(a.serverURL), err)
	}
	stored, err := a.Credentials(ctx)
	if err != nil && !absent(err) {
		return err
	}
	c := &Credentials{
		ServerURL:          a.serverURL,
		Resource:           found.Resource,
		Issuer:             found.Issuer,
		TokenEndpoint:      found.Server.TokenEndpoint,
		RevocationEndpoint: found.Server.RevocationEndpoint,
	}
	if stored != nil && sameIssuer(stored.Issuer, found.Issuer) {
		c.Scopes = stored.Scopes // a step up asks for these as well
	}
	var fresh *Credentials
	if a.opts.Grant != nil {
		c.Scopes = a.scopesFor(ctx, found, c.Scopes)
		c.AuthMethod = chooseMethod(a.opts.Grant.ClientSecret, found.Server.AuthMethods)
		fresh, err = a.grantToken(ctx, c)
	} else {
		fresh, err = a.authorizeCode(ctx, found, c, stored)
	}
	switch {
	case err != nil && found.Guessed && len(found.tried) > 0:
		return fmt.Errorf("logging in to %s by the default endpoints, as no metadata could be used (%w): %w", MaskURL(a.serverURL), joinedErrors(found.tried), err)
	case err != nil && found.Guessed && ch.unasked != 0:
		return fmt.Errorf("logging in to %s, which answered HTTP %d without asking for a login and does not say that it has any: %w", MaskURL(a.serverURL), ch.unasked, err)
	case err != nil:
		return fmt.Errorf("logging in to %s: %w", MaskURL(a.serverURL), err)
	}
	return a.store(ctx, fresh)
}

// An unsavedError says that a login was made and could not be stored.
type unsavedError struct{ err error }

func (e *unsavedError) Error() string {
	return fmt.Sprintf("the login was made and is lost when this process ends: %v", e.err)
}

func (e *unsavedError) Unwrap() error { return e.err }

// store keeps fresh credentials; where the store fails they live on in memory and the error is an
// unsavedError.
func (a *Authenticator) store(ctx context.Context, fresh *Credentials) error {
	a.remember(fresh, false)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), updateTimeout)
	defer cancel()
	err := a.opts.Store.Update(ctx, a.key, func(*Credentials) (*Credentials, error) { return fresh, nil })
	if err != nil {
		return &unsavedError{err}
	}
	a.remember(fresh, true)
	return nil
}

// authorizeCode is the authorization code flow with PKCE (OAuth 2.1).
func (a *Authenticator) authorizeCode(ctx context.Context, found *Discovery, c, stored *Credentials) (*Credentials, error) {
	if !found.Guessed {
		if err := found.Server.checkPKCE(); err != nil {
			return nil, err
		}
	}
	if found.Server.AuthorizationEndpoint == "" {
		return nil, fmt.Errorf("the authorization server %s has no authorization endpoint", MaskURL(found.Issuer))
	}
	if err := a.client(ctx, found, c, stored); err != nil {
		return nil, err
	}
	scopes := a.scopesFor(ctx, found, c.Scopes)
	verifier, state := oauth2.GenerateVerifier(), rand.Text()
	cfg := oauth2.Config{
		ClientID:    c.ClientID,
		Endpoint:    oauth2.Endpoint{AuthURL: found.Server.AuthorizationEndpoint},
		RedirectURL: a.opts.RedirectURL,
		Scopes:      scopes,
	}
	answer, err := a.opts.Authorize(ctx, &AuthorizationRequest{
		URL:         cfg.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("resource", c.Resource)),
		RedirectURL: a.opts.RedirectURL,
		State:       state,
	})
	var refused *RefusedError
	if errors.As(err, &refused) {
		if foreign := checkIss(refused.Iss, &found.Server); foreign != nil {
			return nil, foreign // and not a word of what it says
		}
	}
	if err != nil {
		return nil, err
	}
	if answer == nil || subtle.ConstantTimeCompare([]byte(answer.State), []byte(state)) != 1 {
		return nil, errors.New("the answer belongs to another login (its state does not match)")
	}
	if err := checkIss(answer.Iss, &found.Server); err != nil {
		return nil, err
	}
	tok, err := a.requestToken(ctx, c, url.Values{
		"grant_type":    {"authorization_code"},
		"code":          {answer.Code},
		"redirect_uri":  {a.opts.RedirectURL},
		"code_verifier": {verifier},
		"resource":      {c.Resource},
	})
	if err != nil {
		return nil, err
	}
	return c.withToken(tok, scopes), nil
}

// checkIss is RFC 9207 section 2.4: it keeps a code of one authorization server from being sent to
// another. Issuers are compared letter by letter. A server may name itself without having said that
// it does.
func checkIss(iss string, server *AuthServer) error {
	switch {
	case iss == "" && !server.IssParameter:
		return nil
	case iss == "":
		return fmt.Errorf("the authorization server %s says that it names itself in its answers (iss), and did not", MaskURL(server.Issuer))
	case iss != server.Issuer:
		return fmt.Errorf("the answer came from issuer %s, expected %s", MaskURL(iss), MaskURL(server.Issuer))
	}
	return nil
}

// client puts a client id into c: the configured one, else a metadata document's, else the one
// registered before, else a new registration.
func (a *Authenticator) client(ctx context.Context, found *Discovery, c, stored *Credentials) error {
	c.RedirectURL = a.opts.RedirectURL
	switch {
	case a.opts.ClientID != "":
		c.ClientID, c.ClientSecret = a.opts.ClientID, a.opts.ClientSecret
		c.AuthMethod = chooseMethod(c.ClientSecret, found.Server.AuthMethods)
		return nil
	case a.opts.ClientMetadataURL != "" && found.Server.ClientIDMetadata:
		c.ClientID, c.AuthMethod = a.opts.ClientMetadataURL, methodNone
		return nil
	case a.reusable(stored, found):
		c.ClientID, c.ClientSecret, c.AuthMethod = stored.ClientID, stored.ClientSecret, stored.AuthMethod
		c.ClientSecretExpiry = stored.ClientSecretExpiry
		return nil
	}
	return a.register(ctx, found, c)
}

func (a *Authenticator) reusable(stored *Credentials, found *Discovery) bool {
	return stored != nil && stored.ClientID != "" && stored.ClientID != a.opts.ClientMetadataURL &&
		stored.Issuer == found.Issuer && stored.RedirectURL == a.opts.RedirectURL &&
		(stored.ClientSecretExpiry.IsZero() || a.now().Before(stored.ClientSecretExpiry))
}

// scopesFor is what a login asks for: the configured scopes, else what the server named; what was
// granted or challenged before is kept, so that a step up does not take away; and offline_access
// where the server knows it, since without it some servers give no refresh token.
func (a *Authenticator) scopesFor(ctx context.Context, found *Discovery, granted []string) []string {
	scopes := found.Scopes
	if a.opts.Scopes != nil {
		scopes = a.opts.Scopes
	}
	scopes = union(firstScopes(granted), union(a.wantedScopes(nil), a.bounded(ctx, scopes)))
	scopes = a.bounded(ctx, scopes)
	if a.opts.Grant == nil && slices.Contains(found.Server.ScopesSupported, "offline_access") {
		scopes = union(scopes, []string{"offline_access"})
	}
	return scopes
}

const (
	// maxScopes bounds how many scopes a server can have asked for.
	maxScopes = 256
	// maxScopeBytes bounds one of them.
	maxScopeBytes = 256
)

// firstScopes are those within the bounds.
func firstScopes(scopes []string) []string {
	scopes = slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { return len(s) > maxScopeBytes })
	return scopes[:min(len(scopes), maxScopes)]
}

// bounded is firstScopes, and logs what is left out.
func (a *Authenticator) bounded(ctx context.Context, scopes []string) []string {
	kept := firstScopes(scopes)
	if left := len(scopes) - len(kept); left > 0 {
		a.opts.Logger.WarnContext(ctx, "mcpauth: the server names more scopes than are asked for", "server", MaskURL(a.serverURL), "most", maxScopes, "left out", left)
	}
	return kept
}

func (a *Authenticator) addScopes(ctx context.Context, scopes []string) {
	scopes = a.bounded(ctx, scopes)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.scopes = firstScopes(union(a.scopes, scopes))
}

func (a *Authenticator) wantedScopes(also []string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return union(also, a.scopes)
}

func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
