package modeltest

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// A blockShape is what a type of block consists of, besides its type.
type blockShape struct{ required, optional []string }

// blockShapes are the types of block whose inside is checked. Of other types
// anything passes.
var blockShapes = map[string]*blockShape{
	"text":              {[]string{"text"}, []string{"cache_control", "citations"}},
	"image":             {[]string{"source"}, []string{"cache_control", "transformations"}},
	"document":          {[]string{"source"}, []string{"cache_control", "citations", "context", "title"}},
	"search_result":     {[]string{"content", "source", "title"}, []string{"cache_control", "citations"}},
	"tool_use":          {[]string{"id", "input", "name"}, []string{"cache_control", "caller", "toolset_name"}},
	"tool_result":       {[]string{"tool_use_id"}, []string{"cache_control", "content", "is_error", "toolset_name"}},
	"tool_reference":    {[]string{"tool_name"}, []string{"cache_control"}},
	"thinking":          {[]string{"signature", "thinking"}, nil},
	"redacted_thinking": {[]string{"data"}, nil},
}

// blocksIn are the types of block that may stand in a place: a message of a
// role, or a block of a type.
var blocksIn = map[string][]string{
	"user": {
		"compaction", "container_upload", "document", "image", "search_result", "text", "tool_result",
	},
	"assistant": {
		"advisor_tool_result", "bash_code_execution_tool_result", "code_execution_tool_result", "compaction",
		"container_upload", "fallback", "mcp_tool_listing", "mcp_tool_result", "mcp_tool_use", "redacted_thinking",
		"server_tool_use", "text", "text_editor_code_execution_tool_result", "thinking", "tool_search_tool_result",
		"tool_use", "web_fetch_tool_result", "web_search_tool_result",
	},
	"system":        {"text", "tool_addition", "tool_removal"},
	"tool_result":   {"browser_state", "document", "image", "search_result", "text", "tool_reference"},
	"search_result": {"text"},
	"prompt":        {"text"},
	"document":      {"image", "text"},
}

// blocks decodes what may be a string or a list of blocks.
func (d *decoder) blocks(p *path, v json.RawMessage, where string) []Content {
	switch kindOf(v) {
	case '"':
		return []Content{{Type: "text", Text: unquote(v), Raw: v}}
	case '[':
		var list []Content
		eachItem(v, func(i int, v json.RawMessage) {
			if d.affords(p, i, maxItems) {
				list = append(list, d.block(p.at(i), v, where))
			}
		})
		return list
	}
	d.fail(p, "Input should be a valid string or a valid list")
	return nil
}

// wasString says that the block stands for a string, which may be empty.
func (c Content) wasString() bool { return len(c.Raw) > 0 && c.Raw[0] == '"' }

// block decodes one content block and checks what can be checked without its
// neighbours.
func (d *decoder) block(p *path, v json.RawMessage, where string) Content {
	c := Content{Raw: v}
	if !d.object(p, v) {
		return c
	}
	var typ json.RawMessage
	eachField(v, func(key string, v json.RawMessage) {
		if key == "type" {
			typ = v
		}
	})
	if typ == nil {
		d.fail(p.key("type"), "Field required")
		return c
	}
	c.Type = d.textAt(p, "type", typ)
	d.placed(p, c.Type, where)
	d.fields(&c, p.key(c.Type), v) // as the API writes it: messages.0.content.1.image.source
	return c
}

// placed refuses a block in a place where it may not stand.
func (d *decoder) placed(p *path, typ, where string) {
	allowed, ok := blocksIn[where]
	if !ok || slices.Contains(allowed, typ) {
		return
	}
	for _, role := range []string{"user", "assistant"} {
		if (where == "user" || where == "assistant") && slices.Contains(blocksIn[role], typ) {
			d.fail(p, "`%s` blocks can only be in `%s` messages", typ, role)
			return
		}
	}
	d.fail(p, "Input tag '%s' found using 'type' does not match any of the expected tags: '%s'",
		typ, strings.Join(allowed, "', '"))
}

// fields decodes the fields of a block.
func (d *decoder) fields(c *Content, p *path, v json.RawMessage) {
	shape := blockShapes[c.Type]
	var seen uint
	cached := false
	eachField(v, func(key string, v json.RawMessage) {
		if shape != nil && key != "type" {
			if i := slices.Index(shape.required, key); i >= 0 {
				seen |= 1 << i
			} else if !slices.Contains(shape.optional, key) {
				d.fail(p.key(key), extraInputs)
				return
			}
		}
		cached = cached || key == "cache_control" && kindOf(v) != '0'
		d.field(c, p, key, v)
	})
	if shape == nil {
		return
	}
	for i, key := range shape.required {
		if seen&(1<<i) == 0 {
			d.fail(p.key(key), "Field required")
		}
	}
	if cached && c.Type == "text" && c.Text == "" {
		d.fail(p, "cache_control cannot be set for empty text blocks")
	}
	d.blockRules(c, p)
}

