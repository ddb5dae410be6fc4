package modeltest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

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
	dec := newDecoder(bytes.NewReader(data))
	for {
		_, err := dec.ReadToken()
		switch {
		case err != nil:
			return asJSONError(err, len(data))
		case dec.StackDepth() > maxDepth:
			return &jsonError{"recursion limit exceeded", 0}
		case dec.StackDepth() == 0:
			rest := bytes.TrimLeft(data[dec.InputOffset():], " \t\r\n")
			if len(rest) == 0 {
				return nil
			}
			return &jsonError{"more text after the value", len(data) - len(rest)}
		}
	}
}

func newDecoder(r io.Reader) *jsontext.Decoder {
	return jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true))
}

// asJSONError converts an error of a decoder. An error without a place is at the offset end.
func asJSONError(err error, end int) *jsonError {
	if syntax := (*jsontext.SyntacticError)(nil); errors.As(err, &syntax) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return &jsonError{syntax.Err.Error(), int(syntax.ByteOffset)}
	}
	return &jsonError{"unexpected end of JSON input", end}
}

// nesting returns the deepest nesting of arrays and objects in valid JSON.
func nesting(data []byte) int {
	deepest := 0
	for dec := newDecoder(bytes.NewReader(data)); ; {
		if _, err := dec.ReadToken(); err != nil {
			return deepest
		}
		deepest = max(deepest, dec.StackDepth())
	}
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
