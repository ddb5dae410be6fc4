package mcpconfig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// A Place says where in a document a map of servers stands: the keys that lead to it. Nil means the top-level key mcpServers.
type Place []string

// LocalPlace is the place of a directory's own servers in ~/.claude.json.
func LocalPlace(dir string) Place {
	return Place{"projects", filepath.ToSlash(dir), serversKey}
}

func (p Place) keys() []string {
	if len(p) == 0 {
		return []string{serversKey}
	}
	return p
}

// GetServer is the entry of that name as it stands in the document, less comments.
func GetServer(doc []byte, at Place, name string) (entry json.RawMessage, ok bool, err error) {
	d, err := parseDocument(doc, "")
	if err != nil {
		return nil, false, fmt.Errorf("mcpconfig: %w", err)
	}
	n := d.top()
	for _, key := range append(slices.Clone(at.keys()), name) {
		if n, ok = n.get(key); !ok {
			return nil, false, nil
		}
	}
	return n.raw(), true, nil
}

// SetServer puts an entry into a document, in place of the one of that name or behind the others,
// and returns the new document. The objects that lead to it are made where they are missing; an empty document
// becomes one. Every other byte stays as it is: comments, order, indentation, line ends, a byte order mark. What is put in is laid out like its
// surroundings. The entry is not checked beyond being a JSON object: see [CheckEntry].
func SetServer(doc []byte, at Place, name string, entry json.RawMessage) ([]byte, error) {
	if !isObject(entry) {
		return nil, fmt.Errorf("mcpconfig: the entry of server %q is no JSON object", name)
	}
	body, bom := bytes.CutPrefix(doc, utf8BOM)
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}\n")
	}
	d, err := parseDocument(body, "")
	if err != nil {
		return nil, fmt.Errorf("mcpconfig: the document cannot be edited: %w", err)
	}
	n, path := d.top(), append(slices.Clone(at.keys()), name)
	for i, key := range path {
		obj, ok := n.v.Value.(*hujson.Object)
		if !ok && !n.isNull() {
			return nil, fmt.Errorf("mcpconfig: the document cannot be edited: %s is %s, want an object", orDocument(n.path), n.kind())
		}
		next, found := n.get(key)
		if ok && found && i < len(path)-1 {
			n = next
			continue
		}
		value := nest(path[i+1:], entry)
		switch style := d.style(); {
		case !ok: // null, in place of an object
			body = splice(d.data, n.v.StartOffset, n.v.EndOffset, style.value(nest(path[i:], entry), d.indentAt(n.v.StartOffset)))
		case found:
			body = splice(d.data, next.v.StartOffset, next.v.EndOffset, style.value(value, d.indentAt(next.v.StartOffset)))
		default:
			body = d.insert(n, obj, key, value, style)
		}
		break
	}
	if bom {
		body = append(slices.Clone(utf8BOM), body...)
	}
	return body, nil
}

// maxDoubled is how often an entry that is taken out may stand in a document.
const maxDoubled = 100

// RemoveServer takes an entry out of a document, and reports whether there was one. Every other
// byte stays as it is, but for the comma and the line that the entry took. An entry that stands more than 100 times is an error.
func RemoveServer(doc []byte, at Place, name string) (edited []byte, removed bool, err error) {
	edited = doc
	for range maxDoubled { // a key may stand more than once
		body, bom := bytes.CutPrefix(edited, utf8BOM)
		d, err := parseDocument(body, "")
		if err != nil {
			return nil, false, fmt.Errorf("mcpconfig: the document cannot be edited: %w", err)
		}
		n := d.top()
		for _, key := range at.keys() {
			next, ok := n.get(key)
			if !ok {
				return edited, removed, nil
			}
			n = next
		}
		obj, ok := n.v.Value.(*hujson.Object)
		i := -1
		if ok {
			i = slices.IndexFunc(obj.Members, func(m hujson.ObjectMember) bool { return m.Name.Value.(hujson.Literal).String() == name })
		}
		if i < 0 {
			return edited, removed, nil
		}
		body = d.remove(n, obj, i)
		if bom {
			body = append(slices.Clone(utf8BOM), body...)
		}
		edited, removed = body, true
	}
	if _, more, _ := GetServer(edited, at, name); more {
		return nil, false, fmt.Errorf("mcpconfig: the document cannot be edited: server %q stands more than %d times; edit it by hand", shorten(name), maxDoubled)
	}
	return edited, removed, nil
}

func isObject(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && raw[0] == '{' && json.Valid(raw)
}

func orDocument(path string) string {
	if path == "" {
		return "the document"
	}
	return path
}

