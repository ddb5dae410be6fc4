package toolschema

import (
	"fmt"
	"strconv"
	"strings"
)

// maxReport limits the changes in a report.
const maxReport = 100

// A mender corrects a schema in place.
type mender struct {
	*meter
	root *object
	// cut reports that the schema was nested too deep to be read.
	cut    bool
	path   []string // from the root to the schema at hand, for the report
	report []Mend
	more   int
	// alias has the aliases of property keys.
	alias map[string]string
	// original has the property keys by alias.
	original map[string]string
	// loosened are schemas that accept more since a reference was removed.
	loosened map[*object]bool
	// loose counts the changes by which a schema may accept more.
	loose int
	// rules describe what the root no longer expresses, ruleSize is their length.
	rules    []string
	ruleSize int
}

// push enters a subschema, pop leaves it.
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

// mend reports a change to a keyword of the current schema; an empty key means the schema.
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

// loosen reports a change by which the current schema may accept more.
func (m *mender) loosen(key, kind, format string, args ...any) {
	m.loose++
	m.mend(key, kind, format, args...)
}

// pointer returns the JSON pointer of a path.
func pointer(parts []string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteByte('/')
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(shorten(p), "~", "~0"), "/", "~1"))
	}
	return b.String()
}

func index(i int) string { return strconv.Itoa(i) }

// shorten shortens text quoted in a report.
func shorten(s string) string {
	n := 0
	for i := range s {
		if n++; n > 80 {
			return strings.ToValidUTF8(s[:i], "\ufffd") + "…"
		}
	}
	return strings.ToValidUTF8(s, "\ufffd")
}
