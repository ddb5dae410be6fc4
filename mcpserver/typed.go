package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/goschema"
)

// AddTool adds a tool whose arguments and results are Go values.
//
// In is a struct, a map with string keys, or any; it may be a pointer to one. Its
// schema is the tool's input schema, unless the tool has one: properties by
// the json tags, optional with omitempty or omitzero, described by the
// jsonschema tag, which holds a plain description or keywords such as
//
//	Unit string `json:"unit" jsonschema:"description=unit of weight,enum=kg,enum=lb,default=kg"`
//
// The arguments are checked against the schema, defaults are set, and then they are
// decoded. Names are case-sensitive. A [time.Duration] is a number of nanoseconds, a
// []byte is base64, a [json.RawMessage] anything.
//
// Out determines the result:
//   - string: text.
//   - *Result, [mcp.Content] or []mcp.Content: unchanged.
//   - struct{}: nothing.
//   - any: one of these by its dynamic type, or its JSON as text.
//   - anything else: structured content, and its JSON as text. Out's schema
//     becomes the output schema. A value that is not a JSON object, such as a
//     slice or a number, becomes the member "result" of one, because clients of
//     older protocols accept only objects; not so if the tool has an output
//     schema of its own. A nil pointer means the zero value of its element type.
//     Nil slices and maps are written as empty ones, also inside.
//
// A type can describe itself with a method JSONSchema that returns a
// [json.RawMessage], in dialect 2020-12, or with a method JSONSchemaEnum that returns
// the values of the type as []any:
//
//	func (Color) JSONSchemaEnum() []any { return []any{Red, Green, Blue} }
//
// Otherwise a type with MarshalText, or UnmarshalText for arguments, is a string, and
// one with MarshalJSON or UnmarshalJSON may be anything. A tag with an unknown
// keyword, a keyword for another type or a value of the wrong type is an error that
// names the field and the keyword.
//
// A type without a JSON form, such as a channel, is an error that names the type and
// the field. The tool is rejected then, as by [Server.AddTool].
func AddTool[In, Out any](s *Server, t *Tool, h func(ctx context.Context, in In) (Out, error)) error {
	if h == nil {
		return s.rejectTool(t, errors.New("it has no handler"))
	}
	if t == nil {
		return s.rejectTool(t, errors.New("the tool is nil"))
	}
	decode, inSchema, err := decoderFor[In](t.InputSchema != nil, s.opts.SkipValidation || s.opts.SkipDirectValidation)
	if err != nil {
		return s.rejectTool(t, &inputSchemaError{fmt.Errorf("arguments: %w", err)})
	}
	encode, outSchema, err := encoderFor[Out](t.OutputSchema != nil)
	if err != nil {
		return s.rejectTool(t, fmt.Errorf("results: %w", err))
	}
	return s.addTool(t, handlerParts{
		typed: true, input: inSchema, output: outSchema,
		run: func(ctx context.Context, inv *Invocation) error {
			in, err := decode(inv.Arguments)
			if err != nil {
				return fmt.Errorf("Tool '%s': decoding the arguments: %w", inv.Name, err)
			}
			out, err := h(ctx, in)
			if err == nil {
				inv.Result, err = encode(out)
			}
			return err
		},
	})
}

// MustAddTool is [AddTool], but panics if there is an error.
func MustAddTool[In, Out any](s *Server, t *Tool, h func(ctx context.Context, in In) (Out, error)) {
	if err := AddTool(s, t, h); err != nil {
		panic(err)
	}
}

// decoderFor returns the decoder of arguments and, unless the tool has its own, their
// schema. Arguments that were checked against a derived schema have no other names
// than the fields; in others the case of names matters.
func decoderFor[In any](own, unchecked bool) (func(json.RawMessage) (In, error), json.RawMessage, error) {
	typ := reflect.TypeFor[In]()
	var schema json.RawMessage
	var err error
	switch {
	case own:
	case typ == reflect.TypeFor[any](), typ == reflect.TypeFor[json.RawMessage]():
		schema = json.RawMessage(`{"type":"object"}`)
	default:
		if schema, err = goschema.For(typ, goschema.Input); err != nil {
			return nil, nil, err
		}
		var root struct {
			Type any `json:"type"`
		}
		if err := json.Unmarshal(schema, &root); err != nil || root.Type != "object" {
			return nil, nil, fmt.Errorf("type %s: arguments are a JSON object; want a struct or a map", typ)
		}
	}
	return func(args json.RawMessage) (in In, err error) {
		if len(args) == 0 {
			args = emptyObject
		}
		if own || unchecked {
			err = goschema.Unmarshal(args, &in)
		} else {
			err = json.Unmarshal(args, &in)
		}
		return in, err
	}, schema, nil
}

