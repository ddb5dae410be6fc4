// Command tenon asks a Claude model with tools from MCP servers, and runs MCP servers without any model.
//
//	tenon run "How many of AB-00017 are left?" --mcp-config servers.json --allowedTools mcp__stock
//	tenon run --offline '@mcp__calc__add {"a":1,"b":2}' --mcp-config servers.json --allowedTools mcp__calc
//	tenon mcp list
//	tenon mcp call files read_file '{"path":"notes.txt"}'
//
// It stands on top of engine/native, mcphost and mcpconfig and adds flags and printing only. Answers go
// to standard output, all else to standard error.
//
// Exit status: 0 fine, 1 it failed, 2 the command line is wrong; 128+n when signal n ended it
// (130 after Ctrl-C, 143 after SIGTERM, 141 when the reader of standard output went away).
package main

import (
	"context"
	"os"
)

func main() { os.Exit(mainCode()) }

func mainCode() int {
	kill := new(killList)
	ctx, stop := watchSignals(context.Background(), kill)
	defer stop()
	return run(ctx, os.Args[1:], &process{in: os.Stdin, out: os.Stdout, err: os.Stderr, environ: os.Environ(), kill: kill})
}
