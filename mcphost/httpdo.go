package mcphost

import (
	"bytes"
	"context"
	"crypto/tls"
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

	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/internal/secret"
	"github.com/tenon-sdk/tenon/mcpauth"
)

const (
	// maxRedirects is how often one request follows a redirect.
	maxRedirects = 5
	// bodyHead is how much of a refused response's body is kept for its error.
	bodyHead = 500
	// drainTime and drainBytes bound the reading of a body nobody needs, for the
	// sake of using its connection again.
	drainTime  = time.Second
	drainBytes = 64 << 10
)

// errRedirect marks a redirect that is not followed.
var errRedirect = errors.New("redirect refused")

// An HTTPError is a response that refuses a request.
type HTTPError struct {
	Status int
	// Body is the beginning of the response's body, with secrets masked.
	Body string
	// NeedsAuth reports that the response asks for a login.
	NeedsAuth bool
}

// Error implements error.
func (e *HTTPError) Error() string {
	s := fmt.Sprintf("HTTP %d %s", e.Status, http.StatusText(e.Status))
	if e.Body != "" {
		s += ": " + e.Body
	}
	return s
}

// An endpoint is a URL of a server and how to make requests to its origin.
type endpoint struct {
	url     *url.URL
	header  http.Header // of each request
	client  *http.Client
	mask    *secret.Masker
	hasAuth bool // the configuration brings an Authorization header
	fresh   bool // a new connection brings new headers
	// foreign reports that functions of the program's have a part in each request: they may panic, and need not heed contexts.
	foreign bool
	panics  *limitedLog
}

// A headersError is the error of a [HeadersFunc].
type headersError struct{ err error }

func (e *headersError) Error() string { return "computing headers: " + e.err.Error() }
func (e *headersError) Unwrap() error { return e.err }

// endpoint prepares requests for a configuration.
func (d *dialer) endpoint(ctx context.Context, c HTTP) (*endpoint, error) {
	mask := d.mask
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, errors.New("the URL cannot be parsed")
	}
	headers := maps.Clone(c.Headers)
	if c.HeadersFunc != nil {
		var more map[string]string
		err := contain(d.panics, "HeadersFunc", func() (err error) { more, err = c.HeadersFunc(ctx); return err })
		if err != nil {
			return nil, &headersError{err}
		}
		if headers == nil {
			headers = map[string]string{}
		}
		maps.Copy(headers, more)
		mask.Learn(secret.InNamed(more))
	}
	e := &endpoint{url: u, header: http.Header{}, mask: mask, fresh: c.HeadersFunc != nil, foreign: c.HTTPClient != nil || c.Auth != nil, panics: d.panics}
	for k, v := range headers {
		if !validHeader(k, v) {
			return nil, fmt.Errorf("header %q: invalid name or value", k)
		}
		e.header.Set(k, v)
	}
	e.hasAuth = e.header.Get("Authorization") != "" || u.User != nil
	e.client = client(c, d.shared)
	e.client.Transport = decodedTransport{e.client.Transport} // below the login, which reads refusals
	if c.Auth != nil && !e.hasAuth {
		e.client.Transport = c.Auth.Transport(learning{e.client.Transport, mask})
	}
	return e, nil
}

// A learning transport learns the tokens that pass through it, to keep them out
// of what is told.
type learning struct {
	base http.RoundTripper // nil: net/http's own
	mask *secret.Masker
}

// RoundTrip implements [http.RoundTripper].
func (l learning) RoundTrip(r *http.Request) (*http.Response, error) {
	if a := r.Header.Get("Authorization"); a != "" {
		l.mask.Learn(secret.InNamed(map[string]string{"Authorization": a}))
	}
	base := l.base
	if base == nil {
		base = http.DefaultTransport
	}
	return base.RoundTrip(r)
}

// client returns the client to use: a copy, without the settings that would
// break streams or follow redirects.
func client(c HTTP, shared *http.Client) *http.Client {
	from := c.HTTPClient
	if from == nil {
		from = shared
	}
	cl := *from
	cl.Timeout = 0 // each request has its own limits
	cl.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &cl
}

// newSharedClient returns the host's own client.
func newSharedClient() *http.Client {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment}
	if d, ok := http.DefaultTransport.(*http.Transport); ok {
		t = d.Clone()
	}
	t.MaxIdleConnsPerHost = 32
	return &http.Client{Transport: t}
}

// do makes a request, following redirects that repeat it within the origin. The
// error does not hold the URL. The response has a status of 2xx, or any if raw.
func (e *endpoint) do(ctx context.Context, method string, body []byte, header http.Header) (*http.Response, error) {
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
			return nil, e.needsAuth(withoutURL(err))
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
	return nil, fmt.Errorf("%w: more than %d in a row", errRedirect, maxRedirects)
}

