package toolset

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/toolresult"
	"github.com/tenon-sdk/tenon/toolschema"
)

// fenced escapes the host's tags in the texts of a tool, so that a server cannot speak as the host. Values
// in the schema that arguments are compared with stay.
func fenced(m toolschema.Model) toolschema.Model {
	m.Description = toolresult.EscapeHostTags(m.Description)
	m.InputSchema = EscapeJSON(m.InputSchema, false)
	return m
}

// EscapeJSON escapes the host's tags in all strings of a JSON value, or only in the descriptive texts of a
// schema.
func EscapeJSON(raw json.RawMessage, all bool) json.RawMessage {
	if !json.Valid(raw) || !bytes.Contains(transcript.Compact(raw), []byte("<")) {
		return raw
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return raw
	}
	changed := false
	if v = escapeTags(v, all, &changed); !changed {
		return raw
	}
	return transcript.Encode(v)
}

func escapeTags(v any, isText bool, changed *bool) any {
	switch v := v.(type) {
	case string:
		if escaped := toolresult.EscapeHostTags(v); isText && escaped != v {
			*changed = true
			return escaped
		}
	case []any:
		for i := range v {
			v[i] = escapeTags(v[i], isText, changed)
		}
	case map[string]any:
		for name, inner := range v {
			v[name] = escapeTags(inner, isText || isForReaders(name, inner), changed)
		}
	}
	return v
}

// isForReaders reports whether a keyword of a schema is descriptive. A property may have the same name.
func isForReaders(name string, v any) bool {
	switch v.(type) {
	case string:
		return slices.Contains([]string{"title", "description", "$comment", "default"}, name)
	case []any:
		return name == "examples"
	}
	return false
}
