package schemaguard

import (
	"bytes"
	"encoding/json"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Fill adds the defaults of missing properties to a value and validates the result, as
// [Schema.Validate] does. It uses defaults of properties and of what they refer to, in objects that
// are present. A value that lacks none is returned unchanged.
func (s *Schema) Fill(data json.RawMessage, l Limits) (json.RawMessage, error) {
	in, err := s.acquire()
	if err != nil {
		return nil, err
	}
	defer s.release(in)
	value, err := readValue(data)
	if err != nil {
		return nil, err
	}
	if fill(value, in.root) {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(value); err != nil {
			return nil, err
		}
		data = bytes.TrimSpace(b.Bytes())
	}
	return data, in.validate(value, len(data), l.withDefaults())
}

// fill adds defaults to v and reports whether it added any.
func fill(v any, s *jsonschema.Schema) bool {
	for i := 0; s != nil && i < 8 && s.Ref != nil && s.Properties == nil; i++ {
		s = s.Ref
	}
	if s == nil {
		return false
	}
	added := false
	switch v := v.(type) {
	case map[string]any:
		for name, sub := range s.Properties {
			if value, ok := v[name]; ok {
				added = fill(value, sub) || added
			} else if d := defaultOf(sub); d != nil {
				v[name], added = *d, true
			}
		}
	case []any:
		items := s.Items2020
		if one, ok := s.Items.(*jsonschema.Schema); ok {
			items = one
		}
		for _, item := range v[min(len(s.PrefixItems), len(v)):] {
			added = fill(item, items) || added
		}
	}
	return added
}

func defaultOf(s *jsonschema.Schema) *any {
	for i := 0; s != nil && i < 8 && s.Default == nil; i++ {
		s = s.Ref
	}
	if s == nil {
		return nil
	}
	return s.Default
}
