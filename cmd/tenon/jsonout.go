package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
)

// writeJSON writes v in one indented piece, without escaping for HTML.
func writeJSON(p *process, v any) error { return encode(p.out, v, "  ") }

// writeLine writes v as JSON on one line, in one write.
func writeLine(w io.Writer, v any) error { return encode(w, v, "") }

func encode(w io.Writer, v any, indent string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(jsonFor(w, b.Bytes()))
	return err
}

// jsonFor makes JSON that is not ours safe for an output: for a terminal, what it might obey (U+009B begins an escape
// sequence, U+202E turns the text around) is written as \u escapes, which mean the same.
func jsonFor(w io.Writer, text []byte) []byte {
	if _, ok := terminal(w); !ok {
		return text
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		if r == '\n' || !unicode.IsControl(r) && !unicode.In(r, unicode.Cf) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.Bytes()
}

// plainJSON is JSON on one line, with each character that can be as itself.
func plainJSON(raw json.RawMessage) string {
	var (
		v any
		b bytes.Buffer
	)
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // their digits stay
	if err := d.Decode(&v); err != nil {
		return string(raw)
	}
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return string(raw)
	}
	return b.String()
}

// rawOrNull keeps an absent JSON value out of the output as null.
func rawOrNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}
