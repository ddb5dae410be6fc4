package mcpconfig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenon-sdk/tenon/internal/subproc"
	"github.com/tenon-sdk/tenon/mcpauth"
	"github.com/tenon-sdk/tenon/mcphost"
)

// ServerConfigs returns the configuration of the servers for a host, including disabled ones, and an
// [mcphost.Invalid] for each refused entry. A server over HTTP or SSE without an Authorization header uses
// the login of [Config.Tokens] for its URL. Nobody is asked to log in: without a login, a server that
// requires one has the status needs-auth. A server without TLS on another machine uses no login. The problems
// are entries whose oauth has no effect.
func (c *Config) ServerConfigs() (map[string]mcphost.ServerConfig, []Problem) {
	out := make(map[string]mcphost.ServerConfig, len(c.Servers))
	var problems []Problem
	store := sync.OnceValues(func() (mcpauth.TokenStore, error) {
		if c.Tokens != nil {
			return c.Tokens, nil
		}
		return mcpauth.UserStore(c.lookupEnv)
	})
	for _, name := range c.Names() {
		e := c.Servers[name]
		auth, err := e.login(store)
		if err != nil && e.OAuth != nil {
			p := e.problem(LevelNote, "does nothing: %v", err)
			p.Path = joinPath(p.Path, "oauth")
			problems = append(problems, p)
		}
		out[name] = e.serverConfig(auth)
	}
	for name, r := range c.Refused {
		if strings.TrimSpace(name) != "" {
			p := r.Problem
			p.Level = LevelNote // for String: the status of the server says that it is left out
			out[name] = mcphost.Invalid{Transport: string(r.Entry.Kind), Err: errors.New(p.String()), Common: r.Entry.common()}
		}
	}
	return out, problems
}

// login returns the authenticator of the entry, or nil if the server uses none.
func (e Entry) login(store func() (mcpauth.TokenStore, error)) (*mcpauth.Authenticator, error) {
	authorized := false
	for name := range e.Headers {
		authorized = authorized || strings.EqualFold(name, "Authorization")
	}
	switch {
	case e.OAuth == nil && (authorized || e.Kind == Stdio):
		return nil, nil
	case authorized:
		return nil, errors.New("the entry has an Authorization header, which is used instead")
	}
	tokens, err := store()
	if err != nil {
		return nil, err
	}
	auth, err := e.Authenticator(&mcpauth.Options{Store: tokens})
	if errors.Is(err, mcpauth.ErrInsecureURL) && e.OAuth == nil {
		return nil, nil // such as a server in the local network, which gets no token
	}
	return auth, err
}

// Authenticator returns the authenticator of a server over HTTP or SSE. The entry's OAuth overrides the
// options. o may be nil.
func (e Entry) Authenticator(o *mcpauth.Options) (*mcpauth.Authenticator, error) {
	var opts mcpauth.Options
	if o != nil {
		opts = *o
	}
	if c := e.OAuth; c != nil {
		opts.ClientID, opts.ClientSecret = c.ClientID, c.ClientSecret
		opts.MetadataURL, opts.Scopes = c.MetadataURL, c.Scopes
	}
	return mcpauth.New(e.URL, &opts)
}

func (e Entry) common() mcphost.Common {
	common := mcphost.Common{
		ConnectTimeout:  e.ConnectTimeout,
		CallTimeout:     e.CallTimeout,
		MaxMessageBytes: e.MaxMessageBytes,
		AlwaysLoad:      e.AlwaysLoad,
		Required:        e.Required,
		Disabled:        e.Disabled,
		DisabledReason:  e.DisabledReason,
		Scope:           string(e.Scope),
	}
	if e.Scope != ScopeDynamic {
		common.Source = string(e.Scope) // without it, a server is given in code
	}
	return common
}

// ServerConfig returns the configuration for a host, without a login; see [Config.ServerConfigs].
func (e Entry) ServerConfig() mcphost.ServerConfig { return e.serverConfig(nil) }

func (e Entry) serverConfig(auth *mcpauth.Authenticator) mcphost.ServerConfig {
	if e.Kind != HTTP && e.Kind != SSE {
		return mcphost.Stdio{Command: e.Command, Args: slices.Clone(e.Args), Env: maps.Clone(e.Env), Dir: e.Dir, Common: e.common()}
	}
	remote := mcphost.HTTP{
		URL: e.URL, Headers: maps.Clone(e.Headers), HeadersFunc: e.headersFunc(), HeadersKey: e.HeadersHelper, Auth: auth, Common: e.common(),
	}
	if e.Kind == SSE {
		return mcphost.SSE(remote)
	}
	return remote
}

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