// encoderFor returns the encoder of results and their schema, nil if they are not
// structured. Results of a tool with its own output schema must be structured and are
// not wrapped.
func encoderFor[Out any](own bool) (func(Out) (*Result, error), json.RawMessage, error) {
	typ := reflect.TypeFor[Out]()
	switch typ {
	case reflect.TypeFor[string](), reflect.TypeFor[struct{}]():
		if own {
			return nil, nil, fmt.Errorf("type %s: the tool has an output schema, but this is no structured content", typ)
		}
	}
	switch typ {
	case reflect.TypeFor[string](), reflect.TypeFor[*Result](), reflect.TypeFor[mcp.Content](),
		reflect.TypeFor[[]mcp.Content](), reflect.TypeFor[struct{}](), reflect.TypeFor[any]():
		return func(out Out) (*Result, error) { return dynamicResult(out) }, nil, nil
	}
	if typ.Implements(reflect.TypeFor[mcp.Content]()) {
		return func(out Out) (*Result, error) { return dynamicResult(out) }, nil, nil
	}
	if own {
		return func(out Out) (*Result, error) { return structuredResult(out, typ, false) }, nil, nil
	}
	schema, err := goschema.For(typ, goschema.Output)
	if err != nil {
		return nil, nil, err
	}
	var root struct {
		Type any `json:"type"`
	}
	if err := json.Unmarshal(schema, &root); err != nil {
		return nil, nil, err
	}
	wrap := root.Type != "object"
	if wrap {
		if schema, err = goschema.Wrap("result", schema); err != nil {
			return nil, nil, err
		}
	}
	return func(out Out) (*Result, error) { return structuredResult(out, typ, wrap) }, schema, nil
}

// dynamicResult returns a result by the dynamic type of out.
func dynamicResult(out any) (*Result, error) {
	switch out := out.(type) {
	case string:
		return Text(out), nil
	case *Result:
		return out, nil
	case []mcp.Content:
		return Mixed(out...), nil
	case mcp.Content:
		return Mixed(out), nil
	case struct{}:
		return &Result{}, nil
	case nil:
		return nil, nil
	}
	data, err := goschema.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encoding the result: %w", err)
	}
	return Text(string(data)), nil
}

// structuredResult returns a result with structured content.
func structuredResult(out any, typ reflect.Type, wrap bool) (*Result, error) {
	for v := reflect.ValueOf(out); v.IsValid() && v.Kind() == reflect.Pointer && typ.Kind() == reflect.Pointer; v = v.Elem() {
		if v.IsNil() {
			out = zeroOf(typ)
			break
		}
		typ = typ.Elem()
	}
	data, err := goschema.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encoding the result: %w", err)
	}
	r := Text(string(data))
	r.StructuredContent = data
	if wrap {
		r.StructuredContent = append(append(json.RawMessage(`{"result":`), data...), '}')
	}
	return r, nil
}

// zeroOf returns the zero value of the type behind all pointers of t.
func zeroOf(t reflect.Type) any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return reflect.Zero(t).Interface()
}

// A Definition is a tool with its handler, made by [Define] or [DefineRaw]. It may be
// added to any number of servers, from any goroutine. The zero value cannot be added.
type Definition struct {
	name string
	add  func(*Server) error
}

// Define returns the definition of a tool whose arguments and results are Go values
// (see [AddTool]). An error in it is reported when it is added to a server. Define
// copies t.
func Define[In, Out any](t *Tool, h func(ctx context.Context, in In) (Out, error)) Definition {
	t, name := copyOf(t)
	return Definition{name, func(s *Server) error { return AddTool(s, t, h) }}
}

// DefineRaw returns the definition of a tool with a raw handler (see [Server.AddTool]).
func DefineRaw(t *Tool, h RawHandler) Definition {
	t, name := copyOf(t)
	return Definition{name, func(s *Server) error { return s.AddTool(t, h) }}
}

func copyOf(t *Tool) (*Tool, string) {
	if t == nil {
		return nil, ""
	}
	c := *t
	return &c, t.Name
}

// Name returns the tool's name.
func (d Definition) Name() string { return d.name }

// AddTo adds the tool to a server, as [AddTool] does.
func (d Definition) AddTo(s *Server) error {
	if d.add == nil {
		return s.rejectTool(nil, errors.New("the definition is empty: make it with Define or DefineRaw"))
	}
	return d.add(s)
}
