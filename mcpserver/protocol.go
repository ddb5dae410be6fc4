package mcpserver

import "github.com/modelcontextprotocol/go-sdk/mcp"

// v20260728 is the first protocol version without a handshake. Versions are dates
// and compare as strings.
const v20260728 = "2026-07-28"

// A Kind is the kind of a registration or request.
type Kind string

// The kinds of registrations and requests.
const (
	KindTool             Kind = "tool"
	KindResource         Kind = "resource"
	KindResourceTemplate Kind = "resource template"
	KindPrompt           Kind = "prompt"
	KindCompletion       Kind = "completion" // of requests only
)

// The methods of notifications that a session sends.
const (
	MethodToolListChanged     = "notifications/tools/list_changed"     // *mcp.ToolListChangedParams
	MethodPromptListChanged   = "notifications/prompts/list_changed"   // *mcp.PromptListChangedParams
	MethodResourceListChanged = "notifications/resources/list_changed" // *mcp.ResourceListChangedParams
	MethodResourceUpdated     = "notifications/resources/updated"      // *mcp.ResourceUpdatedNotificationParams
	MethodProgress            = "notifications/progress"               // *mcp.ProgressNotificationParams
	MethodMessage             = "notifications/message"                // *mcp.LoggingMessageParams
)

// levels are the levels of log messages, the least severe first.
var levels = []mcp.LoggingLevel{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// metaLogLevel is the key in the _meta of a request (2026-07-28) for the level of its log messages.
const metaLogLevel = "io.modelcontextprotocol/logLevel"
