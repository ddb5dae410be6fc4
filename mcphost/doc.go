// Package mcphost connects a program to MCP servers and keeps them connected:
// child processes over stdio, servers over streamable HTTP and SSE, and servers
// in the same process, which it reaches by method call.
//
// A [Host] connects its servers in parallel, lists their tools under names of the form
// mcp__SERVER__TOOL, and calls them within time limits. A server that fails has a status with the
// reason and does not affect the others. No agent is needed:
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
// A server of any other kind is configured by a transport of the program's own, see [Custom].
// Package toolresult turns results into what a model is sent.
//
// Noise on stdout, an oversized message, a malformed element of a list or a lost session fails the
// requests that it concerns and nothing else.
package mcphost
