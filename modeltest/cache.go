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
	sum    [sha256.Size]byte
	bytes  int
	marked bool // the block has a cache_control
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
	for i, p := range prefixes[:last+1] {
		if c.known[p.sum] && inReach(prefixes, i) {
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

// inReach says that a cache_control stands at block i or soon after it.
func inReach(prefixes []prefix, i int) bool {
	for _, p := range prefixes[i:min(i+lookBack, len(prefixes))] {
		if p.marked {
			return true
		}
	}
	return false
}

// prefixesOf are the prefixes of a prompt, block by block: tools, system,
// messages. What the API's cache depends on besides goes before them.
func prefixesOf(r *Request) []prefix {
	b := prefixBuilder{hash: sha256.New()}
	b.add(r.fields["model"])
	b.tools(r)
	b.add(r.fields["tool_choice"])
	for _, s := range r.System {
		b.content(s)
	}
	b.add(r.fields["thinking"])
	for _, m := range r.Messages {
		b.add([]byte(m.Role))
		for _, c := range m.Content {
			b.content(c)
		}
	}
	if v := r.fields["cache_control"]; v != nil && kindOf(v) == '{' && len(b.list) > 0 {
		b.list[len(b.list)-1].marked = true
	}
	return b.list
}

type prefixBuilder struct {
	hash     hash.Hash
	bytes    int
	marked   bool
	list     []prefix
	deferred map[string]json.RawMessage // definitions by name, read where they are referred to
}

// tools adds the definitions that the model reads from the start. Those that are withheld are no part
// of the prompt's beginning; that there are some is.
func (b *prefixBuilder) tools(r *Request) {
	for _, t := range r.Tools {
		if !t.DeferLoading {
			b.block(t.Raw)
			continue
		}
		if b.deferred == nil {
			b.deferred = map[string]json.RawMessage{}
		}
		b.deferred[t.Name] = t.Raw
	}
	if b.deferred != nil {
		b.add([]byte("defer_loading"))
	}
}

func (b *prefixBuilder) add(data []byte) {
	b.hash.Write(data) // a hash takes everything
	b.hash.Write([]byte{0})
	b.bytes += len(data)
}

// content adds a block of a message. A text counts by its text, whether it stands
// as a string or as a block.
func (b *prefixBuilder) content(c Content) {
	if c.Type == "text" && c.wasString() {
		b.block(append(appendString([]byte(`{"type":"text","text":`), c.Text), '}'))
		return
	}
	b.block(c.Raw)
}

// block adds a block without its cache_control, and a prefix that ends with it.
func (b *prefixBuilder) block(raw json.RawMessage) {
	b.marked = false
	b.value(raw)
	b.expand(raw)
	p := prefix{bytes: b.bytes, marked: b.marked}
	b.hash.Sum(p.sum[:0])
	b.list = append(b.list, p)
}

// expand adds the definitions that a tool result refers to.
func (b *prefixBuilder) expand(raw json.RawMessage) {
	if b.deferred == nil || !bytes.Contains(raw, []byte(`"tool_reference"`)) {
		return
	}
	var result struct {
		Content []struct {
			Type string `json:"type"`
			Name string `json:"tool_name"`
		} `json:"content"`
	}
	if json.Unmarshal(raw, &result) != nil {
		return // a content that is no list
	}
	for _, c := range result.Content {
		if c.Type == "tool_reference" {
			b.add(b.deferred[c.Name])
		}
	}
}

func (b *prefixBuilder) value(raw json.RawMessage) {
	if kindOf(raw) != '{' {
		b.add(raw)
		return
	}
	eachRawField(raw, func(key, v json.RawMessage) {
		switch {
		case string(key) == `"cache_control"`:
			b.marked = b.marked || kindOf(v) == '{'
			return
		case string(key) == `"content"` && kindOf(v) == '[': // a tool result's blocks
			eachItem(v, func(_ int, v json.RawMessage) { b.value(v) })
			return
		}
		b.add(key)
		b.add(v)
	})
}
