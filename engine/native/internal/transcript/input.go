package transcript

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/toolresult"
)

// Enter returns the parts of a program's content, and notes about images that were scaled down.
func Enter(ctx context.Context, content agent.Content) (parts []Part, notes []string) {
	for _, b := range content {
		if t, ok := b.(*agent.TextBlock); ok && IsBlank(t.Text) {
			continue
		}
		fitted, said := fitBlock(ctx, b)
		notes = append(notes, said...)
		for _, b := range fitted {
			raw, mark := unmarked(EncodeBlock(b))
			parts = append(parts, Part{Raw: raw, mark: mark})
		}
	}
	return parts, notes
}

// fitBlock returns a block with images that fit, and notes about those that were scaled down.
func fitBlock(ctx context.Context, b agent.Block) (fitted agent.Content, notes []string) {
	switch b := Known(b).(type) {
	case *agent.ImageBlock:
		if content, note := FitGivenImage(ctx, b); note != "" {
			return content, []string{note}
		}
	case *agent.UnknownBlock:
		if b.Type == "document" {
			return fitDocument(ctx, b)
		}
	}
	return agent.Content{b}, nil
}

// FitGivenImage fits an image of the program to the limits. Data that is not an image is left to the API.
// note is empty if the image is unchanged.
func FitGivenImage(ctx context.Context, b *agent.ImageBlock) (fitted agent.Content, note string) {
	if b.Source.Type != "base64" {
		return nil, ""
	}
	data, _ := decodeBase64(b.Source.Data)
	cfg, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil || max(cfg.Width, cfg.Height) <= MaxImageSide && len(b.Source.Data) <= MaxImageBase64 {
		return nil, ""
	}
	fitted = scaledImage(ctx, b.Source.MediaType, data)
	if i := slices.IndexFunc(fitted, func(b agent.Block) bool { _, ok := b.(*agent.ImageBlock); return ok }); i >= 0 {
		fitted[i].(*agent.ImageBlock).Extra = b.Extra
		return fitted, fmt.Sprintf("An image of %d by %d pixels was scaled down: a request with many images takes %d at most.", cfg.Width, cfg.Height, MaxImageSide)
	}
	return fitted, fmt.Sprintf("An image of %d by %d pixels could not be scaled down, and a note stands for it.", cfg.Width, cfg.Height)
}

// scaledImage returns an image as in the result of a tool: scaled down if it is too large, or a note.
func scaledImage(ctx context.Context, mediaType string, data []byte) agent.Content {
	res := &mcpserver.Result{Content: []mcp.Content{&mcp.ImageContent{MIMEType: mediaType, Data: data}}}
	return ResultContent(toolresult.Convert(ctx, "the history", "image", res, nil))
}

// fitDocument fits the images among the content of a document.
func fitDocument(ctx context.Context, b *agent.UnknownBlock) (fitted agent.Content, notes []string) {
	same := agent.Content{b}
	var fields, source map[string]json.RawMessage
	var content agent.Content
	if json.Unmarshal(b.Raw, &fields) != nil || json.Unmarshal(fields["source"], &source) != nil || len(source["content"]) == 0 ||
		source["content"][0] != '[' || content.UnmarshalJSON(source["content"]) != nil {
		return same, nil
	}
	var inner agent.Content
	for _, b := range content {
		blocks, said := fitBlock(ctx, b)
		inner, notes = append(inner, blocks...), append(notes, said...)
	}
	if len(notes) == 0 {
		return same, nil
	}
	source["content"] = Encode(inner)
	fields["source"] = Encode(source)
	return agent.Content{&agent.UnknownBlock{Type: b.Type, Raw: Encode(fields)}}, notes
}

// CacheField is the field of a block that sets a cache breakpoint.
const CacheField = "cache_control"

