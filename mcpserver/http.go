package mcpserver

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The defaults of [HTTPOptions].
const (
	DefaultMaxBodyBytes = 4 << 20
	DefaultMaxSessions  = 10_000
	DefaultMaxRequests  = 20_000
	DefaultIdleTimeout  = time.Hour
)

// HTTPOptions configures an [HTTPHandler]. The zero value, like a nil pointer,
// means the defaults.
type HTTPOptions struct {
	// MaxBodyBytes bounds the body of a request; a longer one is answered with
	// 413. Zero means DefaultMaxBodyBytes, a negative value no bound.
	MaxBodyBytes int64
	// MaxSessions bounds the sessions that are open at a time (protocol up to
	// 2025-11-25; later versions have none). One more is answered with 503. Zero
	// means DefaultMaxSessions, a negative value no bound.
	MaxSessions int
	// MaxRequests bounds the requests that are served at a time, the streams that
	// stand open among them: a session of a protocol up to 2025-11-25 has one, a
	// subscription of later ones is one, and each of a batch is one. One more is answered with 503. Zero
	// means DefaultMaxRequests, a negative value no bound.
	//
	// How long a client may take to send a request and to read its answer is for
	// the [http.Server] to say: see its ReadHeaderTimeout, ReadTimeout and
	// IdleTimeout. A WriteTimeout would end streams.
	MaxRequests int
	// IdleTimeout closes a session that has sent no request for so long. Zero means
	// DefaultIdleTimeout, a negative value never.
	IdleTimeout time.Duration
	// AllowedHosts are the Host headers that are accepted, without ports, such as
	// "mcp.example.com"; "*" accepts all. If empty, requests that arrive at a
	// loopback address must name a loopback host, and others may name any:
	// that keeps web pages from reaching a local server by DNS rebinding.
	AllowedHosts []string
	// AllowedOrigins are the Origin headers that are accepted beside the server's
	// own, such as "https://app.example.com"; "*" accepts all. A request that
	// arrives at a loopback address may also come from a loopback origin.
	// Requests without Origin, which browsers do not send, are always accepted.
	AllowedOrigins []string
	// Auth asks for a bearer token. If nil, anyone may call.
	Auth *BearerAuth
	// EventStore keeps events for clients that come back for them (protocol up to
	// 2025-11-25). If nil, streams cannot be resumed.
	EventStore mcp.EventStore
	// JSONResponse answers requests up to 2025-11-25 with plain JSON instead of
	// an event stream; progress then goes to the client's standing stream.
	JSONResponse bool
	// Logger hears of errors and of requests that were turned away: of each that
	// was answered with a status from 400 on, with the status and the reason but
	// without its credentials. A flood of them makes a hundred records a
	// minute, and one that says how many more there were. If nil, the server's
	// logger does.
	Logger *slog.Logger
}

// BearerAuth asks each request for a bearer token.
type BearerAuth struct {
	// Verify checks a token. A token that is not valid must be an error that
	// wraps [auth.ErrInvalidToken]. If the result names a user, a session answers
	// to that user only, and so does the state of a call in rounds. A panic is
	// logged, and the request is answered with 500.
	Verify auth.TokenVerifier
	// Scopes must all be granted by the token.
	Scopes []string
	// ResourceMetadataURL is where clients learn who issues tokens (RFC 9728). It
	// goes into the WWW-Authenticate header of a refusal.
	ResourceMetadataURL string
	// AllowMissingExpiration accepts tokens of which the end is not known.
	AllowMissingExpiration bool
	// ClockSkew is how long after its end a token is still good. Zero means not at all.
	ClockSkew time.Duration
	// MaxSessions and MaxRequests bound the sessions and the requests of each user
	// that a token names, as those of [HTTPOptions] bound them for all: no user
	// takes the room of the others. One more is answered with 429. Zero means a
	// tenth of the bound for all, but not less than 10; a negative value no bound.
	MaxSessions int
	MaxRequests int
}

