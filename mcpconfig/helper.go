package mcpconfig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sdk/tenon/internal/subproc"
	"github.com/tenon-sdk/tenon/mcphost"
)

const (
	// helperLimit bounds the time of a headersHelper, and helperBytes its output.
	helperLimit = 10 * time.Second
	helperBytes = 1 << 20
	// helperGrace is the time for a helper to end after it is stopped.
	helperGrace = 200 * time.Millisecond
)

// headersFunc returns a function that runs the entry's headersHelper, or nil without one.
func (e Entry) headersFunc() mcphost.HeadersFunc {
	if e.HeadersHelper == "" {
		return nil
	}
	return func(ctx context.Context) (map[string]string, error) {
		ctx, cancel := context.WithTimeout(ctx, helperLimit)
		defer cancel()
		h, err := runHelper(ctx, e)
		if err != nil {
			return nil, fmt.Errorf("headersHelper of server %q: %w", e.Name, err)
		}
		return h, nil
	}
}

// runHelper runs the command in a shell and reads a JSON object of strings from its output. Errors contain
// neither the command nor the output.
func runHelper(ctx context.Context, e Entry) (map[string]string, error) {
	shell, flag := "/bin/sh", "-c"
	if runtime.GOOS == "windows" {
		shell, flag = "cmd.exe", "/c"
	}
	p, err := subproc.Start(ctx, subproc.Options{
		Command: shell, Args: []string{flag, e.HeadersHelper},
		Env:   append(helperEnv(), "CLAUDE_CODE_MCP_SERVER_NAME="+e.Name, "CLAUDE_CODE_MCP_SERVER_URL="+e.URL),
		Grace: helperGrace,
	})
	if err != nil {
		return nil, errors.New("the shell cannot be started")
	}
	stop := context.AfterFunc(ctx, func() { _ = p.Close() })
	defer func() {
		stop()
		_ = p.Close()
	}()
	_ = p.Stdin.Close()
	out, err := io.ReadAll(io.LimitReader(p.Stdout, helperBytes+1))
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("did not finish: %w", context.Cause(ctx))
	case err != nil:
		return nil, errors.New("its output cannot be read")
	case len(out) > helperBytes:
		return nil, fmt.Errorf("printed more than %d bytes", helperBytes)
	}
	select {
	case <-p.Exited():
	case <-ctx.Done():
		return nil, fmt.Errorf("did not finish: %w", context.Cause(ctx))
	}
	if exit := p.Exit(); exit.Code != 0 {
		return nil, errors.New(exit.String())
	}
	return helperHeaders(out)
}

// helperEnv returns the process environment without the credentials of the model. A helper that needs one has
// a reference in its command.
func helperEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return mcphost.IsModelCredential(name, nil)
	})
}

// helperHeaders decodes the output of a helper.
func helperHeaders(out []byte) (map[string]string, error) {
	var h map[string]string
	if err := json.Unmarshal(out, &h); err != nil || h == nil {
		return nil, errors.New("printed no JSON object of strings") // without err, which may quote a secret
	}
	for name, value := range h {
		if !isToken(name) || strings.ContainsAny(value, "\r\n\x00") {
			return nil, errors.New("printed a header that cannot be sent")
		}
	}
	return h, nil
}
