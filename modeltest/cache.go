package modeltest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"hash"
	"slices"
	"sync"
)

// maxCached bounds the prefixes that a model remembers. Beyond it, the model forgets all of them.
const maxCached = 1 << 20

// lookBack is the number of blocks before a cache_control, inclusive, in which a known prefix may end.
const lookBack = 20

// A promptCache remembers prefixes of prompts by their bytes.
type promptCache struct {
	mu    sync.Mutex // guards the rest
	known map[[sha256.Size]byte]bool
}

// A prefix is a prompt up to the end of one of its blocks.
type prefix struct {
	sum    [sha256.Size]byte
	bytes  int
	marked bool // the block has a cache_control
}

// use splits the input tokens of a request by what the cache knows of it, and
// remembers the prefixes that the request marks.
func (c *promptCache) use(r *Request, tokens int) Usage {
	if r.marks == 0 {
		return Usage{InputTokens: tokens}
	}
	prefixes := prefixesOf(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) > maxCached {
		c.known = map[[sha256.Size]byte]bool{}
	}
	read, written, next := 0, 0, len(prefixes)+lookBack // next is the next cache_control
	for i, p := range slices.Backward(prefixes) {
		if p.marked {
			next = i
			written = max(written, p.bytes)
		}
		if next-i < lookBack && c.known[p.sum] {
			read = max(read, p.bytes)
		}
	}
	for _, p := range prefixes {
		if p.marked {
			c.known[p.sum] = true
		}
	}
	share := func(bytes int) int {
		if bytes == 0 {
			return 0
		}
		return int(int64(tokens) * int64(bytes) / int64(prefixes[len(prefixes)-1].bytes))
	}
	return Usage{
		CacheReadInputTokens:     share(read),
		CacheCreationInputTokens: share(written) - share(read),
		InputTokens:              tokens - share(written),
	}
}

// prefixesOf returns the prefixes of a prompt, block by block: tools, system,
// messages. The other settings that the API's cache depends on are part of them.
func prefixesOf(r *Request) []prefix {
	w := prefixWriter{hash: sha256.New()}
	w.add(r.fields["model"])
	for _, t := range r.Tools {
		if !t.DeferLoading {
			w.block(t.Raw)
			continue
		}
		if w.deferred == nil {
			w.deferred = map[string]json.RawMessage{}
		}
		w.deferred[t.Name] = t.Raw
	}
	if w.deferred != nil {
		w.add([]byte("defer_loading"))
	}
	w.add(r.fields["tool_choice"])
	w.blocks(r.System)
	w.add(r.fields["thinking"])
	for _, m := range r.Messages {
		w.add([]byte(m.Role))
		w.blocks(m.Content)
	}
	if v := r.fields["cache_control"]; v != nil && kindOf(v) == '{' && len(w.list) > 0 {
		w.list[len(w.list)-1].marked = true
	}
	return w.list
}

// A prefixWriter writes a prompt to a hash, without its cache_control members.
type prefixWriter struct {
	hash     hash.Hash
	bytes    int
	marked   bool // the block has a cache_control
	list     []prefix
	deferred map[string]json.RawMessage // definitions by name; they are in the prompt where a result refers to them
}

func (w *prefixWriter) add(data []byte) {
	w.hash.Write(data)
	w.hash.Write([]byte{0})
	w.bytes += len(data)
}

func (w *prefixWriter) blocks(blocks []Content) {
	for i := range blocks {
		raw := blocks[i].Raw
		if c := &blocks[i]; c.Type == "text" && c.wasString() { // equal to a block of the same text
			raw = append(appendString([]byte(`{"type":"text","text":`), c.Text), '}')
		}
		w.block(raw)
	}
}

func (w *prefixWriter) block(raw json.RawMessage) {
	for _, name := range referred(raw) {
		w.add(w.deferred[name])
	}
	w.marked = false
	w.value(raw)
	p := prefix{bytes: w.bytes, marked: w.marked}
	w.hash.Sum(p.sum[:0])
	w.list = append(w.list, p)
}

func (w *prefixWriter) value(raw json.RawMessage) {
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

// referred returns the tools that a tool result refers to.
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
	_ = json.Unmarshal(raw, &result) // an error is content that is not a list
	var names []string
	for _, c := range result.Content {
		if c.Type == "tool_reference" {
			names = append(names, c.Name)
		}
	}
	return names
}
