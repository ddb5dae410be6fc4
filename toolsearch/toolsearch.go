// Package toolsearch finds the tools that fit a question, among ten thousand as among ten.
//
// An agent with many tools does not show them all to its model. It shows their names, or with
// [Summary] what there is room for, and a tool that searches the rest. [New] builds an index over
// the tools; [Index.Search] ranks them. Ranking is lexical: weighted words of server, name,
// hint, description and parameters, stemmed, those in the same form a little before the others; a short list of
// synonyms, and of words in other languages; repair of words that the index does not know; and what the verb of a
// request asks for. There is no model and no I/O. Equal tools and equal queries give equal
// results, whatever order the tools came in.
//
//	index := toolsearch.New(tools)
//	r, err := index.Search(ctx, toolsearch.Query{Phrasings: []string{"open a bug report", "create issue"}})
//	for _, m := range r.Matches {
//		load(m.FullName)
//	}
//
// It works on anyone's tools: it knows no host.
package toolsearch

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// A Tool is what is searched of a tool.
type Tool struct {
	// FullName is the name that the model calls the tool by. It identifies the tool: of several with one name the first counts.
	FullName string
	// Server is the registration key of the tool's server, Name the tool's own name.
	Server, Name string
	// Title, Description and Hint are text; Hint is what the tool's author wrote for the search.
	Title, Description, Hint string
	// Params are the tool's parameters: see [Params].
	Params []Param
}

// A Param is a parameter of a tool, with the parameters within it beside it.
type Param struct {
	Name, Description string
}

// Fields of a tool, and what a word in each counts. A name says most, a parameter's description least.
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

// weights and norms are the parameters of BM25F: how much a word counts in a field, and how much the length of the field
// takes away from it.
var (
	weights = [fields]float64{inName: 4, inServer: 2.5, inHint: 2.5, inHead: 2, inTail: 0.8, inParamNames: 1, inParamTexts: 0.5}
	norms   = [fields]float64{inName: 0.5, inServer: 0, inHint: 0.4, inHead: 0.5, inTail: 0.75, inParamNames: 0.75, inParamTexts: 0.75}
)

const (
	// saturation is BM25's k1.
	saturation = 1.4
	// headLength is how many characters of a description say most of it.
	headLength = 200
	// exactMark begins the terms that stand for a word in one form only.
	exactMark = "="
	// maxFieldWords bounds the words of one field that are indexed.
	maxFieldWords = 400
)

// An Index is a searchable set of tools. It is immutable and safe for concurrent use.
type Index struct {
	tools []entry
	// byName finds a tool by its full name, byServer the tools of a server by its name in any form.
	byName   map[string]int32
	byServer map[string][]int32
	// byOwn finds tools by their own names.
	byOwn map[string][]int32
	// words finds a term; terms are sorted by text.
	words map[string]int32
	terms []term
	// postings are those of all terms, one after the other.
	postings []posting
	// haystack is all full names in lower case, a line each; lines are the offsets at which they begin.
	haystack string
	lines    []int32
	// near finds terms that a misspelt word may mean.
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
	// from and to bound its postings, rarity is its inverse document frequency.
	from, to int32
	rarity   float32
}

// A posting is a term's share in the score of a tool, less the term's rarity.
type posting struct {
	tool  int32
	share float32
}

// New builds an index.
func New(tools []Tool) *Index {
	b := newBuilder(tools)
	for i := range b.tools {
		b.count(i)
	}
	return b.index()
}

// Len is the number of tools.
func (x *Index) Len() int { return len(x.tools) }

// A builder gathers what an index is made of.
type builder struct {
	// surfaces are the words as they stand, with their terms.
	surfaces map[string]int32
	tools    []Tool
	x        *Index
	lengths  [fields]float64 // sums over all tools
	// counts are the words of each tool, by field.
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

// count takes in the words of one tool.
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

// word is the term of a word as it stands.
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

// exact is the term of a word in just this form.
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

// indexNames lays out the full names for a search by parts of them.
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

// splitText cuts a description near headLength, between words.
func splitText(s string) (head, tail string) {
	n := 0
	for i, r := range s {
		if n++; n > headLength && (r == ' ' || r == '\n') {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// index computes the shares of all words in all tools.
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
