package rpcmsg

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// maxDepth bounds how deep a message may nest. The official library has the
// same bound; no message of MCP comes near it.
const maxDepth = 1000

var (
	errSyntax = errors.New("invalid JSON")
	errDepth  = fmt.Errorf("JSON nests deeper than %d levels", maxDepth)
)

// A member is one member of a JSON object, its value still raw.
type member struct {
	key   string
	value json.RawMessage
}

// A scanner reads JSON in one pass without recursion. It accepts exactly what
// [json.Valid] accepts, save for text that is not UTF-8 and nesting beyond
// maxDepth. What it returns are slices of data.
type scanner struct {
	data []byte
	pos  int
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return
		}
	}
}

// peek is the next byte that is not space, or 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

// object reads an object and calls each with its members in order. nested says
// how many levels enclose the object.
func (s *scanner) object(nested int, each func(key string, value json.RawMessage)) error {
	return s.container('}', func() error {
		key, err := s.key()
		if err != nil {
			return err
		}
		value, err := s.value(nested + 1)
		if err != nil {
			return err
		}
		each(key, value)
		return nil
	})
}

// container reads what stands between the bracket under s.pos and end.
func (s *scanner) container(end byte, entry func() error) error {
	s.pos++
	if s.peek() == end {
		s.pos++
		return nil
	}
	for {
		if err := entry(); err != nil {
			return err
		}
		switch s.peek() {
		case ',':
			s.pos++
		case end:
			s.pos++
			return nil
		default:
			return errSyntax
		}
	}
}

// key reads the name of a member and the colon behind it.
func (s *scanner) key() (string, error) {
	if s.peek() != '"' {
		return "", errSyntax
	}
	raw, err := s.str()
	if err != nil {
		return "", err
	}
	if s.peek() != ':' {
		return "", errSyntax
	}
	s.pos++
	return unquote(raw)
}

// value reads any value and returns its bytes. nested says how many levels
// enclose it.
func (s *scanner) value(nested int) (json.RawMessage, error) {
	s.space()
	start := s.pos
	if err := s.skip(nested); err != nil {
		return nil, err
	}
	return s.data[start:s.pos:s.pos], nil
}

// skip passes over one value. Open brackets are kept as bits, one for each
// level, set for an object, so a depth bomb costs no stack.
func (s *scanner) skip(nested int) error {
	var objects [maxDepth/64 + 1]uint64
	depth := 0
	for {
		c := s.peek()
		switch c {
		case '{', '[':
			if nested+depth >= maxDepth {
				return errDepth
			}
			s.pos++
			objects[depth/64] &^= 1 << (depth % 64)
			if c == '{' {
				objects[depth/64] |= 1 << (depth % 64)
			}
			depth++
			if next := s.peek(); next == c+2 { // '[' and ']', '{' and '}' are two apart
				break // an empty container: its end is handled below
			}
			if c == '{' {
				if err := s.member(); err != nil {
					return err
				}
			}
			continue
		default:
			if err := s.scalar(c); err != nil {
				return err
			}
		}
		// A value or an empty container has been read: close what ends here.
		for {
			if depth == 0 {
				return nil
			}
			inObject := objects[(depth-1)/64]&(1<<((depth-1)%64)) != 0
			c := s.peek()
			s.pos++
			if c == ',' {
				if inObject {
					if err := s.member(); err != nil {
						return err
					}
				}
				break
			}
			if (c == '}') != inObject || c != '}' && c != ']' {
				return errSyntax
			}
			depth--
		}
	}
}

// member passes over the name of a member and the colon behind it.
func (s *scanner) member() error {
	if s.peek() != '"' {
		return errSyntax
	}
	if _, err := s.str(); err != nil {
		return err
	}
	if s.peek() != ':' {
		return errSyntax
	}
	s.pos++
	return nil
}

func (s *scanner) scalar(c byte) error {
	switch c {
	case '"':
		_, err := s.str()
		return err
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	return s.number()
}

func (s *scanner) word(w string) error {
	if !bytes.HasPrefix(s.data[s.pos:], []byte(w)) {
		return errSyntax
	}
	s.pos += len(w)
	return nil
}

// str reads a string, quotes included.
func (s *scanner) str() ([]byte, error) {
	start := s.pos
	for i := start + 1; i < len(s.data); i++ {
		switch c := s.data[i]; {
		case c == '"':
			s.pos = i + 1
			return s.data[start:s.pos], nil
		case c < ' ':
			return nil, errSyntax
		case c == '\\':
			n := escape(s.data[i:])
			if n == 0 {
				return nil, errSyntax
			}
			i += n - 1
		}
	}
	return nil, errSyntax
}

// escape is the length of the escape sequence at the start of b, 0 if there is none.
func escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) < 6 {
			return 0
		}
		for _, c := range b[2:6] {
			if !isDigit(c) && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
				return 0
			}
		}
		return 6
	}
	return 0
}

// number reads a number: sign, integer, fraction, exponent.
func (s *scanner) number() error {
	i := s.pos
	at := func() byte {
		if i < len(s.data) {
			return s.data[i]
		}
		return 0
	}
	digits := func() bool {
		from := i
		for isDigit(at()) {
			i++
		}
		return i > from
	}
	if at() == '-' {
		i++
	}
	if at() == '0' {
		i++
	} else if !digits() {
		return errSyntax
	}
	if at() == '.' {
		i++
		if !digits() {
			return errSyntax
		}
	}
	if at() == 'e' || at() == 'E' {
		i++
		if at() == '+' || at() == '-' {
			i++
		}
		if !digits() {
			return errSyntax
		}
	}
	s.pos = i
	return nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// unquote is the text of a JSON string that is known to be well formed.
func unquote(raw []byte) (string, error) {
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return "", errSyntax
	}
	return text, nil
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

// checkText reports text that is not UTF-8, which no JSON is.
func checkText(raw []byte) error {
	if !utf8.Valid(raw) {
		return errors.New("invalid JSON: not UTF-8")
	}
	return nil
}
