package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"
)

// writeJSON writes v as indented JSON.
func writeJSON(p *process, v any) error { return encode(p.out, v, "  ") }

// writeLine writes v as JSON on one line, in one write.
func writeLine(w io.Writer, v any) error { return encode(w, v, "") }

// encode writes v as JSON without escapes for HTML.
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

// jsonFor makes JSON that is not ours safe for an output: for a terminal it writes invisible
// characters as \u escapes, which mean the same.
func jsonFor(w io.Writer, text []byte) []byte {
	if _, ok := terminal(w); !ok {
		return text
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		if r == '\n' || !invisible(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.Bytes()
}

// plainJSON returns JSON on one line without needless escapes.
func plainJSON(raw json.RawMessage) string {
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // keeps all digits
	if err := d.Decode(&v); err != nil {
		return string(raw)
	}
	var b bytes.Buffer
	if err := encode(&b, v, ""); err != nil {
		return string(raw)
	}
	return b.String()
}

// rawOrNull returns null for an absent value.
func rawOrNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}
