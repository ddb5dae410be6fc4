package toolsearch

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kljensen/snowball/english"
)

const (
	// maxWord is the number of bytes of a word that count.
	maxWord = 40
	// maxParts is the largest number of parts of a name that is a word as a whole too.
	maxParts = 3
	// maxText is the number of bytes of a text that are read.
	maxText = 64 << 10
)

// tokenize calls f with each word of a text in lower case until f returns false. The parts of
// createIssue, read-only and HTTPServer are words, and so are the whole names: github finds GitHub.
// In scripts without spaces each character and each pair is a word. The letters of a word that ends
// in digits are a word too.
func tokenize(text string, f func(word string, whole bool) bool) {
	whole, parts := "", 0
	flush := func() bool {
		s, n := whole, parts
		whole, parts = "", 0
		return n < 2 || n > maxParts || len(s) > maxWord || f(s, true)
	}
	for _, w := range splitWords(text[:min(len(text), maxText)]) {
		if w.first && !flush() {
			return
		}
		low := strings.ToLower(w.text)
		if parts++; parts == 1 {
			whole = low
		} else if parts <= maxParts {
			whole += low
		}
		if !emit(low, f) {
			return
		}
	}
	flush()
}

// emit calls f with a word, or with the characters and pairs of a word without spaces.
func emit(low string, f func(word string, whole bool) bool) bool {
	r, _ := utf8.DecodeRuneInString(low)
	if !ideographic(r) {
		letters := low
		for len(letters) > 0 && '0' <= letters[len(letters)-1] && letters[len(letters)-1] <= '9' {
			letters = letters[:len(letters)-1]
		}
		return f(low, false) && (len(letters) == len(low) || len(letters) < 3 || f(letters, true))
	}
	prev := ""
	for _, r := range low {
		if !f(string(r), false) || prev != "" && !f(prev+string(r), true) {
			return false
		}
		prev = string(r)
	}
	return true
}

// stem returns the stem of a word in lower case.
func stem(w string) string {
	if len(w) > maxWord {
		w = w[:maxWord]
	}
	for i := range len(w) {
		if w[i] < 'a' || w[i] > 'z' {
			return w
		}
	}
	if len(w) < 3 {
		return w
	}
	return english.Stem(w, false)
}

// A part is a sequence of letters or digits in a text.
type part struct {
	text string
	// first is the first part of a name, whose parts are separated by at most a sign or a change of
	// case.
	first bool
}

// Kinds of characters.
const (
	other = iota
	joint // stands between the parts of one name
	lower
	upper
	digit
	symbol // a character that is a word by itself, or part of one without blanks
)

func kindOf(r rune) int {
	switch {
	case 'a' <= r && r <= 'z':
		return lower
	case 'A' <= r && r <= 'Z':
		return upper
	case '0' <= r && r <= '9':
		return digit
	case r == '_' || r == '-' || r == '.' || r == '/':
		return joint
	case r < utf8.RuneSelf:
		return other
	case ideographic(r):
		return symbol
	case unicode.IsUpper(r):
		return upper
	case unicode.IsLetter(r) || unicode.IsMark(r):
		return lower
	case unicode.IsDigit(r):
		return digit
	}
	return other
}

// ideographic reports whether a script has no spaces between words.
func ideographic(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer)
}

// splitWords splits a text at characters that are no letters or digits, and at changes of case.
func splitWords(s string) []part {
	out := make([]part, 0, len(s)/5+1)
	start, last, first := -1, other, true
	end := func(i int) {
		if start >= 0 {
			out = append(out, part{s[start:i], first})
			start, first = -1, false
		}
	}
	before := 0 // where the previous character begins
	for i, r := range s {
		k := kindOf(r)
		switch {
		case k == other:
			end(i)
			first = true
		case k == joint:
			end(i)
		case start < 0:
			start = i
		case k == upper && (last == lower || last == digit), k == symbol != (last == symbol):
			end(i)
			start = i
		case k == lower && last == upper && before > start: // the S of HTTPServer
			end(before)
			start = before
		}
		last, before = k, i
	}
	end(len(s))
	return out
}

// stopWords say nothing about the tool that a request asks for.
var stopWords = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`a about also an and any anybody anyone anything are as at be been but by can could d do does doesn don everybody
		everyone everything for from had has have how i if in into is isn it its just let ll m
		me my need no not now of on only or our re really s please shall should so some somebody someone something t that the their them
		then there these this those to tool tools us ve very use using
		want wants was we were what when where which who will with would you your`) {
		m[w] = true
	}
	return m
}()
