package mcphost

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpauth"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// NoTimeout as a time limit means no limit. Zero means the default.
const NoTimeout time.Duration = -1

// A ServerConfig says how to reach a server: a [Stdio], [HTTP] or [SSE] value,
// or what [InProcess] or [InMemory] returns. [Invalid] stands for one that cannot be reached.
type ServerConfig interface {
	common() Common
	transport() string
	validate() error
}

// Transports, as [ServerStatus.Transport] has them.
const (
	TransportStdio = "stdio"
	TransportHTTP  = "http"
	TransportSSE   = "sse"
	TransportSDK   = "sdk"
)

// Common is what all kinds of servers have. Its zero value means the defaults.
type Common struct {
	// ConnectTimeout bounds one attempt to connect, from starting the process
	// or the request to the received tool list. Zero means
	// [Options.ConnectTimeout].
	ConnectTimeout time.Duration
	// CallTimeout bounds one call, whatever progress it reports. Zero means
	// [Options.CallTimeout]; [NoTimeout] means none.
	CallTimeout time.Duration
	// IdleTimeout bounds the time in which a call reports no progress. Zero
	// means [Options.IdleTimeout]; [NoTimeout] means none.
	IdleTimeout time.Duration
	// ToolTimeouts are call limits of single tools, by their raw names. They win
	// over CallTimeout.
	ToolTimeouts map[string]time.Duration

	// AlwaysLoad makes the start wait for the server's tools and keeps them out
	// of deferral.
	AlwaysLoad bool
	// Required makes [Host.WaitFirstTurn] fail when the server is not connected by its end.
	Required bool
	// Disabled keeps the server from being connected until [Host.SetEnabled].
	Disabled bool
	// DisabledReason says why the server is Disabled, for [ServerStatus.Error].
	// Empty means that it was switched off on purpose.
	DisabledReason string
	// Source and Scope say where the configuration came from, for the status. Source is empty or
	// "sdk" for a server given in code. Any other value means a settings file or a plugin, which the
	// first turn waits for less long.
	Source, Scope string

	// MaxMessageBytes is the longest message that the server may send; longer
	// ones fail the call that they answer and nothing else. Zero means
	// [Options.MaxMessageBytes].
	MaxMessageBytes int
	// Roots are the roots that the server can list. Nil means [Options.Roots].
	Roots []string
}

func (c Common) common() Common { return c }

// Stdio is a server that runs as a child process and speaks on its stdin and
// stdout. It runs in a process group of its own; its stderr is drained always.
type Stdio struct {
	// Command is a program found on the child's PATH, or a path; a relative path
	// and one beginning with "~/" are resolved. Args are passed as they are.
	Command string
	Args    []string
	// Env is added to the parent's environment and overrides it. With CleanEnv the process has Env
	// alone. The credentials of the model are not inherited, see [IsModelCredential]: a server that
	// needs one has it in Env.
	Env      map[string]string
	CleanEnv bool
	// Dir is the working directory. Empty means [Options.Dir].
	Dir string
	Common
}

// HTTP is a server that speaks streamable HTTP at URL.
type HTTP struct {
	// URL is used verbatim. Redirects are followed within its origin only, and
	// only such that repeat the request (307 and 308).
	URL string
	// Headers are added to each request.
	Headers map[string]string
	// HTTPClient makes the requests; nil means a client of the host's own. Its
	// Timeout and CheckRedirect are not used. The host does not close its idle
	// connections.
	HTTPClient *http.Client
	// HeadersFunc, if set, is called before each connection. Its headers override Headers.
	HeadersFunc HeadersFunc
	// HeadersKey identifies HeadersFunc for [Host.SetServers], since functions cannot be compared.
	// Without keys two configurations are the same only with the very same function value, and a
	// server whose configuration was read again is reconnected.
	HeadersKey string
	// Auth adds OAuth tokens to requests, unless the headers have an Authorization of their own.
	// [Host.SetServers] compares two of them with their Same method.
	Auth *mcpauth.Authenticator
	Common
}