// send makes one request. What functions of the program do beyond the end of the request's context is not waited for,
// and a panic of theirs is the request's error.
func (e *endpoint) send(req *http.Request) (*http.Response, error) {
	if !e.foreign {
		return e.client.Do(req)
	}
	type outcome struct {
		resp *http.Response
		err  error
	}
	ctx := req.Context()
	done := make(chan outcome)
	go func() { // ends with the request, which its context ends unless the program's transport does not heed it
		var o outcome
		o.err = contain(e.panics, "the HTTP client", func() (err error) {
			o.resp, err = e.client.Do(req)
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
			o.resp.Body = &foreignBody{o.resp.Body, e.panics}
		}
		return o.resp, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// A foreignBody makes errors of the panics of a body that a transport of the program's gave.
type foreignBody struct {
	body   io.ReadCloser
	panics *limitedLog
}

// Read implements [io.Reader].
func (b *foreignBody) Read(p []byte) (n int, err error) {
	err = contain(b.panics, "reading a response of the HTTP client", func() (err error) { n, err = b.body.Read(p); return err })
	return n, err
}

// Close implements [io.Closer].
func (b *foreignBody) Close() error {
	return contain(b.panics, "closing a response of the HTTP client", b.body.Close)
}

// needsAuth hides secrets in what a server said that wants a login.
func (e *endpoint) needsAuth(err error) error {
	var need *mcpauth.NeedsAuthError
	if !errors.As(err, &need) || need.Body == "" {
		return err
	}
	safe := *need
	safe.Body = e.mask.Hide(need.Body)
	return &safe
}

// redirect says where a redirect leads, if it may be followed. Another origin
// would be sent the credentials, and what does not repeat the request would
// lose its body.
func (e *endpoint) redirect(method string, from *url.URL, resp *http.Response) (*url.URL, error) {
	to, err := from.Parse(resp.Header.Get("Location"))
	if err != nil || resp.Header.Get("Location") == "" {
		return nil, fmt.Errorf("%w: HTTP %d without a usable Location", errRedirect, resp.StatusCode)
	}
	if !sameOrigin(e.url, to) {
		return nil, fmt.Errorf("%w: HTTP %d leads to another origin, %s; if that is the server, configure its URL", errRedirect, resp.StatusCode, e.mask.Head([]byte(secret.SafeURL(to)), noiseLine))
	}
	repeats := resp.StatusCode == http.StatusTemporaryRedirect || resp.StatusCode == http.StatusPermanentRedirect
	if method != http.MethodGet && !repeats {
		return nil, fmt.Errorf("%w: HTTP %d to %s would lose the request's body; configure that URL", errRedirect, resp.StatusCode, e.mask.Head([]byte(secret.SafeURL(to)), noiseLine))
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
func (e *endpoint) refusal(resp *http.Response) *HTTPError {
	head := readHead(resp.Body)
	return &HTTPError{
		Status:    resp.StatusCode,
		Body:      clip.Text(e.mask.Hide(strings.Join(strings.Fields(string(head)), " ")), bodyHead),
		NeedsAuth: !e.hasAuth && (resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden),
	}
}

// readHead reads the beginning of a body and closes it. A body that trickles
// does not hold it up.
func readHead(body io.ReadCloser) []byte {
	t := time.AfterFunc(drainTime, func() { _ = body.Close() })
	defer t.Stop()
	head, err := io.ReadAll(io.LimitReader(body, 16*bodyHead)) // what can be had
	var ce *codingError
	if errors.As(err, &ce) {
		head = append(head, "("+ce.Error()+")"...)
	}
	discard(body)
	return head
}

// discard reads what little is left of a body and closes it, so that its
// connection can be used again.
func discard(body io.ReadCloser) {
	t := time.AfterFunc(drainTime, func() { _ = body.Close() })
	defer t.Stop()
	_, _ = io.CopyN(io.Discard, body, drainBytes) // whatever comes of it
	_ = body.Close()
}

// withoutURL drops the URL from an error of net/http: it may hold secrets.
func withoutURL(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		return ue.Err
	}
	return err
}

// neverSent reports whether an error shows that the request did not reach the
// server, or was refused before it was processed.
func neverSent(err error) bool {
	var op *net.OpError
	var need *mcpauth.NeedsAuthError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &need) || unmendable(err)
}

// unmendable reports whether an error of a request is one that the same request
// meets again until a person sees to its cause: a store of credentials that fails,
// a certificate that is not accepted, no TLS where https is configured. None of
// them is the network's, and no request is sent with them.
func unmendable(err error) bool {
	return errors.As(err, new(*mcpauth.StoreError)) || errors.As(err, new(*tls.CertificateVerificationError)) ||
		errors.As(err, new(tls.RecordHeaderError)) || errors.Is(err, http.ErrSchemeMismatch)
}

// baseType is a Content-Type without its parameters.
func baseType(h http.Header) string {
	t, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		t, _, _ = strings.Cut(h.Get("Content-Type"), ";")
	}
	return strings.ToLower(strings.TrimSpace(t))
}

// validHeader reports whether a header can be sent.
func validHeader(name, value string) bool {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !isTokenChar(r) }) {
		return false
	}
	return !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

func isTokenChar(r rune) bool {
	return r > ' ' && r < 0x7f && !strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
}