// nest wraps a value in objects with those keys.
func nest(keys []string, value json.RawMessage) json.RawMessage {
	for _, k := range slices.Backward(keys) {
		value = json.RawMessage("{" + string(hujson.String(k)) + ":" + string(value) + "}")
	}
	return value
}

func splice(data []byte, from, to int, text string) []byte {
	return slices.Concat(data[:from], []byte(text), data[to:])
}

// insert adds a member behind the others of an object.
func (d *document) insert(n node, obj *hujson.Object, key string, value json.RawMessage, s style) []byte {
	start, end := n.v.StartOffset, n.v.EndOffset-1 // the brackets
	outer := d.indentAt(start)
	inner := outer + s.unit
	after, comma := start+1, false // the end of what stands before the new member, and whether a comma is there
	apart := s.newline != ""
	if k := len(obj.Members); k > 0 {
		last := obj.Members[k-1]
		after = last.Value.EndOffset
		comma = d.commaAt(last.Value) >= 0
		apart = apart && bytes.ContainsRune(last.Name.BeforeExtra, '\n')
		if apart {
			inner = d.indentAt(last.Name.StartOffset)
		}
	}
	// What stands between there and the closing bracket: white space, comments, a comma.
	tail := d.data[after:end]
	kept := bytes.TrimRight(tail, " \t\r\n")
	lineComment := endsInLineComment(kept)
	apart = apart || lineComment
	text := string(hujson.String(key)) + ":" + s.colon + s.value(value, inner)
	if !apart { // {"a": 1} or {}
		text = string(hujson.String(key)) + ":" + s.colon + style{colon: s.colon}.value(value, "")
	}
	var b strings.Builder
	b.Write(d.data[:after])
	if len(obj.Members) > 0 && !comma {
		b.WriteByte(',')
	}
	b.Write(kept)
	switch {
	case apart:
		b.WriteString(s.lineEnd() + inner)
	case len(obj.Members) > 0:
		b.WriteString(s.colon) // as wide as after a colon
	}
	b.WriteString(text)
	if comma {
		b.WriteByte(',')
	}
	rest := string(tail[len(kept):])
	if apart && !strings.Contains(rest, "\n") {
		rest = s.lineEnd() + outer
	}
	b.WriteString(rest)
	b.Write(d.data[end:])
	return []byte(b.String())
}

// remove takes out the member i of an object.
func (d *document) remove(n node, obj *hujson.Object, i int) []byte {
	m := obj.Members[i]
	// The white space before the name goes too, but not a comment, nor the line end that closes one.
	from := m.Name.StartOffset
	for floor := from - len(m.Name.BeforeExtra) + commentEnd(m.Name.BeforeExtra); from > floor && isSpace(d.data[from-1]); from-- {
	}
	to := m.Value.EndOffset
	if comma := d.commaAt(m.Value); comma >= 0 {
		out := splice(d.data, from, to, "")
		return splice(out, comma-(to-from), comma-(to-from)+1, "")
	}
	out := splice(d.data, from, to, "")
	if i == 0 {
		start, end := n.v.StartOffset, n.v.EndOffset-1-(to-from)
		if len(bytes.TrimSpace(out[start+1:end])) == 0 {
			out = splice(out, start+1, end, "")
		}
		return out
	}
	comma := d.commaAt(obj.Members[i-1].Value)
	return splice(out, comma, comma+1, "")
}

// commaAt is where the comma after a member's value stands, or -1.
func (d *document) commaAt(v hujson.Value) int {
	at := v.EndOffset + len(v.AfterExtra)
	if at < len(d.data) && d.data[at] == ',' {
		return at
	}
	return -1
}

// indentAt is the white space that the line of an offset begins with.
func (d *document) indentAt(offset int) string {
	line, _ := d.position(offset)
	text := d.data[d.lines[line-1]:]
	return string(text[:len(text)-len(bytes.TrimLeft(text, " \t"))])
}

// commentEnd is where the last comment in white space and comments ends, the line end of a line comment included.
func commentEnd(extra []byte) int {
	end := 0
	for i := 0; i < len(extra); i++ {
		if n := commentLength(extra[i:]); n > 0 {
			i += n
			end = i + 1
		}
	}
	return end
}

// endsInLineComment reports whether what is put behind would become part of a comment.
func endsInLineComment(extra []byte) bool {
	for i := 0; i < len(extra); i++ {
		n := commentLength(extra[i:])
		if n > 0 && i+n+1 >= len(extra) {
			return bytes.HasPrefix(extra[i:], []byte("//"))
		}
		i += n
	}
	return false
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }
