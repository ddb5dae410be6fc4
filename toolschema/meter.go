package toolschema

import (
	"context"
	"fmt"
)

const (
	// maxWork limits the steps for one tool. A step is a value or a few bytes. The largest known
	// tools take 1/200 of it.
	maxWork = 2 << 20
	// defaultBudget limits the steps for the tools of one [Budget].
	defaultBudget = 8 << 20
	// looks is the number of steps between two checks of the context.
	looks = 4 << 10
)

// A Budget limits the work for several tools, such as those of one server. It suffices for any that
// are not made to be expensive. Tools beyond it are quarantined. The zero value is ready to use, by
// one goroutine at a time.
type Budget struct{ spent int }

// A meter counts the steps for one tool and ends its correction at the limit or the end of the
// context.
type meter struct {
	ctx    context.Context
	budget *Budget
	spent  int
	look   int // when to look at the context
}

// An overrun is the panic by which a meter ends a correction.
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

// guarded runs f and returns the reason if the meter ends it.
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
