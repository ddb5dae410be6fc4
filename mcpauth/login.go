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

// Login gets a new token, whatever is stored. It asks the server for its challenge and proceeds as
// after a refused request. With neither [Options.Authorize] nor [Options.Grant] the error is a
// [NeedsAuthError].
//
// If the token cannot be stored, a uses it nevertheless. The error then says that the login is lost
// when the process ends, and wraps the error of the store.
func (a *Authenticator) Login(ctx context.Context) error {
	ch, err := a.probe(ctx)
	if err != nil {
		return err
	}
	return a.login(ctx, ch, ReasonNoCredentials)
}

// probe gets the server's challenge. Without one a login is still possible.
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

// Logout revokes the tokens if the authorization server supports it, and deletes the credentials. It
// deletes them even if revoking fails, and then returns that error.
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
	token, hint := c.RefreshToken, "refresh_token" // revoking it revokes the grant
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

// login gets a new token for the challenge. Concurrent callers share one login.
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
				continue // the caller that ran it went away
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
		c.Scopes = stored.Scopes // request them again when stepping up
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

// An unsavedError reports that a login could not be stored.
type unsavedError struct{ err error }

func (e *unsavedError) Error() string {
	return fmt.Sprintf("the login succeeded and is lost when this process ends: %v", e.err)
}

func (e *unsavedError) Unwrap() error { return e.err }

// store stores fresh credentials. If that fails they stay in memory and the error is an unsavedError.
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
			return nil, foreign // without the text of the response
		}
	}
	if err != nil {
		return nil, err
	}
	if answer == nil || subtle.ConstantTimeCompare([]byte(answer.State), []byte(state)) != 1 {
		return nil, errors.New("the response belongs to another login (its state does not match)")
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

// checkIss checks the issuer of a response (RFC 9207 section 2.4), so that a code of one
// authorization server is not sent to another.
func checkIss(iss string, server *AuthServer) error {
	switch {
	case iss == "" && !server.IssParameter:
		return nil
	case iss == "":
		return fmt.Errorf("the authorization server %s announces iss in its responses and did not send it", MaskURL(server.Issuer))
	case iss != server.Issuer:
		return fmt.Errorf("the response is from issuer %s, want %s", MaskURL(iss), MaskURL(server.Issuer))
	}
	return nil
}

// client sets the client ID of c: the configured one, the URL of the metadata document, the one
// registered before, or one from a new registration.
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

// scopesFor returns the scopes that a login requests: the configured ones or those that the server
// named, those granted or challenged before, so that stepping up loses none, and offline_access if
// the server supports it, since some servers issue no refresh token without it.
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
	maxScopes     = 256 // limits the number of scopes that are requested
	maxScopeBytes = 256 // limits the length of each
)

// firstScopes returns the scopes within the limits.
func firstScopes(scopes []string) []string {
	scopes = slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { return len(s) > maxScopeBytes })
	return scopes[:min(len(scopes), maxScopes)]
}

// bounded is firstScopes and logs how many are left out.
func (a *Authenticator) bounded(ctx context.Context, scopes []string) []string {
	kept := firstScopes(scopes)
	if left := len(scopes) - len(kept); left > 0 {
		a.opts.Logger.WarnContext(ctx, "mcpauth: the server names more scopes than are requested", "server", MaskURL(a.serverURL), "most", maxScopes, "left out", left)
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
