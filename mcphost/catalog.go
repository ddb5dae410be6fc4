package mcphost

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/internal/toolname"
)

// A catalog is the merged list of all servers' tools. It is immutable.
type catalog struct {
	tools    []Tool           // sorted by full name
	byFull   map[string]*Tool // by full and by long name
	byServer map[string][]*Tool
	rejected []RejectedTool // tools whose names were taken, with both owners
	left     map[RejectedTool]bool
}

// A listedServer is what a catalog is made from.
type listedServer struct {
	name  string
	tools []Tool // in the server's order
}

// newCatalog merges the tools of servers. Names depend on the configured servers
// and on the tools of the one server alone, not on who connected first: a tool
// whose full name would be that of another, or could be that of another server's,
// gets a name that ends in a hash. Names that are alike even so are rejected.
func newCatalog(servers []listedServer, limit int, configured ...string) *catalog {
	servers = slices.SortedFunc(slices.Values(servers), func(a, b listedServer) int { return cmp.Compare(a.name, b.name) })
	n := 0
	for _, s := range servers {
		n += len(s.tools)
		configured = append(configured[:len(configured):len(configured)], s.name)
	}
	c := &catalog{
		tools: make([]Tool, 0, n), byFull: make(map[string]*Tool, n),
		byServer: make(map[string][]*Tool, len(servers)), left: map[RejectedTool]bool{},
	}
	keys := toolname.NewServers(configured)
	for _, s := range servers {
		alike := make(map[string]int, len(s.tools)) // how many tools of the server have a name
		for i := range s.tools {
			alike[toolname.Normalize(s.tools[i].Name)]++
		}
		for _, t := range s.tools {
			normal := toolname.Normalize(t.Name)
			t.FullName, t.LongName = toolname.Fit(s.name, t.Name, limit), toolname.Full(s.name, t.Name)
			if alike[normal] > 1 && normal != t.Name || keys.Unclear(s.name, t.Name) {
				t.FullName, t.LongName = toolname.FitHashed(s.name, t.Name, limit), t.LongName+toolname.Hash(s.name, t.Name)
			}
			if other := c.byFull[t.FullName]; other != nil {
				r := RejectedTool{Server: s.name, Name: t.Name, Reason: collision(other)}
				c.rejected, c.left[r] = append(c.rejected, r), true
				continue
			}
			c.tools = append(c.tools, t) // the capacity is there: earlier pointers stay good
			c.byFull[t.FullName] = &c.tools[len(c.tools)-1]
		}
	}
	c.index()
	return c
}

// index sorts the tools and makes the tables of them.
func (c *catalog) index() {
	slices.SortFunc(c.tools, func(a, b Tool) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.FullName), strings.ToLower(b.FullName)), cmp.Compare(a.FullName, b.FullName))
	})
	clear(c.byFull) // sorting moved the tools
	for i := range c.tools {
		t := &c.tools[i]
		c.byFull[t.FullName] = t
		c.byServer[t.Server] = append(c.byServer[t.Server], t)
	}
	for i := range c.tools {
		if t := &c.tools[i]; c.byFull[t.LongName] == nil {
			c.byFull[t.LongName] = t
		}
	}
}

func collision(other *Tool) string {
	return "its full name " + other.FullName + " is that of tool " + quote(other.Name) + " of server " + quote(other.Server)
}

func quote(s string) string { return `"` + clip.Text(s, 200) + `"` }
