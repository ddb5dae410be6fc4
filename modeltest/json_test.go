package modeltest

import (
	"strings"
	"testing"
)

func TestCheckJSON(t *testing.T) {
	tests := []struct {
		name, in, want string
		at             int
	}{
		{"object", `{"a": [1, -2.5e+3, true, false, null, "é😀"], "b": {}}`, "", 0},
		{"paired surrogates", `"\ud83d\ude00"`, "", 0},
		{"escaped backslash", `"\\ud83d"`, "", 0},
		{"lone high surrogate", `{"a":"x\ud83d"}`, "invalid surrogate pair `\\ud83d\"}` in string", 7},
		{"high surrogate before another escape", `"\ud83d\u0041"`, "invalid surrogate pair `\\ud83d\\u0041` in string", 1},
		{"lone low surrogate", `"\ude00"`, "invalid surrogate pair `\\ude00\"` in string", 1},
		{"invalid UTF-8", "{\"a\":\"\xff\"}", "invalid UTF-8", 6},
		{"encoded surrogate", "\"\xed\xa0\x80\"", "invalid UTF-8", 1},
		{"byte order mark", "\ufeff{}", `invalid character '\ufeff' at start of value`, 0},
		{"empty", "", "unexpected end of JSON input", 0},
		{"trailing comma", `[1,]`, "invalid character ',' at start of value", 2},
		{"two documents", `{} {}`, "more text after the value", 3},
		{"no colon", `{"a" 2}`, "invalid character '2' after object name (expecting ':')", 5},
		{"deepest", strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth), "", 0},
		{"too deep", strings.Repeat("[", 1<<20), "recursion limit exceeded", 0},
		{"brackets in a string", `"` + strings.Repeat(`[\"`, maxDepth+1) + `"`, "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got string
			var at int
			if err := checkJSON([]byte(tt.in)); err != nil {
				got, at = err.msg, err.at
			}
			if got != tt.want || at != tt.at {
				t.Errorf("got %q at %d, want %q at %d", got, at, tt.want, tt.at)
			}
		})
	}
}

func TestAppendString(t *testing.T) {
	if got, want := string(appendString(nil, "a\xff\x01\n\"\\<")), `"a\ufffd\u0001\n\"\\<"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
