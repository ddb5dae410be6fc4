package mcphost

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/internal/toolname"
)

// A catalog is the merged list of all servers' tools. It is immutable.
type catalog struct {
	tools    []Tool           // sorted by full name
	byFull   map[string]*Tool // by full and by long name
	rejected []RejectedTool   // tools whose names were taken, with both owners
}

// A listed server is what a catalog is made from.
type listedServer struct {
	name  string
	tools []Tool // in the server's order
}

// newCatalog merges the tools of servers. Of two tools with one full name the
// first keeps it: servers in the order of their names, tools in their server's
// order, whoever connected first. The other is rejected.
func newCatalog(servers []listedServer, limit int) *catalog {
	servers = slices.SortedFunc(slices.Values(servers), func(a, b listedServer) int { return cmp.Compare(a.name, b.name) })
	n := 0
	for _, s := range servers {
		n += len(s.tools)
	}
	c := &catalog{tools: make([]Tool, 0, n), byFull: make(map[string]*Tool, n)}
	for _, s := range servers {
		for _, t := range s.tools {
			t.FullName = toolname.Fit(s.name, t.Name, limit)
			t.LongName = toolname.Full(s.name, t.Name)
			if owner := c.byFull[t.FullName]; owner != nil {
				c.rejected = append(c.rejected, RejectedTool{Server: s.name, Name: t.Name, Reason: collision(owner)})
				continue
			}
			c.tools = append(c.tools, t) // the capacity is there: earlier pointers stay good
			c.byFull[t.FullName] = &c.tools[len(c.tools)-1]
		}
	}
	slices.SortFunc(c.tools, func(a, b Tool) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.FullName), strings.ToLower(b.FullName)), cmp.Compare(a.FullName, b.FullName))
	})
	clear(c.byFull) // sorting moved the tools
	for i := range c.tools {
		c.byFull[c.tools[i].FullName] = &c.tools[i]
	}
	for i := range c.tools {
		if t := &c.tools[i]; c.byFull[t.LongName] == nil {
			c.byFull[t.LongName] = t
		}
	}
	return c
}

func collision(owner *Tool) string {
	return "its full name " + owner.FullName + " is that of tool " + quote(owner.Name) + " of server " + quote(owner.Server)
}

func quote(s string) string { return `"` + clip(s, 200) + `"` }
