package modeltest

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"
)

// Limits on what a model remembers of messages.
const (
	maxKnownMessage  = 64 << 10 // bytes of one message
	maxKnownMessages = 8 << 20  // bytes of all, before they are forgotten
)

// A knownMessage is a message that was decoded and in which nothing is wrong, whatever its neighbours.
type knownMessage struct {
	message Message
	items   int // see decoder.items
	sums    []blockSum
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

// add remembers a message that own has passed. It returns the sums of its blocks; nil if it is too long.
func (c *messageCache) add(raw json.RawMessage, m Message, items int) []blockSum {
	if len(raw) > maxKnownMessage {
		return nil
	}
	m.Content = slices.Clip(m.Content) // several requests share it
	known := &knownMessage{message: m, items: items, sums: sumsOf(m.Content)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil || c.size > maxKnownMessages {
		c.seen, c.size = map[string]*knownMessage{}, 0
	}
	c.seen[string(raw)] = known
	c.size += len(raw)
	return known.sums
}
