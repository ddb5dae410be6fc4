package permission

import (
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/internal/toolname"
)

// A Server is a server that rules may name.
type Server struct {
	// Key is the server's key, not normalized.
	Key string
	// Foreign marks a server that neither the program nor its user added, such as one of a
	// project's files. It takes no allow rule away from another server: a rule that would mean it
	// instead allows nothing.
	Foreign bool
}

// Servers are the servers of a run, including those that are not connected. They determine which
// server a rule names. Servers are immutable and safe for concurrent use. Nil means that none is
// known.
//
// Keys and names of tools may contain "__", so the text of a rule alone does not tell its server.
// It may mean each server whose normalized key it begins with. An allow rule names the one with the
// longest key: with the servers pay and pay__eu, mcp__pay__eu__* means all tools of pay__eu and
// none of pay. Of several keys that are equal once normalized it names the one that is written like
// that, or none. Deny and ask rules name them all.
type Servers struct {
	list []Server
	keys map[string]bool
	// named has the servers by mcp__SERVER, lengths the lengths of those, longest first.
	named   map[string][]Server
	lengths []int
}

// NewServers returns the servers. The first of several with one key counts.
func NewServers(list ...Server) *Servers {
	s := &Servers{keys: make(map[string]bool, len(list)), named: make(map[string][]Server, len(list))}
	for _, server := range list {
		if s.keys[server.Key] {
			continue
		}
		s.keys[server.Key] = true
		s.list = append(s.list, server)
		name := toolname.Server(server.Key)
		if len(s.named[name]) == 0 {
			s.lengths = append(s.lengths, len(name))
		}
		s.named[name] = append(s.named[name], server)
	}
	slices.Sort(s.lengths)
	s.lengths = slices.Compact(s.lengths)
	slices.Reverse(s.lengths)
	return s
}

// with returns the servers and one more, which is foreign unless it is the only one.
func (s *Servers) with(key string) *Servers {
	if s == nil {
		return NewServers(Server{Key: key})
	}
	if s.keys[key] {
		return s
	}
	return NewServers(append(slices.Clone(s.list), Server{Key: key, Foreign: true})...)
}

func (s *Servers) has(key string) bool { return s != nil && s.keys[key] }

// A reading is a meaning of a rule's text.
type reading struct {
	server Server
	// tool is the tool's part. whole means that there is none and the rule covers every tool.
	tool  string
	whole bool
}

// readings returns all meanings of a text, those with the longest key first.
func (s *Servers) readings(text string) []reading {
	if s == nil || !strings.HasPrefix(text, mcpPrefix) {
		return nil
	}
	var all []reading
	for _, n := range s.lengths {
		if n > len(text) {
			continue
		}
		r := reading{whole: n == len(text)}
		if !r.whole {
			tool, ok := strings.CutPrefix(text[n:], toolname.Separator)
			if !ok {
				continue
			}
			r.tool, r.whole = tool, tool == "*"
		}
		for _, r.server = range s.named[text[:n]] {
			all = append(all, r)
		}
	}
	return all
}

// allowed returns the meaning of an allow rule. It reports false if that names no server or
// several.
func (s *Servers) allowed(text string) (reading, bool) {
	all := s.readings(text)
	if len(all) == 0 {
		return reading{}, false
	}
	longest := all[0]
	candidates := slices.DeleteFunc(slices.Clone(all), func(r reading) bool { return r.server.Foreign })
	if len(candidates) == 0 {
		candidates = all
	}
	first := candidates[0]
	if first.tool != longest.tool || first.whole != longest.whole {
		return reading{}, false // a foreign server's key would make another rule of it
	}
	same := candidates[:0:0]
	for _, r := range candidates {
		if r.tool == first.tool && r.whole == first.whole {
			same = append(same, r)
		}
	}
	if len(same) == 1 {
		return same[0], true
	}
	for _, r := range same {
		if toolname.Server(r.server.Key) == mcpPrefix+r.server.Key { // written as it is normalised
			return r, true
		}
	}
	return reading{}, false
}

// Ambiguous reports whether the text of a rule alone may mean several of the servers: their keys
// are equal once normalized, or one is the beginning of the other up to "__". A [Policy] tells them
// apart. Code that compares names as text does not.
func (s *Servers) Ambiguous(rule string) bool {
	rule = strings.TrimSpace(rule)
	all := s.readings(rule)
	if len(all) == 0 {
		return false
	}
	if len(all) > 1 {
		return true
	}
	if !all[0].whole && !strings.Contains(all[0].tool, "*") {
		return false
	}
	below := toolname.Server(all[0].server.Key) + toolname.Separator
	return slices.ContainsFunc(s.list, func(o Server) bool { return strings.HasPrefix(toolname.Server(o.Key), below) })
}

// Names reports whether a text is the full name of the tool of a call, as the model uses it or in
// its original length. It uses Tool, Server and ToolName of c.
func (s *Servers) Names(text string, c Request) bool {
	text = strings.TrimSpace(text)
	t := c.target()
	if !t.mcp {
		return text == c.Tool
	}
	if t.hashed(text) {
		return true
	}
	r, ok := s.with(c.Server).allowed(text)
	return ok && !r.whole && r.server.Key == c.Server && t.called(r.tool)
}
