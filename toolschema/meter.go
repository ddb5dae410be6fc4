package toolschema

import (
	"context"
	"fmt"
)

const (
	// maxWork bounds the steps of mending one tool. A step is a value that is looked at, or a few bytes. The largest
	// of the tools that people use take a two-hundredth of it.
	maxWork = 2 << 20
	// defaultBudget bounds the steps for the tools of one [Budget].
	defaultBudget = 8 << 20
	// looks is how many steps pass between two looks at the context.
	looks = 4 << 10
)

// A Budget bounds the work for several tools together, as for those of one server: it is enough for any
// that were not made to be expensive. What it does not cover is left out with that reason. The zero value is ready
// to use. It is for one goroutine at a time.
type Budget struct{ spent int }

// A meter counts the steps of one tool and ends its mending when there are too many, or when the context has ended.
type meter struct {
	ctx    context.Context
	budget *Budget
	spent  int
	look   int // when to look at the context
}

// An overrun is the panic by which a meter ends the mending of a tool: it may be deep in a schema then.
type overrun struct{ reason string }

// spend counts steps.
func (m *meter) spend(steps int) {
	m.spent += steps
	m.budget.spent += steps
	if m.spent > maxWork {
		panic(overrun{fmt.Sprintf("its schema takes more than the %d steps that mending one may take", maxWork)})
	}
	if m.budget.spent > defaultBudget {
		panic(overrun{fmt.Sprintf("with the tools before it, its schema takes more than the %d steps that mending those of one server may take", defaultBudget)})
	}
	if m.spent >= m.look {
		m.look = m.spent + looks
		if err := m.ctx.Err(); err != nil {
			panic(overrun{fmt.Sprintf("its schema was not mended: %v", err)})
		}
	}
}

// guarded runs f until it returns or the meter ends it, with the reason.
func (m *meter) guarded(f func()) (reason string) {
	defer func() {
		if p := recover(); p != nil {
			o, ok := p.(overrun)
			if !ok {
				panic(p)
			}
			reason = o.reason
		}
	}()
	f()
	return ""
}
