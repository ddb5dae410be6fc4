// Package corpus is what real MCP servers list: the tools of npm packages, with
// their names, descriptions and schemas as they were sent. Tests of schemas,
// names and search hold our work against it.
//
//	for _, s := range corpus.Load(t) {
//		for _, tool := range s.Tools {
//			...
//		}
//	}
//
// The lists are facts, gathered by internal/peers/corpus without any network
// and without calling a tool. Package, version and licence stand in each file.
// It is for tests only.
package corpus

import (
	"embed"
	"encoding/json"
	"testing"
)

//go:embed testdata/servers/*.json
var files embed.FS

const folder = "testdata/servers"

// A Server is a server and what it lists.
type Server struct {
	// Name is the key that people register the server under.
	Name string `json:"server"`
	// Package, Version and Licence are those of the npm package.
	Package string `json:"package"`
	Version string `json:"version"`
	Licence string `json:"licence"`
	// Tools are in the order of their names.
	Tools []Tool `json:"tools"`
}

// A Tool is a tool as its server lists it, without its output schema.
type Tool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Annotations json.RawMessage `json:"annotations"`
}

// Load reads the corpus, in the order of the servers' names. The caller owns
// what it gets.
func Load(t testing.TB) []Server {
	t.Helper()
	entries, err := files.ReadDir(folder)
	if err != nil {
		t.Fatalf("corpus: %v", err)
	}
	servers := make([]Server, len(entries))
	for i, e := range entries {
		data, err := files.ReadFile(folder + "/" + e.Name())
		if err != nil {
			t.Fatalf("corpus: %v", err)
		}
		if err := json.Unmarshal(data, &servers[i]); err != nil {
			t.Fatalf("corpus: %s: %v", e.Name(), err)
		}
	}
	return servers
}
