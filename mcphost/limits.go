package mcphost

import "time"

// limits are the limits of one server. Zero means no limit, except for message, where a negative
// number means none.
type limits struct {
	connect, call, idle time.Duration
	message             int
	tools               map[string]time.Duration
	// own reports that call comes from the options. Servers in this process apply it only then.
	own bool
}

// limitsFor gathers the limits of a server: its configuration's, else the
// host's, else the environment's, else the defaults.
func (o *Options) limitsFor(c Common) limits {
	l := limits{
		connect: first(max(c.ConnectTimeout, 0), o.ConnectTimeout),
		call:    first(c.CallTimeout, o.CallTimeout),
		idle:    first(c.IdleTimeout, o.IdleTimeout),
		message: c.MaxMessageBytes,
		tools:   c.ToolTimeouts,
	}
	l.own = l.call != 0
	if l.call == 0 {
		l.call = o.envMillis(envCallTimeout, DefaultCallTimeout)
	}
	l.call, l.idle = max(l.call, 0), max(l.idle, 0) // NoTimeout
	if l.message == 0 {
		l.message = o.MaxMessageBytes
	}
	return l
}

// forCall returns the limit of one call, zero for none. own is the limit that the call asks for.
func (l *limits) forCall(tool string, own time.Duration) time.Duration {
	switch t := first(own, l.tools[tool]); {
	case t < 0:
		return 0
	case t > 0:
		return t
	}
	return l.call
}

// first returns the first duration that is set.
func first(ds ...time.Duration) time.Duration {
	for _, d := range ds {
		if d != 0 {
			return d
		}
	}
	return 0
}