// An HTTPHandler serves a [Server] over streamable HTTP, in both eras of the
// protocol on one endpoint: with sessions up to 2025-11-25, without from
// 2026-07-28 on. It is an [http.Handler] for any path. Call Shutdown before the
// HTTP server's own: open streams would keep that waiting.
type HTTPHandler struct {
	opts     HTTPOptions
	log      *slog.Logger
	refusals *refusalLog
	adapter  *adapter
	handler  http.Handler
	modern   *mcp.StreamableHTTPHandler
	legacy   *mcp.StreamableHTTPHandler

	mu      sync.Mutex // guards the rest
	closing bool
	serving quota             // requests and streams, from their headers on
	opening quota             // sessions that are being opened
	owners  map[string]string // the users of the sessions that are open, by their ids
	work    int               // requests in flight, standing streams aside
	idle    chan struct{}     // closed when work is 0; nil while nobody waits
}

// NewHTTPHandler returns a handler that serves s until Shutdown. A nil s panics.
func NewHTTPHandler(s *Server, o *HTTPOptions) *HTTPHandler {
	if s == nil {
		panic("mcpserver: NewHTTPHandler without a server")
	}
	h := &HTTPHandler{opts: httpDefaults(o), adapter: newAdapter(s), owners: make(map[string]string)}
	h.adapter.resumes = h.opts.EventStore != nil
	h.log = h.opts.Logger
	if h.log == nil {
		h.log = s.logger
	}
	h.refusals = &refusalLog{log: h.log}
	h.opts.AllowedHosts = lowered(h.opts.AllowedHosts)
	h.opts.AllowedOrigins = lowered(h.opts.AllowedOrigins)
	lib := func(*http.Request) *mcp.Server { return h.adapter.lib }
	logger := slog.New(warnings{h.log.Handler()})
	h.modern = mcp.NewStreamableHTTPHandler(lib, &mcp.StreamableHTTPOptions{
		Stateless: true, Logger: logger, PropagateRequestCancellation: true,
		DisableLocalhostProtection: true, MaxRequestBodyBytes: -1, // both are checked here, before the body is read
	})
	h.legacy = mcp.NewStreamableHTTPHandler(lib, &mcp.StreamableHTTPOptions{
		Logger: logger, EventStore: h.opts.EventStore, JSONResponse: h.opts.JSONResponse,
		SessionTimeout: max(0, h.opts.IdleTimeout), DisableLocalhostProtection: true, MaxRequestBodyBytes: -1,
	})
	h.handler = http.HandlerFunc(h.serve)
	if a := h.opts.Auth; a != nil {
		h.handler = auth.RequireBearerToken(h.verifier(a.Verify), &auth.RequireBearerTokenOptions{
			ResourceMetadataURL: a.ResourceMetadataURL, Scopes: a.Scopes,
			AllowMissingExpiration: a.AllowMissingExpiration, ClockSkew: a.ClockSkew,
		})(h.handler)
	}
	return h
}

// verifier contains panics of a token verifier.
func (h *HTTPHandler) verifier(verify auth.TokenVerifier) auth.TokenVerifier {
	return func(ctx context.Context, token string, req *http.Request) (*auth.TokenInfo, error) {
		return containResult(ctx, h.log, "BearerAuth.Verify", func() (*auth.TokenInfo, error) { return verify(ctx, token, req) })
	}
}

func httpDefaults(o *HTTPOptions) HTTPOptions {
	var opts HTTPOptions
	if o != nil {
		opts = *o
	}
	if opts.MaxBodyBytes == 0 {
		opts.MaxBodyBytes = DefaultMaxBodyBytes
	}
	if opts.MaxSessions == 0 {
		opts.MaxSessions = DefaultMaxSessions
	}
	if opts.MaxRequests == 0 {
		opts.MaxRequests = DefaultMaxRequests
	}
	if opts.IdleTimeout == 0 {
		opts.IdleTimeout = DefaultIdleTimeout
	}
	if opts.Auth == nil {
		return opts
	}
	if opts.Auth.Verify == nil {
		panic("mcpserver: HTTPOptions.Auth without Verify")
	}
	a := *opts.Auth
	a.MaxSessions = userBound(a.MaxSessions, opts.MaxSessions)
	a.MaxRequests = userBound(a.MaxRequests, opts.MaxRequests)
	opts.Auth = &a
	return opts
}

