package modeltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is how deep a body may be nested.
const maxDepth = 512

// A jsonError is the first thing in a body that the API's parser refuses.
type jsonError struct {
	msg string
	at  int // byte offset
}

// checkJSON returns what is wrong with data as JSON that the API takes, nil if
// nothing is. It is stricter than encoding/json: no invalid UTF-8, no lone
// surrogates, nesting up to maxDepth.
func checkJSON(data []byte) *jsonError { return checkParts(data, nil) }

// checkParts is checkJSON, which notes the parts of a body unless parts is nil.
func checkParts(data []byte, parts *bodyParts) *jsonError {
	if !utf8.Valid(data) {
		return &jsonError{"str is not valid UTF-8: surrogates not allowed", invalidUTF8(data)}
	}
	s := scanner{data: data, parts: parts}
	s.space()
	if !s.value(0) {
		return s.err
	}
	s.space()
	if s.i < len(data) {
		s.fail("unexpected content after document")
	}
	return s.err
}

// invalidUTF8 is the offset of the first byte that is not UTF-8.
func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(data)
}

// scanner reads over JSON without keeping anything of it, but for parts.
type scanner struct {
	data  []byte
	i     int
	err   *jsonError
	parts *bodyParts
}

func (s *scanner) fail(format string, args ...any) bool {
	if s.err == nil {
		s.err = &jsonError{fmt.Sprintf(format, args...), s.i}
	}
	return false
}

