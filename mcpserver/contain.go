package mcpserver

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
)

// contain calls a function of the program. It logs a panic and returns it as an
// error.
func contain(ctx context.Context, log *slog.Logger, what string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			log.ErrorContext(ctx, what+" panicked", "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			err = fmt.Errorf("mcpserver: %s panicked", what)
		}
	}()
	return f()
}

// containResult is contain for a function with a result.
func containResult[R any](ctx context.Context, log *slog.Logger, what string, f func() (R, error)) (result R, err error) {
	err = contain(ctx, log, what, func() (err error) {
		result, err = f()
		return err
	})
	return result, err
}
