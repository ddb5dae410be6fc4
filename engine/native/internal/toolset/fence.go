package toolset

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/toolresult"
	"github.com/tenon-sdk/tenon/toolschema"
)

// fenced is the model's copy of a tool in which the server that describes it cannot speak as the host. In the
// schema that is all that is there to be read: what values are compared with stays, or nobody could give them.
func fenced(m toolschema.Model) toolschema.Model {
	m.Description = toolresult.EscapeHostTags(m.Description)
	m.InputSchema = EscapeJSON(m.InputSchema, false)
	return m
}

// EscapeJSON escapes the host's tags in all strings of a JSON value, or in those alone that a schema has for
// its reader.
func EscapeJSON(raw json.RawMessage, all bool) json.RawMessage {
	if !bytes.Contains(raw, []byte("<")) && !bytes.Contains(bytes.ToLower(raw), []byte(`\u003c`)) {
		return raw
	}
	if !json.Valid(raw) {
		return raw
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return raw
	}
	e := &tagEscaper{}
	if v = e.value(v, all); !e.changed {
		return raw
	}
	return transcript.Encode(v)
}

// A tagEscaper escapes the host's tags in a JSON value.
type tagEscaper struct{ changed bool }

func (e *tagEscaper) value(v any, read bool) any {
	switch v := v.(type) {
	case string:
		if escaped := toolresult.EscapeHostTags(v); read && escaped != v {
			e.changed = true
			return escaped
		}
	case []any:
		for i := range v {
			v[i] = e.value(v[i], read)
		}
	case map[string]any:
		for name, inner := range v {
			v[name] = e.value(inner, read || isForReaders(name, inner))
		}
	}
	return v
}

// isForReaders reports whether a keyword of a schema is there to be read. A property may have its name.
func isForReaders(name string, v any) bool {
	switch v.(type) {
	case string:
		return slices.Contains([]string{"title", "description", "$comment", "default"}, name)
	case []any:
		return name == "examples"
	}
	return false
}
