package toolsearch

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/internal/editdistance"
)

const (
	// maxRepairs limits the terms for one unknown word.
	maxRepairs = 3
	// minRepair is the length of the shortest word that is corrected, minPrefix of the shortest
	// that is completed.
	minRepair, minPrefix = 4, 3
)

// A nearKey groups terms by their beginning and length, to look for a misspelled one.
type nearKey struct {
	first  byte
	length uint8
}

func keyOf(s string) nearKey { return nearKey{s[0], uint8(min(len(s), maxWord))} }

// A nearTerm is a word of the tools with the set of its letters, which excludes most others without
// comparing them.
type nearTerm struct {
	text    string
	word    int32
	letters uint32
}

func (x *Index) indexNear(surfaces map[string]int32) {
	x.near = map[nearKey][]nearTerm{}
	for text, w := range surfaces {
		if letters, ok := lettersOf(text); ok && len(text) >= minPrefix {
			k := keyOf(text)
			x.near[k] = append(x.near[k], nearTerm{text, w, letters})
		}
	}
}

// lettersOf returns the letters of a word, one bit each.
func lettersOf(s string) (letters uint32, ok bool) {
	for i := range len(s) {
		if s[i] < 'a' || s[i] > 'z' {
			return 0, false
		}
		letters |= 1 << (s[i] - 'a')
	}
	return letters, s != ""
}

// A weighted is a term of a query with its weight.
type weighted struct {
	word   int32
	weight float32
}

// repair returns the terms for an unknown word: those that begin with it, and those that differ in
// one or two letters.
func (x *search) repair(word string) []weighted {
	letters, ok := lettersOf(word)
	if !ok || len(word) < minPrefix || x.repairs >= maxSearchRepairs {
		return nil
	}
	x.repairs++
	type candidate struct {
		nearTerm
		cost int
	}
	var found []candidate
	allowed := 0
	switch {
	case len(word) >= 8:
		allowed = 2
	case len(word) >= minRepair:
		allowed = 1
	}
	for length := max(minPrefix, len(word)-allowed); length <= maxWord; length++ {
		like := x.near[nearKey{word[0], uint8(length)}]
		if !x.spend(len(like)) {
			return nil
		}
		for _, t := range like {
			switch {
			case bits.OnesCount32(letters&^t.letters) > allowed:
			case len(t.text) <= len(word)+allowed:
				if d := editdistance.Distance(word, t.text, allowed); d <= allowed {
					found = append(found, candidate{t, d})
				}
			case strings.HasPrefix(t.text, word):
				found = append(found, candidate{t, 1 + min(len(t.text)-len(word), 8)/4})
			}
		}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		ta, tb := x.terms[a.word], x.terms[b.word]
		return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(tb.to-tb.from, ta.to-ta.from), cmp.Compare(a.text, b.text))
	})
	out := make([]weighted, 0, maxRepairs)
	for _, c := range found {
		if len(out) == maxRepairs {
			break
		}
		if !slices.ContainsFunc(out, func(w weighted) bool { return w.word == c.word }) {
			out = append(out, weighted{c.word, 0.8 / float32(1+c.cost) * 2 / float32(1+len(out))})
		}
	}
	return out
}

// split returns two terms that a word consists of, as in pullrequest.
func (x *Index) split(word string) []weighted {
	for i := minPrefix; i <= len(word)-minPrefix; i++ {
		a, okA := x.words[stem(word[:i])]
		b, okB := x.words[stem(word[i:])]
		if okA && okB {
			return []weighted{{a, 0.9}, {b, 0.9}}
		}
	}
	return nil
}
