package mcpconfig

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tailscale/hujson"
)

// A Place is the keys that lead to the map of servers in a document. Nil means the key mcpServers.
type Place []string

// LocalPlace returns the place of a directory's own servers in ~/.claude.json.
func LocalPlace(dir string) Place {
	return Place{"projects", filepath.ToSlash(dir), serversKey}
}

func (p Place) keys() []string {
	if len(p) == 0 {
		return []string{serversKey}
	}
	return p
}

// GetServer returns the entry of a server in a document as standard JSON.
func GetServer(doc []byte, at Place, name string) (entry json.RawMessage, ok bool, err error) {
	d, err := parseDocument(doc, "")
	if err != nil {
		return nil, false, fmt.Errorf("mcpconfig: %w", err)
	}
	n := d.top()
	for _, key := range append(slices.Clone(at.keys()), name) {
		n = n.get(key)
	}
	if !n.exists() {
		return nil, false, nil
	}
	return n.raw(), true, nil
}

// SetServer replaces the entry of a server in a document, or adds it after the others, and returns the new
// document. Missing objects on the way are added. All other bytes stay as they are. The entry gets the
// indentation and line ends of the document. The entry must be a JSON object; see [CheckEntry].
func SetServer(doc []byte, at Place, name string, entry json.RawMessage) ([]byte, error) {
	value, err := hujson.Parse(entry)
	if err != nil || value.Value.Kind() != '{' || !value.IsStandard() {
		return nil, fmt.Errorf("mcpconfig: the entry of server %q is not a JSON object", name)
	}
	value.Minimize()
	if body := bytes.TrimPrefix(doc, utf8BOM); len(bytes.TrimSpace(body)) == 0 {
		doc = append(doc[:len(doc)-len(body):len(doc)-len(body)], "{}\n"...)
	}
	d, err := parseDocument(doc, "")
	if err != nil {
		return nil, fmt.Errorf("mcpconfig: the document cannot be edited: %w", err)
	}
	style := d.style()
	v, path, way := &d.root, append(slices.Clone(at.keys()), name), ""
	for i, key := range path {
		obj, ok := v.Value.(*hujson.Object)
		if !ok && v.Value.Kind() != 'n' {
			return nil, fmt.Errorf("mcpconfig: the document cannot be edited: %s is %s, want an object", cmp.Or(way, "the document"), node{v: *v}.kind())
		}
		if !ok {
			return d.replace(v, nest(path[i:], value), style)
		}
		next := lastMember(obj, key)
		if next < 0 {
			return d.insert(v, obj, key, nest(path[i+1:], value), style)
		}
		v, way = &obj.Members[next].Value, joinPath(way, key)
	}
	return d.replace(v, value, style)
}

// replace replaces a value and returns the text of the document.
func (d *document) replace(v *hujson.Value, value hujson.Value, s style) ([]byte, error) {
	value, err := s.apply(value, d.indentAt(v.StartOffset))
	v.Value = value.Value
	return d.pack(), err
}

// RemoveServer removes the entry of a server from a document, and reports whether there was one. All
// other bytes stay as they are, except the comma and the line of the entry.
func RemoveServer(doc []byte, at Place, name string) (edited []byte, removed bool, err error) {
	d, err := parseDocument(doc, "")
	if err != nil {
		return nil, false, fmt.Errorf("mcpconfig: the document cannot be edited: %w", err)
	}
	obj, _ := d.root.Value.(*hujson.Object)
	for _, key := range at.keys() {
		i := lastMember(obj, key)
		if i < 0 {
			return doc, false, nil
		}
		obj, _ = obj.Members[i].Value.Value.(*hujson.Object)
	}
	if lastMember(obj, name) < 0 {
		return doc, false, nil
	}
	kept := obj.Members[:0:0]
	var comments hujson.Extra // of the members that were just removed
	for _, m := range obj.Members {
		if memberName(m) == name {
			// The white space before the name goes, but no comment, and no line end of a comment.
			end, _ := lastComment(m.Name.BeforeExtra)
			comments = slices.Concat(comments, m.Name.BeforeExtra[:end], m.Value.AfterExtra)
			continue
		}
		m.Name.BeforeExtra = append(comments, m.Name.BeforeExtra...)
		comments = nil
		kept = append(kept, m)
	}
	trailingComma := obj.Members[len(obj.Members)-1].Value.AfterExtra != nil
	obj.Members = kept
	if len(kept) > 0 {
		last := &kept[len(kept)-1].Value
		switch {
		case trailingComma && last.AfterExtra == nil:
			last.AfterExtra = hujson.Extra{}
		case !trailingComma:
			comments = slices.Concat(last.AfterExtra, comments)
			last.AfterExtra = nil
		}
	}
	obj.AfterExtra = append(comments, obj.AfterExtra...)
	if len(kept) == 0 && len(bytes.TrimSpace(obj.AfterExtra)) == 0 {
		obj.AfterExtra = nil
	}
	return d.pack(), true, nil
}

