package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tenon-sdk/tenon/internal/callback"
	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/internal/secret"
	"github.com/tenon-sdk/tenon/mcpauth"
)

const (
	// maxRedirects is how many redirects one request follows.
	maxRedirects = 5
	// BodyHead is how many bytes of a refused response's body are kept for its error.
	BodyHead = 500
	// drainTime and drainBytes bound the reading of a body that is not needed, so that its
	// connection can be used again.
	drainTime  = time.Second
	drainBytes = 64 << 10
)

// EndpointOptions configure an [Endpoint].
type EndpointOptions struct {
	URL string
	// Headers are added to each request. Recomputed reports that a new connection brings new ones.
	Headers    map[string]string
	Recomputed bool
	// Client is the program's own client; nil means Shared.
	Client, Shared *http.Client
	// Auth adds tokens to requests without an Authorization header of their own.
	Auth *mcpauth.Authenticator
}

// An Endpoint makes requests of one URL and its origin.
type Endpoint struct {
	o          *Options
	url        *url.URL
	header     http.Header // of each request
	client     *http.Client
	hasAuth    bool // the configuration has an Authorization header
	recomputed bool
	// foreign reports that functions of the program take part in each request.
	foreign bool
}

// NewEndpoint returns the endpoint of a server.
func NewEndpoint(e EndpointOptions, o *Options) (*Endpoint, error) {
	u, err := url.Parse(e.URL)
	if err != nil {
		return nil, errors.New("the URL cannot be parsed")
	}
	at := &Endpoint{o: o, url: u, header: http.Header{}, recomputed: e.Recomputed, foreign: e.Client != nil || e.Auth != nil}
	for k, v := range e.Headers {
		if !validHeader(k, v) {
			return nil, fmt.Errorf("header %q: invalid name or value", k)
		}
		at.header.Set(k, v)
	}
	at.hasAuth = at.header.Get("Authorization") != "" || u.User != nil
	client := e.Shared
	if e.Client != nil {
		client = e.Client
	}
	own := *client
	own.Timeout = 0 // streams have no end, and each request has its own limits
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	own.Transport = decodedTransport{orDefault(client.Transport)} // below the login, which reads refusals
	if e.Auth != nil && !at.hasAuth {
		own.Transport = e.Auth.Transport(learningTransport{own.Transport, o.Mask})
	}
	at.client = &own
	return at, nil
}

func orDefault(t http.RoundTripper) http.RoundTripper {
	if t == nil {
		return http.DefaultTransport
	}
	return t
}

// A learningTransport adds the tokens of requests to the secrets that are masked.
type learningTransport struct {
	base http.RoundTripper
	mask *secret.Masker
}

// RoundTrip implements [http.RoundTripper].
func (l learningTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if a := r.Header.Get("Authorization"); a != "" {
		l.mask.Learn(secret.InNamed(map[string]string{"Authorization": a}))
	}
	return l.base.RoundTrip(r)
}

// do makes a request. It follows redirects that repeat the request within the origin. The error
// does not hold the URL.
func (e *Endpoint) do(ctx context.Context, method string, body []byte, header http.Header) (*http.Response, error) {
	target := e.url
	for range maxRedirects {
		req, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(body))
		if err != nil {
			return nil, withoutURL(err)
		}
		if body == nil {
			req.Body, req.GetBody, req.ContentLength = nil, nil, 0
		}
		req.Header.Set("Accept-Encoding", "identity") // a compressed stream of events may be held back
		maps.Copy(req.Header, e.header)
		maps.Copy(req.Header, header)
		resp, err := e.send(req)
		if err != nil {
			return nil, e.masked(withoutURL(err))
		}
		if resp.StatusCode < 300 || resp.StatusCode >= 400 || resp.StatusCode == http.StatusNotModified {
			return resp, nil
		}
		next, err := e.redirect(method, target, resp)
		discard(resp.Body)
		if err != nil {
			return nil, err
		}
		target = next
	}
	return nil, fmt.Errorf("%w: more than %d in a row", ErrRedirect, maxRedirects)
}

