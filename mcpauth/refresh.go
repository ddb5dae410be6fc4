package mcpauth

import (
	"context"
	"errors"
	"net/url"
	"time"
)

// Token returns a valid access token and refreshes it if it is about to expire. The error is a
// [NeedsAuthError] if a person must log in, a [StoreError] if the store fails, or the error of the
// refresh. If a refresh fails while the token is still valid, Token returns the token.
//
// Concurrent callers share one refresh, as do processes with the same store.
func (a *Authenticator) Token(ctx context.Context) (*Credentials, error) {
	c, err := a.Credentials(ctx)
	if errors.Is(err, ErrNotFound) {
		return nil, a.needsAuth(ReasonNoCredentials, nil)
	}
	if err != nil {
		return nil, err
	}
	if c.Valid(a.now().Add(a.opts.RefreshBefore)) {
		return c, nil
	}
	return a.refresh(ctx, c)
}

// updateTimeout limits an update of the store whose caller may have left: waiting for the lock and one
// request.
const updateTimeout = 2 * time.Minute

// refresh returns new credentials, or old if those are still valid and refreshing fails.
func (a *Authenticator) refresh(ctx context.Context, old *Credentials) (*Credentials, error) {
	ch := a.flight.DoChan("refresh "+old.AccessToken, func() (any, error) {
		// It goes on without the caller.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), updateTimeout)
		defer cancel()
		return a.refreshLocked(ctx, old)
	})
	var c *Credentials
	var err error
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case r := <-ch:
		c, _ = r.Val.(*Credentials)
		err = r.Err
	}
	if err == nil {
		return c.clone(), nil
	}
	if old.Valid(a.now()) {
		a.opts.Logger.WarnContext(ctx, "mcpauth: token not refreshed; the old one is still valid", "server", MaskURL(a.serverURL), "error", err)
		return old, nil
	}
	return nil, err
}

// refreshLocked refreshes under the store's lock. If the token was refreshed meanwhile, it returns the
// new one.
func (a *Authenticator) refreshLocked(ctx context.Context, old *Credentials) (fresh *Credentials, err error) {
	err = a.opts.Store.Update(ctx, a.key, func(stored *Credentials) (*Credentials, error) {
		current := a.newest(stored, old)
		if current.AccessToken != old.AccessToken && current.Valid(a.now()) {
			fresh = current
			return current, nil
		}
		fresh, err = a.exchangeRefresh(ctx, current)
		if err != nil {
			return nil, err // the stored credentials stay
		}
		a.remember(fresh, false) // the old refresh token may be invalid already
		return fresh, nil
	})
	if err == nil {
		a.remember(fresh, true)
		return fresh, nil
	}
	var se *StoreError
	if fresh != nil && errors.As(err, &se) {
		// The next refresh stores it.
		a.opts.Logger.ErrorContext(ctx, "mcpauth: a refreshed token could not be stored", "server", MaskURL(a.serverURL), "error", err)
		return fresh, nil
	}
	return nil, err
}

// newest returns the credentials to refresh: those that could not be stored, the stored ones or, if
// they were deleted meanwhile, old.
func (a *Authenticator) newest(stored, old *Credentials) *Credentials {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.unsaved && a.cached != nil:
		return a.cached.clone()
	case stored != nil:
		return stored
	}
	return old
}

func (a *Authenticator) exchangeRefresh(ctx context.Context, c *Credentials) (*Credentials, error) {
	if a.opts.Grant != nil {
		return a.grantToken(ctx, c)
	}
	if c.RefreshToken == "" || c.TokenEndpoint == "" {
		return nil, a.needsAuth(ReasonExpired, nil)
	}
	a.mu.Lock()
	refused, refusal := a.refused == c.RefreshToken, a.refusal
	a.mu.Unlock()
	if refused {
		return nil, a.needsAuth(ReasonRefreshRefused, refusal)
	}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {c.RefreshToken}}
	if c.Resource != "" {
		form.Set("resource", c.Resource)
	}
	tok, err := a.requestToken(ctx, c, form)
	var te *TokenError
	switch {
	case errors.As(err, &te) && te.final():
		a.mu.Lock()
		a.refused, a.refusal = c.RefreshToken, err
		a.mu.Unlock()
		return nil, a.needsAuth(ReasonRefreshRefused, err)
	case err != nil:
		return nil, err
	}
	return c.withToken(tok, nil), nil
}
