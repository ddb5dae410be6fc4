package mcpconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"github.com/tenon-sdk/tenon/internal/clip"
)

const (
	// maxBytes bounds the size of a document.
	maxBytes = 64 << 20
	// maxDepth bounds the nesting of a document.
	maxDepth = 500
)

var utf8BOM = []byte("\xef\xbb\xbf")

// A document is parsed JSON with positions. Comments and trailing commas are accepted and set relaxed.
type document struct {
	file    string
	data    []byte // without the byte order mark
	bom     bool
	relaxed bool
	root    hujson.Value
	lines   []int // the offsets of the lines
}

// A syntaxError is the error of text that is not JSON.
type syntaxError struct {
	line, column int
	message      string
}

func (e *syntaxError) Error() string {
	if e.line == 0 {
		return e.message
	}
	return fmt.Sprintf("line %d, column %d: %s", e.line, e.column, e.message)
}

// parseDocument parses text. An error is a *syntaxError, which does not quote the text.
func parseDocument(data []byte, file string) (*document, error) {
	d := &document{file: file, lines: []int{0}}
	d.data, d.bom = bytes.CutPrefix(data, utf8BOM)
	for i, c := range d.data {
		if c == '\n' {
			d.lines = append(d.lines, i+1)
		}
	}
	switch {
	case len(d.data) > maxBytes:
		return d, &syntaxError{message: fmt.Sprintf("it has more than the %d bytes that are read", maxBytes)}
	case bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")):
		return d, &syntaxError{message: "it is UTF-16; save it as UTF-8"}
	case len(bytes.TrimSpace(d.data)) == 0:
		return d, &syntaxError{message: "it is empty"}
	}
	if at := tooDeep(d.data); at >= 0 {
		return d, d.syntax(at, fmt.Sprintf("it is nested more than %d levels deep", maxDepth))
	}
	root, err := hujson.Parse(d.data)
	if errors.Is(err, io.ErrUnexpectedEOF) { // perhaps a line comment without a line end
		if whole, err2 := hujson.Parse(append(bytes.Clone(d.data), '\n')); err2 == nil {
			whole.AfterExtra = bytes.TrimSuffix(whole.AfterExtra, []byte("\n"))
			root, err = whole, nil
		}
	}
	if err != nil {
		return d, parseError(err)
	}
	for i, r := range string(d.data) {
		if r == utf8.RuneError && !bytes.HasPrefix(d.data[i:], []byte("\uFFFD")) {
			return d, d.syntax(i, "it is not valid UTF-8")
		}
	}
	d.root, d.relaxed = root, !root.IsStandard()
	return d, nil
}

// hujsonPosition matches the parser's errors.
var hujsonPosition = regexp.MustCompile(`(?s)^hujson: line (\d+), column (\d+): (.*)`)

// parseError returns a parser's error without quotes of the text, which may contain secrets.
func parseError(err error) error {
	m := hujsonPosition.FindStringSubmatch(err.Error())
	if m == nil {
		return &syntaxError{message: "it is not valid JSON"}
	}
	e := &syntaxError{message: "invalid JSON: " + m[3]}
	e.line, _ = strconv.Atoi(m[1])
	e.column, _ = strconv.Atoi(m[2])
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		e.message = "the JSON ends too soon: a bracket, a quotation mark or a comment is not closed"
	case strings.HasPrefix(m[3], "invalid literal"):
		e.message = "invalid value: a string with a bad escape or line break, or a word without quotation marks"
	}
	return e
}

func (d *document) syntax(offset int, message string) error {
	line, column := d.position(offset)
	return &syntaxError{line, column, message}
}

// position returns the line and column of an offset, counted from 1.
func (d *document) position(offset int) (line, column int) {
	line = sort.SearchInts(d.lines, offset+1)
	return line, offset - d.lines[line-1] + 1
}

// tooDeep returns the offset where the nesting exceeds maxDepth, or -1. The parser has no bound.
func tooDeep(data []byte) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '/':
			i += commentLength(data[i:])
		case '{', '[':
			if depth++; depth > maxDepth {
				return i
			}
		case '}', ']':
			depth--
		}
	}
	return -1
}

