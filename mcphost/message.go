package mcphost

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// validUTF8 replaces what is not UTF-8, which no JSON reader agrees on.
func validUTF8(b []byte) []byte {
	if utf8.Valid(b) {
		return b
	}
	return bytes.ToValidUTF8(b, []byte("\uFFFD"))
}

// idAtHead returns the id of a JSON-RPC message of which only the beginning may
// be there: {"jsonrpc":"2.0","id":7,… It looks at the members before the first
// that is an object or array.
func idAtHead(b []byte) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(b))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for {
		key, err := dec.Token()
		if err != nil {
			return nil
		}
		if key == "id" {
			var raw json.RawMessage
			if dec.Decode(&raw) != nil {
				return nil
			}
			return raw
		}
		value, err := dec.Token()
		if _, container := value.(json.Delim); container || err != nil {
			return nil
		}
	}
}

// idAtTail returns the id of a JSON-RPC message of which only the end may be
// there, if the id stands last: …,"id":7}. A brace that ends the message ends
// its outermost object, so what stands before it is a member of that; inside of
// a string it could not stand without a quote after it.
func idAtTail(b []byte) json.RawMessage {
	b = bytes.TrimRight(b, " \t\r\n")
	b, ok := bytes.CutSuffix(b, []byte("}"))
	if !ok {
		return nil
	}
	b = bytes.TrimRight(b, " \t")
	i := bytes.LastIndexAny(b, ":")
	if i < 0 {
		return nil
	}
	value := bytes.TrimSpace(b[i+1:])
	key := bytes.TrimRight(b[:i], " \t")
	before, ok := bytes.CutSuffix(key, []byte(`"id"`))
	if !ok || !json.Valid(value) {
		return nil
	}
	before = bytes.TrimRight(before, " \t")
	if n := len(before); n > 0 && before[n-1] != ',' && before[n-1] != '{' {
		return nil
	}
	return value
}
