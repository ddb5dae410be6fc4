package toolresult

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/internal/growth"
)

// A pattern of the model's is bounded before it is compiled.
// fault H3
func TestPatternsAreBounded(t *testing.T) {
	for pattern, want := range map[string]string{
		strings.Repeat("(a|a)*", 3000): "pattern: it has 18000 bytes, at most 1000 are allowed",
		"(a{1000}){1000}":              "pattern: error parsing regexp: invalid repeat count: `{1000}`",
		"(a{30}){30}(b{30}){31}":       "pattern: it has too many repetitions: expanded it has more than 1000 steps",
		"((ab){2,40}c){20,}":           "pattern: it has too many repetitions: expanded it has more than 1000 steps",
		strings.Repeat("(", 200):       "pattern: error parsing regexp: missing closing ): `" + strings.Repeat("(", 200) + "`",
	} {
		if _, err := read(t.Context(), "aaa", Query{Pattern: pattern}); err == nil || err.Error() != want {
			t.Errorf("%.40s: %v", pattern, err)
		}
	}
	for _, pattern := range []string{strings.Repeat("(a|a)*", 160), `\w{1,100}`, `(?i)error[^\n]{0,200}timeout`, `[\p{L}\p{N}]+`} {
		if _, err := read(t.Context(), "aaa error 1 timeout", Query{Pattern: pattern}); err != nil {
			t.Errorf("%.40s: %v", pattern, err)
		}
	}
}

// The work of a search grows with the text, however often each match looks ahead, and ends at a bound that it tells.
// fault H3
func TestSearchWorkIsBounded(t *testing.T) {
	search := func(text, pattern string) (string, int) {
		out, work, err := searchStored(t.Context(), strings.Split(text, "\n"), Query{Pattern: pattern, Offset: 1, Column: 1, Limit: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		return out, work
	}
	growth.Check(t, 20_000, func(n int) int {
		_, work := search(strings.Repeat("a", n)+"\n"+strings.Repeat("short line\n", n/10), "(a|a)*b")
		return work
	})
	// Every match looks at all that follows it, until the answer is full.
	growth.Check(t, 1<<15, func(n int) int {
		_, work := search(strings.Repeat("x", n), "x(.*y)?")
		return work
	})
	out, work := search(strings.Repeat("x", 300_000), "z{900}")
	if work > maxSearchWork+maxPatternSteps || !strings.HasPrefix(out, "[the search was stopped: it is too much work; give a simpler pattern, or go on with offset 1 and column 1") {
		t.Errorf("work %d, %q", work, out)
	}
}

// A search ends with its context, also within one long line.
// fault H3
func TestSearchHeedsItsContext(t *testing.T) {
	for _, text := range []string{strings.Repeat("a", 1<<20), strings.Repeat("a\n", 1<<19)} {
		ctx, late := growth.EndsAfter(t, 3)
		out, work, err := searchStored(ctx, strings.Split(text, "\n"), Query{Pattern: "a*b", Offset: 1, Column: 1})
		if !errors.Is(err, context.Canceled) || out != "" || work > 10*lookEvery*10 || late() > 4 {
			t.Errorf("%q, %v, work %d, %d looks after the end", out, err, work, late())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := read(ctx, "aaa", Query{Pattern: "a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}

// What stands before a match counts for it in a long line, too, from the second match on.
func TestSearchLooksAtWhatIsBefore(t *testing.T) {
	line := "foo " + strings.Repeat("xfoo ", 1000) + "foo"
	for pattern, want := range map[string]int{`\bfoo`: 2, `^foo`: 1, `foo$`: 1, `\Afoo|zzz`: 1, `(?i)FOO\z`: 1, `nofoo|^x`: 0} {
		out, err := read(t.Context(), line, Query{Pattern: pattern})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(out, "[column "); got != want {
			t.Errorf("%s: %d matches, want %d: %.300s", pattern, got, want, out)
		}
	}
}
