package mcpconfig

import (
	"errors"
	"maps"
	"slices"
	"strings"

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
	logins := logins{config: c}
	for _, name := range c.Names() {
		e := c.Servers[name]
		auth, err := logins.of(e)
		if err != nil && e.OAuth != nil {
			p := e.problem(LevelNote, "does nothing: %v", err)
			p.Path = joinPath(p.Path, "oauth")
			problems = append(problems, p)
		}
		switch cfg := e.ServerConfig().(type) {
		case mcphost.HTTP:
			cfg.Auth = auth
			out[name] = cfg
		case mcphost.SSE:
			cfg.Auth = auth
			out[name] = cfg
		default:
			out[name] = cfg
		}
	}
	for name, r := range c.Refused {
		if strings.TrimSpace(name) != "" {
			out[name] = r.serverConfig()
		}
	}
	return out, problems
}

// serverConfig returns the entry for the status of a host.
func (r Refusal) serverConfig() mcphost.Invalid {
	p := r.Problem
	p.Level = LevelNote // for String: the status of the server says that it is left out
	return mcphost.Invalid{Transport: string(r.Entry.Kind), Err: errors.New(p.String()), Common: r.Entry.common()}
}

// logins creates the authenticators of a configuration's servers.
type logins struct {
	config *Config
	store  mcpauth.TokenStore
	err    error // why there is no store
}

// of returns the authenticator of an entry, or nil if the server uses none.
func (l *logins) of(e Entry) (*mcpauth.Authenticator, error) {
	if e.Kind == Stdio || e.hasAuthorization() {
		if e.OAuth != nil {
			return nil, errors.New("the entry has an Authorization header, which is used instead")
		}
		return nil, nil
	}
	if l.store == nil && l.err == nil {
		if l.store = l.config.Tokens; l.store == nil {
			l.store, l.err = mcpauth.UserStore(l.config.lookupEnv)
		}
	}
	if l.err != nil {
		return nil, l.err
	}
	auth, err := e.Authenticator(&mcpauth.Options{Store: l.store})
	if errors.Is(err, mcpauth.ErrInsecureURL) && e.OAuth == nil {
		return nil, nil // such as a server in the local network, which gets no token
	}
	return auth, err
}

// hasAuthorization reports whether the entry has a static Authorization header.
func (e Entry) hasAuthorization() bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(e.Headers)), func(name string) bool {
		return strings.EqualFold(name, "Authorization")
	})
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
func (e Entry) ServerConfig() mcphost.ServerConfig {
	common := e.common()
	switch e.Kind {
	case HTTP:
		return mcphost.HTTP{URL: e.URL, Headers: maps.Clone(e.Headers), HeadersFunc: e.headersFunc(), HeadersKey: e.HeadersHelper, Common: common}
	case SSE:
		return mcphost.SSE{URL: e.URL, Headers: maps.Clone(e.Headers), HeadersFunc: e.headersFunc(), HeadersKey: e.HeadersHelper, Common: common}
	}
	return mcphost.Stdio{Command: e.Command, Args: slices.Clone(e.Args), Env: maps.Clone(e.Env), Dir: e.Dir, Common: common}
}
