package mcpauth

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Transport returns a RoundTripper that adds the token to requests to the server. If the server
// refuses one, it refreshes the token or logs in and sends the request again. Requests to other
// origins pass without a token. A nil base means [http.DefaultTransport].
//
// A request that still needs a login fails with a [NeedsAuthError]. A request with a body and without
// GetBody is not sent again: the refusal is returned.
func (a *Authenticator) Transport(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return &transport{auth: a, base: base}
}

type transport struct {
	auth *Authenticator
	base http.RoundTripper
}

// RoundTrip is safe for concurrent use, as every RoundTripper must be.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.auth.covers(req.URL) {
		return t.base.RoundTrip(req)
	}
	ctx := req.Context()
	used, err := t.auth.Token(ctx)
	var need *NeedsAuthError
	reason := ReasonRejected
	switch {
	case errors.As(err, &need):
		// The server may need no login: its response to a request without a token tells.
		reason = need.Reason
	case err != nil:
		closeBody(req)
		return nil, err
	}
	for try := 0; ; try++ {
		resp, err := t.send(req, used, try)
		if err != nil || !refused(resp) || try == maxAuthorize {
			return resp, err
		}
		if req.Body != nil && req.GetBody == nil {
			return resp, nil
		}
		fresh, err := t.auth.afterRefusal(ctx, resp, used, reason, try)
		if err != nil {
			return nil, err
		}
		used, reason = fresh, ReasonRejected
	}
}

// maxAuthorize limits how often a request is sent again: with a refreshed token and after a login.
const maxAuthorize = 2

func (t *transport) send(req *http.Request, c *Credentials, try int) (*http.Response, error) {
	r := req.Clone(req.Context())
	if try > 0 && req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		r.Body = body
	}
	if c != nil {
		r.Header.Set("Authorization", "Bearer "+c.AccessToken)
	}
	return t.base.RoundTrip(r)
}

// refused reports whether another token may help.
func refused(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		return true
	case http.StatusForbidden:
		return readChallenge(resp.Header).err == "insufficient_scope"
	}
	return false
}

// afterRefusal returns the credentials to try next, and closes resp's body.
func (a *Authenticator) afterRefusal(ctx context.Context, resp *http.Response, used *Credentials, reason Reason, try int) (*Credentials, error) {
	body := refusalText(resp, used)
	ch := readChallenge(resp.Header, used.secrets()...)
	a.addScopes(ctx, ch.scopes)
	if resp.StatusCode == http.StatusForbidden {
		reason = ReasonScope
	}
	var why *NeedsAuthError // why the token was not refreshed
	if try == 0 && used != nil && resp.StatusCode == http.StatusUnauthorized {
		fresh, err := a.renewed(ctx, used)
		switch {
		case err == nil:
			return fresh, nil
		case !errors.As(err, &why):
			return nil, err
		case why.Reason == ReasonRefreshRefused:
			reason = why.Reason
		}
	}
	err := a.login(ctx, ch, reason)
	if errors.As(err, new(*unsavedError)) {
		a.opts.Logger.ErrorContext(ctx, "mcpauth: "+err.Error(), "server", MaskURL(a.serverURL))
		err = nil // this process can use it
	}
	if err != nil {
		var need *NeedsAuthError
		if errors.As(err, &need) {
			need.Status, need.Body = resp.StatusCode, body
			if why != nil && need.Err == nil {
				need.Err = why.Err
			}
		}
		// The text has names from the server, which knows the token.
		return nil, hide(err, used.secrets()...)
	}
	return a.Credentials(ctx)
}

const (
	bodyHead  = 500     // bytes of a refusal's text in an error
	headBytes = 8 << 10 // bytes that are read for it
	// drainTime and drainBytes limit reading the rest, so that the connection can be used again.
	drainTime  = time.Second
	drainBytes = 64 << 10
)

// refusalText reads the beginning of a refusal's body, for at most drainTime, and closes it.
func refusalText(resp *http.Response, used *Credentials) string {
	stop := time.AfterFunc(drainTime, func() { _ = resp.Body.Close() })
	defer stop.Stop()
	head, _ := io.ReadAll(io.LimitReader(resp.Body, headBytes)) // as far as it can be read
	_, _ = io.CopyN(io.Discard, resp.Body, drainBytes)
	_ = resp.Body.Close()
	text := masked(string(head), used.secrets()...)
	if len(head) == headBytes { // it may end with the beginning of a token
		longest := 0
		for _, s := range used.secrets() {
			longest = max(longest, len(url.QueryEscape(s)))
		}
		text = text[:max(len(text)-longest, 0)]
	}
	return clipped(text, bodyHead)
}

// renewed returns credentials other than the refused ones: those stored meanwhile or refreshed ones.
func (a *Authenticator) renewed(ctx context.Context, used *Credentials) (*Credentials, error) {
	now, err := a.Credentials(ctx)
	if err == nil && now.AccessToken != used.AccessToken && now.Valid(a.now()) {
		return now, nil
	}
	expired := used.clone()
	expired.Expiry = a.now()
	return a.refresh(ctx, expired)
}

// covers reports whether u has the server's origin.
func (a *Authenticator) covers(u *url.URL) bool {
	server, err := url.Parse(a.serverURL)
	if err != nil {
		return false
	}
	return origin(server) == origin(u)
}

func origin(u *url.URL) string {
	o := url.URL{Scheme: u.Scheme, Host: u.Host}
	return canonical(&o)
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		req.Body.Close()
	}
}