// SSE is a server that speaks the older HTTP+SSE transport at URL. Its fields
// are those of [HTTP].
type SSE struct {
	URL         string
	Headers     map[string]string
	HTTPClient  *http.Client
	HeadersFunc HeadersFunc
	HeadersKey  string
	Auth        *mcpauth.Authenticator
	Common
}

// InProcessServer is a server in this process. [InProcess] makes one; build it
// as a literal to set the fields of Common.
type InProcessServer struct {
	Provider mcpserver.Provider
	Common
}

// InProcess returns the configuration of a server in this process, such as an
// *[mcpserver.Server]. It is called by method, without JSON-RPC; see [InMemory]
// for a server of the official library. One provider may serve any number of hosts.
func InProcess(p mcpserver.Provider) ServerConfig { return InProcessServer{Provider: p} }

func (Stdio) transport() string           { return TransportStdio }
func (HTTP) transport() string            { return TransportHTTP }
func (SSE) transport() string             { return TransportSSE }
func (InProcessServer) transport() string { return TransportSDK }

func (c Stdio) validate() error {
	if c.Command == "" {
		return fmt.Errorf("no command given")
	}
	return nil
}

func (c HTTP) validate() error { return validateURL(c.URL) }
func (c SSE) validate() error  { return validateURL(c.URL) }

func (c InProcessServer) validate() error {
	if isNil(c.Provider) {
		return fmt.Errorf("no server given")
	}
	return nil
}

func validateURL(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case raw == "":
		return fmt.Errorf("no URL given")
	case err != nil:
		return fmt.Errorf("the URL cannot be parsed") // err holds the URL, which may hold a password
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("the URL must begin with http:// or https:// and name a host")
	}
	return nil
}

// isNil reports whether a is nil or a nil pointer.
func isNil(a any) bool {
	v := reflect.ValueOf(a)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// clone returns a copy that later changes by the caller do not reach.
func clone(c ServerConfig) ServerConfig {
	switch c := c.(type) {
	case Stdio:
		c.Args = slices.Clone(c.Args)
		c.Env = maps.Clone(c.Env)
		c.Common = c.Common.clone()
		return c
	case HTTP:
		c.Headers = maps.Clone(c.Headers)
		c.Common = c.Common.clone()
		return c
	case SSE:
		c.Headers = maps.Clone(c.Headers)
		c.Common = c.Common.clone()
		return c
	case Custom:
		c.Common = c.Common.clone()
		return c
	}
	return c
}

func (c Common) clone() Common {
	c.ToolTimeouts = maps.Clone(c.ToolTimeouts)
	c.Roots = slices.Clone(c.Roots)
	return c
}

// HeadersFunc computes headers for the requests to one server.
type HeadersFunc func(ctx context.Context) (map[string]string, error)

// Custom is a server that is reached over a transport of the program's own. [InMemory] returns one
// for a server made with the official MCP library.
type Custom struct {
	// Open returns the transport of one connection.
	Open func(ctx context.Context) (mcp.Transport, error)
	// Key identifies the server for [Host.SetServers], since functions cannot be compared: a
	// server whose key is the same, and not empty, stays connected.
	Key string
	Common
}

func (Custom) transport() string { return TransportSDK }

func (c Custom) validate() error {
	if c.Open == nil {
		return errors.New("no server given")
	}
	return nil
}

// Invalid is a configured server that cannot be used, because its configuration is faulty. A host lists it with the
// status failed and the reason, and never connects it. It keeps the name: no other server runs under it.
type Invalid struct {
	// Transport is the transport that the configuration names, if it is known.
	Transport string
	// Err says what is wrong with the configuration. It must hold no secrets.
	Err error
	Common
}

func (c Invalid) transport() string { return c.Transport }

func (c Invalid) validate() error {
	if c.Err == nil {
		return errors.New("the configuration cannot be used")
	}
	return c.Err
}
