package schemaguard

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// The kinds of JSON values.
const (
	kindNull = iota
	kindBool
	kindNumber
	kindString
	kindArray
	kindObject
)

var kindNames = [...]string{"null", "boolean", "number", "string", "array", "object"}

// A node is one value of a document. The nodes of a document lie in the order of
// the text: an array's or object's children follow it, each with all of its own.
type node struct {
	start, end       uint32 // of the value's text
	keyStart, keyEnd uint32 // of the member's name with its quotes; both 0 outside objects
	next             uint32 // index of the node after this value's last descendant
	size             uint32 // number of children
	kind             uint8
	keyEscaped       bool // the member's name has escapes
	escaped          bool // the string has escapes
}

// A document is a parsed JSON text. It copies nothing: its nodes point into text.
type document struct {
	text  []byte
	nodes []node
	open  []uint32 // while parsing: the containers not yet closed
}

var errTooBig = errors.New("the text is longer than 4 GiB")

// parse makes d the document of text. It accepts exactly what encoding/json
// accepts, its bound of 10,000 levels included.
func (d *document) parse(text []byte) error {
	if len(text) > math.MaxUint32 {
		return errTooBig
	}
	if !json.Valid(text) {
		var v json.RawMessage
		err := json.Unmarshal(text, &v) // the same scan, but this one says what is wrong
		if err == nil {
			err = errors.New("malformed JSON")
		}
		return err
	}
	d.text, d.nodes, d.open = text, d.nodes[:0], d.open[:0]
	d.scan()
	return nil
}

// scan fills d.nodes from a text that is known to be valid JSON.
func (d *document) scan() {
	text := d.text
	var key node // start, end and escaped of the name that was read last
	haveKey, wantKey := false, false
	for i := 0; i < len(text); {
		switch c := text[i]; c {
		case ' ', '\t', '\r', '\n', ':':
			i++
		case ',':
			i++
			wantKey = d.nodes[d.open[len(d.open)-1]].kind == kindObject
		case '}', ']':
			i++
			d.close(uint32(i))
			wantKey = false
		default:
			n := node{start: uint32(i)}
			if haveKey {
				n.keyStart, n.keyEnd, n.keyEscaped = key.start, key.end, key.escaped
				haveKey = false
			}
			switch c {
			case '{', '[':
				n.kind = kindArray
				if wantKey = c == '{'; wantKey {
					n.kind = kindObject
				}
				d.add(n)
				d.open = append(d.open, uint32(len(d.nodes)-1))
				i++
				continue
			case '"':
				n.kind = kindString
				i, n.escaped = skipString(text, i)
				n.end = uint32(i)
				if wantKey {
					key, haveKey, wantKey = n, true, false
					continue
				}
			default:
				n.kind = literalKind(c)
				i = skipLiteral(text, i)
				n.end = uint32(i)
			}
			d.add(n)
		}
	}
}

// add appends a node to the container that is open.
func (d *document) add(n node) {
	n.next = uint32(len(d.nodes) + 1)
	d.nodes = append(d.nodes, n)
	if len(d.open) > 0 {
		d.nodes[d.open[len(d.open)-1]].size++
	}
}

// close ends the innermost open container at offset end.
func (d *document) close(end uint32) {
	c := &d.nodes[d.open[len(d.open)-1]]
	d.open = d.open[:len(d.open)-1]
	c.end, c.next = end, uint32(len(d.nodes))
}

func literalKind(c byte) uint8 {
	switch c {
	case 'n':
		return kindNull
	case 't', 'f':
		return kindBool
	}
	return kindNumber
}

func skipString(text []byte, i int) (end int, escaped bool) {
	for i++; ; i++ {
		switch text[i] {
		case '"':
			return i + 1, escaped
		case '\\':
			escaped = true
			i++
		}
	}
}

func skipLiteral(text []byte, i int) int {
	for ; i < len(text); i++ {
		switch text[i] {
		case ',', ']', '}', ' ', '\t', '\r', '\n':
			return i
		}
	}
	return i
}

// raw returns the text of value v.
func (d *document) raw(v uint32) []byte { return d.text[d.nodes[v].start:d.nodes[v].end] }

// str returns the string that v is. The result may share memory with the text.
func (d *document) str(v uint32) []byte {
	n := &d.nodes[v]
	return unquote(d.text[n.start:n.end], n.escaped)
}

// key returns the name under which v is a member of its object. The result may
// share memory with the text.
func (d *document) key(v uint32) []byte {
	n := &d.nodes[v]
	return unquote(d.text[n.keyStart:n.keyEnd], n.keyEscaped)
}

// unquote returns what a JSON string stands for, as encoding/json reads it.
func unquote(quoted []byte, escaped bool) []byte {
	inner := quoted[1 : len(quoted)-1]
	if !escaped {
		return inner
	}
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil {
		return inner // cannot be: the text was checked
	}
	return []byte(s)
}

// number returns the number that v is.
func (d *document) number(v uint32) decimal { return parseDecimal(d.raw(v)) }

// show describes value v for a message, shortened.
func (d *document) show(v uint32) string {
	const limit = 60
	n := &d.nodes[v]
	switch n.kind {
	case kindNull:
		return "null"
	case kindObject:
		if n.size == 0 {
			return "the empty object {}"
		}
		return "an object"
	case kindArray:
		if n.size == 0 {
			return "the empty array []"
		}
		return fmt.Sprintf("an array of %d", n.size)
	case kindBool:
		return string(d.raw(v))
	case kindNumber:
		return "the number " + shorten(string(d.raw(v)), limit)
	}
	return "the string " + strconv.Quote(shorten(string(d.str(v)), limit))
}

// shorten cuts s after limit characters and says so by three dots.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	i := 0
	for cut := range s {
		if i == limit {
			return s[:cut] + "..."
		}
		i++
	}
	return s
}

// runes counts the characters of a JSON string's value.
func runes(s []byte) int { return utf8.RuneCount(s) }
