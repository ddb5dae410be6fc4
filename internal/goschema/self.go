package goschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/tenon-sdk/tenon/internal/schemaguard"
)

// selfMade returns a schema that a type describes itself with as JSON. Its $defs move
// to the root, to which its references point.
func (w *walker) selfMade(t reflect.Type, raw json.RawMessage) (*jsonschema.Schema, error) {
	wrong := func(err error) error { return w.fail(t, fmt.Errorf("the schema of its method JSONSchema: %w", err)) }
	if bytes.Equal(bytes.TrimSpace(raw), []byte("true")) {
		return anything(), nil
	}
	guarded, err := schemaguard.New(raw)
	if err == nil {
		err = guarded.Compile()
	}
	if err != nil {
		return nil, wrong(err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return nil, wrong(errors.New("want an object"))
	}
	s := anything()
	for name, value := range members {
		if err := w.takeMember(s, name, value); err != nil {
			return nil, wrong(fmt.Errorf("%s: %w", name, err))
		}
	}
	return s, nil
}

// takeMember sets one member of a schema. The members that tags and pointers change
// become fields, the rest stays raw.
func (w *walker) takeMember(s *jsonschema.Schema, name string, value json.RawMessage) error {
	switch name {
	case "$schema":
		if !strings.Contains(string(value), "2020-12") {
			return errors.New("only dialect 2020-12 fits into the whole")
		}
	case "$id":
		return errors.New("a schema that is part of another has none")
	case "type":
		if json.Unmarshal(value, &s.Type) != nil {
			s.Extras[name] = value
		}
	case "title":
		return json.Unmarshal(value, &s.Title)
	case "description":
		return json.Unmarshal(value, &s.Description)
	case "enum":
		var values []json.RawMessage
		if err := json.Unmarshal(value, &values); err != nil {
			return err
		}
		for _, v := range values {
			s.Enum = append(s.Enum, v)
		}
	case "$ref":
		return json.Unmarshal(value, &s.Ref)
	case "$defs":
		var defs map[string]json.RawMessage
		if err := json.Unmarshal(value, &defs); err != nil {
			return err
		}
		for name, def := range defs {
			if err := w.define(name, def); err != nil {
				return err
			}
		}
	default:
		s.Extras[name] = value
	}
	return nil
}

// define adds a definition of a self-made schema.
func (w *walker) define(name string, raw json.RawMessage) error {
	def := anything()
	switch text := string(bytes.TrimSpace(raw)); text {
	case "true":
	case "false":
		def = jsonschema.FalseSchema
	default:
		var members map[string]json.RawMessage
		if err := json.Unmarshal(raw, &members); err != nil {
			return err
		}
		for key, value := range members {
			def.Extras[key] = value
		}
	}
	there, taken := w.defs[name]
	switch {
	case taken && reflect.DeepEqual(there, def):
		return nil
	case taken || w.taken[name]:
		return fmt.Errorf("the name %q is that of another definition", name)
	}
	w.taken[name] = true
	w.defs[name] = def
	return nil
}

// listed returns the schema of a type that lists its values.
func (w *walker) listed(t reflect.Type, values []any) (*jsonschema.Schema, error) {
	if len(values) == 0 {
		return nil, w.fail(t, errors.New("its method JSONSchemaEnum lists no values"))
	}
	s := w.encoded(t)
	if s == nil {
		if s = scalar(t); s == nil {
			return nil, w.fail(t, errors.New("it lists values and is no string, number or boolean and does not encode itself"))
		}
	}
	for _, v := range values {
		raw, err := json.Marshal(v)
		if err != nil {
			return nil, w.fail(t, fmt.Errorf("a value of its method JSONSchemaEnum: %w", err))
		}
		s.Enum = append(s.Enum, json.RawMessage(raw))
	}
	return s, nil
}
