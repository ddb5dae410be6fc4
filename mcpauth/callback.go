package mcpauth

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Callback is an HTTP server on the loopback addresses that receives the authorization response.
// Close it after the login.
type Callback struct {
	url    string
	server *http.Server
	values context.Context // the caller's values, for Close; it never ends
	wg     sync.WaitGroup
	got    chan url.Values // holds the first response with the expected state

	mu    sync.Mutex // guards state
	state string     // empty until Expect is called
}

// NewCallback listens on a port of localhost, for IPv4 and IPv6. Port 0 chooses a free one. Use a
// fixed port if the redirect URL is registered by hand; it is an error if another program uses it.
func NewCallback(ctx context.Context, port int) (*Callback, error) {
	var lc net.ListenConfig
	listeners, err := listenLocal(port, func(host string, port int) (net.Listener, error) {
		return lc.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	})
	if err != nil {
		return nil, fmt.Errorf("listening for the authorization response: %w", err)
	}
	port = listeners[0].Addr().(*net.TCPAddr).Port
	c := &Callback{
		url:    "http://localhost:" + strconv.Itoa(port) + "/callback",
		values: context.WithoutCancel(ctx),
		got:    make(chan url.Values, 1),
	}
	c.server = &http.Server{Handler: c, ReadHeaderTimeout: 10 * time.Second}
	for _, l := range listeners {
		c.wg.Go(func() { _ = c.server.Serve(l) }) // returns ErrServerClosed
	}
	return c, nil
}

// portAttempts limits the search for a port that is free for IPv4 and IPv6.
const portAttempts = 20

// listenLocal listens on the same port of both loopback addresses, since a browser may connect to
// either for "localhost" and another program on the other would get the response. Without IPv6 it
// listens on 127.0.0.1 only.
func listenLocal(port int, listen func(host string, port int) (net.Listener, error)) ([]net.Listener, error) {
	probe, err := listen("::1", 0)
	if err != nil {
		v4, err := listen("127.0.0.1", port)
		return []net.Listener{v4}, err
	}
	probe.Close()
	for try := 1; ; try++ {
		v4, err := listen("127.0.0.1", port)
		if err != nil {
			return nil, err
		}
		v6, err := listen("::1", v4.Addr().(*net.TCPAddr).Port)
		if err == nil {
			return []net.Listener{v4, v6}, nil
		}
		v4.Close()
		if port != 0 || try == portAttempts {
			return nil, fmt.Errorf("%w; another program could receive the response there: end it, or use another port", err)
		}
	}
}

// URL returns the redirect URL, http://localhost:PORT/callback.
func (c *Callback) URL() string { return c.url }

// closeTimeout limits how long Close waits for a page that is being sent.
const closeTimeout = 2 * time.Second

// Close stops the server. It waits up to two seconds for a page that is being sent. It may be called
// more than once.
func (c *Callback) Close() error {
	ctx, cancel := context.WithTimeout(c.values, closeTimeout)
	defer cancel()
	err := c.server.Shutdown(ctx)
	if err != nil {
		err = c.server.Close()
	}
	c.wg.Wait()
	return err
}

// ServeHTTP receives the response. It refuses one without the expected state, since any page can
// send a browser here, and Wait goes on waiting.
func (c *Callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	if r.URL.Path != "/callback" || r.Method != http.MethodGet {
		http.NotFound(w, r)
		return
	}
	q := r.URL.Query()
	c.mu.Lock()
	ours := c.state != "" && subtle.ConstantTimeCompare([]byte(c.state), []byte(q.Get("state"))) == 1
	c.mu.Unlock()
	if !ours {
		page(w, http.StatusBadRequest, "This response belongs to no login in progress.", "Start again from the program.")
		return
	}
	select {
	case c.got <- q:
	default: // a reload of the page
	}
	if q.Has("error") {
		// Without the description: who sent it is not known here.
		page(w, http.StatusOK, "The login was refused.", "Go back to the program: it says why.")
		return
	}
	page(w, http.StatusOK, "You are logged in.", "You can close this page and go back to the program.")
}

func page(w http.ResponseWriter, status int, title, text string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, "<!doctype html><html lang=en><meta charset=utf-8><title>%[1]s</title>"+
		"<body style=\"font:1.1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:4rem auto;padding:0 1rem\">"+
		"<h1 style=\"font-size:1.4rem\">%[1]s</h1><p>%[2]s</p></body></html>\n", title, text)
}

