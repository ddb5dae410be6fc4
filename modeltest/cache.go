package modeltest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"hash"
	"sync"
)

// maxCached is how many prefixes a model remembers before it forgets them all.
const maxCached = 1 << 20

// lookBack is how many blocks before a cache_control a known prefix may end.
const lookBack = 20

// promptCache is what a model has been told to remember: prefixes of prompts, by
// their bytes.
type promptCache struct {
	mu    sync.Mutex // guards the rest
	known map[[sha256.Size]byte]bool
}

// A prefix is a prompt up to and with one of its blocks.
type prefix struct {
	sum    [sha256.Size]byte // only if near: no other prefix is looked up
	bytes  int
	marked bool // the block has a cache_control
	near   bool // a cache_control stands at the block or soon after it
	block  *blockSum
	text   int // how much of prefixBuilder.text belongs to it
}

// A blockSum is what counts of a block for the cache: all of it but its cache_control.
type blockSum struct {
	sum    [sha256.Size]byte
	bytes  int
	marked bool     // it has a cache_control
	refers []string // the tools that a tool result refers to
}

// use splits the input tokens of a request by what the cache knows of it, and
// remembers what the request asks for.
func (c *promptCache) use(r *Request, tokens int) Usage {
	if r.marks == 0 {
		return Usage{InputTokens: tokens}
	}
	prefixes := prefixesOf(r)
	last := -1
	for i, p := range prefixes {
		if p.marked {
			last = i
		}
	}
	if last < 0 {
		return Usage{InputTokens: tokens}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) > maxCached {
		c.known = nil
	}
	read := 0
	for _, p := range prefixes[:last+1] {
		if p.near && c.known[p.sum] {
			read = p.bytes
		}
	}
	for _, p := range prefixes {
		if p.marked {
			if c.known == nil {
				c.known = map[[sha256.Size]byte]bool{}
			}
			c.known[p.sum] = true
		}
	}
	total := prefixes[len(prefixes)-1].bytes
	share := func(bytes int) int { return int(int64(tokens) * int64(bytes) / int64(total)) }
	return Usage{
		CacheReadInputTokens:     share(read),
		CacheCreationInputTokens: share(prefixes[last].bytes) - share(read),
		InputTokens:              tokens - share(prefixes[last].bytes),
	}
}

// prefixesOf are the prefixes of a prompt, block by block: tools, system,
// messages. What the API's cache depends on besides goes before them.
func prefixesOf(r *Request) []prefix {
	b := prefixBuilder{list: make([]prefix, 0, len(r.Tools)+len(r.System)+2*len(r.Messages))}
	b.add(r.fields["model"])
	b.tools(r)
	b.add(r.fields["tool_choice"])
	b.blocks(sumsOf(r.System))
	b.add(r.fields["thinking"])
	for _, m := range r.Messages {
		b.add([]byte(m.Role))
		b.blocks(sumsOf(m.Content))
	}
	if v := r.fields["cache_control"]; v != nil && kindOf(v) == '{' && len(b.list) > 0 {
		b.list[len(b.list)-1].marked = true
	}
	b.sum()
	return b.list
}

// A definition stands for the bytes of a tool's definition, however often it is referred to.
type definition struct {
	sum   [sha256.Size]byte
	bytes int
}

type prefixBuilder struct {
	list     []prefix
	text     []byte // what belongs to the prompt beside its blocks
	bytes    int
	deferred map[string]definition // by name, read where they are referred to
}

// tools adds the definitions that the model reads from the start. Those that are withheld are no part
// of the prompt's beginning; that there are some is.
func (b *prefixBuilder) tools(r *Request) {
	for _, t := range r.Tools {
		if !t.DeferLoading {
			s := sumOf(t.Raw)
			b.block(&s)
			continue
		}
		if b.deferred == nil {
			b.deferred = map[string]definition{}
		}
		b.deferred[t.Name] = definition{sha256.Sum256(t.Raw), len(t.Raw)}
	}
	if b.deferred != nil {
		b.add([]byte("defer_loading"))
	}
}

func (b *prefixBuilder) add(data []byte) {
	b.text = append(append(b.text, data...), 0)
	b.bytes += len(data)
}

func (b *prefixBuilder) blocks(sums []blockSum) {
	for i := range sums {
		b.block(&sums[i])
	}
}

// block adds a block, the definitions that it refers to, and a prefix that ends with it.
func (b *prefixBuilder) block(s *blockSum) {
	if b.deferred != nil {
		for _, name := range s.refers {
			d := b.deferred[name]
			b.text = append(b.text, d.sum[:]...)
			b.bytes += d.bytes
		}
	}
	b.bytes += s.bytes
	b.list = append(b.list, prefix{bytes: b.bytes, marked: s.marked, block: s, text: len(b.text)})
}

// sum finds the prefixes that are near a cache_control, and their sums.
func (b *prefixBuilder) sum() {
	next := len(b.list) + lookBack // the next cache_control
	for i := len(b.list) - 1; i >= 0; i-- {
		if b.list[i].marked {
			next = i
		}
		b.list[i].near = next-i < lookBack
	}
	h, text := sha256.New(), 0
	for i := range b.list {
		p := &b.list[i]
		h.Write(b.text[text:p.text]) // a hash takes everything
		h.Write(p.block.sum[:])
		text = p.text
		if p.near {
			h.Sum(p.sum[:0])
		}
	}
}

func sumsOf(blocks []Content) []blockSum {
	sums := make([]blockSum, len(blocks))
	for i := range blocks {
		raw := blocks[i].Raw
		if c := &blocks[i]; c.Type == "text" && c.wasString() {
			// A text counts by its text, whether it stands as a string or as a block.
			raw = append(appendString([]byte(`{"type":"text","text":`), c.Text), '}')
		}
		sums[i] = sumOf(raw)
	}
	return sums
}

func sumOf(raw json.RawMessage) blockSum {
	w := blockWriter{hash: sha256.New()}
	w.value(raw)
	s := blockSum{bytes: w.bytes, marked: w.marked, refers: referred(raw)}
	w.hash.Sum(s.sum[:0])
	return s
}

// referred are the tools that a tool result refers to.
func referred(raw json.RawMessage) []string {
	if !bytes.Contains(raw, []byte(`"tool_reference"`)) {
		return nil
	}
	var result struct {
		Content []struct {
			Type string `json:"type"`
			Name string `json:"tool_name"`
		} `json:"content"`
	}
	if json.Unmarshal(raw, &result) != nil {
		return nil // a content that is no list
	}
	var names []string
	for _, c := range result.Content {
		if c.Type == "tool_reference" {
			names = append(names, c.Name)
		}
	}
	return names
}

// blockWriter writes a block without its cache_control to a hash.
type blockWriter struct {
	hash   hash.Hash
	bytes  int
	marked bool
}

func (w *blockWriter) add(data []byte) {
	w.hash.Write(data)
	w.hash.Write([]byte{0})
	w.bytes += len(data)
}

func (w *blockWriter) value(raw json.RawMessage) {
	if kindOf(raw) != '{' {
		w.add(raw)
		return
	}
	eachField(raw, func(key string, v json.RawMessage) {
		switch {
		case key == "cache_control":
			w.marked = w.marked || kindOf(v) == '{'
			return
		case key == "content" && kindOf(v) == '[': // a tool result's blocks
			eachItem(v, func(_ int, v json.RawMessage) { w.value(v) })
			return
		}
		w.add([]byte(key))
		w.add(v)
	})
}
