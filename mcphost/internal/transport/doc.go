// Package transport connects to MCP servers over stdio, streamable HTTP, SSE and connections of the
// official library's interface, and makes requests of them.
//
// A [Client] is the JSON-RPC client over a connection. It contains the faults of a server: lines
// that are no messages are counted as noise, replies to no request are dropped, a reply that cannot
// be used or is too large fails the request that it answers, and requests and notifications of a
// server take a bounded amount of memory and goroutines.
package transport
