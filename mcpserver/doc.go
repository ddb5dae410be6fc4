// Package mcpserver builds MCP servers that live in this process: tools,
// resources and prompts written as Go functions.
package mcpserver
