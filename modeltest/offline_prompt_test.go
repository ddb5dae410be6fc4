package modeltest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParsePrompt(t *testing.T) {
	known := func(name string) bool { return name == "mcp__s__known" || name == "Read" }
	tests := []struct {
		name, prompt string
		want         []string // number/turn line:column @name input or "!" and what is wrong
	}{
		{"none", "How are you?", nil},
		{"one", `@mcp__s__t {"a": 1}`, []string{`1/1 1:1 @mcp__s__t {"a": 1}`}},
		{"in a sentence", `Please @mcp__s__t {"a":1}, thanks.`, []string{`1/1 1:8 @mcp__s__t {"a":1}`}},
		{"two on a line", `@a {} and @b {"x":[1,2]}`, []string{`1/1 1:1 @a {}`, `2/1 1:11 @b {"x":[1,2]}`}},
		{"no space between", `@a{}@b{}`, []string{`1/1 1:1 @a {}`, `2/1 1:5 @b {}`}},
		{"two lines", "@a {}\n@b {}", []string{`1/1 1:1 @a {}`, `2/2 2:1 @b {}`}},
		{"text between", "First:\n@a {}\n\nthen\r\n @b {}\n", []string{`1/1 2:1 @a {}`, `2/2 5:2 @b {}`}},
		{"over several lines, and one beside its end", "@a {\n \"x\": {\n}} @b {}\n@c {}", []string{"1/1 1:1 @a {\n \"x\": {\n}}", `2/1 3:4 @b {}`, `3/2 4:1 @c {}`}},
		{"braces and @ in strings", `@a {"x":"} @b {} \" {","@c {}":"{{1}}"}`, []string{`1/1 1:1 @a {"x":"} @b {} \" {","@c {}":"{{1}}"}`}},
		{"columns are characters", `ünï @a {}`, []string{`1/1 1:5 @a {}`}},
		{"tab before the object", "@a\t {}", []string{"1/1 1:1 @a {}"}},
		{"quoted with backticks", "`@a {}`", []string{`1/1 1:2 @a {}`}},
		{"big numbers stay", `@a {"n":12345678901234567890.10}`, []string{`1/1 1:1 @a {"n":12345678901234567890.10}`}},
		{"an address", `mail bob@example.com {"a":1}`, nil},
		{"an npm package", `npx @modelcontextprotocol/server-filesystem .`, nil},
		{"a mention", `@alice, what is up?`, nil},
		{"@ alone", `@ {} @@a {} @`, nil},
		{"full name without an object", "ask @mcp__s__t about it", []string{`1/1 1:5 @mcp__s__t !no JSON object follows the name on its line; {} is one without arguments`}},
		{"known tool at the end of a sentence", "use @Read.", []string{`1/1 1:5 @Read !no JSON object follows the name on its line; {} is one without arguments`}},
		{"object on the next line", "@mcp__s__t\n{}", []string{`1/1 1:1 @mcp__s__t !no JSON object follows the name on its line; {} is one without arguments`}},
		{"a name that no tool has", `@srv/tool.x {}`, []string{`1/1 1:1 @srv/tool.x {}`}},
		{"a list for an object", `@mcp__s__t [1]`, []string{`1/1 1:1 @mcp__s__t !no JSON object follows the name on its line; {} is one without arguments`}},
		{"malformed", `@a {'x': 1} @b {}`, []string{`1/1 1:1 @a !its JSON is malformed at line 1, column 5: invalid character '\'' at start of string (expecting '"') (the rest of that line was not read)`}},
		{"malformed, and a good line after it", "@a {\"x\": tru}\n@b {}", []string{`1/1 1:1 @a !its JSON is malformed at line 1, column 13: invalid character '}' in literal true (expecting 'e') (the rest of that line was not read)`, `2/2 2:1 @b {}`}},
		{"malformed in its third line", "@a {\n\"x\": 1,\n\"y\" @b {}\n@c {}", []string{`1/1 1:1 @a !its JSON is malformed at line 3, column 5: invalid character '@' after object name (expecting ':') (the rest of that line was not read)`, `2/2 4:1 @c {}`}},
		{"never closed", `@a {"x": [1, 2`, []string{`1/1 1:1 @a !its JSON is malformed at line 1, column 15: unexpected end of JSON input (the rest of that line was not read)`}},
		{"a string over two lines", "@a {\"x\": \"1\n2\"}", []string{`1/1 1:1 @a !its JSON is malformed at line 1, column 12: invalid character '\n' in string (expecting non-control character) (the rest of that line was not read)`}},
		{"lone surrogate", `@a {"x": "\ud800"}`, []string{"1/1 1:1 @a !its JSON is malformed at line 1, column 11: invalid surrogate pair `\\ud800\"}` in string (the rest of that line was not read)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, c := range parsePrompt(tt.prompt, known) {
				input := string(c.input)
				if c.wrong != "" {
					input = "!" + c.wrong
				}
				got = append(got, fmt.Sprintf("%d/%d %d:%d @%s %s", c.number, c.turn, c.line, c.column, c.name, input))
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("calls (-want +got):\n%s", d)
			}
		})
	}
}

func TestParsePromptTakesTimeInProportion(t *testing.T) {
	// Prompts that make a careless parser read to the end again and again.
	for _, piece := range []string{`@a {"x":"`, `@a {"x":[{`, "@a {\"x\":\n", `@a {`, `@mcp__a `, "@a {}\n", "@a {} "} {
		prompt := strings.Repeat(piece, 1<<20/len(piece))
		if calls := parsePrompt(prompt, func(string) bool { return false }); len(calls) == 0 {
			t.Errorf("%q repeated: no calls", piece)
		}
	}
}

func FuzzParsePrompt(f *testing.F) {
	for _, s := range []string{
		`@mcp__s__t {"a": "}{@b {}"} @c {}`, "@a {\n\"x\":1}\n@b {\"y\":\"{{1.z}}\"}", `bob@example.com @a {'`, "@a {\"x\":\n@b {}", "\xff@a {\"\xff\":1}",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, prompt string) {
		end, turn := 0, 0
		for i, c := range parsePrompt(prompt, func(name string) bool { return name == "t" }) {
			if c.number != i+1 || c.turn < turn || c.turn > turn+1 || c.turn < 1 {
				t.Fatalf("call %d has number %d and turn %d after turn %d", i+1, c.number, c.turn, turn)
			}
			turn = c.turn
			if (c.wrong == "") != (c.input != nil) {
				t.Fatalf("call %d: input %q and wrong %q", i+1, c.input, c.wrong)
			}
			at := strings.Index(prompt[end:], "@"+c.name)
			if at < 0 {
				t.Fatalf("call %d: @%s is not in what is left of the prompt", i+1, c.name)
			}
			end += at + 1
			if c.wrong != "" {
				continue
			}
			var object map[string]any
			if err := json.Unmarshal(c.input, &object); err != nil && !strings.Contains(err.Error(), "number") {
				t.Fatalf("call %d: input %q: %v", i+1, c.input, err)
			}
			if !strings.Contains(prompt[end:], string(c.input)) {
				t.Fatalf("call %d: %q is not in the prompt", i+1, c.input)
			}
		}
	})
}
