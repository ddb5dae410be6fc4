// Package mcpauth is OAuth for MCP clients: it finds out who issues tokens for
// a server, gets a client id, runs the authorization code flow with PKCE (or
// the client credentials grant), stores the tokens and keeps them fresh.
//
// The package never opens a browser and never asks a person anything. Where a
// person is needed it calls [Options.Authorize] with the address to open; without
// that function it reports a [NeedsAuthError], which says what was found and
// what to do.
//
//	store, err := mcpauth.NewDirStore(dir)
//	...
//	a, err := mcpauth.New("https://api.example.com/mcp", &mcpauth.Options{Store: store})
//	...
//	client := &http.Client{Transport: a.Transport(nil)}
//
// Many goroutines and many processes may share one [TokenStore]: a token is
// refreshed by one of them, under the store's lock, and the others see the new
// one. What is written here follows the authorization chapter of the MCP
// specification (2025-11-25 and 2026-07-28), RFC 6749, 7591, 8414, 8707, 9207
// and 9728.
//
// mcphost uses this package for servers over HTTP and SSE; it knows none of
// our other packages.
package mcpauth
