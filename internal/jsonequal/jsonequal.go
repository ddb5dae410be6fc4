// Package jsonequal compares JSON texts by their meaning.
package jsonequal

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
)

// maxCompared bounds the texts that are decoded to compare them, in bytes.
const maxCompared = 4 << 20

// To returns a function that reports whether a text is JSON with the meaning of raw, whatever the
// order of its members and the spelling of its numbers and strings. Texts of more than 4 MiB are
// compared byte by byte, without space. It decodes raw at most once.
func To(raw []byte) func(text []byte) bool {
	raw = bytes.TrimSpace(raw)
	decoded := sync.OnceValues(func() (any, bool) { return decodeAny(raw) })
	return func(text []byte) bool {
		text = bytes.TrimSpace(text)
		if len(text) == 0 || len(raw) == 0 || text[0] != raw[0] && !(isNumeric(text[0]) && isNumeric(raw[0])) {
			return false
		}
		if bytes.Equal(text, raw) {
			return true
		}
		if len(text) > maxCompared || len(raw) > maxCompared {
			var a, b bytes.Buffer
			return len(text) <= 2*len(raw) && len(raw) <= 2*len(text) &&
				json.Compact(&a, text) == nil && json.Compact(&b, raw) == nil && bytes.Equal(a.Bytes(), b.Bytes())
		}
		want, ok := decoded()
		if !ok {
			return false
		}
		got, ok := decodeAny(text)
		return ok && sameValue(got, want)
	}
}

func isNumeric(c byte) bool { return c == '-' || c >= '0' && c <= '9' }

func decodeAny(raw []byte) (any, bool) {
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if dec.Decode(&v) != nil || dec.More() {
		return nil, false
	}
	return v, true
}

// sameValue compares decoded JSON.
func sameValue(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			if w, ok := b[k]; !ok || !sameValue(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i, v := range a {
			if !sameValue(v, b[i]) {
				return false
			}
		}
		return true
	case json.Number:
		b, ok := b.(json.Number)
		return ok && (a == b || canonicalNumber(a.String()) == canonicalNumber(b.String()))
	}
	return a == b // strings, booleans, null
}

// canonicalNumber writes equal JSON numbers alike: 10, 10.0 and 1e1 are 1e1. It
// is exact, however many digits there are. A number whose exponent has more than
// nine digits stays as it is.
func canonicalNumber(s string) string {
	mantissa, exponent := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		n, err := strconv.ParseInt(s[i+1:], 10, 32)
		if err != nil {
			return s
		}
		mantissa, exponent = s[:i], int(n)
	}
	digits, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	exponent -= len(fraction)
	digits = strings.TrimLeft(whole+fraction, "0")
	trimmed := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(trimmed)
	if trimmed == "" {
		return "0"
	}
	if negative {
		trimmed = "-" + trimmed
	}
	return trimmed + "e" + strconv.Itoa(exponent)
}
