package mcpserver

import (
	"encoding/json"
	"sync"

	"github.com/tenon-sdk/tenon/internal/schemaguard"
)

// A schemaCache holds the schemas of one server by their bytes.
type schemaCache struct {
	mu      sync.Mutex // guards the rest
	schemas map[string]*schemaguard.Schema
}

// maxCached bounds the schemas kept for tools that come and go.
const maxCached = 10_000

func (c *schemaCache) lookup(raw json.RawMessage) *schemaguard.Schema {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.schemas[string(raw)]
}

// keep adds s, unless there is a schema with its bytes, and returns the one in the cache.
func (c *schemaCache) keep(s *schemaguard.Schema) *schemaguard.Schema {
	c.mu.Lock()
	defer c.mu.Unlock()
	if there := c.schemas[string(s.Raw())]; there != nil {
		return there
	}
	if c.schemas == nil || len(c.schemas) >= maxCached {
		c.schemas = map[string]*schemaguard.Schema{}
	}
	c.schemas[string(s.Raw())] = s
	return s
}
