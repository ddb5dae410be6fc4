package mcphost

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Defaults of [Options].
const (
	DefaultConnectTimeout  = 30 * time.Second
	DefaultCallTimeout     = 10 * time.Minute
	DefaultMaxMessageBytes = 64 << 20
	DefaultNameLimit       = 64
	DefaultBreakAfter      = 3
	DefaultProbeInterval   = 10 * time.Second
	DefaultMaxServerCalls  = 256
	DefaultMaxCalls        = 1024
	DefaultMaxQueuedCalls  = 1024
)

// Options configure a [Host]. The zero value, like a nil pointer, means the
// defaults.
type Options struct {
	// Servers by name. The name is the SERVER of the tools' full names.
	Servers map[string]ServerConfig

	// Logger logs what callers do not see: noise on stdout, retries, and the log messages of
	// servers. Nil discards.
	Logger *slog.Logger
	// Dir is the directory that stdio servers start in and that they are told
	// about as a root. Empty means the program's.
	Dir string
	// Env overlays the process environment when the host looks up its own
	// settings (MCP_TIMEOUT, MCP_TOOL_TIMEOUT ...). It is not passed to servers.
	Env map[string]string

	// ConnectTimeout bounds each attempt to connect. Zero means MCP_TIMEOUT
	// (milliseconds), else 30 s.
	ConnectTimeout time.Duration
	// CallTimeout bounds each call. Zero means MCP_TOOL_TIMEOUT (milliseconds),
	// else 10 minutes; servers in this process have rules of their own, which
	// this limit overrides when set. [NoTimeout] means none.
	CallTimeout time.Duration
	// IdleTimeout bounds the time in which a call reports no progress. Zero and
	// [NoTimeout] mean no such limit.
	IdleTimeout time.Duration
	// BreakAfter is how many calls in a row to one server may time out, without any message of the
	// server, before the host pings it. If the ping is not answered, the server is failed, and calls
	// to it fail at once with [ErrUnresponsive] until it answers one of the pings that follow after
	// 1 s, 2 s, 4 s and so on, up to 30 s. Zero means 3; a negative number means never.
	BreakAfter int
	// ProbeInterval is how often the host checks an idle server over HTTP that has no stream of
	// changes open: by a TCP connection if the URL is plain http, else by a ping, a third as often.
	// Zero means 10 s; [NoTimeout] means never.
	ProbeInterval time.Duration
	// CloseGrace is how long a child process has after its stdin was closed,
	// and half of it again after it was asked to terminate, before it is
	// killed. Zero means 2 s. See [Host.Close].
	CloseGrace time.Duration
	// CallGrace is how long calls that run have to end when their connection is
	// closed on request ([Host.Close], [Host.SetServers], [Host.SetEnabled],
	// [Host.Reconnect]). Meanwhile the connection takes no more. Zero cuts them off
	// at once.
	CallGrace time.Duration
	// MaxServerCalls is how many calls to one server, and other requests, run at
	// once, MaxCalls how many to all servers together, and MaxQueuedCalls how many
	// more wait for each of these limits. A call beyond that, or one that waited for
	// as long as a call may take, is a [CallError] with a *[BusyError]. Zero means
	// 256, 1024 and 1024; a negative number means no limit. A call that waits for
	// its server to connect counts. A handler in this process that calls another
	// tool of the host while it runs has one slot for each.
	MaxServerCalls, MaxCalls, MaxQueuedCalls int
	// MaxMessageBytes is the longest message taken from a server. Zero means
	// 64 MiB, a negative number no limit.
	MaxMessageBytes int
	// NameLimit is the longest full name of a tool, in bytes. Longer ones end
	// in a hash. Zero means 64; models accept 128 in definitions.
	NameLimit int

	// Client is the name and version that servers are sent. Nil means "tenon".
	Client *mcp.Implementation
	// Roots are paths or file: URIs that servers are told about. Nil means Dir;
	// an empty slice means none, and then the capability is not declared.
	Roots []string
	// OnStderr is called with each line that a child process writes to stderr, as
	// it is, secrets included, one at a time for each server. Lines are dropped while it falls behind;
	// a line in parentheses says how many.
	OnStderr func(server, line string)
	// A panic of Elicit, Sample or another callback fails the request, or loses the report, that it
	// was called for. The log has the stack.

	// Elicit answers a server's question to the user. Nil means that the
	// capability is not declared.
	Elicit func(ctx context.Context, server string, p *mcp.ElicitParams) (*mcp.ElicitResult, error)
	// Sample answers a server's request for a model's answer. Nil means that
	// the capability is not declared.
	Sample func(ctx context.Context, server string, p *mcp.CreateMessageWithToolsParams) (*mcp.CreateMessageWithToolsResult, error)
	// OnResourceUpdated is called when a resource that is subscribed to changes, one call at a time
	// for each server, on a goroutine of its own. It may use the host. Changes of one resource that
	// wait for it become one. At most 1,024 resources of a server wait; beyond that the oldest are
	// dropped, with a record in the log.
	OnResourceUpdated func(server, uri string)

	// CacheDir switches the discovery cache on: the tool lists of HTTP and SSE
	// servers are kept there, in files that only the user may read. Empty means
	// that MCP_DISCOVERY_CACHE=1 decides, with a directory in the user's cache
	// directory. A server with a list there is connected by the first call to it;
	// its tools are listed at once, and it is pending meanwhile. A list is good
	// for a day, and replaced by each connection and each change. It belongs to the
	// server's URL, headers and login; servers with a HeadersFunc or an HTTPClient
	// have none.
	CacheDir string

	// Wait bounds how long the first turn waits for servers.
	Wait WaitOptions
}

