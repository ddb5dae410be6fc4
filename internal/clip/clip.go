// Package clip shortens texts at the boundaries of characters.
package clip

import (
	"strings"
	"unicode/utf8"
)

// Text returns the first n bytes of s, or a little less, followed by an ellipsis. A text of at most
// n bytes is returned whole. Bytes that are not UTF-8 are replaced.
func Text(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	return Bytes(s, n) + "…"
}

// Bytes returns the first n bytes of s, or a little less.
func Bytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
