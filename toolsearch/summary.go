package toolsearch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// DefaultSummary is the default size of [Summary] in bytes.
const DefaultSummary = 4 << 10

// Summary returns a text for a model about what a search can find, in at most limit bytes; zero
// means [DefaultSummary]. It lists the full names, one a line, if they fit. Otherwise it has a line
// for each server with the number of its tools and as many names as fit in an equal share. It
// counts what it leaves out. It depends only on the tools and the limit, so that a prompt stays the
// same.
func Summary(tools []Tool, limit int) string {
	limit = cmp.Or(limit, DefaultSummary)
	names := make([]string, len(tools))
	total := 0
	for i, t := range tools {
		names[i] = t.FullName
		total += len(t.FullName) + 1
	}
	if total <= limit {
		slices.Sort(names)
		return strings.Join(names, "\n")
	}
	servers := map[string][]string{}
	for _, t := range tools {
		servers[t.Server] = append(servers[t.Server], t.Name)
	}
	return summarize(servers, limit)
}

func summarize(servers map[string][]string, limit int) string {
	keys := make([]string, 0, len(servers))
	for k := range servers {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	tools := 0 // of the servers that are left
	for _, k := range keys {
		tools += len(servers[k])
	}
	var b strings.Builder
	for i, k := range keys {
		left := keys[i:]
		rest := leftOut(len(left), tools)
		tools -= len(servers[k])
		// The servers that are left share the room that is left.
		room := limit - b.Len()
		share := room / len(left)
		if share < leastLine {
			share = min(room-len(rest), fairLine) // not enough for all: the first are told of, the others counted
		}
		line := serverLine(k, servers[k], share)
		if len(left) > 1 && b.Len()+len(line)+len(leftOut(len(left)-1, tools)) > limit || b.Len()+len(line) > limit {
			b.WriteString(rest)
			break
		}
		b.WriteString(line)
	}
	return strings.TrimSuffix(cut(b.String(), limit), "\n")
}

// Below leastLine a share is too small for a line; then a server gets fairLine.
const leastLine, fairLine = 24, 60

// leftOut returns the line about servers that do not fit.
func leftOut(servers, tools int) string {
	return fmt.Sprintf("and %d more servers with %d tools\n", servers, tools)
}

// serverLine returns the line of a server in at most room bytes, or "" if its name and number do
// not fit.
func serverLine(server string, tools []string, room int) string {
	slices.Sort(tools)
	line := fmt.Sprintf("%s (%d tools)", cut(cmp.Or(server, "others"), 64), len(tools))
	for i, t := range tools {
		sep := ", "
		if i == 0 {
			sep = ": "
		}
		if len(line)+len(sep)+len(t)+len(", …\n") > room {
			if i > 0 {
				line += ", …"
			}
			break
		}
		line += sep + t
	}
	return line + "\n"
}

// cut shortens text to a number of bytes, between characters.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:max(limit, 0)], "")
}
