package mcphost

import "time"

// limits are those in force for one server. Zero means none, except for
// message, where a negative number does.
type limits struct {
	connect, call, idle time.Duration
	message             int
	tools               map[string]time.Duration
	// own reports that the call limit is the host's own doing; servers in this
	// process have rules of their own otherwise.
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

// forCall is the hard limit of one call, zero for none.
func (l *limits) forCall(tool string, wish time.Duration) time.Duration {
	switch t := first(wish, l.tools[tool]); {
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
