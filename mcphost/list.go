package mcphost

import (
	"context"

	"github.com/tenon-sdk/tenon/mcpserver"
)

// maxNamed is how many tools that are left out the log names for one list.
const maxNamed = 100

// list lists the tools of a server, with the secrets of what it says masked. Each
// tool that has to be left out is logged, unless the list before had it, too.
func (d *dialer) list(ctx context.Context, l link) (toolList, error) {
	list, err := l.listTools(ctx)
	list.problem = maskError(d.mask, list.problem)
	now := make(map[RejectedTool]bool, len(list.rejected))
	for i := range list.rejected {
		r := &list.rejected[i]
		r.Name, r.Reason = d.mask.Hide(r.Name), d.mask.Hide(r.Reason)
		now[*r] = true
	}
	d.mu.Lock()
	before := d.rejected
	d.rejected = now
	d.mu.Unlock()
	named, more := 0, 0
	for _, r := range list.rejected {
		switch {
		case before[r]:
		case named == maxNamed:
			more++
		default:
			named++
			d.log.Warn("tool left out", "tool", r.Name, "reason", r.Reason)
		}
	}
	if more > 0 {
		d.log.Warn("more tools left out; the status has them", "count", more)
	}
	return list, err
}

// registrations adds the tools that a server in this process left out when they
// were registered. They are reported here as well, whatever logger the server has.
func (l *localLink) registrations(list *toolList) {
	p, ok := l.provider.(interface{ Rejected() []mcpserver.Rejection })
	if !ok {
		return
	}
	for _, r := range p.Rejected() {
		if r.Kind == mcpserver.KindTool {
			list.reject(Tool{Server: l.name, Name: r.Name}, r.Err.Error())
		}
	}
}
