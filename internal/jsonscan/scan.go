// Package jsonscan splits JSON into members and elements in order and without loss: values are slices
// of the input, and duplicate members are reported too.
package jsonscan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// ErrSyntax reports invalid JSON, or JSON of another kind than the function reads.
var ErrSyntax = errors.New("invalid JSON")

// Object calls each with the members of the object that data consists of, in order. Escapes in keys
// are resolved. If it fails, it may have called each before.
func Object(data []byte, each func(key []byte, value json.RawMessage)) error {
	d := NewDecoder(data)
	err := d.Object(func(key []byte) error {
		value, err := d.Value()
		if err == nil {
			each(key, value)
		}
		return err
	})
	return cmp.Or(err, d.End())
}

// Array calls each with the elements of the array that data consists of, in order. If it fails, it
// may have called each before.
func Array(data []byte, each func(value json.RawMessage)) error {
	d := NewDecoder(data)
	err := d.Array(func() error {
		value, err := d.Value()
		if err == nil {
			each(value)
		}
		return err
	})
	return cmp.Or(err, d.End())
}

// A Decoder reads JSON whose values are slices of its input. It accepts what [json.Valid] accepts.
// The errors of its methods are [ErrSyntax] and those of the functions that they call.
type Decoder struct {
	data []byte
	d    *jsontext.Decoder
}

// NewDecoder returns a decoder for data.
func NewDecoder(data []byte) *Decoder {
	d := jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return &Decoder{data, d}
}

// Kind returns the first byte of the next value: one of n, f, t, ", 0 (a number), {, [, or 0 for
// invalid JSON and the end.
func (d *Decoder) Kind() byte {
	if k := d.d.PeekKind(); k != jsontext.KindInvalid {
		return byte(k)
	}
	return 0
}

// Offset returns the position after the last value in the input.
func (d *Decoder) Offset() int { return int(d.d.InputOffset()) }

// Value reads a value.
func (d *Decoder) Value() (json.RawMessage, error) {
	v, err := d.d.ReadValue()
	if err != nil {
		return nil, ErrSyntax
	}
	end := d.Offset()
	return d.data[end-len(v) : end : end], nil
}

// Object reads an object and calls member with each key. That must read the value.
func (d *Decoder) Object(member func(key []byte) error) error {
	return d.container('{', func() error {
		raw, err := d.Value()
		if err != nil {
			return err
		}
		key := raw[1 : len(raw)-1]
		if bytes.IndexByte(key, '\\') >= 0 {
			text, _ := Text(raw)
			key = []byte(text)
		}
		return member(key)
	})
}

// Array reads an array and calls element before each element. That must read it.
func (d *Decoder) Array(element func() error) error { return d.container('[', element) }

func (d *Decoder) container(kind jsontext.Kind, entry func() error) error {
	if d.d.PeekKind() != kind {
		return ErrSyntax
	}
	_, err := d.d.ReadToken()
	for err == nil {
		if next := d.d.PeekKind(); next == jsontext.KindEndObject || next == jsontext.KindEndArray {
			_, err = d.d.ReadToken()
			break
		}
		if err := entry(); err != nil {
			return err
		}
	}
	if err != nil {
		return ErrSyntax
	}
	return nil
}

// End reports whether the input ends after the last value.
func (d *Decoder) End() error {
	if _, err := d.d.ReadToken(); !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrSyntax
	}
	return nil
}

// Deeper reports whether valid JSON nests deeper than limit.
func Deeper(data []byte, limit int) bool {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > limit {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// Text returns the value of a JSON string. It reports false for any other value.
func Text(raw json.RawMessage) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	var text string
	err := json.Unmarshal(raw, &text)
	return text, err == nil
}

// TextOf returns the value of a JSON string, or the JSON of any other value.
func TextOf(raw json.RawMessage) string {
	if s, ok := Text(raw); ok {
		return s
	}
	return string(raw)
}

// IsNull reports whether a value is null.
func IsNull(raw json.RawMessage) bool { return string(raw) == "null" }
