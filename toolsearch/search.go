package toolsearch

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

const (
	// DefaultMax is the default of [Query].Max.
	DefaultMax = 5
	// MaxMatches is the largest Max.
	MaxMatches = 100
	// MaxPhrasings limits the phrasings of a query. Further ones are ignored.
	MaxPhrasings = 10
	// maxQuery is the number of bytes of a phrasing that are read, maxQueryWords of its words that
	// count, and maxRequired of its required words. Further required words are ordinary ones.
	maxQuery      = 4 << 10
	maxQueryWords = 64
	maxRequired   = 8
	// maxSearchRepairs limits the unknown words of a search that are corrected.
	maxSearchRepairs = 64
	// looks is the number of tools or terms between two checks of the context.
	looks = 4 << 10
	// depth is the number of places in each ranking that count when several are fused.
	depth = 100
	// sure is the score of a tool whose full name is a phrasing, above all others.
	sure = 1000
	// exactness is the weight of a word in the same form, relative to the word: boards finds
	// list_boards before create_board, and production is no product.
	exactness = 0.3
	// likeness is the weight of a synonym, foreign of a translation, since some words are English
	// too.
	likeness = 0.5
	foreign  = 0.9
	// agreement is the gain of a tool that does what is asked for, and the loss of one that does
	// something else.
	agreement = 0.1
	// maxOfServer is the number of tools found if only a server is named.
	maxOfServer = 20
)

// A Query is a search. Its work is limited: [MaxPhrasings] phrasings count, 4 KB and 64 words of
// each, and eight required words.
type Query struct {
	// Phrasings describe the tools in different words. A tool's score is the sum of its scores for
	// all of them. Forms:
	//
	//	select:A,B         the tools A and B by name: full, or a tool's own name, which matches on every server
	//	mcp__srv__tool     that tool
	//	srv or mcp__srv    the tools of that server
	//	+word more words   tools whose full name has word in it, ranked by all words
	//	any words          a ranking
	Phrasings []string
	// Max is the largest number of matches, at most [MaxMatches]. Zero means [DefaultMax], or 20 if
	// a server is named. All tools selected by name are returned.
	Max int
}

// A Match is a tool that a search found.
type Match struct {
	FullName, Server, Name string
	// Score decreases from match to match. Scores of different searches cannot be compared.
	Score float64
}

// A Result is the result of a search.
type Result struct {
	// Matches begin with the best. Equally good ones are in the order of their full names.
	Matches []Match
	// Unknown holds the names after select: that no tool has.
	Unknown []string
}

// Search searches the index. It is safe for concurrent use. It fails only if ctx ends.
func (x *Index) Search(ctx context.Context, q Query) (Result, error) {
	s := &search{Index: x, ctx: ctx}
	r := s.run(q)
	if s.ended {
		return Result{}, ctx.Err()
	}
	return r, nil
}

// A search is the state of one search.
type search struct {
	*Index
	ctx context.Context
	// steps counts tools and terms, next is when the context is checked, ended reports its end.
	steps, next int
	ended       bool
	repairs     int
}

// spend counts tools or terms. It reports false if the search must end.
func (x *search) spend(n int) bool {
	x.steps += n
	if x.steps >= x.next && !x.ended {
		x.next = x.steps + looks
		x.ended = x.ctx.Err() != nil
	}
	return !x.ended
}

func (x *search) run(q Query) Result {
	var r Result
	var rankings [][]scored
	selected, most := map[int32]bool{}, q.Max
	for _, text := range q.Phrasings[:min(len(q.Phrasings), MaxPhrasings)] {
		text = strings.TrimSpace(text[:min(len(text), maxQuery)])
		if names, ok := strings.CutPrefix(text, "select:"); ok {
			r.Unknown = append(r.Unknown, x.selectNames(names, selected, &r.Matches)...)
			continue
		}
		list, named := x.rank(text)
		if named && q.Max <= 0 {
			most = max(most, maxOfServer)
		}
		if len(list) > 0 {
			rankings = append(rankings, list)
		}
	}
	if most <= 0 {
		most = DefaultMax
	}
	for _, s := range fuse(rankings) {
		if len(r.Matches) >= max(min(most, MaxMatches), len(selected)) {
			break
		}
		if !selected[s.tool] {
			r.Matches = append(r.Matches, x.match(s))
		}
	}
	return r
}

