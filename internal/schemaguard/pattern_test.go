package schemaguard

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestPatterns(t *testing.T) {
	tests := []struct {
		pattern, text string
		valid         bool
	}{
		{`^\d{3}$`, "123", true},
		{`^\d{3}$`, "12a", false},
		{`^\u0041$`, "A", true},
		{`^\u{1F600}$`, "😀", true},
		{`^\uD83D\uDE00$`, "😀", true},
		{`^\cA$`, "\x01", true},
		{`^\0$`, "\x00", true},
		{`^[^]$`, "x", true},
		{`[]`, "x", false},
		{`^[[]$`, "[", true},
		{`^[\]]$`, "]", true},
		{`^\p{Letter}+$`, "äb", true},
		{`^\p{Script=Greek}+$`, "αβ", true},
		{`^\p{Script=Greek}+$`, "ab", false},
		{`^\p{General_Category=Letter}+$`, "a1", false},
		{`^\P{gc=Letter}+$`, "ab", false},
		{`^\p{L}+$`, "a1", false},
		{`^(?<year>\d{4})$`, "2026", true},
		{`^a\/b$`, "a/b", true},
		{`^a\-b$`, "a-b", true},
		// Not expressible in linear time: unchecked.
		{`^(?=.*\d).{4,}$`, "abcd", true},
		{`(a)\1`, "x", true},
		{`a{2000}`, "x", true},
	}
	for _, tt := range tests {
		schema, err := json.Marshal(map[string]string{"pattern": tt.pattern})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(schema)
		if err != nil {
			t.Errorf("%s: %v", tt.pattern, err)
			continue
		}
		if err := s.Validate(text, Limits{}); (err == nil) != tt.valid {
			t.Errorf("%s on %q: got %v, want valid %v", tt.pattern, tt.text, err, tt.valid)
		}
	}
}

func TestUncheckedPatternsAreListed(t *testing.T) {
	s := mustNew(t, `{"properties":{"a":{"pattern":"(?!x)"},"b":{"pattern":"^y"},"c":{"pattern":"(?!x)"}},"patternProperties":{"(.)\\1":{"type":"integer"}}}`)
	if got, want := s.Unchecked(), []string{`(.)\1`, `(?!x)`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := s.Validate([]byte(`{"a":"x"}`), Limits{}); err == nil {
		t.Log("an unchecked pattern property matches every name")
	}
}
