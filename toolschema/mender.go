package toolschema

import (
	"fmt"
	"strconv"
	"strings"
)

// maxReport bounds how many mends are reported for one tool.
const maxReport = 100

// A mender mends one schema. Its methods change the tree that it was given, which is its own.
type mender struct {
	*meter
	root *object
	// cut reports that values were nested too deep to be read.
	cut    bool
	path   []string // from the root to the schema at hand, for the report
	report []Mend
	more   int
	// alias are the property keys that the model sees instead of others, by the key of the server.
	alias map[string]string
	// original are the server's keys, by the alias.
	original map[string]string
	// loosened are schemas that accept more since a reference of theirs went.
	loosened map[*object]bool
	// loose counts the changes by which a schema may accept more.
	loose int
	// rules say in words what the mended root can no longer say, ruleSize how long they are together.
	rules    []string
	ruleSize int
}

// push goes down to a schema, pop comes back.
func (m *mender) push(key, name string) {
	m.path = append(m.path, key)
	if name != "" {
		m.path = append(m.path, name)
	}
}

func (m *mender) pop(_, name string) {
	n := 1
	if name != "" {
		n = 2
	}
	m.path = m.path[:len(m.path)-n]
}

// mend reports a change to a keyword of the schema at hand; an empty key means the schema itself.
func (m *mender) mend(key, kind, format string, args ...any) {
	if len(m.report) >= maxReport {
		m.more++
		return
	}
	parts := m.path
	if key != "" {
		parts = append(parts[:len(parts):len(parts)], key)
	}
	m.report = append(m.report, Mend{Path: pointer(parts), Kind: kind, Detail: fmt.Sprintf(format, args...)})
}

// loosen reports a change by which the schema at hand may accept more than the server's.
func (m *mender) loosen(key, kind, format string, args ...any) {
	m.loose++
	m.mend(key, kind, format, args...)
}

// pointer is the JSON pointer of a path.
func pointer(parts []string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteByte('/')
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(shorten(p), "~", "~0"), "/", "~1"))
	}
	return b.String()
}

func index(i int) string { return strconv.Itoa(i) }

// shorten keeps text that is quoted in a report short.
func shorten(s string) string {
	n := 0
	for i := range s {
		if n++; n > 80 {
			return strings.ToValidUTF8(s[:i], "\ufffd") + "…"
		}
	}
	return strings.ToValidUTF8(s, "\ufffd")
}