func (x *Index) match(s scored) Match {
	e := &x.tools[s.tool]
	return Match{FullName: e.fullName, Server: e.server, Name: e.name, Score: float64(s.score)}
}

// A scored is a tool with its score.
type scored struct {
	tool  int32
	score float32
}

// selectNames returns tools by name, in the order of the names.
func (x *search) selectNames(list string, selected map[int32]bool, matches *[]Match) (unknown []string) {
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		found := false
		add := func(tool int32) {
			found = true
			if !selected[tool] {
				selected[tool] = true
				*matches = append(*matches, x.match(scored{tool, 1}))
			}
		}
		if !x.spend(1) {
			return unknown
		}
		if tool, ok := x.byName[name]; ok {
			add(tool)
		} else if same := x.byOwn[name]; x.spend(len(same)) {
			for _, tool := range same {
				add(tool)
			}
		}
		if !found {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

// rank ranks the tools for one phrasing. named reports that it names a server.
func (x *search) rank(text string) (list []scored, named bool) {
	if tool, ok := x.byName[text]; ok {
		return []scored{{tool, sure}}, false
	}
	if tools, ok := x.byServer[strings.ToLower(strings.TrimRight(text, "_*"))]; ok {
		x.spend(len(tools))
		for _, t := range tools {
			list = append(list, scored{t, 1})
		}
		return list, true
	}
	plain, required := splitRequired(text)
	terms := x.query(plain)
	sums := make([]float32, len(x.tools))
	for _, t := range terms {
		tm := x.terms[t.word]
		if !x.spend(1 + int(tm.to-tm.from)) {
			return nil, false
		}
		for _, p := range x.postings[tm.from:tm.to] {
			sums[p.tool] += t.weight * tm.rarity * p.share
		}
	}
	does := asked(plain)
	best := newBest(depth)
	fits := x.having(required)
	if !x.spend(len(sums)) {
		return nil, false
	}
	for tool, sum := range sums {
		if fits != nil {
			if !fits[tool] {
				continue
			}
			sum++ // whatever else the query says, this is what it asks for
		}
		if sum > 0 {
			best.add(scored{int32(tool), sum * x.tools[tool].does.fit(does)})
		}
	}
	return best.sorted(), false
}

// splitRequired returns the +words of a query, without duplicates, up to the limit. They remain in
// the query as ordinary words.
func splitRequired(text string) (plain string, required []string) {
	if !strings.Contains(text, "+") {
		return text, nil
	}
	words := strings.Fields(text)
	for i, w := range words {
		if r, ok := strings.CutPrefix(w, "+"); ok && r != "" {
			words[i] = r
			if low := strings.ToLower(r); len(required) < maxRequired && !slices.Contains(required, low) {
				required = append(required, low)
			}
		}
	}
	return strings.Join(words, " "), required
}

// having returns the tools whose full names contain all words. Nil means all tools.
func (x *search) having(words []string) []bool {
	var all []bool
	for _, w := range words {
		fits := make([]bool, len(x.tools))
		if !x.spend(len(x.tools)) {
			return fits
		}
		for at := 0; ; {
			i := strings.Index(x.haystack[at:], w)
			if i < 0 {
				break
			}
			line, exact := slices.BinarySearch(x.lines, int32(at+i))
			if !exact {
				line-- // the one that begins before
			}
			fits[line] = true
			if at = len(x.haystack); line+1 < len(x.lines) {
				at = int(x.lines[line+1])
			}
		}
		if id, known := x.words[stem(w)]; known {
			x.spend(int(x.terms[id].to - x.terms[id].from))
			for _, p := range x.postings[x.terms[id].from:x.terms[id].to] {
				if _, has := slices.BinarySearch(x.tools[p.tool].nameWords, id); has {
					fits[p.tool] = true
				}
			}
		}
		if all == nil {
			all = fits
			continue
		}
		for i := range all {
			all[i] = all[i] && fits[i]
		}
	}
	return all
}

// query returns the terms of a phrasing, without duplicates.
func (x *search) query(text string) []weighted {
	var words []string
	tokenize(text, func(w string, whole bool) bool {
		if _, known := x.words[stem(w)]; known || !whole || translations[w] != nil {
			words = append(words, w)
		}
		return len(words) < maxQueryWords
	})
	content := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return stopWords[w] })
	if len(content) == 0 {
		content = words
	}
	var out []weighted
	at := map[int32]int{}
	add := func(list ...weighted) {
		for _, t := range list {
			if i, ok := at[t.word]; ok {
				out[i].weight = max(out[i].weight, t.weight)
				continue
			}
			at[t.word] = len(out)
			out = append(out, t)
		}
	}
	for i, w := range content {
		for _, other := range synonyms[stem(w)] {
			if id, ok := x.words[other]; ok {
				add(weighted{id, likeness})
			}
		}
		for _, meant := range translations[w] {
			if id, ok := x.words[meant]; ok {
				add(weighted{id, foreign})
			}
		}
		if id, ok := x.words[exactMark+w]; ok {
			add(weighted{id, exactness})
		}
		if id, ok := x.words[stem(w)]; ok {
			add(weighted{id, 1})
		} else if translations[w] != nil { // not a misspelt English word
			continue
		} else if parts := x.split(w); parts != nil {
			add(parts...)
		} else {
			add(x.repair(w)...)
		}
		if i > 0 { // data base for database
			if id, ok := x.words[stem(content[i-1]+w)]; ok && len(content[i-1])+len(w) >= 2*minPrefix {
				add(weighted{id, 0.9})
			}
		}
	}
	return out
}

