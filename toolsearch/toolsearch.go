// Package toolsearch finds the tools that fit a request among thousands.
//
// An agent with many tools shows its model a [Summary] of their names, and a tool that searches the
// rest. [New] builds an index, [Index.Search] ranks the tools by BM25F over the words of server,
// name, hint, description and parameters. Words are stemmed, with preference for the same form. It
// uses a short list of synonyms and of words in other languages, corrects unknown words, and
// prefers tools that do what the verb of the request asks for. It uses no model and no I/O, and its
// results do not depend on the order of the tools.
//
//	index := toolsearch.New(tools)
//	r, err := index.Search(ctx, toolsearch.Query{Phrasings: []string{"open a bug report", "create issue"}})
//	for _, m := range r.Matches {
//		load(m.FullName)
//	}
package toolsearch

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// A Tool is a tool to be indexed.
type Tool struct {
	// FullName is the name by which the model calls the tool. Of several tools with one name the
	// first counts.
	FullName string
	// Server is the key of the tool's server, Name the tool's name on it.
	Server, Name string
	// Title, Description and Hint are text. Hint is written by the tool's author for the search.
	Title, Description, Hint string
	// Params are the tool's parameters; see [Params].
	Params []Param
}

// A Param is a parameter of a tool. Nested parameters are in the same list.
type Param struct {
	Name, Description string
}

// The fields of a tool, with the weight of a word in each.
type field int

const (
	inName field = iota
	inServer
	inHint
	inHead // the title and the first characters of the description
	inTail // the rest of the description
	inParamNames
	inParamTexts
	fields
)

// weights and norms are the parameters of BM25F: the weight of a word in a field, and how much the
// length of the field reduces it.
var (
	weights = [fields]float64{inName: 4, inServer: 2.5, inHint: 2.5, inHead: 2, inTail: 0.8, inParamNames: 1, inParamTexts: 0.5}
	norms   = [fields]float64{inName: 0.5, inServer: 0, inHint: 0.4, inHead: 0.5, inTail: 0.75, inParamNames: 0.75, inParamTexts: 0.75}
)

const (
	// saturation is BM25's k1.
	saturation = 1.4
	// headLength is the number of characters of a description that count as its beginning.
	headLength = 200
	// exactMark is the first byte of terms for a word in one form.
	exactMark = "="
	// maxFieldWords limits the words of a field that are indexed.
	maxFieldWords = 400
)

// An Index is an immutable index of tools. It is safe for concurrent use.
type Index struct {
	tools []entry
	// byName has the tools by full name, byServer by the server's name in any form.
	byName   map[string]int32
	byServer map[string][]int32
	// byOwn has the tools by their own names.
	byOwn map[string][]int32
	// words has the terms by text; terms are sorted by text.
	words map[string]int32
	terms []term
	// postings are those of all terms, one after the other.
	postings []posting
	// haystack has all full names in lower case, one a line; lines has their offsets.
	haystack string
	lines    []int32
	// near has the terms for misspelled words.
	near map[nearKey][]nearTerm
}

// An entry is a tool in the index.
type entry struct {
	fullName, server, name string
	// nameWords are the terms of the name, sorted.
	nameWords []int32
	// does is what the tool does.
	does action
}

// A term is a word of the index.
type term struct {
	text string
	// from and to limit its postings, rarity is its inverse document frequency.
	from, to int32
	rarity   float32
}

// A posting is a term's part of the score of a tool, without the term's rarity.
type posting struct {
	tool  int32
	share float32
}

// New returns an index of the tools.
func New(tools []Tool) *Index {
	b := newBuilder(tools)
	for i := range b.tools {
		b.count(i)
	}
	return b.index()
}

// Len returns the number of tools.
func (x *Index) Len() int { return len(x.tools) }

// A builder collects the contents of an index.
type builder struct {
	// surfaces has the words as they are written, with their terms.
	surfaces map[string]int32
	tools    []Tool
	x        *Index
	lengths  [fields]float64 // sums over all tools
	// counts has the words of each tool, by field.
	counts []map[int32]*[fields]float32
	sizes  []*[fields]float64
	texts  []string // terms in the order in which they were met
}

func newBuilder(tools []Tool) *builder {
	sorted := slices.Clone(tools)
	slices.SortStableFunc(sorted, func(a, b Tool) int { return cmp.Compare(a.FullName, b.FullName) })
	sorted = slices.CompactFunc(sorted, func(a, b Tool) bool { return a.FullName == b.FullName })
	n := len(sorted)
	return &builder{
		surfaces: map[string]int32{},
		tools:    sorted,
		x:        &Index{tools: make([]entry, n), byName: make(map[string]int32, n), byServer: map[string][]int32{}, byOwn: make(map[string][]int32, n), words: map[string]int32{}},
		counts:   make([]map[int32]*[fields]float32, n),
		sizes:    make([]*[fields]float64, n),
	}
}

