package jsonscan

import "encoding/json"

// IsNull reports whether a value is null.
func IsNull(raw json.RawMessage) bool { return string(raw) == "null" }

// TextOf returns the value of a JSON string, or the JSON of any other value.
func TextOf(raw json.RawMessage) string {
	if s, ok := Text(raw); ok {
		return s
	}
	return string(raw)
}