// ServeHTTP serves one request. The order of the checks is that of their cost:
// where it comes from, whether its token is good, what is in it.
func (h *HTTPHandler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	answer := &refusalWriter{ResponseWriter: w}
	defer func() {
		if answer.status >= http.StatusBadRequest {
			h.refusals.refused(req, answer.status, string(answer.reason))
		}
	}()
	if err := h.checkSource(req); err != nil {
		http.Error(answer, err.Error(), http.StatusForbidden)
		return
	}
	h.handler.ServeHTTP(answer, req)
}

// serve hands a request to the era that it belongs to.
func (h *HTTPHandler) serve(w http.ResponseWriter, req *http.Request) {
	user := ""
	if token := auth.TokenInfoFromContext(req.Context()); token != nil {
		user = token.UserID
	}
	if full := h.enter(user, 1); full != nil {
		full.answer(w, "1")
		return
	}
	defer h.leave(user, 1)
	info, status, err := h.read(w, req)
	if err != nil {
		http.Error(w, err.Error(), status)
		return
	}
	if info.more > 0 {
		if full := h.enter(user, info.more); full != nil {
			full.answer(w, "1")
			return
		}
		defer h.leave(user, info.more)
	}
	if !h.begin(info.streams) {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "the server is shutting down", http.StatusServiceUnavailable)
		return
	}
	defer h.end(info.streams)
	era := h.legacy
	if info.modern {
		era = h.modern
	}
	if info.streams {
		h.serveStream(era, w, req)
		return
	}
	if !info.opens {
		era.ServeHTTP(w, req)
		return
	}
	if full := h.reserve(user); full != nil {
		full.answer(w, "30")
		return
	}
	defer func() { h.unreserve(user, w.Header().Get("Mcp-Session-Id")) }() // it is open now, and counted as such
	h.legacy.ServeHTTP(w, req)
}

func (h *HTTPHandler) begin(streams bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return false
	}
	if !streams {
		h.work++
	}
	return true
}

func (h *HTTPHandler) end(streams bool) {
	if streams {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.work--
	if h.work == 0 && h.idle != nil {
		close(h.idle)
		h.idle = nil
	}
}

// Shutdown ends the serving: new requests are answered with 503, those in
// flight are waited for until ctx ends, and are then cancelled; standing streams
// and sessions are closed. It returns ctx's error if requests had to be
// cancelled. A second call returns nil at once.
func (h *HTTPHandler) Shutdown(ctx context.Context) error {
	h.mu.Lock()
	again := h.closing
	h.closing = true
	idle := make(chan struct{})
	if h.work == 0 {
		close(idle)
	} else {
		h.idle = idle
	}
	h.mu.Unlock()
	if again {
		return nil
	}
	var err error
	select {
	case <-idle:
	case <-ctx.Done():
		err = ctx.Err()
	}
	defer h.refusals.flush()
	h.adapter.close()
	// The library drops the answers of a session that is being closed: those
	// that say that the calls were cancelled need a moment to get out.
	waitFor(closeGrace, func() { <-idle })
	h.closeSessions()
	return err
}

// closeSessions closes what the library still has open. The calls have been
// ended before, so this is quick; it is bounded all the same.
func (h *HTTPHandler) closeSessions() {
	var closing sync.WaitGroup
	for ss := range h.adapter.lib.Sessions() {
		closing.Go(func() {
			if err := ss.Close(); err != nil && !errors.Is(err, mcp.ErrConnectionClosed) {
				h.log.Debug("closing a session", "error", err)
			}
		})
	}
	waitFor(closeGrace, func() {
		closing.Wait()
		h.adapter.wg.Wait()
	})
}

// waitFor runs wait and returns when it does, or after the limit: then something
// hangs that is not ours, and is left behind.
func waitFor(limit time.Duration, wait func()) {
	done := make(chan struct{})
	go func() {
		wait()
		close(done)
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}
