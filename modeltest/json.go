package modeltest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tenon-sdk/tenon/internal/jsonscan"
)

// maxDepth is the deepest nesting of a body.
const maxDepth = 512

// A jsonError is the first fault of a body as JSON.
type jsonError struct {
	msg string
	at  int // byte offset
}

// checkJSON returns the first fault of data as JSON, or nil. Like the API, it is stricter than
// encoding/json: no invalid UTF-8, no lone surrogates, nesting up to maxDepth.
func checkJSON(data []byte) *jsonError {
	if !utf8.Valid(data) {
		return &jsonError{"str is not valid UTF-8: surrogates not allowed", len(data) - len(bytes.TrimLeftFunc(data, func(r rune) bool { return r != utf8.RuneError }))}
	}
	if nesting(data) > maxDepth {
		return &jsonError{"recursion limit exceeded", 0}
	}
	var v json.RawMessage
	if err := json.Unmarshal(data, &v); err != nil {
		return asJSONError(err, 0)
	}
	if at := loneSurrogate(data); at >= 0 {
		return &jsonError{"lone surrogate in string", at}
	}
	return nil
}

// asJSONError converts an error of encoding/json. An error without a place is at the offset end.
func asJSONError(err error, end int) *jsonError {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		end = max(int(syntax.Offset)-1, 0)
	}
	return &jsonError{err.Error(), end}
}

// nesting returns the deepest nesting of arrays and objects in a JSON text.
func nesting(data []byte) int {
	depth, deepest, inString := 0, 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			inString = !inString
		case inString && c == '\\':
			i++
		case inString:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

// loneSurrogate returns the offset of the first \u escape of half a surrogate pair in valid JSON,
// or -1.
func loneSurrogate(data []byte) int {
	escaped := func(i int) rune {
		if i+6 > len(data) || data[i] != '\\' || data[i+1] != 'u' {
			return 0
		}
		n, _ := strconv.ParseUint(string(data[i+2:i+6]), 16, 16) // valid JSON
		return rune(n)
	}
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		if r := escaped(i); utf16.IsSurrogate(r) {
			if utf16.DecodeRune(r, escaped(i+6)) == utf8.RuneError {
				return i
			}
			i += 6
		}
		i++
	}
	return -1
}

// The functions below read JSON that checkJSON accepted.

// eachField calls f for each member of an object in order, duplicates included.
func eachField(object json.RawMessage, f func(key string, value json.RawMessage)) {
	_ = jsonscan.Object(object, func(key []byte, value json.RawMessage) { f(string(key), value) })
}

// eachItem calls f for each item of an array.
func eachItem(array json.RawMessage, f func(i int, value json.RawMessage)) {
	i := 0
	_ = jsonscan.Array(array, func(value json.RawMessage) {
		f(i, value)
		i++
	})
}

// kindOf returns the first byte of a value, but n for numbers and 0 for null.
func kindOf(value json.RawMessage) byte {
	switch c := value[0]; {
	case c == 'n':
		return '0'
	case c == '-' || c >= '0' && c <= '9':
		return 'n'
	default:
		return c
	}
}

// unquote returns the text of a JSON string.
func unquote(s json.RawMessage) string {
	text, _ := jsonscan.Text(s) // a string
	return text
}

// whole returns the value of a number without a fraction.
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

// appendString appends s as a JSON string. Invalid UTF-8 becomes U+FFFD.
func appendString(b []byte, s string) []byte {
	var text strings.Builder
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // strings and builders do not fail
	return append(b, strings.TrimSuffix(text.String(), "\n")...)
}

// cut is the beginning of a long text, and a word about the rest.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for !utf8.RuneStart(s[limit]) {
		limit--
	}
	return fmt.Sprintf("%s… (%d more bytes)", s[:limit], len(s)-limit)
}
