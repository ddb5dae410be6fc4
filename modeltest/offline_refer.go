package modeltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A reference to an earlier result: {{1}}, {{1.path.to.0.value}} or {{1.$}}; with
// a backslash in front it is text.
var referencePattern = regexp.MustCompile(`\\?\{\{([0-9]+)((?:\.[^{}.]+)*)\}\}`)

// refer replaces the references in the strings of a call's input; keys are left
// alone. A string that is one reference with a path becomes the value itself,
// with its JSON type; any other becomes text. Result returns the result of a
// call, or why there is none.
func refer(input json.RawMessage, result func(number int) (*Content, string)) (json.RawMessage, string) {
	if !bytes.Contains(input, []byte("{{")) {
		return input, ""
	}
	r := referrer{result: result}
	out := r.value(nil, input)
	return out, r.wrong
}

type referrer struct {
	result func(int) (*Content, string)
	wrong  string // the first reference that leads nowhere
}

// value appends v with its references replaced.
func (r *referrer) value(b []byte, v json.RawMessage) []byte {
	switch kindOf(v) {
	case '{':
		b = append(b, '{')
		n := len(b)
		eachField(v, func(key string, v json.RawMessage) {
			if len(b) > n {
				b = append(b, ',')
			}
			b = append(appendString(b, key), ':')
			b = r.value(b, v)
		})
		return append(b, '}')
	case '[':
		b = append(b, '[')
		eachItem(v, func(i int, v json.RawMessage) {
			if i > 0 {
				b = append(b, ',')
			}
			b = r.value(b, v)
		})
		return append(b, ']')
	case '"':
		return r.string(b, v)
	}
	return append(b, v...)
}

func (r *referrer) string(b []byte, v json.RawMessage) []byte {
	text := unquote(v)
	found := referencePattern.FindAllStringSubmatchIndex(text, -1)
	if found == nil {
		return append(b, v...)
	}
	if m := found[0]; m[0] == 0 && m[1] == len(text) && text[0] != '\\' {
		return append(b, r.lookUp(text[m[0]:m[1]], text[m[2]:m[3]], text[m[4]:m[5]])...)
	}
	var s strings.Builder
	last := 0
	for _, m := range found {
		s.WriteString(text[last:m[0]])
		last = m[1]
		if text[m[0]] == '\\' {
			s.WriteString(text[m[0]+1 : m[1]])
			continue
		}
		value := r.lookUp(text[m[0]:m[1]], text[m[2]:m[3]], text[m[4]:m[5]])
		if kindOf(value) == '"' {
			s.WriteString(unquote(value))
		} else {
			s.Write(value)
		}
	}
	s.WriteString(text[last:])
	return appendString(b, s.String())
}

// lookUp is the JSON value that a reference stands for.
func (r *referrer) lookUp(reference, number, path string) json.RawMessage {
	fail := func(why string) json.RawMessage {
		if r.wrong == "" {
			r.wrong = reference + ": " + why
		}
		return json.RawMessage("null")
	}
	n, err := strconv.Atoi(number)
	if err != nil {
		return fail("there is no call " + number)
	}
	result, wrong := r.result(n)
	if wrong != "" {
		return fail(wrong)
	}
	if path == "" {
		if len(ofType(result.Content, "text")) == 0 {
			return fail(fmt.Sprintf("the result of call %d has no text", n))
		}
		return appendString(nil, result.PlainText())
	}
	value, wrong := follow(result, path[1:])
	if wrong != "" {
		return fail(fmt.Sprintf("the result of call %d %s", n, wrong))
	}
	return value
}

// follow is the value at a path in a result: in its text as a whole, if that is
// JSON, or else in the first of its texts that is JSON and has it.
func follow(result *Content, path string) (json.RawMessage, string) {
	texts := []string{result.PlainText()}
	for _, c := range ofType(result.Content, "text") {
		texts = append(texts, c.Text)
	}
	wrong := "is not JSON"
	for _, text := range texts {
		doc := []byte(strings.TrimSpace(text))
		if checkJSON(doc) != nil {
			continue
		}
		value, missing := walk(doc, path)
		if missing == "" {
			return value, ""
		}
		if wrong == "is not JSON" {
			wrong = missing
		}
	}
	return nil, wrong
}

// walk goes down a path, or says where it ends.
func walk(v json.RawMessage, path string) (json.RawMessage, string) {
	if path == "$" {
		return v, ""
	}
	for part := range strings.SplitSeq(path, ".") {
		var next json.RawMessage
		var has []string
		switch kindOf(v) {
		case '{':
			eachField(v, func(key string, v json.RawMessage) {
				has = append(has, key)
				if key == part {
					next = v
				}
			})
		case '[':
			eachItem(v, func(i int, v json.RawMessage) {
				if part == strconv.Itoa(i) {
					next = v
				}
				has = []string{fmt.Sprintf("0 to %d", i)}
			})
		}
		if next == nil {
			if has == nil {
				return nil, fmt.Sprintf("has no %q", part)
			}
			return nil, fmt.Sprintf("has no %q (it has %s)", part, strings.Join(firstOfMany(has, 20), ", "))
		}
		v = next
	}
	return v, ""
}

// firstOfMany is a list of at most limit, and a word about the rest.
func firstOfMany(list []string, limit int) []string {
	if len(list) <= limit {
		return list
	}
	return append(slices.Clone(list[:limit]), fmt.Sprintf("and %d more", len(list)-limit))
}
