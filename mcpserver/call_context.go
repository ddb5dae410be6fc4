package mcpserver

import "context"

type callKey struct{}

// WithCall returns a context that carries c to the next [ServerSession.GetPrompt],
// [ServerSession.ReadResource] or [ServerSession.Complete]: its request id,
// progress token, _meta, client, and the answers to what the last round asked
// for. The name and the arguments of c do not count, and CallTool takes its own
// Call instead.
func WithCall(ctx context.Context, c Call) context.Context {
	return context.WithValue(ctx, callKey{}, &c)
}

// callFrom is the Call that ctx carries, the zero Call if there is none.
func callFrom(ctx context.Context) Call {
	if c, _ := ctx.Value(callKey{}).(*Call); c != nil {
		return *c
	}
	return Call{}
}
