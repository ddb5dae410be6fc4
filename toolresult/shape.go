package toolresult

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/internal/jsonscan"
)

const (
	maxShape   = 600 // bytes of a description
	shapeDepth = 4   // levels of nesting in it
	shapeKeys  = 20  // members of an object in it
	// maxIndentDepth is the deepest nesting that is indented, since the spaces would outgrow the text.
	maxIndentDepth = 40
)

// shapeOf describes the structure of a JSON text for a search:
// {"total": number, "items": [1204 of {"id": number, "name": string}]}.
func shapeOf(text string) string {
	var b strings.Builder
	writeShape(&b, json.RawMessage(text), shapeDepth)
	s := b.String()
	if len(s) > maxShape {
		s = clip.Bytes(s, maxShape) + "…"
	}
	return s
}

func writeShape(b *strings.Builder, raw json.RawMessage, depth int) {
	if b.Len() > maxShape {
		return
	}
	switch jsonscan.NewDecoder(raw).Kind() {
	case '{':
		writeObjectShape(b, raw, depth)
	case '[':
		n := 0
		var head json.RawMessage
		_ = jsonscan.Array(raw, func(v json.RawMessage) { // raw is valid
			if n++; n == 1 {
				head = v
			}
		})
		switch {
		case n == 0:
			b.WriteString("[]")
		case depth == 0:
			fmt.Fprintf(b, "[%d of …]", n)
		default:
			fmt.Fprintf(b, "[%d of ", n)
			writeShape(b, head, depth-1)
			b.WriteByte(']')
		}
	case '"':
		b.WriteString("string")
	case 't', 'f':
		b.WriteString("boolean")
	case 'n':
		b.WriteString("null")
	default:
		b.WriteString("number")
	}
}

func writeObjectShape(b *strings.Builder, raw json.RawMessage, depth int) {
	if depth == 0 {
		b.WriteString("{…}")
		return
	}
	b.WriteByte('{')
	n := 0
	_ = jsonscan.Object(raw, func(key []byte, v json.RawMessage) { // raw is valid
		n++
		if n > shapeKeys || b.Len() > maxShape {
			return
		}
		if n > 1 {
			b.WriteString(", ")
		}
		fmt.Fprintf(b, "%q: ", clip.Text(string(key), 60))
		writeShape(b, v, depth-1)
	})
	if n > shapeKeys {
		fmt.Fprintf(b, ", … %d more", n-shapeKeys)
	}
	b.WriteByte('}')
}

// readableJSON indents a JSON text of one or two lines, so that it can be read and searched by lines.
func readableJSON(text string) string {
	if strings.Count(text, "\n") > 1 || jsonscan.Deeper([]byte(text), maxIndentDepth) {
		return text
	}
	var b bytes.Buffer
	b.Grow(len(text) + len(text)/2)
	if json.Indent(&b, []byte(strings.TrimSpace(text)), "", " ") != nil {
		return text
	}
	return b.String()
}

// isContainer reports whether a text is a JSON object or array.
func isContainer(text string) bool {
	t := strings.TrimLeft(text, " \t\r\n")
	return t != "" && (t[0] == '{' || t[0] == '[') && json.Valid([]byte(text))
}
