// Package mcphost connects a program to MCP servers and keeps them connected:
// child processes over stdio, servers over streamable HTTP and SSE, and servers
// in the same process, which it reaches by method call.
//
// A [Host] connects its servers in parallel, lists their tools under names of
// the form mcp__SERVER__TOOL, and calls them within time limits. One bad server
// never harms the others: it has a status with the reason, and that is all.
// No agent is needed:
//
//	h, err := mcphost.New(&mcphost.Options{Servers: map[string]mcphost.ServerConfig{
//		"files": mcphost.Stdio{Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-filesystem", "."}},
//		"stock": mcphost.InProcess(stock),
//	}})
//	if err != nil {
//		return err
//	}
//	defer h.Close()
//	h.Start(ctx)
//	if err := h.Ready(ctx); err != nil {
//		return err
//	}
//	res, err := h.Call(ctx, "mcp__files__list_directory", json.RawMessage(`{"path":"."}`), nil)
//
// The official MCP library speaks the protocol; the connections beneath it are
// this package's own, so that noise on stdout, an oversized message, a malformed
// list element or a lost session costs what it touches and no more.
package mcphost
