package secret

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

const (
	// A part of a secret is Hidden from fragmentLeast bytes on, or a third of the
	// secret if that is more; fragmentMost are always enough.
	fragmentLeast, fragmentMost = 8, 24
	// fragmentOf is the shortest secret of which parts are Hidden, in bytes.
	fragmentOf = 12
	// splitOf is the shortest secret that is found with something between its
	// letters and digits, counted without that.
	splitOf = 12
	// fragmentPlaces bounds the places of secrets that begin with the same bytes.
	fragmentPlaces = 4
)

// A replacer finds secrets in texts. Its work grows with the length of the text,
// whatever the text is. It is immutable.
type replacer struct {
	whole  *strings.Replacer
	splits []string // the letters and digits of secrets
	tokens []string // secrets of which parts count
	parts  map[[fragmentLeast]byte][]place
}

// A place is a byte in one of a replacer's tokens.
type place struct{ token, at int }

func newReplacer(secrets []string) *replacer {
	r := &replacer{parts: map[[fragmentLeast]byte][]place{}}
	var pairs []string
	for _, s := range forms(secrets) {
		pairs = append(pairs, s, Hidden)
	}
	r.whole = strings.NewReplacer(pairs...)
	for _, s := range secrets {
		s = strings.TrimSpace(s)
		if core := onlyAlnum(s); len(core) >= splitOf && len(core) > len(s)/2 {
			r.splits = append(r.splits, core)
		}
		if len(s) < fragmentOf || !isToken(s) || !strings.ContainsFunc(s, unicode.IsDigit) && !looksToken(s) {
			continue // or it may be words that texts are full of
		}
		r.tokens = append(r.tokens, s)
		for at := range len(s) - fragmentLeast + 1 {
			key := [fragmentLeast]byte([]byte(s[at:]))
			if places := r.parts[key]; len(places) < fragmentPlaces {
				r.parts[key] = append(places, place{len(r.tokens) - 1, at})
			}
		}
	}
	r.splits = longestFirst(r.splits)
	return r
}

func (r *replacer) replace(s string) string {
	s = r.whole.Replace(s)
	if len(r.splits) > 0 { // before parts of them are gone
		s = r.replaceSplits(s)
	}
	if len(r.parts) > 0 {
		s = r.replaceParts(s)
	}
	return s
}

// replaceParts hides large parts of secrets.
func (r *replacer) replaceParts(s string) string {
	var b strings.Builder
	done := 0
	for i := 0; i+fragmentLeast <= len(s); {
		n := 0
		for _, p := range r.parts[[fragmentLeast]byte([]byte(s[i:i+fragmentLeast]))] {
			n = max(n, partLen(s[i:], r.tokens[p.token], p.at))
		}
		if n == 0 {
			i++
			continue
		}
		b.WriteString(s[done:i])
		b.WriteString(Hidden)
		i += n
		done = i
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// partLen is how much of a token, from a byte on, a text begins with; zero if
// that is too little to give anything away. A part without a digit may be a word,
// and counts from half of the token on.
func partLen(s, token string, at int) int {
	n := 0
	for n < len(s) && at+n < len(token) && s[n] == token[at+n] {
		n++
	}
	if n < min(max(fragmentLeast, len(token)/3), fragmentMost) {
		return 0
	}
	if 2*n < len(token)-1 && !strings.ContainsFunc(s[:n], unicode.IsDigit) {
		return 0
	}
	return n
}

// replaceSplits hides secrets that have something between their letters and digits:
// space, the end of a line, quotes.
func (r *replacer) replaceSplits(s string) string {
	core := make([]byte, 0, len(s))
	from := make([]int, 0, len(s)) // where each byte of core is in s
	for i := range len(s) {
		if isAlnum(rune(s[i])) {
			core, from = append(core, s[i]), append(from, i)
		}
	}
	text := string(core)
	type span struct{ begin, end int }
	var spans []span
	for _, secret := range r.splits {
		for at := 0; ; {
			i := strings.Index(text[at:], secret)
			if i < 0 {
				break
			}
			spans = append(spans, span{from[at+i], from[at+i+len(secret)-1] + 1})
			at += i + len(secret)
		}
	}
	if len(spans) == 0 {
		return s
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(b.end, a.end)) })
	var b strings.Builder
	done := 0
	for _, sp := range spans {
		if sp.begin >= done {
			b.WriteString(s[done:sp.begin])
			b.WriteString(Hidden)
		}
		done = max(done, sp.end)
	}
	b.WriteString(s[done:])
	return b.String()
}

func onlyAlnum(s string) string {
	return strings.Map(func(r rune) rune {
		if isAlnum(r) {
			return r
		}
		return -1
	}, s)
}

// isToken reports whether a secret is one word, as tokens and keys are.
func isToken(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !isAlnum(r) && !strings.ContainsRune("+=_-.~", r) })
}

// forms are the forms in which secrets turn up in texts, longest first: as they
// are, quoted, in URLs, in hexadecimal and in base64, there also inside of
// something longer.
func forms(secrets []string) []string {
	var all []string
	for _, s := range secrets {
		if s = strings.TrimSpace(s); len(s) < 3 {
			continue
		}
		all = append(all, s, strings.Trim(strconv.Quote(s), `"`), url.QueryEscape(s), url.PathEscape(s))
		if len(s) >= 6 {
			h := hex.EncodeToString([]byte(s))
			all = append(all, h, strings.ToUpper(h))
			all = append(all, base64Forms(s)...)
		}
	}
	return longestFirst(all)
}

// base64Forms are a secret in base64, whole, and what its middle is there when
// one or two bytes, modulo three, stand before it.
func base64Forms(s string) []string {
	var all []string
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		all = append(all, enc.EncodeToString([]byte(s)))
		raw := enc.WithPadding(base64.NoPadding)
		for before := range 3 {
			text := raw.EncodeToString([]byte("\x00\x00"[:before] + s))
			head := (before*8 + 5) / 6        // has bits of what stands before it
			tail := (before + len(s)) * 8 / 6 // from here on it has bits of what follows
			all = append(all, text[head:max(head, tail)])
		}
	}
	return all
}

// longestFirst sorts secrets so that one that holds another is found whole.
func longestFirst(all []string) []string {
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	return slices.Compact(all)
}
