// Package jsonscan takes JSON apart in one pass and without loss: values are slices of what was
// read, nothing is copied or converted. It is for lines that come by the thousand, of which a few
// members are read here and the rest elsewhere or never.
package jsonscan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// MaxDepth bounds how deep a value may nest. The official MCP library has the
// same bound; no message of MCP comes near it.
const MaxDepth = 1000

// ErrSyntax is the error for what is no JSON.
var ErrSyntax = errors.New("invalid JSON")

var errDepth = fmt.Errorf("JSON nests deeper than %d levels", MaxDepth)

// Object reads an object that is all of data and calls each with its members in order, with two of
// one name as well. A key has no escapes any more. It fails for any other value, maybe after some
// calls. What nests too deeply for the scanner is left to encoding/json, in no order.
func Object(data []byte, each func(key []byte, value json.RawMessage)) error {
	s := Scanner{Data: data}
	if s.Peek() != '{' {
		return ErrSyntax
	}
	err := s.Object(0, each)
	switch {
	case errors.Is(err, errDepth):
		return deepObject(data, each)
	case err != nil:
		return err
	}
	return s.end()
}

func deepObject(data []byte, each func(key []byte, value json.RawMessage)) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return err
	}
	for key, value := range members {
		each([]byte(key), value)
	}
	return nil
}

// Array reads an array that is all of data and calls each with its elements in order. It fails for
// any other value, maybe after some calls.
func Array(data []byte, each func(value json.RawMessage)) error {
	s := Scanner{Data: data}
	if s.Peek() != '[' {
		return ErrSyntax
	}
	err := s.Container(']', func() error {
		value, err := s.Value(1)
		if err == nil {
			each(value)
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.end()
}

// end reports what follows the last value.
func (s *Scanner) end() error {
	if s.Space(); s.Pos < len(s.Data) {
		return ErrSyntax
	}
	return nil
}

// A Scanner reads JSON in one pass without recursion. It accepts exactly what
// [json.Valid] accepts, save for text that is not UTF-8 and nesting beyond
// MaxDepth. What it returns are slices of data.
type Scanner struct {
	Data []byte
	Pos  int // what is read next
}

// Space passes over space.
func (s *Scanner) Space() {
	for s.Pos < len(s.Data) {
		switch s.Data[s.Pos] {
		case ' ', '\t', '\r', '\n':
			s.Pos++
		default:
			return
		}
	}
}

// Peek is the next byte that is not space, or 0 at the end.
func (s *Scanner) Peek() byte {
	s.Space()
	if s.Pos < len(s.Data) {
		return s.Data[s.Pos]
	}
	return 0
}

// Object reads an object and calls each with its members in order. nested says
// how many levels enclose the object.
func (s *Scanner) Object(nested int, each func(key []byte, value json.RawMessage)) error {
	return s.Container('}', func() error {
		key, err := s.Key()
		if err != nil {
			return err
		}
		value, err := s.Value(nested + 1)
		if err != nil {
			return err
		}
		each(key, value)
		return nil
	})
}

// Container reads what stands between the bracket under s.Pos and end.
func (s *Scanner) Container(end byte, entry func() error) error {
	s.Pos++
	if s.Peek() == end {
		s.Pos++
		return nil
	}
	for {
		if err := entry(); err != nil {
			return err
		}
		switch s.Peek() {
		case ',':
			s.Pos++
		case end:
			s.Pos++
			return nil
		default:
			return ErrSyntax
		}
	}
}

// Key reads the name of a member and the colon behind it.
func (s *Scanner) Key() ([]byte, error) {
	if s.Peek() != '"' {
		return nil, ErrSyntax
	}
	raw, err := s.str()
	if err != nil {
		return nil, err
	}
	if s.Peek() != ':' {
		return nil, ErrSyntax
	}
	s.Pos++
	if inner := raw[1 : len(raw)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return inner, nil
	}
	text, ok := Text(raw)
	if !ok {
		return nil, ErrSyntax
	}
	return []byte(text), nil
}

// Value reads any value and returns its bytes. nested says how many levels
// enclose it.
func (s *Scanner) Value(nested int) (json.RawMessage, error) {
	s.Space()
	start := s.Pos
	if err := s.Skip(nested); err != nil {
		return nil, err
	}
	return s.Data[start:s.Pos:s.Pos], nil
}

// Skip passes over one value. Open brackets are kept as bits, one for each
// level, set for an object, so a depth bomb costs no stack.
func (s *Scanner) Skip(nested int) error {
	var objects [MaxDepth/64 + 1]uint64
	depth := 0
	for {
		c := s.Peek()
		switch c {
		case '{', '[':
			if nested+depth >= MaxDepth {
				return errDepth
			}
			s.Pos++
			objects[depth/64] &^= 1 << (depth % 64)
			if c == '{' {
				objects[depth/64] |= 1 << (depth % 64)
			}
			depth++
			if next := s.Peek(); next == c+2 { // '[' and ']', '{' and '}' are two apart
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
			c := s.Peek()
			s.Pos++
			if c == ',' {
				if inObject {
					if err := s.member(); err != nil {
						return err
					}
				}
				break
			}
			if (c == '}') != inObject || c != '}' && c != ']' {
				return ErrSyntax
			}
			depth--
		}
	}
}

// member passes over the name of a member and the colon behind it.
func (s *Scanner) member() error {
	if s.Peek() != '"' {
		return ErrSyntax
	}
	if _, err := s.str(); err != nil {
		return err
	}
	if s.Peek() != ':' {
		return ErrSyntax
	}
	s.Pos++
	return nil
}

func (s *Scanner) scalar(c byte) error {
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

func (s *Scanner) word(w string) error {
	if !bytes.HasPrefix(s.Data[s.Pos:], []byte(w)) {
		return ErrSyntax
	}
	s.Pos += len(w)
	return nil
}

// str reads a string, quotes included.
func (s *Scanner) str() ([]byte, error) {
	start := s.Pos
	for i := start + 1; i < len(s.Data); i++ {
		switch c := s.Data[i]; {
		case c == '"':
			s.Pos = i + 1
			return s.Data[start:s.Pos], nil
		case c < ' ':
			return nil, ErrSyntax
		case c == '\\':
			n := escape(s.Data[i:])
			if n == 0 {
				return nil, ErrSyntax
			}
			i += n - 1
		}
	}
	return nil, ErrSyntax
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
func (s *Scanner) number() error {
	i := s.Pos
	at := func() byte {
		if i < len(s.Data) {
			return s.Data[i]
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
		return ErrSyntax
	}
	if at() == '.' {
		i++
		if !digits() {
			return ErrSyntax
		}
	}
	if at() == 'e' || at() == 'E' {
		i++
		if at() == '+' || at() == '-' {
			i++
		}
		if !digits() {
			return ErrSyntax
		}
	}
	s.Pos = i
	return nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// Text is the value of a JSON string, as encoding/json reads it. It reports false for any other value.
func Text(raw json.RawMessage) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	if inner := raw[1 : len(raw)-1]; bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner), true
	}
	var text string
	err := json.Unmarshal(raw, &text)
	return text, err == nil
}
