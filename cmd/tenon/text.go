package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/tenon-sdk/tenon/internal/clip"
)

// breaks matches white space with a line break or a tab.
var breaks = regexp.MustCompile(`\s*[^\S ]\s*`)

// oneLine makes a text one line that is safe to write to a terminal: line ends and tabs with the
// blanks around them become one blank. Other blanks stay, since they may be part of a name.
func oneLine(s string) string { return printable(strings.TrimSpace(breaks.ReplaceAllString(s, " "))) }

// seconds formats a duration for the progress line.
func seconds(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Truncate(time.Second).String()
}

// printable replaces the control characters of a text by blanks, so that it is safe to write to a
// terminal.
func printable(s string) string {
	return replaceInvisible(s, "")
}

// replaceInvisible replaces invisible characters by blanks, except those to keep.
func replaceInvisible(s, keep string) string {
	return strings.Map(func(r rune) rune {
		if invisible(r) && !strings.ContainsRune(keep, r) {
			return ' '
		}
		return r
	}, s)
}

// invisible reports whether a terminal could obey a character instead of showing it: U+009B begins
// an escape sequence, U+202E reverses the text.
func invisible(r rune) bool { return unicode.IsControl(r) || unicode.In(r, unicode.Cf) }

// count returns a number and a noun: 1 tool, 2 tools.
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// clipText returns a text as one line of at most n bytes, with its length if it is longer.
func clipText(s string, n int) string {
	s = oneLine(s)
	if len(s) <= n {
		return s
	}
	return fmt.Sprintf("%s (%d bytes)", clip.Text(s, n), len(s))
}

// visible returns a name, in quotation marks if it has invisible characters.
func visible(name string) string {
	if printable(name) != name || strings.TrimSpace(name) != name {
		return strconv.Quote(name)
	}
	return name
}

// endLine adds a newline to a text that is not empty and has none at its end.
func endLine(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

// firstLine returns the first line of the first text that is not empty.
func firstLine(texts ...string) string {
	for _, t := range texts {
		if line, _, _ := strings.Cut(strings.TrimSpace(t), "\n"); line != "" {
			return line
		}
	}
	return ""
}

// orList joins names for a message: a, b or c.
func orList(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// safeFor makes a text that is not ours safe for an output: for a terminal it replaces control
// characters except line ends and tabs by blanks.
func safeFor(w io.Writer, text string) string {
	if _, ok := terminal(w); !ok {
		return text
	}
	return replaceInvisible(strings.ReplaceAll(text, "\r\n", "\n"), "\n\t")
}

// withArticle returns a JSON kind with its article: an array, a number.
func withArticle(kind string) string {
	if kind == "array" || kind == "object" {
		return "an " + kind
	}
	return "a " + kind
}

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
