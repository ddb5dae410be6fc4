package mcphost

import "time"

// noContext is the context where a caller has none to give: it never ends.
type noContext struct{}

// Deadline implements [context.Context].
func (noContext) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done implements [context.Context].
func (noContext) Done() <-chan struct{} { return nil }

// Err implements [context.Context].
func (noContext) Err() error { return nil }

// Value implements [context.Context].
func (noContext) Value(any) any { return nil }
