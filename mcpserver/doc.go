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
// What goes wrong in a call is a result for the model, with IsError set: an
// unknown tool, arguments that do not match, an error or a panic of the
// handler, a time limit that passed, a result that does not match. Its text
// says what to do about it. An error of CallTool means that there is nobody to
// read a result: the caller's context ended, or the session was closed.
//
// A registration that is wrong, be it a name, a schema or a duplicate, is left
// out, logged and listed by [Server.Rejected]; the server works without it.
//
// # Schemas
//
// Arguments and structured results are checked against JSON Schemas in dialect
// 2020-12, 2019-09 or draft-07, derived from Go types or written by hand.
// Formats are asserted. References stay within a schema: what leads out of it is
// never fetched, and a call that reaches it fails. $id, $anchor and
// $dynamicRef work as in the schema library, santhosh-tekuri/jsonschema. Regular
// expressions are RE2's; a pattern that only ECMA-262 has, such as a lookahead,
// is not checked. Depth ([Options.MaxSchemaDepth]) and work are bounded, whatever
// the schema and the value, and numbers are exact. A schema is compiled at the
// first call of its tool.
//
// # Concurrency
//
// Everything is safe for concurrent use. By default each handler runs on a
// goroutine of its own, and no call waits for another; see [Scheduling] and
// [Concurrency] for more order. A handler has to return when its context ends.
// One that does not holds up neither its caller nor Close: it is left
// behind, and what it returns is dropped.
package mcpserver
