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

// A Callback receives the authorization server's answer on this machine: a small HTTP server on the
// loopback addresses. Close it after the login.
type Callback struct {
	url    string
	server *http.Server
	life   context.Context // without an end: bounds nothing but carries the caller's values to Close
	wg     sync.WaitGroup
	got    chan url.Values // holds the first answer with the awaited state

	mu    sync.Mutex // guards state
	state string     // empty: nobody waits yet
}

// NewCallback listens on the given port of localhost, for IPv4 and IPv6; 0 takes one that is free.
// Use a fixed port where the redirect address had to be registered by hand: it is an error if
// another program has it.
func NewCallback(ctx context.Context, port int) (*Callback, error) {
	var lc net.ListenConfig
	listeners, err := listenLocal(port, func(host string, port int) (net.Listener, error) {
		return lc.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	})
	if err != nil {
		return nil, fmt.Errorf("listening for the answer to the login: %w", err)
	}
	port = listeners[0].Addr().(*net.TCPAddr).Port
	c := &Callback{
		url:  "http://localhost:" + strconv.Itoa(port) + "/callback",
		life: context.WithoutCancel(ctx),
		got:  make(chan url.Values, 1),
	}
	c.server = &http.Server{Handler: c, ReadHeaderTimeout: 10 * time.Second}
	for _, l := range listeners {
		c.serve(l)
	}
	return c, nil
}

// portAttempts is how many free ports are tried before it is an error that the other family has
// none of them.
const portAttempts = 20

// listenLocal listens on one port of both loopback addresses: "localhost" may be either, and
// whoever had the other one would get the answer. Machines without IPv6 do without. Port 0 takes
// one that is free on both.
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
			return nil, fmt.Errorf("%w; another program could receive the answer there: end it, or take another port", err)
		}
	}
}

func (c *Callback) serve(l net.Listener) {
	c.wg.Go(func() { _ = c.server.Serve(l) }) // ends with ErrServerClosed
}

// URL is the redirect address: http://localhost:PORT/callback.
func (c *Callback) URL() string { return c.url }

// pageTime is how long Close lets a page that is being sent arrive.
const pageTime = 2 * time.Second

// Close ends the listener and waits for it, at most a little over two seconds: the person's last
// page is let arrive. It may be called more than once.
func (c *Callback) Close() error {
	ctx, cancel := context.WithTimeout(c.life, pageTime)
	defer cancel()
	err := c.server.Shutdown(ctx)
	if err != nil {
		err = c.server.Close()
	}
	c.wg.Wait()
	return err
}

// ServeHTTP takes the answer. One without the awaited state is refused and the wait goes on:
// anybody can send a browser here.
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
		page(w, http.StatusBadRequest, "This answer belongs to no login that is under way.", "Start again from the program.")
		return
	}
	select {
	case c.got <- q:
	default: // a reload of the page
	}
	if q.Has("error") {
		// Not with the answer's own words: whose they are is not known here.
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

// Expect takes answers with the given state from now on. Call it before the person sees the
// address: a browser may be back before Wait is called.
func (c *Callback) Expect(state string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = state
}

// Wait returns the answer to the request with the given state.
func (c *Callback) Wait(ctx context.Context, state string) (*AuthorizationResponse, error) {
	c.Expect(state)
	select {
	case q := <-c.got:
		return parseAnswer(q, state)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// ParseRedirect reads the answer from what a person pasted: the address that the browser ended at
// (also when the page there could not be shown), its query, or CODE#STATE as some servers show it.
func ParseRedirect(pasted, state string) (*AuthorizationResponse, error) {
	s := strings.TrimSpace(pasted)
	if s == "" {
		return nil, errors.New("nothing was pasted")
	}
	if u, err := url.Parse(s); err == nil && u.Scheme != "" && u.RawQuery != "" {
		return parseAnswer(u.Query(), state)
	}
	if strings.Contains(s, "code=") || strings.Contains(s, "error=") {
		if q, err := url.ParseQuery(strings.TrimPrefix(s, "?")); err == nil {
			return parseAnswer(q, state)
		}
	}
	if code, st, ok := strings.Cut(s, "#"); ok && code != "" {
		return parseAnswer(url.Values{"code": {code}, "state": {st}}, state)
	}
	return nil, errors.New("that is not the address of the page after the login: paste all of it, with code= and state= in it")
}

// A RefusedError is the authorization server's own refusal (RFC 6749 section
// 4.1.2.1): the person said no, or the request was not to its liking.
type RefusedError struct {
	Code        string // "access_denied" and the like
	Description string
	// Iss is who the answer says it is from (RFC 9207), empty if it does not say. An
	// [Authenticator] compares it; others that show the text of an error of [ParseRedirect] or
	// [Callback.Wait] have to do so themselves.
	Iss string
}

func (e *RefusedError) Error() string {
	if e.Description == "" {
		return "the authorization server refused: " + e.Code
	}
	return "the authorization server refused: " + e.Code + " (" + e.Description + ")"
}

func parseAnswer(q url.Values, state string) (*AuthorizationResponse, error) {
	for _, name := range []string{"state", "code", "error", "iss"} {
		if len(q[name]) > 1 {
			return nil, fmt.Errorf("the answer has %s more than once", name)
		}
	}
	if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(state)) != 1 {
		return nil, errors.New("the answer belongs to another login (its state does not match)")
	}
	if e := q.Get("error"); e != "" {
		return nil, &RefusedError{Code: clip(e, 100), Description: clip(q.Get("error_description"), 300), Iss: q.Get("iss")}
	}
	if q.Get("code") == "" {
		return nil, errors.New("the answer has no code in it")
	}
	return &AuthorizationResponse{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
}

// Interactive makes an [AuthorizeFunc] of a callback and a terminal: show tells the person the
// address, at once; then the answer comes from cb or from paste, whichever has it first. Either of
// cb and paste may be nil. paste is told what was wrong with the last text (nil at first) and must
// return when its context ends; its goroutine is waited for.
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