// count counts the words of one tool.
func (b *builder) count(i int) {
	t := b.tools[i]
	e := entry{fullName: t.FullName, server: t.Server, name: t.Name, does: actionOf(t.Name)}
	b.counts[i], b.sizes[i] = map[int32]*[fields]float32{}, &[fields]float64{}
	head, tail := splitText(t.Description)
	b.add(i, inName, t.Name)
	for w := range b.counts[i] {
		e.nameWords = append(e.nameWords, w)
	}
	slices.Sort(e.nameWords)
	b.add(i, inServer, t.Server)
	b.add(i, inHint, t.Hint)
	b.add(i, inHead, t.Title+" "+head)
	b.add(i, inTail, tail)
	for _, p := range t.Params {
		b.add(i, inParamNames, p.Name)
		b.add(i, inParamTexts, p.Description)
	}
	b.x.tools[i] = e
	b.x.byName[t.FullName] = int32(i)
	b.x.byOwn[t.Name] = append(b.x.byOwn[t.Name], int32(i))
	for _, form := range serverForms(t.Server) {
		b.x.byServer[form] = append(b.x.byServer[form], int32(i))
	}
}

// add counts the words of a text in a field.
func (b *builder) add(i int, f field, text string) {
	if b.sizes[i][f] >= maxFieldWords {
		return // no need to read it
	}
	tokenize(text, func(surface string, _ bool) bool {
		if b.sizes[i][f] >= maxFieldWords {
			return false
		}
		w := b.word(surface)
		c := b.counts[i][w]
		if c == nil {
			c = &[fields]float32{}
			b.counts[i][w] = c
		}
		c[f]++
		e := b.exact(surface)
		if b.counts[i][e] == nil {
			b.counts[i][e] = &[fields]float32{}
		}
		b.counts[i][e][f]++
		b.sizes[i][f]++
		b.lengths[f]++
		return true
	})
}

// word returns the term of a word.
func (b *builder) word(surface string) int32 {
	w, ok := b.surfaces[surface]
	if ok {
		return w
	}
	text := stem(surface)
	if w, ok = b.x.words[text]; !ok {
		w = int32(len(b.texts))
		b.x.words[text] = w
		b.texts = append(b.texts, text)
	}
	b.surfaces[surface] = w
	return w
}

// exact returns the term of a word in this form only.
func (b *builder) exact(surface string) int32 {
	text := exactMark + surface
	w, ok := b.x.words[text]
	if !ok {
		w = int32(len(b.texts))
		b.x.words[text] = w
		b.texts = append(b.texts, text)
	}
	return w
}

// indexNames prepares the full names for a search by substrings.
func (x *Index) indexNames() {
	var b strings.Builder
	x.lines = make([]int32, len(x.tools))
	for i := range x.tools {
		x.lines[i] = int32(b.Len())
		b.WriteString(strings.ToLower(x.tools[i].fullName))
		b.WriteByte('\n')
	}
	x.haystack = b.String()
}

// splitText splits a description near headLength, between words.
func splitText(s string) (head, tail string) {
	n := 0
	for i, r := range s {
		if n++; n > headLength && (r == ' ' || r == '\n') {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// index computes the postings of all words.
func (b *builder) index() *Index {
	x := b.x
	n := float64(len(b.tools))
	held := make([][]posting, len(b.texts))
	for i := range b.tools {
		for w, c := range b.counts[i] {
			tf := 0.0
			for f := range fields {
				if c[f] > 0 {
					average := max(b.lengths[f]/n, 1)
					tf += weights[f] * float64(c[f]) / (1 - norms[f] + norms[f]*b.sizes[i][f]/average)
				}
			}
			held[w] = append(held[w], posting{int32(i), float32(tf * (saturation + 1) / (saturation + tf))})
		}
		b.counts[i] = nil
	}
	x.terms = make([]term, len(b.texts))
	for w, list := range held {
		slices.SortFunc(list, func(a, b posting) int { return cmp.Compare(a.tool, b.tool) })
		df := float64(len(list))
		x.terms[w] = term{text: b.texts[w], from: int32(len(x.postings)), to: int32(len(x.postings) + len(list)), rarity: float32(math.Log1p((n - df + 0.5) / (df + 0.5)))}
		x.postings = append(x.postings, list...)
	}
	x.postings = slices.Clip(x.postings)
	x.indexNear(b.surfaces)
	x.indexNames()
	return x
}
