package toolname

import (
	"slices"
	"strings"
)

// Servers holds the servers whose tools a model sees together. It is immutable.
type Servers struct {
	named   map[string][]string // keys by mcp__SERVER
	lengths []int               // the different lengths of those
}

// NewServers takes the keys of all configured servers, connected or not: then names do
// not change when servers connect.
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

// Unclear reports whether the full name of a tool reads as the name of a tool of
// another server: it begins with the name of a server with a longer key, or the
// normalized key is that of another server. Such a tool gets the name of [FitHashed].
// A permission rule with the plain name applies to the other server.
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
