package mcphost

import (
	"errors"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/secret"
)

// Status is the state of a server as users and models see it.
type Status string

// The five states.
const (
	// StatusPending: connecting, reconnecting, or to be connected by the first call.
	StatusPending Status = "pending"
	// StatusConnected: its tools can be called.
	StatusConnected Status = "connected"
	// StatusFailed: it could not be connected; the reason is in the status.
	StatusFailed Status = "failed"
	// StatusNeedsAuth: it demands a login that the host does not have.
	StatusNeedsAuth Status = "needs-auth"
	// StatusDisabled: switched off by its configuration or by [Host.SetEnabled].
	StatusDisabled Status = "disabled"
)

// ServerStatus is a snapshot of one server. It holds no secrets.
type ServerStatus struct {
	Name      string
	Status    Status
	Transport string // stdio, http, sse or sdk
	Scope     string
	Source    string
	// URL is that of an HTTP or SSE server, without credentials.
	URL string

	// Err is why the server is failed, needs-auth or pending again: a
	// *[ConnectError] mostly. Error is its text.
	Err   error
	Error string

	ServerInfo      *mcp.Implementation
	ProtocolVersion string
	// Instructions are the first 64 KiB at most.
	Instructions string
	Capabilities *mcp.ServerCapabilities

	// Tools are what the server offers under their full names, sorted.
	Tools     []Tool
	ToolCount int
	// Rejected are the listed tools that cannot be used, with the reasons.
	Rejected []RejectedTool

	// Since is when Status was entered; LastOK and LastError when something
	// last went right or wrong with the server. Zero: never.
	Since, LastOK, LastError time.Time
	// ConnectTime is how long the last successful connecting took.
	ConnectTime time.Duration
	// Attempt counts the attempts of the current round of (re)connecting;
	// NextAttempt is when the next is due, if any.
	Attempt     int
	NextAttempt time.Time
	// ChangesError is why the server's notices of changes of its tools, resources and prompts are not heard at present, so
	// that the lists may be old: the stream that brings them is refused, or ended and is not open again yet. It is empty
	// while they are heard, and for a server that says that it sends none.
	ChangesError string
	// Cached reports that the tools come from the discovery cache.
	Cached bool

	// PID is that of the child process, Stderr the end of what it wrote there,
	// also after it died. Noise counts the lines on stdout that were no
	// messages; NoiseHead has the first few.
	PID       int
	Stderr    string
	Noise     int
	NoiseHead []string

	// The limits in force for this server. Zero means no limit.
	ConnectTimeout, CallTimeout, IdleTimeout time.Duration
	MaxMessageBytes                          int
}

// A RejectedTool is a tool that a server listed and that cannot be used.
type RejectedTool struct {
	Server, Name string
	Reason       string
}

// An Event says that something about a server changed.
type Event struct {
	Server string
	Status Status
	// Tools, Resources and Prompts report that the server's list of them changed.
	Tools, Resources, Prompts bool
	// Removed reports that [Host.SetServers] took the server out: it has no Status
	// any more. Replaced reports that a server with another configuration has taken
	// its place, or that one came after a removal that was not received yet; Status
	// is the new one's.
	Removed, Replaced bool
	// Err is the reason of a change for the worse; [ErrRemoved] of a removal.
	Err error
	// Time is when it happened.
	Time time.Time
}

// Status returns a snapshot of every server, sorted by name.
func (h *Host) Status() []ServerStatus {
	cat := h.current()
	h.mu.Lock()
	conns := sortedConns(h.conns)
	h.mu.Unlock()
	all := make([]ServerStatus, 0, len(conns))
	for _, c := range conns {
		all = append(all, c.status(cat))
	}
	return all
}

// ServerStatus returns the snapshot of one server.
func (h *Host) ServerStatus(name string) (ServerStatus, bool) {
	cat := h.current()
	h.mu.Lock()
	c := h.conns[name]
	h.mu.Unlock()
	if c == nil {
		return ServerStatus{}, false
	}
	return c.status(cat), true
}

func (c *conn) status(cat *catalog) ServerStatus {
	common, lim := c.cfg.common(), &c.dialer.limits
	s := ServerStatus{
		Name: c.name, Transport: c.cfg.transport(), Scope: common.Scope, Source: common.Source,
		ConnectTimeout: lim.connect, CallTimeout: lim.call, IdleTimeout: lim.idle, MaxMessageBytes: lim.message,
	}
	switch cfg := c.cfg.(type) {
	case HTTP:
		s.URL = secret.SafeRawURL(cfg.URL)
	case SSE:
		s.URL = secret.SafeRawURL(cfg.URL)
	}
	c.mu.Lock()
	rec, state, shows := c.rec, c.state, c.showsTools()
	c.mu.Unlock()
	s.Status, s.Err, s.Attempt = state.status(), rec.err, state.attempt
	if rec.stalled != nil {
		s.Status, s.Err = StatusFailed, rec.stalled
	}
	switch {
	case s.Err != nil:
		s.Error = s.Err.Error()
	case s.Status == StatusDisabled && common.Disabled:
		s.Error = common.DisabledReason
	}
	s.ServerInfo, s.ProtocolVersion = rec.info.Server, rec.info.Version
	s.Instructions, s.Capabilities = rec.info.Instructions, rec.info.Capabilities
	if c.inProcess() {
		s.MaxMessageBytes = 0
	}
	if rec.info.limitsCalls {
		s.CallTimeout = rec.info.callTimeout
	}
	s.Since, s.LastOK, s.LastError = rec.since, rec.lastOK, rec.lastBad
	s.ConnectTime, s.NextAttempt, s.Cached = rec.took, rec.nextTry, rec.cached
	s.Rejected = slices.Clone(rec.list.rejected)
	if shows {
		for _, t := range cat.byServer[c.name] {
			s.Tools = append(s.Tools, *t)
		}
		s.ToolCount = len(s.Tools)
		for _, r := range cat.rejected {
			if r.Server == c.name {
				s.Rejected = append(s.Rejected, r)
			}
		}
	}
	c.diagnose(&s, &rec)
	return s
}

// diagnose adds what the process and the wire say, of now or of the last
// connection.
func (c *conn) diagnose(s *ServerStatus, rec *record) {
	diag := rec.diag
	if rec.link != nil {
		diag = rec.link.diagnostics()
		s.PID, s.ChangesError = diag.pid, diag.changesError
	}
	s.Stderr, s.Noise, s.NoiseHead = diag.stderr, diag.noise, diag.noiseHead
	var ce *ConnectError
	if errors.As(rec.err, &ce) && rec.link == nil && (ce.Stderr != "" || len(ce.NoiseHead) > 0) {
		s.Stderr, s.Noise, s.NoiseHead = ce.Stderr, ce.Noise, ce.NoiseHead
	}
	s.Stderr = c.dialer.mask.Hide(s.Stderr)
	s.NoiseHead = c.dialer.mask.HideAll(s.NoiseHead)
}
