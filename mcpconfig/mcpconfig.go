// Package mcpconfig reads, checks, merges and edits the configuration of MCP servers: .mcp.json,
// the file or JSON of --mcp-config, the user's and the local scope of ~/.claude.json, and the
// formats of Claude Desktop and VS Code.
//
// A faulty entry does not affect the rest of its file, and a faulty file does not affect the others. Each
// fault is a [Problem] with the file, the JSON path, what was expected and what to write instead.
//
//	cfg, problems := mcpconfig.Load(&mcpconfig.LoadOptions{Dir: "."})
//	for _, p := range problems {
//		fmt.Fprintln(os.Stderr, p)
//	}
//	servers, more := cfg.ServerConfigs()
//	host, err := mcphost.New(&mcphost.Options{Servers: servers})
//
// The servers use the logins that the user made with "tenon mcp login"; see [Config.Tokens].
//
// # An entry
//
//	{"mcpServers": {
//	  "files":  {"command": "npx", "args": ["-y", "some-server", "."], "env": {"TOKEN": "${TOKEN}"}, "cwd": "data"},
//	  "search": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${KEY:-none}"}}
//	}}
//
// type is stdio, http (or streamable-http) or sse. Without it, an entry with a command is stdio, and one
// with a url alone is http, with a note. headersHelper and oauth are for http and sse. timeout and
// connectTimeout (in milliseconds), maxMessageBytes, alwaysLoad, required, disabled and tools are for all
// types. tools is a list of {"name": …, "permission_policy": "always_allow", "always_ask" or
// "always_deny"}. connectTimeout, maxMessageBytes and required are extensions of Tenon. An unknown key has no
// effect and is reported in a note.
//
// # References
//
// ${NAME} and ${NAME:-default} are expanded in command, args, cwd, url, headersHelper and in the values of
// env, headers and oauth. A variable that is not set and has no default refuses the entry. $NAME, $5, $$ and
// ${} are ordinary text, and so is the character before a reference: \${NAME} is a backslash and the value.
// The default ends at the matching brace and may contain references. The text ${NAME} is written
// ${_:-$}{NAME}, with a variable that is not set.
//
// # Trust
//
// A project's files come with a checkout from its author. Without trust ([LoadOptions.TrustFile]), a
// .mcp.json gives servers and the policies always_ask and always_deny. Its headersHelper, oauth,
// maxMessageBytes and always_allow have no effect. An entry that refers to a credential of the model
// ([mcphost.IsModelCredential]) is refused, and an entry does not replace the user's of the same name.
// [LoadSettings] describes settings files without trust. Everything without effect is a [Problem] of
// [LevelUntrusted].
//
// # Text
//
// A byte order mark is skipped. Comments and trailing commas are accepted with a note, because other hosts
// refuse them. If a key is in an object more than once, the last one is used, with a note.
package mcpconfig

import (
	"maps"
	"slices"
	"time"

	"github.com/tenon-sdk/tenon/mcpauth"
	"github.com/tenon-sdk/tenon/permission"
)

// A Scope is the origin of an entry. Of two entries with the same name, the one of the higher scope is used;
// they are not merged.
type Scope string

// The scopes, from the highest to the lowest.
const (
	// ScopeDynamic is given by the program or its command line: [LoadOptions.MCPConfigs].
	ScopeDynamic Scope = "dynamic"
	// ScopeLocal is the user's configuration for a project: projects[DIR].mcpServers of ~/.claude.json.
	ScopeLocal Scope = "local"
	// ScopeProject is .mcp.json in the directory or its parents up to the root of the repository; the nearest
	// is the highest. Without trust, it is below ScopeUser.
	ScopeProject Scope = "project"
	// ScopeUser is mcpServers of ~/.claude.json.
	ScopeUser Scope = "user"
)

// A Kind is a transport.
type Kind string

// The transports.
const (
	Stdio Kind = "stdio"
	HTTP  Kind = "http"
	SSE   Kind = "sse"
)

// An Entry is the valid and expanded configuration of a server. It may contain secrets and must not be
// logged.
type Entry struct {
	// Name is the server's key.
	Name string
	// Scope is the origin of the entry. Source is its file, or "--mcp-config" for JSON on the command line.
	Scope  Scope
	Source string
	// Line is the first line of the entry in its document, counted from 1.
	Line int
	// Untrusted reports whether the entry is from a file without trust; see [LoadOptions.TrustFile].
	Untrusted bool

	// Kind is the transport. Command, Args, Env and Dir are for stdio, URL to OAuth for http and sse.
	Kind          Kind
	Command       string
	Args          []string
	Env           map[string]string
	Dir           string
	URL           string
	Headers       map[string]string
	HeadersHelper string
	OAuth         *OAuth

	// CallTimeout and ConnectTimeout are zero if the entry has none.
	CallTimeout, ConnectTimeout time.Duration
	// MaxMessageBytes bounds a message of the server. It is zero if the entry has no bound.
	MaxMessageBytes                int
	AlwaysLoad, Required, Disabled bool
	// DisabledReason is a program's reason for setting Disabled, for the server's status.
	DisabledReason string
	// Policies are the permission policies of tools, by the tool's name.
	Policies map[string]permission.ToolPolicy
}

// OAuth configures the login to a server.
type OAuth struct {
	// ClientID and ClientSecret are of a client that is already registered.
	ClientID     string `json:"clientId,omitempty"`
	ClientSecret string `json:"clientSecret,omitempty"`
	// CallbackPort is the port of the redirect URL. Zero means any.
	CallbackPort int `json:"callbackPort,omitzero"`
	// MetadataURL is the URL of the authorization server's metadata. Empty means discovery.
	MetadataURL string `json:"authServerMetadataUrl,omitempty"`
	// Scopes replace the scopes that the server asks for.
	Scopes []string `json:"scopes,omitempty"`
}

// A Config is a set of servers.
type Config struct {
	// Servers are the entries in use by name, including disabled ones.
	Servers map[string]Entry
	// Refused are the faulty entries by name. An entry of a lower scope does not replace them.
	Refused map[string]Refusal
	// Overridden are the valid entries that entries of a higher scope or a nearer file replace.
	Overridden []Entry
	// Tokens stores the logins for [Config.ServerConfigs]. Nil means the user's store, which "tenon mcp login"
	// uses ([mcpauth.UserStore]). [mcpauth.NewMemoryStore] keeps a program from using the user's logins.
	Tokens mcpauth.TokenStore

	lookupEnv func(name string) (string, bool)
	// offWithoutTrust has the servers of trusted files that an untrusted file disables, with that file.
	offWithoutTrust map[string]string
}

// A Refusal is an entry that cannot be used.
type Refusal struct {
	// Entry has Name, Scope, Source, Line and Untrusted, and Kind, Required and Disabled if they are valid.
	Entry Entry
	// Problem is the reason.
	Problem Problem
}

// Names returns the names of c.Servers, sorted.
func (c *Config) Names() []string { return slices.Sorted(maps.Keys(c.Servers)) }

// Policies returns the permission policies of the tools of all servers, for [permission.Options.Tools].
func (c *Config) Policies() map[string]map[string]permission.ToolPolicy {
	out := map[string]map[string]permission.ToolPolicy{}
	for name, e := range c.Servers {
		if len(e.Policies) > 0 {
			out[name] = maps.Clone(e.Policies)
		}
	}
	return out
}