func (o *Options) withDefaults() (Options, error) {
	var opts Options
	if o != nil {
		opts = *o
	}
	for name, v := range map[string]time.Duration{"ConnectTimeout": opts.ConnectTimeout, "CloseGrace": opts.CloseGrace, "CallGrace": opts.CallGrace} {
		if v < 0 {
			return Options{}, fmt.Errorf("mcphost: %s is %v, want 0 or more", name, v)
		}
	}
	if opts.NameLimit != 0 && (opts.NameLimit < 16 || opts.NameLimit > 128) {
		return Options{}, fmt.Errorf("mcphost: NameLimit is %d, want 16 to 128", opts.NameLimit)
	}
	opts.Env = maps.Clone(opts.Env)
	opts.Roots = slices.Clone(opts.Roots)
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Client == nil {
		opts.Client = &mcp.Implementation{Name: "tenon", Title: "Tenon", Version: "0.1.0"}
	}
	if opts.MaxMessageBytes == 0 {
		opts.MaxMessageBytes = DefaultMaxMessageBytes
	}
	for v, unset := range map[*int]int{
		&opts.MaxServerCalls: DefaultMaxServerCalls, &opts.MaxCalls: DefaultMaxCalls, &opts.MaxQueuedCalls: DefaultMaxQueuedCalls,
	} {
		if *v == 0 {
			*v = unset
		}
	}
	if opts.NameLimit == 0 {
		opts.NameLimit = DefaultNameLimit
	}
	if opts.CloseGrace == 0 {
		opts.CloseGrace = 2 * time.Second
	}
	if opts.BreakAfter == 0 {
		opts.BreakAfter = DefaultBreakAfter
	}
	if opts.ProbeInterval == 0 {
		opts.ProbeInterval = DefaultProbeInterval
	}
	if opts.ConnectTimeout == 0 {
		opts.ConnectTimeout = opts.envMillis(envConnectTimeout, DefaultConnectTimeout)
	}
	if opts.Dir == "" {
		dir, err := os.Getwd()
		if err != nil {
			return Options{}, fmt.Errorf("mcphost: finding the working directory: %w", err)
		}
		opts.Dir = dir
	}
	return opts, nil
}

// lookupEnv looks a variable up in the overlay, then in the process environment.
func (o *Options) lookupEnv(key string) (string, bool) {
	if v, ok := o.Env[key]; ok {
		return v, true
	}
	return os.LookupEnv(key)
}

// envMillis reads a number of milliseconds. What is not a positive number counts as
// unset: see [EnvProblems].
func (o *Options) envMillis(key string, unset time.Duration) time.Duration {
	v, _ := o.lookupEnv(key) // empty when unset
	if d := parseMillis(v); d != nil && *d > 0 {
		return *d
	}
	return unset
}

// WaitOptions bound how long the first turn waits for servers. A field that is not nil overrides the
// environment variable named in its comment.
type WaitOptions struct {
	// StartupWait is CLAUDE_CODE_MCP_STARTUP_WAIT_MS: the wait for servers of
	// settings files, and for those given in code in place of the limit for
	// connecting. Zero means not to wait.
	StartupWait *time.Duration
	// Blocking is MCP_CONNECTION_NONBLOCKING=0: the start waits for all servers.
	Blocking *bool
	// BatchTimeout is MCP_CONNECT_TIMEOUT_MS: the limit of that wait, and of the
	// one for servers that are always loaded. The variable's default is 5 s.
	BatchTimeout *time.Duration
}
