package schemaguard

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Names of documents inside the library. They are URLs that lead nowhere.
const (
	rootURL    = "tenon://schemaguard/root/schema.json"
	notURL     = "tenon://schemaguard/not.json"
	tooDeepURL = "tenon://schemaguard/too-deep"
	stubMeta   = "tenon://schemaguard/any-metaschema"
)

// ErrRemote reports a reference to another document. Nothing is ever fetched.
var ErrRemote = errors.New("remote references are never fetched")

// compile compiles doc in the library and adds the guards to each subschema.
func compile(doc any, d Dialect) (in *instance, err error) {
	defer func() {
		if r := recover(); r != nil {
			in, err = nil, &SchemaError{Err: fmt.Errorf("compiling it panicked: %v", r)}
		}
	}()
	in = &instance{byURL: map[string]*jsonschema.Schema{}}
	var patterns patterns
	c := jsonschema.NewCompiler()
	c.DefaultDraft(d.library())
	c.AssertFormat()
	c.AssertVocabs()
	c.UseRegexpEngine(patterns.compile)
	loader := stubLoader{fragments: fragments(doc, nil), loaded: map[string]bool{}}
	c.UseLoader(loader)
	var guards []*guard
	c.RegisterVocabulary(&jsonschema.Vocabulary{
		URL: "tenon://schemaguard/guard",
		Compile: func(ctx *jsonschema.CompilerContext, _ map[string]any) (jsonschema.SchemaExt, error) {
			g := &guard{in: in, schema: ctx.Enqueue(nil)}
			guards = append(guards, g)
			return g, nil
		},
	})
	negation := map[string]any{"$schema": d.URL(), "not": map[string]any{"$ref": rootURL}}
	if err := errors.Join(c.AddResource(rootURL, doc), c.AddResource(notURL, negation)); err != nil {
		return nil, &SchemaError{Err: err}
	}
	if in.root, err = c.Compile(rootURL); err == nil {
		in.negation, err = c.Compile(notURL)
	}
	if err != nil {
		return nil, &SchemaError{Err: readable(err, d, doc)}
	}
	chains := map[*jsonschema.Schema]int64{}
	for _, g := range guards {
		g.attach(loader.loaded, chains)
	}
	in.unchecked = slices.Compact(slices.Sorted(slices.Values(patterns.unchecked)))
	return in, nil
}

// readable rewrites an error of the library's compiler.
func readable(err error, d Dialect, doc any) error {
	var invalid *jsonschema.SchemaValidationError
	var faults *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &faults) {
		r := reporter{value: doc}
		return fmt.Errorf("it is not valid in dialect %s: %s", d, r.report(faults, 3).line())
	}
	return errors.New(strings.ReplaceAll(err.Error(), rootURL, ""))
}

// A stubLoader returns a stub for every URL. A guard fails validation that reaches one.
type stubLoader struct {
	fragments []string // those of all references, any of which may lead into the stub
	loaded    map[string]bool
}

func (l stubLoader) Load(url string) (any, error) {
	l.loaded[url] = true
	if url == stubMeta {
		// Only the core vocabulary: no keyword of a stub is checked.
		return map[string]any{
			"$schema":     Draft202012.URL(),
			"$id":         stubMeta,
			"$vocabulary": map[string]any{"https://json-schema.org/draft/2020-12/vocab/core": true},
		}, nil
	}
	stub := map[string]any{"$schema": stubMeta}
	for i, f := range l.fragments {
		if strings.HasPrefix(f, "/") {
			dig(stub, f)
		} else if f != "" {
			defs, ok := stub["$defs"].(map[string]any)
			if !ok {
				defs = map[string]any{}
				stub["$defs"] = defs
			}
			defs[fmt.Sprintf("anchor-%d", i)] = map[string]any{"$anchor": f}
		}
	}
	return stub, nil
}

// dig adds objects to obj so that the JSON pointer leads to one.
func dig(obj map[string]any, pointer string) {
	for _, token := range strings.Split(pointer, "/")[1:] {
		token = unescapeToken(token)
		next, ok := obj[token].(map[string]any)
		if !ok {
			next = map[string]any{"$comment": "outside"} // an empty object would get no guard
			obj[token] = next
		}
		obj = next
	}
}

// fragments appends the fragments of all references of a schema to other documents.
func fragments(v any, found []string) []string {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			found = fragments(item, found)
		}
	case map[string]any:
		for name, value := range v {
			ref, ok := value.(string)
			if !ok {
				found = fragments(value, found)
				continue
			}
			if name != "$ref" && name != "$dynamicRef" && name != "$recursiveRef" {
				continue
			}
			if target, f, _ := strings.Cut(ref, "#"); target != "" {
				if decoded, err := url.PathUnescape(f); err == nil {
					f = decoded
				}
				if !slices.Contains(found, f) {
					found = append(found, f)
				}
			}
		}
	}
	return found
}

func escapeToken(token string) string {
	return strings.ReplaceAll(strings.ReplaceAll(token, "~", "~0"), "/", "~1")
}

func unescapeToken(token string) string {
	return strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
}

// pointer is the JSON pointer of a place in a value.
func pointer(tokens []string) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteByte('/')
		b.WriteString(escapeToken(t))
	}
	return b.String()
}