// fuse adds the scores of several rankings, so that a tool found by several phrasings comes first,
// and a phrasing that fits well counts more than one that does not. Ranks instead of scores would
// count both the same.
func fuse(rankings [][]scored) []scored {
	if len(rankings) == 1 {
		return rankings[0]
	}
	sums := map[int32]float32{}
	for _, list := range rankings {
		for _, s := range list {
			sums[s.tool] += s.score
		}
	}
	out := make([]scored, 0, len(sums))
	for tool, sum := range sums {
		out = append(out, scored{tool, sum})
	}
	slices.SortFunc(out, compare)
	return out
}

// compare orders by score, and equal ones by name, which is the order of the index.
func compare(a, b scored) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.tool, b.tool))
}

// A best keeps the best of many, in a heap with the worst of them on top.
type best struct {
	heap []scored
	most int
}

func newBest(most int) *best { return &best{heap: make([]scored, 0, most), most: most} }

func (b *best) add(s scored) {
	if len(b.heap) < b.most {
		b.heap = append(b.heap, s)
		for i := len(b.heap) - 1; i > 0 && compare(b.heap[i], b.heap[(i-1)/2]) > 0; i = (i - 1) / 2 {
			b.heap[i], b.heap[(i-1)/2] = b.heap[(i-1)/2], b.heap[i]
		}
		return
	}
	if compare(s, b.heap[0]) >= 0 {
		return
	}
	b.heap[0] = s
	for i := 0; ; {
		worst := i
		for _, c := range [2]int{2*i + 1, 2*i + 2} {
			if c < len(b.heap) && compare(b.heap[c], b.heap[worst]) > 0 {
				worst = c
			}
		}
		if worst == i {
			return
		}
		b.heap[i], b.heap[worst] = b.heap[worst], b.heap[i]
		i = worst
	}
}

func (b *best) sorted() []scored {
	slices.SortFunc(b.heap, compare)
	return b.heap
}

// serverForms are the ways to name a server, in lower case: its key, and the beginning of its
// tools' names.
func serverForms(server string) []string {
	if server == "" {
		return nil
	}
	key := strings.ToLower(server)
	norm := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return '_'
	}, key)
	forms := []string{key, norm, "mcp__" + norm}
	slices.Sort(forms)
	return slices.Compact(forms)
}
