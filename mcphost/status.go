package mcphost

import (
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Status is the state of a server as users and models see it.
type Status string

// The five states.
const (
	// StatusPending: connecting, reconnecting, or to be connected by the first call.
	StatusPending Status = "pending"
	// StatusConnected: its tools can be called.
	StatusConnected Status = "connected"
	// StatusFailed: it could not be connected; the reason is in the status.
	StatusFailed Status = "failed"
	// StatusNeedsAuth: it demands a login that the host does not have.
	StatusNeedsAuth Status = "needs-auth"
	// StatusDisabled: switched off by its configuration or by [Host.SetEnabled].
	StatusDisabled Status = "disabled"
)

// ServerStatus is a snapshot of one server. It holds no secrets.
type ServerStatus struct {
	Name      string
	Status    Status
	Transport string // stdio, http, sse or sdk
	Scope     string
	Source    string
	// URL is that of an HTTP or SSE server, without credentials.
	URL string

	// Err is why the server is failed, needs-auth or pending again: a
	// *[ConnectError] mostly. Error is its text.
	Err   error
	Error string

	ServerInfo      *mcp.Implementation
	ProtocolVersion string
	// Instructions are the first 64 KiB at most.
	Instructions string
	Capabilities *mcp.ServerCapabilities

	// Tools are what the server offers under their full names, sorted.
	Tools     []Tool
	ToolCount int
	// Rejected are the listed tools that cannot be used, with the reasons.
	Rejected []RejectedTool

	// Since is when Status was entered; LastOK and LastError when something
	// last went right or wrong with the server. Zero: never.
	Since, LastOK, LastError time.Time
	// ConnectTime is how long the last successful connecting took.
	ConnectTime time.Duration
	// Attempt is the number of attempts since (re)connecting began. NextAttempt is when the next is
	// due, if any.
	Attempt     int
	NextAttempt time.Time
	// ChangesError is why notifications of changes of tools, resources and prompts do not arrive at
	// present, so that the lists may be old: the server refuses the stream that brings them, or the
	// stream ended and is not open again. It is empty while they arrive, and for a server that
	// declares none.
	ChangesError string
	// Cached reports that the tools come from the discovery cache.
	Cached bool

	// PID is that of the child process, Stderr the end of what it wrote there,
	// also after it died. Noise counts the lines on stdout that were no
	// messages; NoiseHead has the first few.
	PID       int
	Stderr    string
	Noise     int
	NoiseHead []string

	// The limits in force for this server. Zero means no limit.
	ConnectTimeout, CallTimeout, IdleTimeout time.Duration
	MaxMessageBytes                          int
}

// A RejectedTool is a tool that a server listed and that cannot be used.
type RejectedTool struct {
	Server, Name string
	Reason       string
}

// An Event says that something about a server changed.
type Event struct {
	Server string
	Status Status
	// Tools, Resources and Prompts report that the server's list of them changed.
	Tools, Resources, Prompts bool
	// Removed reports that [Host.SetServers] took the server out: it has no Status
	// any more. Replaced reports that a server with another configuration has taken
	// its place, or that one came after a removal that was not received yet; Status
	// is the new one's.
	Removed, Replaced bool
	// Err is the reason of a change for the worse; [ErrRemoved] of a removal.
	Err error
	// Time is when it happened.
	Time time.Time
}
