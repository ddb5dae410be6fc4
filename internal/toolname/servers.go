package toolname

import (
	"slices"
	"strings"
)

// Servers are servers whose tools a model sees together, by which names are kept
// apart. They are immutable.
type Servers struct {
	named   map[string][]string // keys by mcp__SERVER
	lengths []int               // the different lengths of those
}

// NewServers makes the list from all keys that are configured, connected or not:
// then a name stays what it is while servers come and go.
func NewServers(keys []string) *Servers {
	s := &Servers{named: make(map[string][]string, len(keys))}
	for _, key := range keys {
		name := Server(key)
		if !slices.Contains(s.named[name], key) {
			s.named[name] = append(s.named[name], key)
		}
	}
	for name := range s.named {
		s.lengths = append(s.lengths, len(name))
	}
	slices.Sort(s.lengths)
	s.lengths = slices.Compact(s.lengths)
	return s
}

// Unclear reports whether the full name of a tool reads as that of another
// server's tool: it begins with the name of a server with a longer key, or the
// server's key is another's once normalised and is not the one that is written so.
// Such a tool gets the name of [FitHashed]. A permission rule with the plain name
// is about the other server.
func (s *Servers) Unclear(server, tool string) bool {
	own := Server(server)
	if len(s.named[own]) > 1 && own != Prefix+server {
		return true
	}
	full := Full(server, tool)
	for _, n := range s.lengths {
		if n <= len(own) || n+len(Separator) > len(full) || !strings.HasPrefix(full[n:], Separator) {
			continue
		}
		if len(s.named[full[:n]]) > 0 {
			return true
		}
	}
	return false
}
