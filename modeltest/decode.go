package modeltest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A problem is what a request is refused for.
type problem struct {
	status int
	typ    string
	msg    string
}

func invalid(format string, args ...any) *problem {
	return &problem{400, "invalid_request_error", cut(fmt.Sprintf(format, args...), 2000)}
}

// A path is a place in the body, written as the API writes it:
// messages.0.content.1.
type path struct {
	up    *path
	name  string // empty: an index
	index int
}

func (p *path) key(name string) *path { return &path{up: p, name: name} }
func (p *path) at(i int) *path        { return &path{up: p, index: i} }

func (p *path) String() string { return string(p.append(nil)) }

// append copies what it reads, so that no path has to be on the heap.
func (p *path) append(b []byte) []byte {
	if p.up != nil {
		b = append(p.up.append(b), '.')
	}
	if p.name == "" {
		return strconv.AppendInt(b, int64(p.index), 10)
	}
	return append(b, p.name...)
}

// decoder reads a body into a Request and keeps the first thing in it that is
// refused. It goes on after that, so that the Request is as full as it can be.
type decoder struct {
	r        *Request
	count    bool // a count_tokens request
	schemas  *schemaCache
	thoughts *thoughts
	err      *problem
	items    int    // of lists, so far
	marks    []mark // of cache_control, in the order of the prompt
	images   []imageAt
}

func (d *decoder) fail(p *path, format string, args ...any) {
	if d.err == nil {
		d.failAt(p.String(), format, args...)
	}
}

func (d *decoder) failAt(place, format string, args ...any) {
	if d.err == nil {
		d.err = invalid("%s: %s", place, fmt.Sprintf(format, args...))
	}
}

const extraInputs = "Extra inputs are not permitted"

// body decodes the whole body, in the order of the prompt: tools, system, messages.
func (d *decoder) body(raw json.RawMessage) {
	if kindOf(raw) != '{' {
		d.err = invalid("Input should be an object")
		return
	}
	d.r.fields = map[string]json.RawMessage{}
	eachField(raw, func(key string, v json.RawMessage) {
		d.r.fields[key] = v
		if !d.allowsField(key) {
			d.fail(&path{name: key}, extraInputs)
		}
	})
	d.model()
	d.settings()
	if v, ok := d.r.fields["tools"]; ok {
		p := &path{name: "tools"}
		d.each(p, v, d.tool)
	}
	if v, ok := d.r.fields["system"]; ok {
		d.r.System = d.blocks(&path{name: "system"}, v, "prompt")
	}
	d.required("messages", func(p *path, v json.RawMessage) {
		if !d.list(p, v) {
			return
		}
		eachItem(v, func(i int, v json.RawMessage) {
			if d.affords(p, i, maxMessages) {
				d.r.Messages = append(d.r.Messages, d.message(p.at(i), v))
			}
		})
	})
	if v := d.r.fields["cache_control"]; v != nil {
		d.cacheControl(&path{name: "cache_control"}, v)
	}
}

// required calls f with a field that has to be there.
func (d *decoder) required(name string, f func(*path, json.RawMessage)) {
	p := &path{name: name}
	v, ok := d.r.fields[name]
	if !ok {
		d.fail(p, "Field required")
		return
	}
	f(p, v)
}

// optional calls f with a field that is there and not null.
func (d *decoder) optional(name string, f func(*path, json.RawMessage)) {
	if v, ok := d.r.fields[name]; ok && kindOf(v) != '0' {
		f(&path{name: name}, v)
	}
}

func (d *decoder) text(p *path, v json.RawMessage) string {
	if kindOf(v) != '"' {
		d.fail(p, "Input should be a valid string")
		return ""
	}
	return unquote(v)
}

// textAt is text, for a field below p.
func (d *decoder) textAt(p *path, key string, v json.RawMessage) string {
	if kindOf(v) != '"' {
		return d.text(p.key(key), v)
	}
	return unquote(v)
}

