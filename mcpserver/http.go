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

// HTTPOptions configures an [HTTPHandler]. The zero value and a nil pointer mean
// the defaults.
type HTTPOptions struct {
	// MaxBodyBytes bounds the body of a request. A longer body is refused with the
	// status 413. Zero means DefaultMaxBodyBytes, a negative value no bound.
	MaxBodyBytes int64
	// MaxSessions bounds the open sessions (protocol up to 2025-11-25; later
	// versions have none). A further session is refused with the status 503. Zero
	// means DefaultMaxSessions, a negative value no bound.
	MaxSessions int
	// MaxRequests bounds the requests that are served at a time, including each
	// request of a batch and open streams: one for each session up to 2025-11-25,
	// one for each subscription of later versions. A further request is refused
	// with the status 503. Zero means DefaultMaxRequests, a negative value no bound.
	//
	// The [http.Server] bounds the time that a client may take to send a request:
	// see its ReadHeaderTimeout, ReadTimeout and IdleTimeout. A WriteTimeout would
	// end streams.
	MaxRequests int
	// IdleTimeout closes a session after that time without a request. Zero means
	// DefaultIdleTimeout, a negative value never.
	IdleTimeout time.Duration
	// AllowedHosts lists the accepted Host headers, without ports, such as
	// "mcp.example.com"; "*" accepts all. If empty, requests to a loopback address
	// must name a loopback host, and others may name any: that keeps web pages from
	// reaching a local server by DNS rebinding.
	AllowedHosts []string
	// AllowedOrigins lists the Origin headers that are accepted beside the server's
	// own, such as "https://app.example.com"; "*" accepts all. A request to a
	// loopback address may also come from a loopback origin. Requests without an
	// Origin header are accepted; browsers always send one.
	AllowedOrigins []string
	// Auth requires a bearer token. If nil, none is required.
	Auth *BearerAuth
	// EventStore keeps events for clients that resume a stream (protocol up to
	// 2025-11-25). If nil, streams cannot be resumed.
	EventStore mcp.EventStore
	// JSONResponse answers requests up to 2025-11-25 with plain JSON instead of an
	// event stream. Progress notifications then use the session's open stream.
	JSONResponse bool
	// Logger records errors and refused requests: those with a status from 400 on,
	// with the status and the reason but without credentials. Of many refusals it
	// records a hundred a minute and the number of the rest. Nil means the server's
	// logger.
	Logger *slog.Logger
}

// BearerAuth requires a bearer token with each request.
type BearerAuth struct {
	// Verify checks a token. For an invalid token it returns an error that wraps
	// [auth.ErrInvalidToken]. If the result names a user, a session serves that user
	// only, and so does the state of a call that asks for input. A panic is logged,
	// and the status is 500.
	Verify auth.TokenVerifier
	// Scopes lists the scopes that the token must have.
	Scopes []string
	// ResourceMetadataURL is the URL of the metadata that names the issuers of
	// tokens (RFC 9728). Refusals have it in their WWW-Authenticate header.
	ResourceMetadataURL string
	// AllowMissingExpiration accepts tokens without an expiration.
	AllowMissingExpiration bool
	// ClockSkew is the time for which an expired token is still accepted.
	ClockSkew time.Duration
	// MaxSessions and MaxRequests bound the sessions and requests of each user, as
	// those of [HTTPOptions] bound them for all users together. A further one is
	// refused with the status 429. Zero means a tenth of the bound for all, but at
	// least 10; a negative value means no bound.
	MaxSessions int
	MaxRequests int
}

// An HTTPHandler serves a [Server] over streamable HTTP, in all protocol versions on
// one endpoint: with sessions up to 2025-11-25, without from 2026-07-28 on. It is an
// [http.Handler] for any path. Call Shutdown before that of the [http.Server], which
// waits for open streams.
type HTTPHandler struct {
	opts      HTTPOptions
	log       *slog.Logger
	refusals  *refusalLog
	adapter   *adapter
	handler   http.Handler
	stateless *mcp.StreamableHTTPHandler // from 2026-07-28 on
	stateful  *mcp.StreamableHTTPHandler

	mu      sync.Mutex // guards the rest
	closing bool
	serving quota             // requests and streams
	opening quota             // sessions
	owners  map[string]string // the users of open sessions, by session id
	work    int               // requests in flight, without streams
	idle    chan struct{}     // closed when work is 0; nil while nobody waits
}

// NewHTTPHandler returns a handler that serves s until Shutdown. It panics if s is nil.
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
	h.stateless = mcp.NewStreamableHTTPHandler(lib, &mcp.StreamableHTTPOptions{
		Stateless: true, Logger: logger, PropagateRequestCancellation: true,
		DisableLocalhostProtection: true, MaxRequestBodyBytes: -1, // both are checked here, before the body is read
	})
	h.stateful = mcp.NewStreamableHTTPHandler(lib, &mcp.StreamableHTTPOptions{
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

// verifier returns verify with its panics as errors.
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

// ServeHTTP serves one request. It checks the source, the token and then the content.
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

// serve passes a request to the handler for its protocol version.
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
	handler := h.stateful
	if info.v20260728 {
		handler = h.stateless
	}
	if info.streams {
		h.serveStream(handler, w, req)
		return
	}
	if !info.opens {
		handler.ServeHTTP(w, req)
		return
	}
	if full := h.reserve(user); full != nil {
		full.answer(w, "30")
		return
	}
	defer func() { h.unreserve(user, w.Header().Get("Mcp-Session-Id")) }() // it is open now, and counted as such
	h.stateful.ServeHTTP(w, req)
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

// Shutdown refuses new requests with the status 503, waits for those in flight until
// ctx ends, cancels the rest, and closes streams and sessions. It returns ctx's error
// if it cancelled requests. A second call returns nil at once.
func (h *HTTPHandler) Shutdown(ctx context.Context) error {
	h.mu.Lock()
	if h.closing {
		h.mu.Unlock()
		return nil
	}
	h.closing = true
	idle := make(chan struct{})
	if h.work == 0 {
		close(idle)
	} else {
		h.idle = idle
	}
	h.mu.Unlock()
	var err error
	select {
	case <-idle:
	case <-ctx.Done():
		err = ctx.Err()
	}
	defer h.refusals.flush()
	h.adapter.close()
	// The library drops the replies of a session that is being closed. Cancelled
	// calls need a moment to send theirs.
	waitFor(closeGrace, func() { <-idle })
	h.closeSessions()
	return err
}

// closeSessions closes the library's sessions, whose calls have ended.
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

// waitFor calls wait and returns when it does, or after the limit. Then wait is left
// behind: it waits for code of the program.
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
