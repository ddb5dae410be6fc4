package mcphost

import (
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/jsonequal"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// A Tool is a tool of a connected server. It must not be modified.
type Tool struct {
	// FullName is mcp__SERVER__TOOL in at most [Options.NameLimit] bytes;
	// LongName is the same without that limit.
	FullName, LongName string
	// Server is the server's name in the configuration, Name the tool's own.
	Server, Name       string
	Title, Description string
	// InputSchema is as the server sent it first: while later lists say the same
	// with the members in another order or numbers written in another way, its
	// bytes stay. OutputSchema is nil without one.
	InputSchema, OutputSchema json.RawMessage
	Annotations               *mcp.ToolAnnotations
	Icons                     []mcp.Icon
	Meta                      mcp.Meta

	// ReadOnly and Idempotent are the server's hints.
	ReadOnly, Idempotent bool
	// AlwaysLoad keeps the tool out of deferral: the tool's own wish, else the
	// server configuration's.
	AlwaysLoad bool
	// MaxResultSize is the tool's declared result limit in characters; 0 without one.
	MaxResultSize int
	// SearchHint is text that a tool search looks at, too.
	SearchHint string

	headerParams []mcpserver.HeaderParam // arguments that go into HTTP headers, too
}

// keepSchemas gives tools the bytes of the schemas that they had, where those
// mean the same: what a model is sent stays the same then.
func keepSchemas(had map[string]*Tool, tools []Tool) {
	keep := func(had json.RawMessage, now *json.RawMessage) {
		if had != nil && *now != nil && jsonequal.To(had)(*now) {
			*now = had
		}
	}
	for i := range tools {
		if old := had[tools[i].Name]; old != nil {
			keep(old.InputSchema, &tools[i].InputSchema)
			keep(old.OutputSchema, &tools[i].OutputSchema)
		}
	}
}

// CallOptions are options of one call. Nil means the defaults.
type CallOptions struct {
	// ToolUseID is the model's id of the call. It goes to the server in _meta
	// as claudecode/toolUseId.
	ToolUseID string
	// Session names the conversation that makes the call, for the log. It does not go to the server.
	Session string
	// Meta goes to the server as _meta.
	Meta mcp.Meta
	// OnProgress hears the progress that the server reports, in order, from one
	// goroutine; it is not called after the call returned.
	OnProgress func(Progress)
	// Timeout bounds the call, once the server is connected. Zero means the
	// limits of the configuration; [NoTimeout] means none.
	Timeout time.Duration
	// Headers go with the request of this call, over HTTP.
	Headers map[string]string
}

// Progress is what a server reports while it works on a call.
type Progress struct {
	Progress, Total float64 // Total is 0 when unknown
	Message         string
}

// A Resource is a resource of a server.
type Resource struct {
	Server string `json:"server"`
	*mcp.Resource
}

// A ResourceTemplate is a resource template of a server.
type ResourceTemplate struct {
	Server string `json:"server"`
	*mcp.ResourceTemplate
}

// A Prompt is a prompt of a server.
type Prompt struct {
	Server string `json:"server"`
	*mcp.Prompt
}
