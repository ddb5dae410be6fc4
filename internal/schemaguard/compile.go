package schemaguard

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The names of schemas inside the library. They are URLs that lead nowhere.
const (
	rootURL    = "tenon://schemaguard/root/schema.json"
	tooDeepURL = "tenon://schemaguard/too-deep"
	anyMetaURL = "tenon://schemaguard/any-metaschema"
)

// ErrRemote reports a reference that leaves the schema. Nothing is ever fetched.
var ErrRemote = errors.New("remote references are never fetched")

// compile lets the library resolve doc and converts what it made of it.
func compile(doc any, d Dialect, known map[string]any) (p *program, err error) {
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, &SchemaError{Err: fmt.Errorf("compiling it panicked: %v", r)}
		}
	}()
	var patterns patterns
	c := jsonschema.NewCompiler()
	c.DefaultDraft(d.library())
	c.AssertFormat()
	c.UseRegexpEngine(patterns.compile)
	c.UseLoader(stubLoader{known: known, fragments: fragments(doc, nil)})
	if err := c.AddResource(rootURL, doc); err != nil {
		return nil, &SchemaError{Err: err}
	}
	root, err := c.Compile(rootURL)
	if err != nil {
		return nil, &SchemaError{Err: readable(err)}
	}
	b := builder{rules: map[*jsonschema.Schema]*rule{}, known: known}
	p = &program{root: b.rule(root), unchecked: slices.Compact(slices.Sorted(slices.Values(patterns.unchecked)))}
	if b.dynamic {
		if err := b.link(c, doc); err != nil {
			return nil, &SchemaError{Err: readable(err)}
		}
	}
	p.dynamic, p.unevaluated, p.defaults = b.dynamic, b.unevaluated, b.defaults
	return p, nil
}

// readable takes the names of schemas inside the library out of its error.
func readable(err error) error {
	text := strings.ReplaceAll(err.Error(), rootURL, "")
	var invalid *jsonschema.SchemaValidationError
	if errors.As(err, &invalid) {
		text = strings.ReplaceAll(invalid.Err.Error(), "\n", "; ")
	}
	return errors.New(text)
}

var metaPrograms = [...]func() (*program, error){
	Draft202012: sync.OnceValues(func() (*program, error) { return compileMeta(Draft202012) }),
	Draft201909: sync.OnceValues(func() (*program, error) { return compileMeta(Draft201909) }),
	Draft07:     sync.OnceValues(func() (*program, error) { return compileMeta(Draft07) }),
}

// metaProgram returns the compiled metaschema of a dialect, a constant of the process.
func metaProgram(d Dialect) (*program, error) { return metaPrograms[d]() }

func compileMeta(d Dialect) (*program, error) {
	return compile(map[string]any{"$ref": d.URL()}, d, nil)
}

// A stubLoader gives the library a schema for every URL that it asks for, so that
// it compiles, and evaluation sees that the place lies outside. It reads nothing.
type stubLoader struct {
	known     map[string]any
	fragments []string // of all references, any of which may lead into the stub
}

func (l stubLoader) Load(url string) (any, error) {
	if doc, ok := l.known[url]; ok {
		return doc, nil
	}
	if url == anyMetaURL {
		// Only the core vocabulary: no other keyword of a stub is checked.
		return map[string]any{
			"$schema":     Draft202012.URL(),
			"$id":         anyMetaURL,
			"$vocabulary": map[string]any{"https://json-schema.org/draft/2020-12/vocab/core": true},
		}, nil
	}
	stub := map[string]any{"$schema": anyMetaURL}
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

// dig makes the JSON pointer lead somewhere in obj.
func dig(obj map[string]any, pointer string) {
	for _, token := range strings.Split(pointer, "/")[1:] {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		next, ok := obj[token].(map[string]any)
		if !ok {
			next = map[string]any{}
			obj[token] = next
		}
		obj = next
	}
}

// fragments collects the fragments of all references of a schema that may lead outside.
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
			if target, f, _ := strings.Cut(ref, "#"); target != "" && !slices.Contains(found, f) {
				if decoded, err := url.PathUnescape(f); err == nil {
					f = decoded
				}
				found = append(found, f)
			}
		}
	}
	return found
}
