// Package mcpserver builds MCP servers that live in this process: tools,
// resources and prompts written as Go functions.
//
//	s := mcpserver.New("stock", nil)
//	err := mcpserver.AddTool(s, &mcpserver.Tool{Name: "lookup", ReadOnly: true},
//		func(ctx context.Context, in struct {
//			SKU string `json:"sku" jsonschema:"stock keeping unit, eight characters"`
//		}) (Article, error) {
//			return shelves.Find(ctx, in.SKU)
//		})
//
// A program calls the server directly ([Server.CallTool]). A host opens a
// [Session] for each conversation ([Server.NewSession]). [NewHTTPHandler] serves
// it over HTTP, and package mcpbridge over standard input and output or any other
// transport of JSON-RPC messages. [Server.Library] makes it a server of the
// official library; mcphost.InMemory connects a host to one.
//
// # Failures
//
// A failure of a call is a result for the model, with IsError set: an unknown tool,
// arguments or a result that do not match the schema, an error or a panic of the
// handler, or a time limit that passed. An error of CallTool means that nobody needs a
// result: the caller's context ended, or the session was closed.
//
// An invalid registration (a name, a schema or a duplicate) is logged and listed by
// [Server.Rejected]; the server works without it.
//
// # Schemas
//
// Arguments and structured results are checked against JSON Schemas in dialect
// 2020-12, 2019-09 or draft-07, derived from Go types or written by hand.
// Formats are asserted. References outside of a schema are never fetched; a call that
// needs one fails. Patterns are RE2 expressions; one that RE2 does not have, such as a
// lookahead, is not checked. Depth ([Options.MaxSchemaDepth]) and work are bounded, and
// numbers are exact. A schema is compiled at the first call of its tool.
//
// # Concurrency
//
// Everything is safe for concurrent use. By default each handler runs on a goroutine
// of its own, and no call waits for another; see [Scheduling] and [Concurrency]. A
// handler must return when its context ends. Neither its caller nor Close waits for a
// handler that does not; its result is dropped.
package mcpserver
