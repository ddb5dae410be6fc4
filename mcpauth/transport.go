package mcpauth

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Transport returns a RoundTripper that puts the token on requests to the server and, when the
// server refuses one, refreshes or logs in and sends the request once more. Requests to any other
// origin (a redirect, say) pass without a token. If base is nil, [http.DefaultTransport] is used.
//
// A request that still needs a login fails with a [NeedsAuthError]. A request whose body cannot be
// read twice (no GetBody) is not sent again: its refusal is returned, and the next request has the
// new token.
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
		// The server may want no login at all: it is asked, and what it answers to a request
		// without a token says what is needed.
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

// maxAuthorize is how often one request may be sent again: once with a refreshed token, once after
// a login.
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

// refused reports whether authorization may mend the answer.
func refused(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		return true
	case http.StatusForbidden:
		return readChallenge(resp.Header).err == "insufficient_scope"
	}
	return false
}

// afterRefusal returns the credentials to try next. It closes resp's body.
func (a *Authenticator) afterRefusal(ctx context.Context, resp *http.Response, used *Credentials, reason Reason, try int) (*Credentials, error) {
	body := refusalText(resp, used)
	ch := readChallenge(resp.Header, used.secrets()...)
	a.addScopes(ctx, ch.scopes)
	if resp.StatusCode == http.StatusForbidden {
		reason = ReasonScope
	}
	var why *NeedsAuthError // why the token could not be renewed
	if try == 0 && used != nil && resp.StatusCode == http.StatusUnauthorized {
		fresh, err := a.renewed(ctx, used)
		switch {
		case err == nil:
			return fresh, nil
		case !errors.As(err, &why):
			return nil, err
		case why.Reason == ReasonRefreshRefused:
			reason = why.Reason // says more than that the token was rejected
		}
	}
	err := a.login(ctx, ch, reason)
	if errors.As(err, new(*unsavedError)) {
		a.opts.Logger.ErrorContext(ctx, "mcpauth: "+err.Error(), "server", MaskURL(a.serverURL))
		err = nil // it is good for this request and the next
	}
	if err != nil {
		var need *NeedsAuthError
		if errors.As(err, &need) {
			need.Status, need.Body = resp.StatusCode, body
			if why != nil && need.Err == nil {
				need.Err = why.Err
			}
		}
		// The server knows the token, and what it names is in the text.
		return nil, hide(err, used.secrets()...)
	}
	return a.Credentials(ctx)
}

const (
	// bodyHead is how much of a refusal's text is kept.
	bodyHead = 500
	// headBytes is how much of it is looked at for that.
	headBytes = 8 << 10
	// drainTime bounds the reading of a refusal, drainBytes how much of it is read for the sake of
	// using its connection again.
	drainTime  = time.Second
	drainBytes = 64 << 10
)

// refusalText reads the beginning of a refusal's body, and closes it. A body that trickles does not
// hold it up.
func refusalText(resp *http.Response, used *Credentials) string {
	stop := time.AfterFunc(drainTime, func() { _ = resp.Body.Close() })
	defer stop.Stop()
	head, _ := io.ReadAll(io.LimitReader(resp.Body, headBytes)) // what can be had
	_, _ = io.CopyN(io.Discard, resp.Body, drainBytes)          // for the connection alone
	_ = resp.Body.Close()
	text := masked(string(head), used.secrets()...)
	if len(head) == headBytes { // it may end in the beginning of a token
		longest := 0
		for _, s := range used.secrets() {
			longest = max(longest, len(url.QueryEscape(s)))
		}
		text = text[:max(len(text)-longest, 0)]
	}
	return clip(strings.Join(strings.Fields(text), " "), bodyHead)
}

// renewed returns credentials other than those just refused: what somebody else stored meanwhile,
// else the outcome of a refresh.
func (a *Authenticator) renewed(ctx context.Context, used *Credentials) (*Credentials, error) {
	now, err := a.Credentials(ctx)
	if err == nil && now.AccessToken != used.AccessToken && now.Valid(a.now()) {
		return now, nil
	}
	dead := used.clone()
	dead.Expiry = a.now() // the server has said so
	return a.refresh(ctx, dead)
}

// covers reports whether an address has the server's origin.
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
