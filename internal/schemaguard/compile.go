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
	loader := newStubLoader(doc)
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

// A stubLoader returns the same stub for every URL. A guard fails validation that reaches it.
type stubLoader struct {
	stub   map[string]any
	cost   int // of reading the stub, in places that references lead to
	loaded map[string]bool
}

const (
	// maxStubCost bounds the cost of all stubs: each has the places of all.
	maxStubCost = 4 << 20
	// anchorCost is that of an anchor. The library compiles each in every stub.
	anchorCost = 200
)

// newStubLoader makes a stub into which all references of a schema may lead.
func newStubLoader(doc any) stubLoader {
	stub := map[string]any{"$schema": stubMeta}
	fragments := map[string]bool{}
	collectFragments(doc, fragments)
	cost := len(fragments)
	for f := range fragments {
		if strings.HasPrefix(f, "/") {
			dig(stub, f)
		} else if f != "" {
			dig(stub, "/$defs/anchor-"+escapeToken(f))["$anchor"] = f
			cost += anchorCost
		}
	}
	return stubLoader{stub, cost, map[string]bool{}}
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
	if l.cost*len(l.loaded) > maxStubCost {
		return nil, errors.New("it has too many references to other documents")
	}
	return l.stub, nil
}

// dig adds objects to obj so that the JSON pointer leads to one, and returns that.
func dig(obj map[string]any, pointer string) map[string]any {
	for _, token := range strings.Split(pointer, "/")[1:] {
		token = unescapeToken(token)
		next, ok := obj[token].(map[string]any)
		if !ok {
			next = map[string]any{"x-outside": true} // no guard is added to an empty object; valid in a schema and in $defs
			obj[token] = next
		}
		obj = next
	}
	return obj
}

// collectFragments adds the fragments of all references of a schema to other documents.
func collectFragments(v any, found map[string]bool) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			collectFragments(item, found)
		}
	case map[string]any:
		for name, value := range v {
			ref, ok := value.(string)
			if !ok {
				collectFragments(value, found)
				continue
			}
			if name != "$ref" && name != "$dynamicRef" && name != "$recursiveRef" {
				continue
			}
			if target, f, _ := strings.Cut(ref, "#"); target != "" {
				if decoded, err := url.PathUnescape(f); err == nil {
					f = decoded
				}
				found[f] = true
			}
		}
	}
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
