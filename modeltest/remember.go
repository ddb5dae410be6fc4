package modeltest

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
)

// Limits on what a model remembers of messages.
const (
	maxKnownMessage  = 64 << 10 // bytes of one message
	maxKnownMessages = 8 << 20  // bytes of all, before they are forgotten
)

// A knownMessage is a message that was decoded and in which nothing is wrong, whatever its neighbours.
type knownMessage struct {
	raw     json.RawMessage
	message Message
	items   int // see decoder.items
	sums    []blockSum
	next    atomic.Pointer[knownMessage] // what came after it the last time, if that is remembered
}

// precedes notes what comes after a message. Either may be nil.
func (k *knownMessage) precedes(next *knownMessage) {
	if k != nil && next != nil && k.next.Load() != next {
		k.next.Store(next)
	}
}

// messageCache remembers messages by their bytes: those of a conversation are sent with each of its
// turns. It holds copies, so that no body is kept for the sake of one message.
type messageCache struct {
	mu   sync.Mutex // guards the rest
	seen map[string]*knownMessage
	size int
}

// find returns what is known of a message of these bytes, nil if nothing is.
func (c *messageCache) find(raw json.RawMessage) *knownMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[string(raw)]
}

// own is a message in memory of its own, if it is one that can be remembered.
func (c *messageCache) own(raw json.RawMessage) json.RawMessage {
	if len(raw) > maxKnownMessage {
		return raw
	}
	return bytes.Clone(raw)
}

// add remembers a message that own has passed, and returns what is known of it; nil if it is too long.
func (c *messageCache) add(raw json.RawMessage, m Message, items int) *knownMessage {
	if len(raw) > maxKnownMessage {
		return nil
	}
	m.Content = slices.Clip(m.Content) // several requests share it
	known := &knownMessage{raw: raw, message: m, items: items, sums: sumsOf(m.Content)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil || c.size > maxKnownMessages {
		c.seen, c.size = map[string]*knownMessage{}, 0
	}
	if earlier := c.seen[string(raw)]; earlier != nil {
		return earlier
	}
	c.seen[string(raw)] = known
	c.size += len(raw)
	return known
}

// bodyParts are the fields of a body and the messages in it, noted while the body is read for the first time.
type bodyParts struct {
	cache  *messageCache
	fields []bodyField

	key      json.RawMessage // of the field that is being read
	messages []messagePart   // in it
	next     *knownMessage   // what may come next there
}

// A bodyField is a field at the top of a body.
type bodyField struct {
	key, value json.RawMessage
	messages   []messagePart // what the list consists of, if the key is "messages"
}

// A messagePart is a message in a body.
type messagePart struct {
	raw   json.RawMessage
	known *knownMessage // nil if nothing is known of it
}

// begin is told of the key of a field.
func (b *bodyParts) begin(key json.RawMessage) { b.key, b.messages, b.next = key, nil, nil }

// expected is the message that the data begins with, if it is the one that followed on the latest before.
func (b *bodyParts) expected(depth int, data []byte) *knownMessage {
	if depth != 2 || b.next == nil || !bytes.HasPrefix(data, b.next.raw) {
		return nil
	}
	return b.next
}

// end is told of the end of a value: of a field at depth 1, of something in a field at depth 2.
func (b *bodyParts) end(depth int, raw json.RawMessage) {
	if depth == 1 {
		b.fields = append(b.fields, bodyField{b.key, raw, b.messages})
		return
	}
	if string(b.key) == `"messages"` {
		b.message(raw, b.cache.find(raw))
	}
}

func (b *bodyParts) message(raw json.RawMessage, known *knownMessage) {
	b.messages = append(b.messages, messagePart{raw, known})
	if b.next = nil; known != nil {
		b.next = known.next.Load()
	}
}
