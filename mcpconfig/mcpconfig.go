// Package mcpconfig reads, checks, merges and edits the configuration of MCP servers: .mcp.json,
// the file or JSON of --mcp-config, the user's and the local scope of ~/.claude.json, and the
// formats of Claude Desktop and VS Code.
//
// A faulty entry never takes down its file, nor a faulty file the others: each fault is a
// [Problem] with file, JSON path, what was expected and what to write instead, and the rest loads.
//
//	cfg, problems := mcpconfig.Load(&mcpconfig.LoadOptions{Dir: "."})
package mcpconfig
