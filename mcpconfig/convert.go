package mcpconfig

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/mcpauth"
	"github.com/tenon-sdk/tenon/mcphost"
)

// ServerConfigs are the servers in force as a host takes them, those that are disabled too, and an [mcphost.Invalid] for
// each entry that is refused, so that it has a status and a reason. A server over HTTP or SSE
// whose entry has no Authorization header gets the login that [Config.Tokens] has for its address, with what the entry's oauth says;
// nobody is asked, so a server that wants a login and has none is in needs-auth, with that reason. A server without TLS that is
// not on this machine gets none. The problems are entries for which that cannot work.
func (c *Config) ServerConfigs() (map[string]mcphost.ServerConfig, []Problem) {
	out := make(map[string]mcphost.ServerConfig, len(c.Servers))
	var problems []Problem
	logins := logins{config: c}
	for _, name := range c.Names() {
		e := c.Servers[name]
		auth, err := logins.of(e)
		if err != nil && e.OAuth != nil {
			problems = append(problems, Problem{
				Level: LevelNote, File: e.Source, Line: e.Line, Column: 1, Server: name, Path: joinPath(joinPath(serversKey, name), keyOAuth),
				Message: "does nothing: " + err.Error(),
			})
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

// serverConfig is the refused entry as a host lists it.
func (r Refusal) serverConfig() mcphost.Invalid {
	p := r.Problem
	p.Level = LevelNote // the status says what it costs
	return mcphost.Invalid{Transport: string(r.Entry.Kind), Err: errors.New(p.String()), Common: r.Entry.common()}
}

// logins makes the authenticators of a configuration's servers.
type logins struct {
	config *Config
	store  mcpauth.TokenStore
	err    error // why there is no store
}

// of is the login of an entry; nil for a server that can have none.
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
		return nil, nil // a server of the local network, say: it can be used, but no token is sent there
	}
	return auth, err
}

// hasAuthorization reports whether the entry has a static Authorization header.
func (e Entry) hasAuthorization() bool {
	for name := range e.Headers {
		if strings.EqualFold(name, "Authorization") {
			return true
		}
	}
	return false
}

// Authenticator is the login of a server over HTTP or SSE, with what the entry's oauth says put over o; nil means the defaults.
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

// common is what all kinds of servers have.
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
		common.Source = string(e.Scope) // the dynamic scope counts as given in code
	}
	return common
}

// ServerConfig is the entry as a host takes it, without a login: see [Config.ServerConfigs].
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