// commentLength returns the length of the comment that data begins with, minus 1, or 0 without one.
func commentLength(data []byte) int {
	end := "\n"
	switch {
	case bytes.HasPrefix(data, []byte("/*")):
		end = "*/"
	case !bytes.HasPrefix(data, []byte("//")):
		return 0
	}
	i := bytes.Index(data[2:], []byte(end))
	if i < 0 {
		return len(data) - 1
	}
	return 2 + i + len(end) - 1
}

// A node is a value in a document with its path. The zero node does not exist.
type node struct {
	v    hujson.Value
	path string
}

func (d *document) top() node { return node{d.root, ""} }

// kind returns the type of the value, for messages.
func (n node) kind() string {
	return map[hujson.Kind]string{
		'n': "null", 't': "a boolean", 'f': "a boolean", '"': "a string", '0': "a number", '{': "an object", '[': "a list",
	}[n.v.Value.Kind()]
}

// size returns the type of the value and the number of its elements, for messages.
func (n node) size() string {
	count := 0
	switch v := n.v.Value.(type) {
	case *hujson.Object:
		count = len(v.Members)
	case *hujson.Array:
		count = len(v.Elements)
	default:
		return n.kind()
	}
	if count == 1 {
		return n.kind() + " with 1 element"
	}
	return fmt.Sprintf("%s with %d elements", n.kind(), count)
}

// A member is a member of an object. Messages point to its key.
type member struct {
	name  string
	key   node
	value node
}

// object returns the members of an object in order. Of members with the same name, only the last is
// in members, and the others are in doubled.
func (n node) object() (members, doubled []member, ok bool) {
	o, ok := n.v.Value.(*hujson.Object)
	if !ok {
		return nil, nil, false
	}
	last := make(map[string]int, len(o.Members))
	members = []member{}
	for i, m := range o.Members {
		last[memberName(m)] = i
	}
	for i, m := range o.Members {
		name := memberName(m)
		path := joinPath(n.path, name)
		m := member{name, node{m.Name, path}, node{m.Value, path}}
		if last[name] == i {
			members = append(members, m)
		} else {
			doubled = append(doubled, m)
		}
	}
	return members, doubled, true
}

// get returns the member with the name. Without one, the node does not exist.
func (n node) get(name string) node {
	o, _ := n.v.Value.(*hujson.Object)
	if i := lastMember(o, name); i >= 0 {
		return node{o.Members[i].Value, joinPath(n.path, name)}
	}
	return node{}
}

func (n node) exists() bool { return n.v.Value != nil }

// isNull reports whether the value is null or does not exist.
func (n node) isNull() bool { return !n.exists() || n.v.Value.Kind() == 'n' }

// list returns the elements of a list.
func (n node) list() ([]node, bool) {
	a, ok := n.v.Value.(*hujson.Array)
	if !ok {
		return nil, false
	}
	out := make([]node, len(a.Elements))
	for i, e := range a.Elements {
		out[i] = node{e, fmt.Sprintf("%s[%d]", n.path, i)}
	}
	return out, true
}

func (n node) text() (string, bool) {
	s, ok := n.v.Value.(hujson.Literal)
	if !ok || s.Kind() != '"' {
		return "", false
	}
	return s.String(), true
}

func (n node) boolean() (value, ok bool) {
	b, _ := n.v.Value.(hujson.Literal)
	return string(b) == "true", string(b) == "true" || string(b) == "false"
}

func (n node) number() (float64, bool) {
	l, _ := n.v.Value.(hujson.Literal)
	f, err := strconv.ParseFloat(string(l), 64)
	return f, err == nil && l.Kind() == '0'
}

// raw returns the value as standard JSON.
func (n node) raw() json.RawMessage {
	v := n.v.Clone()
	v.BeforeExtra, v.AfterExtra = nil, nil
	v.Minimize()
	return v.Pack()
}

// plainKey matches a name that needs no brackets in a path.
var plainKey = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$-]*$`)

// joinPath appends a name to a JSON path.
func joinPath(path, name string) string {
	name = clip.Text(name, 40) // because the paths of all nested values repeat it
	switch {
	case !plainKey.MatchString(name):
		return path + "[" + strconv.Quote(name) + "]"
	case path == "":
		return name
	}
	return path + "." + name
}