func (d *decoder) boolean(p *path, v json.RawMessage) bool {
	if k := kindOf(v); k != 't' && k != 'f' {
		d.fail(p, "Input should be a valid boolean")
		return false
	}
	return v[0] == 't'
}

func (d *decoder) integer(p *path, v json.RawMessage) (int, bool) {
	if kindOf(v) == 'n' {
		if n, ok := whole(v); ok {
			return n, true
		}
	}
	d.fail(p, "Input should be a valid integer")
	return 0, false
}

func (d *decoder) list(p *path, v json.RawMessage) bool {
	if kindOf(v) != '[' {
		d.fail(p, "Input should be a valid list")
		return false
	}
	return true
}

func (d *decoder) object(p *path, v json.RawMessage) bool {
	if kindOf(v) != '{' {
		d.fail(p, "Input should be an object")
		return false
	}
	return true
}

// A check decodes a value at a path.
type check func(p *path, v json.RawMessage)

// members decodes an object with a check for each member that it may have; nil
// takes any value. A member of a name in required must be present, and null is
// the same as absent for the others.
func (d *decoder) members(p *path, v json.RawMessage, checks map[string]check, required ...string) bool {
	if !d.object(p, v) {
		return false
	}
	missing := slices.Clone(required)
	eachField(v, func(key string, v json.RawMessage) {
		f, known := checks[key]
		switch {
		case !known:
			d.fail(p.key(key), extraInputs)
		case f != nil && (kindOf(v) != '0' || slices.Contains(required, key)):
			f(p.key(key), v)
		}
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == key })
	})
	for _, key := range missing {
		d.fail(p.key(key), "Field required")
	}
	return len(missing) == 0
}

// word is a check that decodes one of the words into to.
func (d *decoder) word(to *string, words ...string) check {
	return func(p *path, v json.RawMessage) { *to = d.oneOf(p, v, words...) }
}

// each calls f with the items of a list.
func (d *decoder) each(p *path, v json.RawMessage, f func(*path, json.RawMessage)) {
	if d.list(p, v) {
		eachItem(v, func(i int, v json.RawMessage) {
			if d.affords(p, i, maxItems) {
				f(p.at(i), v)
			}
		})
	}
}

// Limits on the lists of a request.
const (
	maxMessages = 100_000 // the API's
	maxItems    = 200_000 // ours: messages, blocks, tools and so on, all together
)

// affords says whether item i of a list is still looked at.
func (d *decoder) affords(p *path, i, limit int) bool {
	d.items++
	if i >= limit || d.items > maxItems {
		d.fail(p, "List should have at most %d items", limit)
		return false
	}
	return true
}

// oneOf refuses a text that is none of the words.
func (d *decoder) oneOf(p *path, v json.RawMessage, words ...string) string {
	got := d.text(p, v)
	if slices.Contains(words, got) {
		return got
	}
	list := "'" + words[0] + "'"
	if last := len(words) - 1; last > 0 {
		list = "'" + strings.Join(words[:last], "', '") + "' or '" + words[last] + "'"
	}
	d.fail(p, "Input should be %s", list)
	return got
}

func (d *decoder) message(p *path, v json.RawMessage) (m Message) {
	var content json.RawMessage
	var role, config bool
	if !d.object(p, v) {
		return m
	}
	eachField(v, func(key string, v json.RawMessage) {
		switch key {
		case "role":
			role = true
			switch m.Role = d.textAt(p, key, v); m.Role {
			case "user", "assistant", "system":
			default:
				d.oneOf(p.key(key), v, "user", "assistant", "system")
			}
		case "content":
			content = v
		case "clear_at", "output_config":
			config = true
		default:
			d.fail(p.key(key), extraInputs)
		}
	})
	switch {
	case !role:
		d.fail(p.key("role"), "Field required")
	case config && m.Role != "system":
		d.fail(p, "clear_at and output_config are for `system` messages only")
	}
	switch {
	case content != nil:
		m.Content = d.blocks(p.key("content"), content, m.Role)
	case !config:
		d.fail(p.key("content"), "Field required")
	}
	return m
}
