package mcpauth

import (
	"context"
	"errors"
	"net/url"
	"time"
)

// Token returns an access token that is good now, refreshing it where that is due. Its error is a
// [NeedsAuthError] where a person has to log in, a [StoreError] where the store fails, else what
// kept the refresh from working.
//
// Of any number of callers one refreshes and the others get its token; of any number of processes
// likewise, through the store's lock. A refresh that fails while the token is still good costs
// nothing: the token is returned.
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

// updateTimeout bounds an update of the store that its caller may have left: the wait for the lock,
// and one request.
const updateTimeout = 2 * time.Minute

// refresh replaces the access token of old. It returns old itself where that is still good and no
// better one can be had.
func (a *Authenticator) refresh(ctx context.Context, old *Credentials) (*Credentials, error) {
	ch := a.flight.DoChan("refresh "+old.AccessToken, func() (any, error) {
		// It goes on without the caller, but not for ever: another process may hold the lock.
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
		a.opts.Logger.WarnContext(ctx, "mcpauth: token not refreshed early; the old one is still good", "server", MaskURL(a.serverURL), "error", err)
		return old, nil
	}
	return nil, err
}

// refreshLocked does the read, the request and the write under the store's lock. Whoever waited for
// the lock finds the winner's token and uses it.
func (a *Authenticator) refreshLocked(ctx context.Context, old *Credentials) (fresh *Credentials, err error) {
	err = a.opts.Store.Update(ctx, a.key, func(stored *Credentials) (*Credentials, error) {
		current := a.newest(stored, old)
		if current.AccessToken != old.AccessToken && current.Valid(a.now()) {
			fresh = current
			return current, nil
		}
		fresh, err = a.exchangeRefresh(ctx, current)
		if err != nil {
			return nil, err // what is stored stays: it is not ours to delete
		}
		a.remember(fresh, false) // the old refresh token may be dead already
		return fresh, nil
	})
	if err == nil {
		a.remember(fresh, true)
		return fresh, nil
	}
	var se *StoreError
	if fresh != nil && errors.As(err, &se) {
		// The token is good, only keeping it failed. It is kept in memory and stored at the next
		// chance.
		a.opts.Logger.ErrorContext(ctx, "mcpauth: a refreshed token could not be stored", "server", MaskURL(a.serverURL), "error", err)
		return fresh, nil
	}
	return nil, err
}

// newest is what to refresh: what did not reach the store, else what is stored, else (somebody
// deleted it while we waited) what the caller had.
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