// unmarked returns an encoded block without cache breakpoints, and the breakpoint of the block itself. The
// breakpoints of messages replace those of inner blocks.
func unmarked(raw json.RawMessage) (clean, mark json.RawMessage) {
	if !bytes.Contains(raw, []byte(`"`+CacheField+`"`)) {
		return raw, nil
	}
	fields, changed := withoutMarks(raw)
	if !changed {
		return raw, nil
	}
	var own map[string]json.RawMessage
	if json.Unmarshal(raw, &own) == nil && string(own[CacheField]) != "null" {
		mark = own[CacheField]
	}
	return EncodeBlock(agent.DecodeBlock(fields)), mark
}

// withoutMarks returns a block without breakpoints on it and its inner blocks.
func withoutMarks(raw json.RawMessage) (clean json.RawMessage, changed bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return raw, false
	}
	if _, changed = fields[CacheField]; changed {
		delete(fields, CacheField)
	}
	for _, name := range []string{"content", "source"} {
		var list []json.RawMessage
		switch inner := bytes.TrimSpace(fields[name]); {
		case len(inner) == 0:
		case inner[0] == '{':
			if cleaned, ok := withoutMarks(inner); ok {
				fields[name], changed = cleaned, true
			}
		case inner[0] == '[' && json.Unmarshal(inner, &list) == nil:
			within := false
			for i := range list {
				cleaned, ok := withoutMarks(list[i])
				list[i], within = cleaned, within || ok
			}
			if within {
				fields[name], changed = Encode(list), true
			}
		}
	}
	if !changed {
		return raw, false
	}
	return Encode(fields), true
}

// MaxBreakpoints is how many cache breakpoints a request may have.
const MaxBreakpoints = 4

// Breakpoints are the places of a request's cache breakpoints.
type Breakpoints struct {
	Prompt bool                      // at the end of what is before the messages
	Parts  map[place]json.RawMessage // their values
}

// A place is a part of an entry of the history.
type place struct{ entry, part int }

func (p place) before(q place) bool {
	return cmp.Or(cmp.Compare(p.entry, q.entry), cmp.Compare(p.part, q.part)) < 0
}

// Breakpoints chooses the breakpoints: at the end of the prompt, of the newest two entries of the user (this
// request reads the cache up to the older one, the next request up to the newer one), and as many of the
// program's own as the API allows, the newest first. Shorter breakpoints must not precede one that lasts an
// hour, so they are removed.
func (h *History) Breakpoints() Breakpoints {
	m := Breakpoints{Prompt: true, Parts: map[place]json.RawMessage{}}
	for i := len(h.Entries) - 1; i >= 0 && len(m.Parts) < 2; i-- {
		if e := h.Entries[i]; e.Role == RoleUser {
			last := len(e.Parts) - 1
			m.Parts[place{i, last}] = Ephemeral
			if own := e.Parts[last].mark; own != nil {
				m.Parts[place{i, last}] = own
			}
		}
	}
	for i, e := range slices.Backward(h.Entries) {
		for j, p := range slices.Backward(e.Parts) {
			at := place{i, j}
			if p.mark != nil && m.Parts[at] == nil && len(m.Parts)+1 < MaxBreakpoints {
				m.Parts[at] = p.mark
			}
		}
	}
	last := place{-1, -1}
	for at, mark := range m.Parts {
		if lastsAnHour(mark) && last.before(at) {
			last = at
		}
	}
	if last.entry < 0 {
		return m
	}
	m.Prompt = false
	for at, mark := range m.Parts {
		if !lastsAnHour(mark) && at.before(last) {
			delete(m.Parts, at)
		}
	}
	return m
}

// Ephemeral is a breakpoint of five minutes.
var Ephemeral = json.RawMessage(`{"type":"ephemeral"}`)

func lastsAnHour(mark json.RawMessage) bool {
	var m struct {
		TTL string `json:"ttl"`
	}
	_ = json.Unmarshal(mark, &m)
	return strings.EqualFold(m.TTL, "1h")
}

// WithBreakpoint returns an encoded block with a cache breakpoint.
func WithBreakpoint(block, mark json.RawMessage) json.RawMessage {
	if !bytes.HasSuffix(block, []byte("}")) || len(block) < 3 {
		return block
	}
	return slices.Concat(block[:len(block)-1], []byte(`,"`+CacheField+`":`), mark, []byte("}"))
}