// insert adds a member after the others of the object that v holds, and returns the text of the
// document.
func (d *document) insert(v *hujson.Value, obj *hujson.Object, key string, value hujson.Value, s style) ([]byte, error) {
	outer := d.indentAt(v.StartOffset)
	inner := outer + s.indent
	ownLine := s.newline != ""
	trailingComma := false
	if k := len(obj.Members); k > 0 {
		last := obj.Members[k-1]
		trailingComma = last.Value.AfterExtra != nil
		if ownLine = ownLine && bytes.ContainsRune(last.Name.BeforeExtra, '\n'); ownLine {
			inner = d.indentAt(last.Name.StartOffset)
		}
	}
	// AfterExtra is the text before the closing bracket. Its comments stay before the new member.
	before := hujson.Extra(bytes.TrimRight(obj.AfterExtra, " \t\r\n"))
	after := obj.AfterExtra[len(before):]
	if end, line := lastComment(before); line && end == len(before) {
		ownLine = true
	}
	newline := cmp.Or(s.newline, "\n")
	if !ownLine {
		s.newline = ""
	}
	value, err := s.apply(value, inner)
	m := newMember(key, value)
	m.Value.BeforeExtra = hujson.Extra(s.space)
	m.Name.BeforeExtra = before
	switch {
	case ownLine:
		m.Name.BeforeExtra = slices.Concat(before, []byte(newline+inner))
	case len(obj.Members) > 0:
		m.Name.BeforeExtra = slices.Concat(before, []byte(s.space))
	}
	if ownLine && !bytes.ContainsRune(after, '\n') {
		after = hujson.Extra(newline + outer)
	}
	if trailingComma {
		m.Value.AfterExtra = hujson.Extra{}
	}
	obj.Members, obj.AfterExtra = append(obj.Members, m), after
	return d.pack(), err
}

// nest wraps a value in objects with the keys.
func nest(keys []string, value hujson.Value) hujson.Value {
	for _, key := range slices.Backward(keys) {
		value = hujson.Value{Value: &hujson.Object{Members: []hujson.ObjectMember{newMember(key, value)}}}
	}
	return value
}

func newMember(name string, value hujson.Value) hujson.ObjectMember {
	return hujson.ObjectMember{Name: stringValue(name), Value: value}
}

func memberName(m hujson.ObjectMember) string { return m.Name.Value.(hujson.Literal).String() }

// lastMember returns the index of the last member with the name, or -1. obj may be nil.
func lastMember(obj *hujson.Object, name string) int {
	if obj == nil {
		return -1
	}
	for i, m := range slices.Backward(obj.Members) {
		if memberName(m) == name {
			return i
		}
	}
	return -1
}

// lastComment returns the end of the last comment in extra, and whether it is a line comment.
func lastComment(extra hujson.Extra) (end int, line bool) {
	for i := 0; i < len(extra); i++ {
		if n := commentLength(extra[i:]); n > 0 {
			line = extra[i+1] == '/'
			i += n
			end = i + 1
		}
	}
	return end, line
}

// A style is the white space of a document. The zero style has none.
type style struct {
	newline string // the line end; empty for a document in one line
	indent  string // the indentation of a level
	space   string // the space after a colon
}

// style returns the layout of the document, by the first line that shows it.
func (d *document) style() style {
	s := style{indent: "  ", space: " "}
	if before, _, ok := bytes.Cut(d.data, []byte("\n")); ok {
		s.newline = "\n"
		if bytes.HasSuffix(before, []byte("\r")) {
			s.newline = "\r\n"
		}
	}
	if !bytes.ContainsRune(bytes.TrimSpace(d.data), '\n') && bytes.ContainsRune(d.data, ':') {
		s.newline, s.indent = "", ""
	}
	if _, after, _ := bytes.Cut(d.data, []byte(`":`)); len(after) > 0 && !bytes.ContainsRune([]byte(" \t\r\n"), rune(after[0])) {
		s.space = ""
	}
	for _, line := range d.lines {
		text := d.data[line:]
		if indent := leadingBlanks(text); indent != "" && bytes.HasPrefix(text[len(indent):], []byte(`"`)) {
			s.indent = indent
			break
		}
	}
	return s
}

// apply lays out standard JSON. Its first line is indented by indent.
func (s style) apply(v hujson.Value, indent string) (hujson.Value, error) {
	text := jsontext.Value(v.Pack())
	err := text.Format(
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(true),
		jsontext.Multiline(s.newline != ""), jsontext.WithIndentPrefix(indent), jsontext.WithIndent(s.indent),
		jsontext.SpaceAfterColon(s.space != ""), jsontext.SpaceAfterComma(s.space != "" && s.newline == ""),
	)
	if err != nil {
		return v, err
	}
	return hujson.Parse(bytes.ReplaceAll(text, []byte("\n"), []byte(s.newline)))
}

// indentAt returns the white space at the beginning of the line of an offset.
func (d *document) indentAt(offset int) string {
	line, _ := d.position(offset)
	return leadingBlanks(d.data[d.lines[line-1]:])
}

func leadingBlanks(text []byte) string {
	return string(text[:len(text)-len(bytes.TrimLeft(text, " \t"))])
}

// pack returns the text of the document.
func (d *document) pack() []byte {
	text := d.root.Pack()
	if d.bom {
		text = append(slices.Clone(utf8BOM), text...)
	}
	return text
}
