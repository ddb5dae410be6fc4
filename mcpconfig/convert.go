package mcpconfig

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

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
