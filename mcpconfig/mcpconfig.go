// Package mcpconfig reads, checks, merges and edits the configuration of MCP servers: .mcp.json,
// the file or JSON of --mcp-config, the user's and the local scope of ~/.claude.json, and the
// formats of Claude Desktop and VS Code.
//
// A faulty entry never takes down its file, nor a faulty file the others: each fault is a
// [Problem] with file, JSON path, what was expected and what to write instead, and the rest loads.
//
//	cfg, problems := mcpconfig.Load(&mcpconfig.LoadOptions{Dir: "."})
//	for _, p := range problems {
//		fmt.Fprintln(os.Stderr, p)
//	}
//	servers, more := cfg.ServerConfigs()
//	host, err := mcphost.New(&mcphost.Options{Servers: servers})
//
// What a person logged in to with "tenon mcp login" is used by these configurations, and renewed; see [Config.Tokens].
//
// # An entry
//
//	{"mcpServers": {
//	  "files":  {"command": "npx", "args": ["-y", "some-server", "."], "env": {"TOKEN": "${TOKEN}"}, "cwd": "data"},
//	  "search": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${KEY:-none}"}}
//	}}
//
// type is stdio, http (or streamable-http) or sse. Without it an entry with a command is stdio,
// and one with a url alone is http, with a note. The other keys: headersHelper and oauth for http
// and sse; timeout and connectTimeout in milliseconds, maxMessageBytes, alwaysLoad, required, disabled, and
// tools, a list of {"name": …, "permission_policy": "always_allow", "always_ask" or "always_deny"}, for all. connectTimeout,
// maxMessageBytes and required are Tenon's own. A key that is not known is told of in a note and does nothing else.
//
// # References
//
// ${NAME} and ${NAME:-default} are expanded in command, args, cwd, url, headersHelper and in the values of
// env, headers and oauth. A variable that is not set and has no default refuses the entry: a server never receives
// the reference itself. $NAME, $5, $$ and ${} are ordinary text, and what stands before a
// reference stays: \${NAME} is a backslash and the value. The default ends at the matching brace and may hold references. For the
// text ${NAME} as such, write ${_:-$}{NAME}, with a variable that is not set.
//
// # Trust
//
// A project's files come with a checkout, from whoever wrote it. Without trust ([LoadOptions.TrustFile]) a .mcp.json gives
// servers and the policies always_ask and always_deny. Its headersHelper, oauth, maxMessageBytes and always_allow have no
// effect, an entry that refers to a credential of the model ([mcphost.IsModelCredential]) is refused, and one does not
// replace the user's of its name. What settings files say without trust is at [LoadSettings]. All that is withheld is a
// [Problem] of [LevelUntrusted].
//
// # Text
//
// A byte order mark is skipped. Comments and trailing commas are accepted, with a note since other hosts refuse them. Of a key that stands twice in
// an object the last counts, with a note.
package mcpconfig

import (
	"maps"
	"slices"
	"time"

	"github.com/tenon-sdk/tenon/mcpauth"
	"github.com/tenon-sdk/tenon/permission"
)

// A Scope says where an entry comes from. Of two entries with one name that of the higher
// scope wins whole; nothing is merged.
type Scope string

// The scopes, the highest first.
const (
	// ScopeDynamic is what the program or its command line gives: [LoadOptions.MCPConfigs].
	ScopeDynamic Scope = "dynamic"
	// ScopeLocal is the user's own configuration for one project: projects[DIR].mcpServers of ~/.claude.json.
	ScopeLocal Scope = "local"
	// ScopeProject is .mcp.json in the directory or a folder above it up to the root of the repository; the nearest wins.
	// One that is not trusted comes behind the user's.
	ScopeProject Scope = "project"
	// ScopeUser is mcpServers of ~/.claude.json.
	ScopeUser Scope = "user"
)

// A Kind is a transport.
type Kind string

// The transports of external servers.
const (
	Stdio Kind = "stdio"
	HTTP  Kind = "http"
	SSE   Kind = "sse"
)

// An Entry is one server's configuration, checked and expanded. It holds secrets: its parts are not for logs.
type Entry struct {
	// Name is the registration key.
	Name string
	// Scope and Source say where the entry stands: Source is the file, or "--mcp-config" for JSON given in place.
	Scope  Scope
	Source string
	// Line is where the entry begins in its document, counted from 1.
	Line int
	// Untrusted reports that the entry is of a file of a checkout that [LoadOptions.TrustFile] does not trust.
	Untrusted bool

	// Kind is the transport. Command, Args, Env and Dir belong to stdio, the next four to http and sse.
	Kind          Kind
	Command       string
	Args          []string
	Env           map[string]string
	Dir           string
	URL           string
	Headers       map[string]string
	HeadersHelper string
	OAuth         *OAuth

	// CallTimeout and ConnectTimeout are zero when the entry gives none.
	CallTimeout, ConnectTimeout time.Duration
	// MaxMessageBytes is the longest message that the server may send; zero when the entry gives none.
	MaxMessageBytes                int
	AlwaysLoad, Required, Disabled bool
	// DisabledReason says why a program has set Disabled, for the server's status. No file sets it.
	DisabledReason string
	// Policies are the permission policies of single tools, by the tool's own name.
	Policies map[string]permission.ToolPolicy
}

// OAuth is what an entry says of its authorization server.
type OAuth struct {
	// ClientID and ClientSecret are of a client registered beforehand.
	ClientID, ClientSecret string
	// CallbackPort is the port of the redirect; zero means any.
	CallbackPort int
	// MetadataURL is where the authorization server's metadata stands, instead of discovery.
	MetadataURL string
	// Scopes are asked for instead of those that the server advertises.
	Scopes []string
}

// A Config is a set of servers.
type Config struct {
	// Servers are the entries in force, by name; those that are disabled too.
	Servers map[string]Entry
	// Refused are the entries that would be in force and cannot be used, by name. They keep their names: what a lower
	// scope has under one is not used.
	Refused map[string]Refusal
	// Overridden are the good entries that one of a higher scope, or a nearer file, replaces.
	Overridden []Entry
	// Tokens keeps the logins to servers over HTTP and SSE, for [Config.ServerConfigs]. Nil means those of the user,
	// which "tenon mcp login" makes ([mcpauth.UserStore]); for a run that is to use nobody's, give it [mcpauth.NewMemoryStore].
	Tokens mcpauth.TokenStore

	lookupEnv func(name string) (string, bool)
	// offWithoutTrust are the servers of trusted files that a file which is not trusted has switched off, with that file.
	offWithoutTrust map[string]string
}

// A Refusal is an entry that cannot be used.
type Refusal struct {
	// Entry has the name, the scope, the source, the line and whether it is untrusted, and of the rest what could
	// be read: Kind, Required and Disabled.
	Entry Entry
	// Problem says why.
	Problem Problem
}

// Names are the names of the usable servers, sorted.
func (c *Config) Names() []string { return slices.Sorted(maps.Keys(c.Servers)) }

// Policies are the per-tool permission policies of all servers, as [permission.Options.Tools] takes them.
func (c *Config) Policies() map[string]map[string]permission.ToolPolicy {
	out := map[string]map[string]permission.ToolPolicy{}
	for name, e := range c.Servers {
		if len(e.Policies) > 0 {
			out[name] = maps.Clone(e.Policies)
		}
	}
	return out
}