// field decodes one field of a block.
func (d *decoder) field(c *Content, block *path, key string, v json.RawMessage) {
	switch key {
	case "text":
		c.Text = d.textAt(block, key, v)
	case "id":
		c.ID = d.textAt(block, key, v)
	case "name":
		c.Name = d.textAt(block, key, v)
	case "input":
		c.Input = v
		if c.Type == "tool_use" && kindOf(v) != '{' {
			d.fail(block.key(key), "Input should be a valid dictionary")
		}
	case "tool_use_id":
		c.ToolUseID = d.textAt(block, key, v)
	case "tool_name":
		c.ToolName = d.textAt(block, key, v)
	case "thinking":
		c.Thinking = d.textAt(block, key, v)
	case "signature":
		c.Signature = d.textAt(block, key, v)
	case "is_error":
		if kindOf(v) != '0' {
			c.IsError = d.boolean(block.key(key), v)
		}
	case "content":
		if (c.Type == "tool_result" || c.Type == "search_result") && kindOf(v) != '0' {
			c.Content = d.blocks(block.key(key), v, c.Type)
		}
	case "source":
		if c.Type == "image" || c.Type == "document" {
			d.source(block.key(key), c.Type, v)
		}
	case "cache_control":
		d.cacheControl(block.key(key), v)
	}
}

const (
	toolUseIDPattern = `^[a-zA-Z0-9_-]+$`
	toolNamePattern  = `^[a-zA-Z0-9_-]{1,128}$`
)

// isName says that s consists of one to limit letters, digits, _ and - of
// ASCII, and the characters of extra.
func isName(s, extra string, limit int) bool {
	for i := range len(s) {
		if !isNameByte(s[i]) && strings.IndexByte(extra, s[i]) < 0 {
			return false
		}
	}
	return len(s) >= 1 && len(s) <= limit
}

// blockRules checks a block that has been decoded.
func (d *decoder) blockRules(c *Content, p *path) {
	switch c.Type {
	case "tool_use":
		if !isName(c.ID, "", math.MaxInt) {
			d.fail(p.key("id"), "String should match pattern '%s'", toolUseIDPattern)
		}
		d.length(p, "name", c.Name, 200)
	case "tool_result":
		if !isName(c.ToolUseID, "", math.MaxInt) {
			d.fail(p.key("tool_use_id"), "String should match pattern '%s'", toolUseIDPattern)
		}
		if c.IsError && slices.ContainsFunc(c.Content, func(b Content) bool { return b.Type != "text" }) {
			d.fail(p, "all content must be type `text` if `is_error` is true")
		}
	case "tool_reference":
		d.length(p, "tool_name", c.ToolName, 64)
	}
}

// length refuses a text that is empty or longer than limit.
func (d *decoder) length(p *path, key, s string, limit int) {
	switch {
	case s == "":
		d.fail(p.key(key), "String should have at least 1 character")
	case utf8.RuneCountInString(s) > limit:
		d.fail(p.key(key), "String should have at most %d characters", limit)
	}
}

// A mark is a cache_control, at its place in the prompt.
type mark struct {
	at   string
	hour bool // ttl 1h
}

// cacheControl decodes a cache_control object.
func (d *decoder) cacheControl(p *path, v json.RawMessage) {
	if kindOf(v) == '0' || !d.object(p, v) {
		return
	}
	m := mark{at: p.String()}
	typed := false
	eachField(v, func(key string, v json.RawMessage) {
		switch key {
		case "type":
			typed = true
			d.oneOf(p.key(key), v, "ephemeral")
		case "ttl":
			if kindOf(v) != '0' {
				m.hour = d.oneOf(p.key("ephemeral").key(key), v, "5m", "1h") == "1h"
			}
		case "scope": // sent by Claude Code, with the beta prompt-caching-scope
			d.text(p.key("ephemeral").key(key), v)
		default:
			d.fail(p.key("ephemeral").key(key), extraInputs)
		}
	})
	if !typed {
		d.fail(p.key("type"), "Field required")
	}
	d.marks = append(d.marks, m)
}
