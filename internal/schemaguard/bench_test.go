package schemaguard

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// twenty is a schema of 20 properties and a value that matches it.
func twenty() (schema, value string) {
	var s, v strings.Builder
	for i := range 20 {
		fmt.Fprintf(&s, `"p%d":{"type":"string","minLength":1,"maxLength":40},`, i)
		fmt.Fprintf(&v, `"p%d":"value number %d",`, i, i)
	}
	return `{"type":"object","properties":{` + strings.TrimSuffix(s.String(), ",") + `},"required":["p0","p19"],"additionalProperties":false}`,
		`{` + strings.TrimSuffix(v.String(), ",") + `}`
}

func BenchmarkValidate(b *testing.B) {
	schema, value := twenty()
	text := []byte(value)
	b.Run("guard", func(b *testing.B) {
		s := mustNew(b, schema)
		b.ReportAllocs()
		for b.Loop() {
			if err := s.Validate(text, Limits{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("library", func(b *testing.B) {
		doc, err := decode([]byte(schema))
		if err != nil {
			b.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		if err := c.AddResource(rootURL, doc); err != nil {
			b.Fatal(err)
		}
		s := c.MustCompile(rootURL)
		b.ReportAllocs()
		for b.Loop() {
			v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
			if err != nil {
				b.Fatal(err)
			}
			if err := s.Validate(v); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkNew(b *testing.B) {
	schema, _ := twenty()
	b.Run("check", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			mustNew(b, schema)
		}
	})
	b.Run("compile", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := mustNew(b, schema).Compile(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
