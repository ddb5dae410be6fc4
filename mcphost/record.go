package mcphost

import (
	"context"
	"errors"
	"log/slog"

	"github.com/tenon-sdk/tenon/mcpserver"
)

type logAttrsKey struct{}

// WithLogAttrs returns a context whose requests are logged with more attributes
// than the host knows of, such as the id of the conversation that a call belongs
// to. They come after those that ctx has already.
func WithLogAttrs(ctx context.Context, attrs ...slog.Attr) context.Context {
	had := logAttrs(ctx)
	return context.WithValue(ctx, logAttrsKey{}, append(had[:len(had):len(had)], attrs...))
}

func logAttrs(ctx context.Context) []slog.Attr {
	attrs, _ := ctx.Value(logAttrsKey{}).([]slog.Attr) // absent: nobody has any
	return attrs
}

// callAttrs are the attributes of records about a call.
func callAttrs(ctx context.Context, tool string, more ...slog.Attr) []slog.Attr {
	attrs := append([]slog.Attr{slog.String("tool", tool)}, logAttrs(ctx)...)
	return append(attrs, more...)
}

// recordCall logs a call that ran out of time, was cut off, or for which there was
// no room. Why a server is not to be had is logged where that is found out, and
// what a server answers is the caller's.
func (c *conn) recordCall(ctx context.Context, e *CallError) {
	what := "call failed"
	switch {
	case errors.Is(e.Err, ErrTimeout):
		what = "call timed out"
	case e.mayHaveRun():
	case errors.As(e.Err, new(*BusyError)):
		what = "call refused"
	default:
		return
	}
	c.calls.LogAttrs(ctx, slog.LevelWarn, what, callAttrs(ctx, e.Tool, slog.String("error", e.Error()))...)
}

// failed logs a handler of a server in this process that panicked or ran over its
// time limit.
func (l *localLink) failed(ctx context.Context, f mcpserver.Failure) {
	if f.Timeout > 0 {
		l.log.LogAttrs(ctx, slog.LevelWarn, "call timed out in a server of this process", callAttrs(ctx, f.Name, slog.Duration("limit", f.Timeout))...)
		if timedOut, ok := ctx.Value(timedOutKey{}).(*bool); ok {
			*timedOut = true
		}
		return
	}
	l.log.LogAttrs(ctx, slog.LevelError, "panic in a server of this process",
		callAttrs(ctx, f.Name, slog.Any("panic", f.Panic), slog.String("stack", f.Stack))...)
}

// timedOutKey is the key of a context's *bool that is set when the handler of a
// call ran over its time limit.
type timedOutKey struct{}
