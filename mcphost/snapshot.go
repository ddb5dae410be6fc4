package mcphost

import (
	"errors"
	"slices"

	"github.com/tenon-sdk/tenon/internal/secret"
)

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