// send makes one request. It does not wait beyond the end of the context for functions of the
// program, whose panics are the error of the request.
func (e *Endpoint) send(req *http.Request) (*http.Response, error) {
	if !e.foreign {
		return e.client.Do(req)
	}
	type outcome struct {
		resp *http.Response
		err  error
	}
	ctx := req.Context()
	done := make(chan outcome)
	go func() { // ends with the request, which ends with its context unless the program's transport ignores that
		var o outcome
		o.err = callback.Run(e.o.Limited, "the HTTP client", func() (err error) {
			o.resp, err = e.client.Do(req) //nolint:bodyclose // the caller closes it
			return err
		})
		select {
		case done <- o:
		case <-ctx.Done():
			if o.resp != nil {
				_ = o.resp.Body.Close() // nobody waits for it
			}
		}
	}()
	select {
	case o := <-done:
		if o.resp != nil {
			o.resp.Body = &foreignBody{e, o.resp.Body}
		}
		return o.resp, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// A foreignBody turns panics of a body that a transport of the program made into errors.
type foreignBody struct {
	e    *Endpoint
	body io.ReadCloser
}

// Read implements [io.Reader].
func (b *foreignBody) Read(p []byte) (n int, err error) {
	err = callback.Run(b.e.o.Limited, "reading a response of the HTTP client", func() (err error) { n, err = b.body.Read(p); return err })
	return n, err
}

// Close implements [io.Closer].
func (b *foreignBody) Close() error {
	return callback.Run(b.e.o.Limited, "closing a response of the HTTP client", b.body.Close)
}

// masked hides secrets in the response of a server that wants a login.
func (e *Endpoint) masked(err error) error {
	var need *mcpauth.NeedsAuthError
	if !errors.As(err, &need) || need.Body == "" {
		return err
	}
	safe := *need
	safe.Body = e.o.Mask.Hide(need.Body)
	return &safe
}

// redirect returns where a redirect leads, if it may be followed: not to another origin, which
// would receive the credentials, and not if the request would lose its body.
func (e *Endpoint) redirect(method string, from *url.URL, resp *http.Response) (*url.URL, error) {
	to, err := from.Parse(resp.Header.Get("Location"))
	if err != nil || resp.Header.Get("Location") == "" {
		return nil, fmt.Errorf("%w: HTTP %d without a usable Location", ErrRedirect, resp.StatusCode)
	}
	shown := e.o.Mask.Head([]byte(secret.SafeURL(to)), textHead)
	if !sameOrigin(e.url, to) {
		return nil, fmt.Errorf("%w: HTTP %d leads to another origin, %s; if that is the server, configure its URL", ErrRedirect, resp.StatusCode, shown)
	}
	repeats := resp.StatusCode == http.StatusTemporaryRedirect || resp.StatusCode == http.StatusPermanentRedirect
	if method != http.MethodGet && !repeats {
		return nil, fmt.Errorf("%w: HTTP %d to %s would lose the request's body; configure that URL", ErrRedirect, resp.StatusCode, shown)
	}
	to.User = from.User
	return to, nil
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && hostPort(a) == hostPort(b)
}

func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// refusal reads the beginning of a refused response's body and closes it.
func (e *Endpoint) refusal(resp *http.Response) *HTTPError {
	t := time.AfterFunc(drainTime, func() { _ = resp.Body.Close() }) // a body that trickles
	defer t.Stop()
	head, err := io.ReadAll(io.LimitReader(resp.Body, 16*BodyHead)) // what comes in that time
	var ce *codingError
	if errors.As(err, &ce) {
		head = append(head, "("+ce.Error()+")"...)
	}
	discard(resp.Body)
	return &HTTPError{
		Status:    resp.StatusCode,
		Body:      clip.Text(e.o.Mask.Hide(strings.Join(strings.Fields(string(head)), " ")), BodyHead),
		NeedsAuth: !e.hasAuth && (resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden),
	}
}

// dial makes a TCP connection to the server and closes it. The error is [errors.ErrUnsupported]
// where that proves nothing: requests go through a proxy, TLS or a client of the program.
func (e *Endpoint) dial(ctx context.Context) error {
	if e.foreign || e.url.Scheme != "http" {
		return errors.ErrUnsupported
	}
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: e.url}); err != nil || proxy != nil {
		return errors.ErrUnsupported
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", hostPort(e.url))
	if err == nil {
		_ = conn.Close() // nothing was written
	}
	return err
}

// discard reads what little is left of a body and closes it, so that its connection can be used
// again.
func discard(body io.ReadCloser) {
	t := time.AfterFunc(drainTime, func() { _ = body.Close() })
	defer t.Stop()
	_, _ = io.CopyN(io.Discard, body, drainBytes) // the outcome does not matter
	_ = body.Close()
}

// withoutURL drops the URL, which may hold secrets, from an error of net/http.
func withoutURL(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		return ue.Err
	}
	return err
}

// mediaType returns the Content-Type of a response without its parameters.
func mediaType(h http.Header) string {
	t, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		t, _, _ = strings.Cut(h.Get("Content-Type"), ";")
	}
	return strings.ToLower(strings.TrimSpace(t))
}

// validHeader reports whether a header can be sent.
func validHeader(name, value string) bool {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) }) {
		return false
	}
	return !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}
