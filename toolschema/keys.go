package toolschema

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

const (
	// maxKey is the longest property key that the API accepts, in bytes.
	maxKey = 64
	// keyHash is the number of hexadecimal digits that distinguish two shortened keys.
	keyHash = 8
)

// legalKey reports whether the API accepts a property key.
func legalKey(s string) bool {
	if s == "" || len(s) > maxKey {
		return false
	}
	for i := range len(s) {
		if !keyByte(s[i]) {
			return false
		}
	}
	return true
}

func keyByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '.' || c == '-'
}

// findAliases chooses a legal alias for every illegal property key of a schema. A key has the same
// alias everywhere in a tool, and no alias is also a key, so that it can be reversed.
func (m *mender) findAliases(root *object) {
	keys := map[string]bool{}
	m.collectKeys(root, keys)
	var illegal []string
	taken := map[string]int{}
	for k := range keys {
		if legalKey(k) {
			taken[k]++
		} else {
			illegal = append(illegal, k)
		}
	}
	if len(illegal) == 0 {
		return
	}
	slices.Sort(illegal)
	for _, k := range illegal {
		taken[plainAlias(k)]++
	}
	m.alias, m.original = make(map[string]string, len(illegal)), make(map[string]string, len(illegal))
	for _, k := range illegal {
		m.spend(1 + len(k)/4)
		a := plainAlias(k)
		for n := 0; taken[a] > 1 || n > 0 && taken[a] > 0 || hasKey(m.original, a); n++ {
			m.spend(1 + len(k)/4)
			a = hashedAlias(k, n)
		}
		m.alias[k], m.original[a] = a, k
	}
}

func hasKey(m map[string]string, k string) bool { _, ok := m[k]; return ok }

// collectKeys collects the property keys of a schema and its subschemas.
func (m *mender) collectKeys(o *object, keys map[string]bool) {
	m.spend(1 + len(o.members))
	if props := o.object("properties"); props != nil {
		m.spend(len(props.members))
		for _, p := range props.members {
			keys[p.key] = true
		}
	}
	children(o, func(_, _ string, sub any) {
		if s, ok := sub.(*object); ok {
			m.collectKeys(s, keys)
		}
	})
}

// plainAlias replaces illegal characters in a key. A long key is shortened and ends in a hash.
func plainAlias(k string) string {
	s := strings.Map(func(r rune) rune {
		if r < 0x80 && keyByte(byte(r)) {
			return r
		}
		return '_'
	}, k)
	if s == "" {
		s = "_"
	}
	if len(s) > maxKey {
		return hashedAlias(k, 0)
	}
	return s
}

// hashedAlias returns the n-th alternative for a key.
func hashedAlias(k string, n int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", k, n))
	s := strings.Map(func(r rune) rune {
		if r < 0x80 && keyByte(byte(r)) {
			return r
		}
		return '_'
	}, k)
	s = s[:min(len(s), maxKey-keyHash-1)]
	return s + "_" + hex.EncodeToString(sum[:])[:keyHash]
}

// renameKeys renames the members of a properties, dependentSchemas or dependentRequired object.
func (m *mender) renameKeys(o *object, key string) {
	if len(m.alias) == 0 {
		return
	}
	for i := range o.members {
		e := &o.members[i]
		a, ok := m.alias[e.key]
		if !ok {
			continue
		}
		if key == "properties" {
			m.push(key, "")
			m.mend(e.key, "key", "called %q, since the API accepts %s only", a, "A-Z a-z 0-9 _ . - and 64 characters")
			m.pop(key, "")
			e.value = named(e.value, e.key)
		}
		e.key = a
	}
	o.reindex()
}

// named adds the original name of a property to its description, since the alias may be only
// underscores.
func named(sub any, original string) any {
	o, ok := sub.(*object)
	if !ok {
		if sub == any(false) {
			return sub
		}
		o = &object{}
	}
	text := fmt.Sprintf("Called %q by the server.", shorten(original))
	if d := o.text("description"); d != "" {
		text += " " + d
	}
	o.set("description", text)
	return o
}

// renameLists renames the keys in required and dependentRequired.
func (m *mender) renameLists(o *object) {
	if len(m.alias) == 0 {
		return
	}
	rename := func(list []any) {
		for i, e := range list {
			if s, ok := e.(string); ok {
				if a, ok := m.alias[s]; ok {
					list[i] = a
				}
			}
		}
	}
	if list, ok := o.list("required"); ok {
		rename(list)
	}
	if deps := o.object("dependentRequired"); deps != nil {
		for _, d := range deps.members {
			if list, ok := d.value.([]any); ok {
				rename(list)
			}
		}
	}
	renamed := func(p member) bool { return hasKey(m.original, p.key) }
	if props := o.object("properties"); props != nil && o.find("propertyNames") >= 0 && slices.ContainsFunc(props.members, renamed) {
		m.loosen("propertyNames", "key", "taken out, since it is about names that the model does not see")
		o.remove("propertyNames")
	}
}
