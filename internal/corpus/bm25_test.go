package corpus

import (
	"math"
	"slices"
	"strings"
	"unicode"
)

// A plain is BM25 as a textbook has it, over server, name and description: what
// there is to be better than.
type plain struct {
	docs   []plainDoc
	inDocs map[string]int
	mean   float64
}

type plainDoc struct {
	id     string
	counts map[string]int
	length float64
}

func newPlain(servers []Server) *plain {
	p := &plain{inDocs: map[string]int{}}
	for _, s := range servers {
		for _, tool := range s.Tools {
			d := plainDoc{id: s.Name + "/" + tool.Name, counts: map[string]int{}}
			for _, w := range plainWords(s.Name + " " + tool.Name + " " + tool.Description) {
				if d.counts[w]++; d.counts[w] == 1 {
					p.inDocs[w]++
				}
				d.length++
			}
			p.mean += d.length
			p.docs = append(p.docs, d)
		}
	}
	p.mean /= float64(len(p.docs))
	return p
}

// plainWords are the runs of letters and digits in lower case.
func plainWords(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// search returns the ids of the best tools, the best first.
func (p *plain) search(query string, most int) []string {
	const k1, b = 1.2, 0.75
	type hit struct {
		id    string
		score float64
	}
	var hits []hit
	words := plainWords(query)
	n := float64(len(p.docs))
	for _, d := range p.docs {
		score := 0.0
		for _, w := range words {
			tf, df := float64(d.counts[w]), float64(p.inDocs[w])
			if tf > 0 {
				score += math.Log1p((n-df+0.5)/(df+0.5)) * tf * (k1 + 1) / (tf + k1*(1-b+b*d.length/p.mean))
			}
		}
		if score > 0 {
			hits = append(hits, hit{d.id, score})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int {
		if a.score != b.score {
			if a.score > b.score {
				return -1
			}
			return 1
		}
		return strings.Compare(a.id, b.id)
	})
	var out []string
	for _, h := range hits[:min(most, len(hits))] {
		out = append(out, h.id)
	}
	return out
}
