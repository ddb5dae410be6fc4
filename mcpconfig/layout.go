package mcpconfig

import (
	"bytes"
	"encoding/json"
	"strings"
)

// A style is how a document is laid out. The zero style is without any white space.
type style struct {
	// newline is the line end; empty for a document in one line.
	newline string
	// unit is what one level is indented by.
	unit string
	// colon is what stands after a colon.
	colon string
}

// style finds out how the document is laid out, by the first of its lines that tells.
func (d *document) style() style {
	s := style{unit: "  ", colon: " "}
	if i := bytes.IndexByte(d.data, '\n'); i >= 0 {
		s.newline = "\n"
		if i > 0 && d.data[i-1] == '\r' {
			s.newline = "\r\n"
		}
	}
	if !bytes.Contains(bytes.TrimSpace(d.data), []byte("\n")) && bytes.ContainsRune(d.data, ':') {
		s.newline, s.unit = "", "" // content in one line stays in one line
	}
	if i := bytes.Index(d.data, []byte(`":`)); i >= 0 && i+2 < len(d.data) && !isSpace(d.data[i+2]) {
		s.colon = ""
	}
	for _, line := range d.lines {
		text := d.data[line:]
		if white := text[:len(text)-len(bytes.TrimLeft(text, " \t"))]; len(white) > 0 && len(white) < len(text) && text[len(white)] == '"' {
			s.unit = string(white)
			break
		}
	}
	return s
}

// lineEnd is the line end, also where the document has none yet.
func (s style) lineEnd() string {
	if s.newline == "" {
		return "\n"
	}
	return s.newline
}

// value lays out a JSON value whose first line is already indented by indent.
func (s style) value(raw json.RawMessage, indent string) string {
	var b bytes.Buffer
	if s.newline == "" {
		if err := json.Compact(&b, raw); err != nil {
			return string(raw)
		}
		if s.colon == "" {
			return b.String()
		}
		return spaced(b.Bytes())
	}
	if err := json.Indent(&b, bytes.TrimSpace(raw), indent, s.unit); err != nil {
		return string(raw)
	}
	out := b.String()
	if s.colon == "" {
		out = tight(out)
	}
	if s.newline != "\n" {
		out = strings.ReplaceAll(out, "\n", s.newline)
	}
	return out
}

// spaced puts a blank behind each colon and comma of compact JSON.
func spaced(compact []byte) string {
	var b strings.Builder
	inString := false
	for i := 0; i < len(compact); i++ {
		c := compact[i]
		b.WriteByte(c)
		switch {
		case inString && c == '\\':
			i++
			b.WriteByte(compact[i])
		case c == '"':
			inString = !inString
		case !inString && (c == ':' || c == ','):
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// tight takes away the blank behind each colon of indented JSON.
func tight(indented string) string {
	var b strings.Builder
	inString := false
	for i := 0; i < len(indented); i++ {
		c := indented[i]
		b.WriteByte(c)
		switch {
		case inString && c == '\\':
			i++
			b.WriteByte(indented[i])
		case c == '"':
			inString = !inString
		case !inString && c == ':' && i+1 < len(indented) && indented[i+1] == ' ':
			i++
		}
	}
	return b.String()
}
