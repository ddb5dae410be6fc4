package mcphost

import (
	"context"
	"log/slog"
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
