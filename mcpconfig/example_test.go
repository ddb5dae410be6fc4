package mcpconfig_test

import (
	"encoding/json"
	"fmt"

	"github.com/tenon-sdk/tenon/mcpconfig"
)

func ExampleParse() {
	cfg, problems := mcpconfig.Parse([]byte(`{"mcpServers": {
  "files": {"command": "npx", "args": ["-y", "some-server", "${ROOT:-.}"]},
  "old": {"serverUrl": "https://example.com/mcp"},
  "secret": {"command": "x", "env": {"TOKEN": "${MISSING}"}}
}}`), &mcpconfig.ParseOptions{File: ".mcp.json", LookupEnv: func(string) (string, bool) { return "", false }})
	fmt.Println(cfg.Names(), cfg.Servers["files"].Args)
	for _, p := range problems {
		fmt.Println(p)
	}
	// Output:
	// [files] [-y some-server .]
	// .mcp.json:3:10: mcpServers.old: neither "command" nor "url" is given, want a "command" (stdio) or a "type" and a "url" (http, sse); write "url" for "serverUrl" (this server is left out)
	// .mcp.json:4:47: mcpServers.secret.env.TOKEN: the environment variable MISSING is not set; write ${MISSING:-DEFAULT} to give a default, or set it (this server is left out)
}

func ExampleSetServer() {
	doc := []byte(`{
    // mine
    "mcpServers": {
        "files": { "command": "npx" }
    }
}
`)
	doc, err := mcpconfig.SetServer(doc, nil, "web", json.RawMessage(`{"type":"http","url":"https://example.com/mcp"}`))
	if err != nil {
		fmt.Println(err)
	}
	fmt.Print(string(doc))
	// Output:
	// {
	//     // mine
	//     "mcpServers": {
	//         "files": { "command": "npx" },
	//         "web": {
	//             "type": "http",
	//             "url": "https://example.com/mcp"
	//         }
	//     }
	// }
}
