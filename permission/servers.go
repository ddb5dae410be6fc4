package permission

import (
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/internal/toolname"
)

// A Server is a server that rules may name.
type Server struct {
	// Key is the registration key, not normalised.
	Key string
	// Foreign marks a server that somebody else than the program or its user has put into the run, as
	// a project's files do. Such a server takes no allow rule away from another: where its
	// key would give a rule a new meaning, the rule allows nothing.
	Foreign bool
}

// Servers are the servers of a run, by which rules find the one that they name. All that are configured belong in
// it, connected or not. It is immutable and safe for concurrent use; nil means that none is known.
//
// The server of a rule is never found by cutting the rule's text, because keys and names of tools may hold
// "__" themselves. A text can be about each server whose normalised key it begins with. In
// an allow rule it names one of them, the one with the longest key: with the servers pay and
// pay__eu, mcp__pay__eu__* is all of pay__eu and nothing of pay, whatever the tools of pay are called. Of
// several keys that are the same once normalised it names the one that is written so, and none
// if none is. In deny and ask rules it names them all.
type Servers struct {
	list []Server
	keys map[string]bool
	// named has the servers by mcp__SERVER, lengths the different lengths of those, longest first.
	named   map[string][]Server
	lengths []int
}

// NewServers makes the list. Of servers with one key the first counts.
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

// A reading is what a rule's text can mean.
type reading struct {
	server Server
	// tool is the tool's part of the text; whole reports that there is none, which means every tool.
	tool  string
	whole bool
}

// readings are all that a text can mean, those with the longest key first.
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

// allowed is what an allow rule means. It reports false if that is nothing: no server is named, or
// more than one.
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

// Ambiguous reports whether a rule, taken by its text alone, can be about more than one of the servers: where two have the
// same key once normalised, or one key is another's beginning up to "__". A [Policy] tells them apart;
// who matches names as texts does not.
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

// Names reports whether a text is the full name of the tool of a call, and so of no other tool: as the model writes it or in
// its whole length. Only the fields Tool, Server and ToolName of c count.
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