func (s *scanner) space() {
	for s.i < len(s.data) {
		switch s.data[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// peek is the byte at hand, 0 at the end.
func (s *scanner) peek() byte {
	if s.i < len(s.data) {
		return s.data[s.i]
	}
	return 0
}

func (s *scanner) value(depth int) bool {
	if s.i >= len(s.data) {
		return s.fail("unexpected end of data")
	}
	switch c := s.data[s.i]; {
	case c == '{':
		return s.object(depth + 1)
	case c == '[':
		return s.array(depth + 1)
	case c == '"':
		return s.string()
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	}
	return s.fail("unexpected character")
}

func (s *scanner) word(w string) bool {
	if !bytes.HasPrefix(s.data[s.i:], []byte(w)) {
		return s.fail("unexpected character")
	}
	s.i += len(w)
	return true
}

func (s *scanner) object(depth int) bool {
	if depth > maxDepth {
		return s.fail("recursion limit exceeded")
	}
	s.i++
	s.space()
	if s.peek() == '}' {
		s.i++
		return true
	}
	for {
		s.space()
		if s.peek() != '"' {
			return s.fail("object key is not a string")
		}
		key := s.i
		if !s.string() {
			return false
		}
		if depth == 1 && s.parts != nil {
			s.parts.begin(s.data[key:s.i])
		}
		s.space()
		if s.peek() != ':' {
			return s.fail("unexpected character, expecting a colon")
		}
		s.i++
		if more, ok := s.item(depth, '}'); !more {
			return ok
		}
	}
}

func (s *scanner) array(depth int) bool {
	if depth > maxDepth {
		return s.fail("recursion limit exceeded")
	}
	s.i++
	s.space()
	if s.peek() == ']' {
		s.i++
		return true
	}
	for {
		if more, ok := s.item(depth, ']'); !more {
			return ok
		}
	}
}

// item reads a value and what separates it from the next.
func (s *scanner) item(depth int, end byte) (more, ok bool) {
	s.space()
	if s.parts == nil || depth > 2 {
		if !s.value(depth) {
			return false, false
		}
	} else if !s.part(depth) {
		return false, false
	}
	s.space()
	switch s.peek() {
	case ',':
		s.i++
		return true, true
	case end:
		s.i++
		return false, true
	}
	return false, s.fail("unexpected character, expecting a comma or %q", end)
}

// part reads a value that belongs to the parts of a body. A message that is known need not be read.
func (s *scanner) part(depth int) bool {
	from := s.i
	if known := s.parts.expected(depth, s.data[from:]); known != nil {
		s.i += len(known.raw)
		s.parts.message(s.data[from:s.i:s.i], known)
		return true
	}
	if !s.value(depth) {
		return false
	}
	s.parts.end(depth, s.data[from:s.i:s.i])
	return true
}

func (s *scanner) string() bool {
	s.i++
	for s.i < len(s.data) {
		switch c := s.data[s.i]; {
		case c == '"':
			s.i++
			return true
		case c == '\\':
			if !s.escape() {
				return false
			}
		case c < 0x20:
			return s.fail("control character (\\u0000-\\u001F) found while parsing a string")
		default:
			s.i++
		}
	}
	return s.fail("unexpected end of data")
}

func (s *scanner) escape() bool {
	if s.i+1 >= len(s.data) {
		return s.fail("unexpected end of data")
	}
	switch s.data[s.i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.i += 2
		return true
	case 'u':
		r, ok := s.hex(s.i + 2)
		switch {
		case !ok:
			return s.fail("invalid escaped sequence in string")
		case r >= 0xDC00 && r <= 0xDFFF:
			return s.fail("no high surrogate in string")
		case r >= 0xD800 && r <= 0xDBFF:
			low, ok := s.hex(s.i + 8)
			if !ok || s.data[s.i+6] != '\\' || s.data[s.i+7] != 'u' || low < 0xDC00 || low > 0xDFFF {
				return s.fail("no low surrogate in string")
			}
			s.i += 12
			return true
		}
		s.i += 6
		return true
	}
	return s.fail("invalid escaped character in string")
}

// hex reads the four hexadecimal digits at i.
func (s *scanner) hex(i int) (rune, bool) {
	if i+4 > len(s.data) {
		return 0, false
	}
	var r rune
	for _, c := range s.data[i : i+4] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

func (s *scanner) number() bool {
	if s.peek() == '-' {
		s.i++
	}
	if s.peek() == '0' {
		s.i++
	} else if !s.digits() {
		return s.fail("no digit after minus sign")
	}
	if s.peek() == '.' {
		s.i++
		if !s.digits() {
			return s.fail("no digit after decimal point")
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.i++
		if c := s.peek(); c == '+' || c == '-' {
			s.i++
		}
		if !s.digits() {
			return s.fail("no digit after exponent sign")
		}
	}
	return true
}

func (s *scanner) digits() bool {
	from := s.i
	for c := s.peek(); c >= '0' && c <= '9'; c = s.peek() {
		s.i++
	}
	return s.i > from
}

// What follows reads JSON that checkJSON has passed.

// eachField calls f for each field of an object, in its order, duplicates too.
func eachField(object json.RawMessage, f func(key string, value json.RawMessage)) {
	eachRawField(object, func(key, value json.RawMessage) { f(unquote(key), value) })
}

// eachRawField is eachField with the keys as they are written.
func eachRawField(object json.RawMessage, f func(key, value json.RawMessage)) {
	i := 1
	for {
		i = skipSpace(object, i)
		switch object[i] {
		case '}':
			return
		case ',':
			i = skipSpace(object, i+1)
		}
		end := stringEnd(object, i)
		key := object[i:end:end]
		i = skipSpace(object, end)
		i = skipSpace(object, i+1) // the colon
		end = valueEnd(object, i)
		f(key, object[i:end:end])
		i = end
	}
}

// eachItem calls f for each item of an array.
func eachItem(array json.RawMessage, f func(i int, value json.RawMessage)) {
	i := 1
	for n := 0; ; n++ {
		i = skipSpace(array, i)
		switch array[i] {
		case ']':
			return
		case ',':
			i = skipSpace(array, i+1)
		}
		end := valueEnd(array, i)
		f(n, array[i:end:end])
		i = end
	}
}

func skipSpace(data []byte, i int) int {
	for data[i] == ' ' || data[i] == '\n' || data[i] == '\t' || data[i] == '\r' {
		i++
	}
	return i
}

// stringEnd is the index after the string that begins at i.
func stringEnd(data []byte, i int) int {
	for i++; ; i++ {
		i += bytes.IndexByte(data[i:], '"')
		escapes := 0
		for j := i - 1; data[j] == '\\'; j-- {
			escapes++
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
}

// valueEnd is the index after the value that begins at i.
func valueEnd(data []byte, i int) int {
	switch data[i] {
	case '"':
		return stringEnd(data, i)
	case '{', '[':
		for depth := 0; ; i++ {
			switch data[i] {
			case '"':
				i = stringEnd(data, i) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
	}
	for ; i < len(data); i++ {
		switch data[i] {
		case ',', ']', '}', ' ', '\n', '\t', '\r':
			return i
		}
	}
	return i
}

// kindOf is the first byte of a value, with n for all numbers.
func kindOf(value json.RawMessage) byte {
	if c := value[0]; c != '-' && (c < '0' || c > '9') {
		if c == 'n' {
			return '0' // null
		}
		return c
	}
	return 'n'
}

// unquote is the text of a string.
func unquote(s json.RawMessage) string {
	if len(s) <= 16 {
		if word := knownWord(s); word != "" {
			return word
		}
	}
	inner := s[1 : len(s)-1]
	next := bytes.IndexByte(inner, '\\')
	if next < 0 {
		return string(inner)
	}
	b := make([]byte, 0, len(inner))
	for next >= 0 {
		b = append(b, inner[:next]...)
		inner = inner[next:]
		n := 2
		switch c := inner[1]; c {
		case 'b':
			b = append(b, '\b')
		case 'f':
			b = append(b, '\f')
		case 'n':
			b = append(b, '\n')
		case 'r':
			b = append(b, '\r')
		case 't':
			b = append(b, '\t')
		case 'u':
			at := scanner{data: inner}
			r, _ := at.hex(2) // checkJSON has seen that these are digits
			if n = 6; utf16.IsSurrogate(r) {
				low, _ := at.hex(8)
				r, n = utf16.DecodeRune(r, low), 12
			}
			b = utf8.AppendRune(b, r)
		default:
			b = append(b, c)
		}
		inner = inner[n:]
		next = bytes.IndexByte(inner, '\\')
	}
	return string(append(b, inner...))
}

// whole is the value of a number without a fraction.
func whole(n json.RawMessage) (int, bool) {
	if i, err := strconv.Atoi(string(n)); err == nil {
		return i, true
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil || f != float64(int(f)) {
		return 0, false
	}
	return int(f), true
}

// appendString appends s as a JSON string. What is not UTF-8 becomes U+FFFD.
func appendString(b []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, '\\', 'n')
		case r < 0x20:
			b = append(b, '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

// knownWord is the text of a quoted word that stands in every request: it costs
// no memory of its own.
func knownWord(quoted json.RawMessage) string {
	switch string(quoted) {
	case `"type"`:
		return "type"
	case `"text"`:
		return "text"
	case `"role"`:
		return "role"
	case `"content"`:
		return "content"
	case `"user"`:
		return "user"
	case `"assistant"`:
		return "assistant"
	case `"tool_use"`:
		return "tool_use"
	case `"tool_result"`:
		return "tool_result"
	case `"tool_use_id"`:
		return "tool_use_id"
	case `"id"`:
		return "id"
	case `"name"`:
		return "name"
	case `"input"`:
		return "input"
	case `"is_error"`:
		return "is_error"
	case `"description"`:
		return "description"
	case `"input_schema"`:
		return "input_schema"
	}
	return ""
}