// Expect accepts responses with the given state from now on. Call it before the person sees the URL:
// the response may arrive before Wait is called.
func (c *Callback) Expect(state string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = state
}

// Wait returns the response to the request with the given state.
func (c *Callback) Wait(ctx context.Context, state string) (*AuthorizationResponse, error) {
	c.Expect(state)
	select {
	case q := <-c.got:
		return parseResponse(q, state)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// ParseRedirect parses a response that a person pasted: the URL that the browser was redirected to,
// its query, or CODE#STATE as some servers show it.
func ParseRedirect(pasted, state string) (*AuthorizationResponse, error) {
	s := strings.TrimSpace(pasted)
	if s == "" {
		return nil, errors.New("nothing was pasted")
	}
	if u, err := url.Parse(s); err == nil && u.Scheme != "" && u.RawQuery != "" {
		return parseResponse(u.Query(), state)
	}
	if strings.Contains(s, "code=") || strings.Contains(s, "error=") {
		if q, err := url.ParseQuery(strings.TrimPrefix(s, "?")); err == nil {
			return parseResponse(q, state)
		}
	}
	if code, st, ok := strings.Cut(s, "#"); ok && code != "" {
		return parseResponse(url.Values{"code": {code}, "state": {st}}, state)
	}
	return nil, errors.New("that is not the URL of the page after the login: paste all of it, with code= and state=")
}

// A RefusedError is an error response of the authorization server (RFC 6749 section 4.1.2.1).
type RefusedError struct {
	Code        string // such as "access_denied"
	Description string
	// Iss is the issuer that the response names (RFC 9207), if any. An [Authenticator] compares it with
	// the authorization server. Other callers of [ParseRedirect] and [Callback.Wait] must do so
	// before they show the text.
	Iss string
}

func (e *RefusedError) Error() string {
	if e.Description == "" {
		return "the authorization server refused: " + e.Code
	}
	return "the authorization server refused: " + e.Code + " (" + e.Description + ")"
}

func parseResponse(q url.Values, state string) (*AuthorizationResponse, error) {
	for _, name := range []string{"state", "code", "error", "iss"} {
		if len(q[name]) > 1 {
			return nil, fmt.Errorf("the response has %s more than once", name)
		}
	}
	if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(state)) != 1 {
		return nil, errors.New("the response belongs to another login (its state does not match)")
	}
	if e := q.Get("error"); e != "" {
		return nil, &RefusedError{Code: clipped(e, 100), Description: clipped(q.Get("error_description"), 300), Iss: q.Get("iss")}
	}
	if q.Get("code") == "" {
		return nil, errors.New("the response has no code")
	}
	return &AuthorizationResponse{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
}

// Interactive returns an [AuthorizeFunc] that calls show with the request and takes the first
// response from cb or paste, one of which may be nil. Paste gets the error of the text that it
// returned before, nil at first, and must return when its context ends.
func Interactive(cb *Callback, show func(context.Context, *AuthorizationRequest) error, paste func(ctx context.Context, problem error) (string, error)) AuthorizeFunc {
	return func(ctx context.Context, req *AuthorizationRequest) (*AuthorizationResponse, error) {
		if cb == nil && paste == nil {
			return nil, errors.New("mcpauth: Interactive needs a callback or a paste function")
		}
		if cb != nil {
			cb.Expect(req.State)
		}
		if err := show(ctx, req); err != nil {
			return nil, err
		}
		ctx, cancel := context.WithCancel(ctx)
		type outcome struct {
			resp *AuthorizationResponse
			err  error
		}
		first := make(chan outcome, 2) // never blocks: one each
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		if cb != nil {
			wg.Go(func() {
				resp, err := cb.Wait(ctx, req.State)
				first <- outcome{resp, err}
			})
		}
		if paste != nil {
			wg.Go(func() {
				resp, err := pasted(ctx, req.State, paste)
				first <- outcome{resp, err}
			})
		}
		got := <-first
		return got.resp, got.err
	}
}

func pasted(ctx context.Context, state string, paste func(context.Context, error) (string, error)) (*AuthorizationResponse, error) {
	var problem error
	for {
		text, err := paste(ctx, problem)
		if err != nil {
			return nil, err
		}
		resp, err := ParseRedirect(text, state)
		if err == nil || errors.As(err, new(*RefusedError)) {
			return resp, err
		}
		problem = err
	}
}
