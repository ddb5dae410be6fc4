// Package mcpauth implements OAuth for MCP clients. It discovers the authorization server of an MCP
// server, gets a client ID, runs the authorization code flow with PKCE or the client credentials grant,
// stores the tokens, and refreshes them.
//
//	store, err := mcpauth.NewDirStore(dir)
//	...
//	a, err := mcpauth.New("https://api.example.com/mcp", &mcpauth.Options{Store: store})
//	...
//	client := &http.Client{Transport: a.Transport(nil)}
//
// The package opens no browser and asks no person. For a login it calls [Options.Authorize] with the URL
// to open. Without that function, it returns a [NeedsAuthError].
//
// Goroutines and processes may share a [TokenStore]. One of them refreshes a token under the store's
// lock, and the others use the new token.
//
// The package implements the authorization chapter of the MCP specification (2025-11-25 and 2026-07-28)
// and RFC 6749, 7591, 8414, 8707, 9207 and 9728.
package mcpauth
