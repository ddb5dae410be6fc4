package mcpconfig

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// A docMaker writes random documents in every layout that people use, and some that they don't.
type docMaker struct {
	r        *rand.Rand
	comments bool // and trailing commas
	space    []string
	b        strings.Builder
}

func (m *docMaker) extra() {
	m.b.WriteString(m.space[m.r.IntN(len(m.space))])
	if m.comments && m.r.IntN(4) == 0 {
		m.b.WriteString([]string{"// c, \" }\n", "/* d { , */", "//\n"}[m.r.IntN(3)])
		m.b.WriteString(m.space[m.r.IntN(len(m.space))])
	}
}

func (m *docMaker) object(members ...func()) {
	m.b.WriteByte('{')
	for i, f := range members {
		m.extra()
		f()
		m.extra()
		if i < len(members)-1 || m.comments && m.r.IntN(3) == 0 {
			m.b.WriteByte(',')
		}
	}
	m.extra()
	m.b.WriteByte('}')
}

func (m *docMaker) member(key string, value func()) func() {
	return func() {
		m.b.WriteString(`"` + key + `"`)
		m.extra()
		m.b.WriteByte(':')
		m.extra()
		value()
	}
}

func (m *docMaker) scalar() {
	m.b.WriteString([]string{`1`, `"a\"}, //"`, `null`, `[1, {"k": 2}]`}[m.r.IntN(4)])
}

func (m *docMaker) document() string {
	m.b.Reset()
	var entries []func()
	for _, name := range []string{"a", "n", "b", "c"} {
		if m.r.IntN(2) == 0 {
			entries = append(entries, m.member(name, func() { m.object(m.member("command", m.scalar)) }))
		}
	}
	m.r.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
	top := []func(){m.member("mcpServers", func() { m.object(entries...) }), m.member("other", m.scalar)}
	switch m.r.IntN(4) {
	case 0:
		top = top[1:]
	case 1:
		top[0], top[1] = top[1], top[0]
	}
	m.extra()
	m.object(top...)
	m.extra()
	return m.b.String()
}

// In any layout an edit changes what it is about and keeps the bytes of all else, comments included.
func TestEditsOfRandomDocuments(t *testing.T) {
	const entry = `{"command":"x","args":["a","b"]}`
	for seed := range uint64(1500) {
		m := &docMaker{r: rand.New(rand.NewPCG(seed, 1)), comments: seed%2 == 0, space: [][]string{
			{""}, {" "}, {"\n  "}, {"", " "}, {"\n\t", "\n\t\t"}, {"\r\n  "}, {"", "\n", "  ", "\t"},
		}[seed%7]}
		doc := m.document()
		if _, err := parseDocument([]byte(doc), ""); err != nil {
			t.Fatalf("seed %d: %q: %v", seed, doc, err)
		}
		set, err := SetServer([]byte(doc), nil, "n", json.RawMessage(entry))
		if err != nil {
			t.Fatalf("seed %d: %q: %v", seed, doc, err)
		}
		fail := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("seed %d:\n%s\nbecomes\n%s\n%s", seed, doc, set, fmt.Sprintf(format, args...))
		}
		if back, ok, err := GetServer(set, nil, "n"); err != nil || !ok || !sameJSON(back, []byte(entry)) {
			fail("which has %s, %v, %v", back, ok, err)
		}
		if a, b := others(t, []byte(doc), "n"), others(t, set, "n"); a != b {
			fail("others were\n%s\nand are\n%s", a, b)
		}
		_, had, _ := GetServer([]byte(doc), nil, "n")
		if !had && comments([]byte(doc)) != comments(set) {
			fail("the comments differ")
		}
		gone, removed, err := RemoveServer(set, nil, "n")
		if err != nil || !removed {
			fail("removed %v, %v", removed, err)
		}
		if !had && comments(gone) != comments(set) {
			fail("without it the comments differ:\n%s", gone)
		}
		if a, b := others(t, set, "n"), others(t, gone, "n"); a != b || strings.Contains(others(t, gone, ""), `"n":`) {
			fail("without it the others are\n%s", b)
		}
	}
}
