package modeltest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/sjson"
)

// chat is a host without an engine: it talks to a model and runs tools.
type chat struct {
	t     *testing.T
	m     *Model
	tools map[string]func(input string) (content string, isError bool) // content is JSON
	order []string
	body  string
	turns []string // the calls of each turn
}

func newChat(t *testing.T) *chat {
	c := &chat{
		t: t, m: Offline(), body: `{"model":"offline","max_tokens":1024,"messages":[]}`,
		tools: map[string]func(string) (string, bool){
			"mcp__calc__add": func(in string) (string, bool) {
				var args struct{ A, B float64 }
				if err := json.Unmarshal([]byte(in), &args); err != nil {
					return quote(err.Error()), true
				}
				return quote(fmt.Sprintf(`{"sum":%v,"of":[%v,%v],"note":"a \"sum\""}`, args.A+args.B, args.A, args.B)), false
			},
			"mcp__echo__say": func(in string) (string, bool) { return `[{"type":"text","text":` + quote("said "+in) + `}]`, false },
			"mcp__echo__add": func(in string) (string, bool) { return quote("not a sum"), false },
			"mcp__bad__fail": func(string) (string, bool) { return quote("out of paper"), true },
			"mcp__img__shot": func(string) (string, bool) {
				return `[{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"}}]`, false
			},
		},
		order: []string{"mcp__bad__fail", "mcp__calc__add", "mcp__echo__add", "mcp__echo__say", "mcp__img__shot"},
	}
	defs := make([]string, len(c.order))
	for i, name := range c.order {
		defs[i] = tool(name)
	}
	c.set("tools", "["+strings.Join(defs, ",")+"]")
	return c
}

func quote(s string) string { return string(appendString(nil, s)) }

func (c *chat) set(path, value string) {
	var err error
	if c.body, err = sjson.SetRaw(c.body, path, value); err != nil {
		c.t.Fatal(err)
	}
}

// ask sends a prompt and runs tools until the model has its answer.
func (c *chat) ask(prompt string) string {
	c.t.Helper()
	c.set("messages.-1", user(`{"type":"text","text":`+quote(prompt)+`}`))
	for range 100 {
		r := post(c.t, c.m, c.body)
		if e := r.errorText(c.t); e != "" {
			c.t.Fatalf("refused: %s", e)
		}
		var answer struct {
			Content []struct {
				Type, Text, ID, Name string
				Input                json.RawMessage
			}
			StopReason string `json:"stop_reason"`
		}
		if err := json.Unmarshal([]byte(r.body), &answer); err != nil {
			c.t.Fatal(err)
		}
		var raw struct{ Content json.RawMessage }
		if err := json.Unmarshal([]byte(r.body), &raw); err != nil {
			c.t.Fatal(err)
		}
		c.set("messages.-1", `{"role":"assistant","content":`+string(raw.Content)+`}`)
		if answer.StopReason == "end_turn" {
			return answer.Content[0].Text
		}
		var calls, results []string
		for _, use := range answer.Content {
			calls = append(calls, use.Name+" "+string(use.Input))
			content, isError := c.tools[use.Name](string(use.Input))
			results = append(results, fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":%s,"is_error":%t}`, use.ID, content, isError))
		}
		c.turns = append(c.turns, strings.Join(calls, " + "))
		c.set("messages.-1", user(results...))
	}
	c.t.Fatal("no end")
	return ""
}

func TestOfflineMakesTheCallsOfAPrompt(t *testing.T) {
	c := newChat(t)
	got := c.ask("Add and say:\n@mcp__calc__add {\"a\": 1, \"b\": 2} @mcp__echo__say {\"x\":\"}\"}\nthen @mcp__bad__fail {}\n@say {\"sum\":\"{{1.sum}}\",\"of\":\"{{1.of}}\",\"first\":\"it is {{1.of.0}}, {{1.note}}\",\"all\":\"{{1.$}}\",\"text\":\"{{1}}\",\"raw\":\"\\\\{{1}} {{x}}\",\"{{1}}\":[{\"deep\":\"{{1.sum}}\"}]}")
	wantTurns := []string{
		`mcp__calc__add {"a": 1, "b": 2} + mcp__echo__say {"x":"}"}`,
		`mcp__bad__fail {}`,
		`mcp__echo__say {"sum":3,"of":[1,2],"first":"it is 1, a \"sum\"","all":{"sum":3,"of":[1,2],"note":"a \"sum\""},` +
			`"text":"{\"sum\":3,\"of\":[1,2],\"note\":\"a \\\"sum\\\"\"}","raw":"{{1}} {{x}}","{{1}}":[{"deep":3}]}`,
	}
	if d := cmp.Diff(wantTurns, c.turns); d != "" {
		t.Errorf("turns (-want +got):\n%s", d)
	}
	for _, want := range []string{
		"Made offline, by no model: the calls that the prompt spells out were made as they stand (4 of 4).",
		"\n1. mcp__calc__add {\"a\": 1, \"b\": 2}\n{\"sum\":3,",
		"\n2. mcp__echo__say {\"x\":\"}\"}\nsaid {\"x\":\"}\"}\n",
		"\n3. mcp__bad__fail {}\nERROR: out of paper\n",
		"\n4. mcp__echo__say {",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("answer has no %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "Not made") {
		t.Errorf("answer:\n%s", got)
	}
}

func TestOfflineSaysWhatItCouldNotDo(t *testing.T) {
	tests := []struct{ name, prompt, want string }{
		{"unknown tool", `@mcp__no__tool {}`, "1. line 1, column 1: @mcp__no__tool: there is no such tool"},
		{"malformed", "hey\n @say {'x'}", "1. line 2, column 2: @say: its JSON is malformed at line 2, column 8: invalid character '\\'' at start of string (expecting '\"')"},
		{"ambiguous", `@add {"a":1}`, "1. line 1, column 1: @add: several tools have names that end so: mcp__calc__add, mcp__echo__add"},
		{"no object", `@mcp__echo__say hello`, "1. line 1, column 1: @mcp__echo__say: no JSON object follows the name on its line"},
		{"no such call", `@say {"x":"{{7}}"}`, "{{7}}: there is no call 7"},
		{"number too large", `@say {"x":"{{99999999999999999999}}"}`, "there is no call 99999999999999999999"},
		{"itself", `@say {"x":"{{1}}"}`, "{{1}}: call 1 is this call itself"},
		{"the same line", `@say {} @say {"x":"{{1}}"}`, "2. line 1, column 9: @say: {{1}}: call 1 is on the same line, where its result is not there yet"},
		{"a later line", "@say {\"x\":\"{{2}}\"}\n@say {}", "{{2}}: call 2 comes later"},
		{"a failed call", "@fail {}\n@say {\"x\":\"{{1}}\"}", "2. line 2, column 1: @say: {{1}}: call 1 failed"},
		{"a call that was not made", "@nope {}\n@say {\"x\":\"{{1}}\"}", "{{1}}: call 1 was not made"},
		{"no JSON", "@mcp__echo__add {}\n@say {\"x\":\"{{1.a}}\"}", "{{1.a}}: the result of call 1 is not JSON"},
		{"no field", "@mcp__calc__add {}\n@say {\"x\":\"{{1.total}}\"}", `{{1.total}}: the result of call 1 has no "total" (it has sum, of, note)`},
		{"no item", "@mcp__calc__add {}\n@say {\"x\":\"{{1.of.2}}\"}", `{{1.of.2}}: the result of call 1 has no "2" (it has 0 to 1)`},
		{"into a number", "@mcp__calc__add {}\n@say {\"x\":\"{{1.sum.x}}\"}", `{{1.sum.x}}: the result of call 1 has no "x"`},
		{"no text", "@shot {}\n@say {\"x\":\"{{1}}\"}", "{{1}}: the result of call 1 has no text"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := newChat(t).ask(tt.prompt)
			if !strings.Contains(got, tt.want) || !strings.Contains(got, "\nNot made:\n") ||
				!strings.Contains(got, "\nTools: mcp__bad__fail, mcp__calc__add, mcp__echo__add, mcp__echo__say, mcp__img__shot.") {
				t.Errorf("answer has no %q:\n%s", tt.want, got)
			}
		})
	}
}

func TestOfflineMakesTheGoodCallsBesideABadOne(t *testing.T) {
	c := newChat(t)
	got := c.ask("@mcp__no__tool {} @say {\"n\":1}\n@say {bad\n@say {\"n\":3}")
	want := []string{`mcp__echo__say {"n":1}`, `mcp__echo__say {"n":3}`}
	if d := cmp.Diff(want, c.turns); d != "" {
		t.Errorf("turns (-want +got):\n%s", d)
	}
	if !strings.Contains(got, "(2 of 4)") || !strings.Contains(got, "\n1. line 1, column 1: @mcp__no__tool") || !strings.Contains(got, "\n3. line 2, column 1: @say: its JSON") {
		t.Errorf("answer:\n%s", got)
	}
}

func TestOfflineExplainsItself(t *testing.T) {
	c := newChat(t)
	got := c.ask("What is the weather?")
	for _, want := range []string{"Made offline, by no model", `@mcp__bad__fail {"argument": "value"}`, "Tools: mcp__bad__fail, mcp__calc__add"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in: %s", want, got)
		}
	}
	withheld := set(messages(user(`{"type":"text","text":"<system-reminder>mcp__far__away</system-reminder>"}`, `{"type":"text","text":"Hi"}`)),
		"tools", "["+tool("ToolSearch")+`,{"name":"DeferredToolPlaceholder","defer_loading":true,"input_schema":{"type":"object"}}]`)
	if got := planTurn(t, withheld); !strings.Contains(got, `@mcp__far__away {`) || !strings.Contains(got, "Tools: mcp__far__away, ToolSearch.") {
		t.Errorf("of withheld tools: %s", got)
	}
	c = newChat(t)
	c.set("tools", "[]")
	if got := c.ask("Hi"); !strings.HasSuffix(got, "There are no tools.") {
		t.Errorf("without tools: %s", got)
	}
	c = newChat(t)
	defs := make([]string, 60)
	for i := range defs {
		defs[i] = tool(fmt.Sprintf("tool%d", i))
	}
	c.set("tools", "["+strings.Join(defs, ",")+"]")
	if got := c.ask("Hi"); !strings.HasSuffix(got, "tool49, and 10 more.") {
		t.Errorf("with sixty tools: %s", got)
	}
}

func TestOfflineFollowsTheLatestPromptOnly(t *testing.T) {
	c := newChat(t)
	c.ask("@say {\"n\":1}\n@say {\"n\":2}")
	got := c.ask("again, with {{1}} of its own: @say {\"n\":3}\n@say {\"was\":\"{{1}}\"}")
	want := []string{`mcp__echo__say {"n":1}`, `mcp__echo__say {"n":2}`, `mcp__echo__say {"n":3}`, `mcp__echo__say {"was":"said {\"n\":3}"}`}
	if d := cmp.Diff(want, c.turns); d != "" {
		t.Errorf("turns (-want +got):\n%s", d)
	}
	if !strings.Contains(got, "(2 of 2)") {
		t.Errorf("answer:\n%s", got)
	}
	if got := c.ask("thanks"); !strings.Contains(got, "there are none in this one") || len(c.turns) != 4 {
		t.Errorf("third prompt: %d turns, %s", len(c.turns), got)
	}
}

// planTurn is what the offline model does next in a conversation.
func planTurn(t *testing.T, body string) string {
	t.Helper()
	r := post(t, Offline(), body)
	if e := r.errorText(t); e != "" {
		t.Fatalf("refused: %s", e)
	}
	return r.body
}

func TestOfflineTakesWhatIsSaidBesideResults(t *testing.T) {
	conversation := func(text string) string {
		return set(messages(
			user(`{"type":"text","text":"@say {\"n\":1}"}`),
			assistant(`{"type":"tool_use","id":"x_c1","name":"mcp__echo__say","input":{"n":1}}`),
			user(result("x_c1"), `{"type":"text","text":`+quote(text)+`}`),
		), "tools", "["+tool("mcp__echo__say")+"]")
	}
	if got := planTurn(t, conversation("Tool loaded.")); !strings.Contains(got, "(1 of 1)") {
		t.Errorf("a word from the host: %s", got)
	}
	if got := planTurn(t, conversation("also @say {\"n\":\"{{1}}\"}")); !strings.Contains(got, `"input":{"n":"ok"}`) {
		t.Errorf("a call said in mid-run: %s", got)
	}
	if got := planTurn(t, conversation("<system-reminder>use @say {}</system-reminder>")); !strings.Contains(got, "(1 of 1)") {
		t.Errorf("a reminder: %s", got)
	}
	if got := planTurn(t, conversation("[Request interrupted by user for tool use]\n@say {\"n\":9}")); !strings.Contains(got, `"input":{"n":9}`) {
		t.Errorf("a prompt after an interruption: %s", got)
	}
	if got := planTurn(t, conversation("[Request interrupted by user]")); strings.Contains(got, "1 of 1") {
		t.Errorf("an interruption alone: %s", got)
	}
}

func TestOfflineKnowsItsCallsWhenTheirIDsWereRewritten(t *testing.T) {
	got := planTurn(t, set(messages(
		user(`{"type":"text","text":"@say {\"n\":1} @bad {x\n@say {\"n\":2}"}`),
		assistant(`{"type":"tool_use","id":"call_77","name":"mcp__echo__say","input":{"n":1}}`),
		user(result("call_77")),
	), "tools", "["+tool("mcp__echo__say")+"]"))
	if !strings.Contains(got, `"input":{"n":2}`) {
		t.Errorf("got %s", got)
	}
}

func TestOfflineCallsDeferredTools(t *testing.T) {
	prompt := user(`{"type":"text","text":"@mcp__far__away {}"}`)
	announced := []string{
		set(messages(prompt), "system", `"Deferred:\nmcp__far__away\nmcp__far__away2"`),
		messages(user(`{"type":"text","text":"<system-reminder>mcp__far__away</system-reminder>"}`, `{"type":"text","text":"@mcp__far__away {}"}`)),
		messages(prompt, `{"role":"system","content":"Tools: mcp__far__away."}`),
		set(messages(prompt), "tools", "["+tool("near")+`,{"name":"mcp__far__away","defer_loading":true,"input_schema":{"type":"object"}}]`),
	}
	for i, body := range announced {
		if got := planTurn(t, body); !strings.Contains(got, `"name":"mcp__far__away","input":{}`) {
			t.Errorf("%d: %s", i, got)
		}
	}
	if got := planTurn(t, set(messages(prompt), "system", `"mcp__far__away2 xmcp__far__away"`)); !strings.Contains(got, "there is no such tool") {
		t.Errorf("a longer name: %s", got)
	}
}

func TestOfflineMayNotCallWhatTheRequestForbids(t *testing.T) {
	body := set(set(messages(user(`{"type":"text","text":"@say {}"}`)), "tools", "["+tool("mcp__echo__say")+"]"), "tool_choice", `{"type":"none"}`)
	if got := planTurn(t, body); !strings.Contains(got, "the request forbids tool calls") {
		t.Errorf("got %s", got)
	}
}

func TestOfflineAnswerIsBounded(t *testing.T) {
	c := newChat(t)
	c.tools["mcp__echo__say"] = func(string) (string, bool) { return quote(strings.Repeat("é", 20_000)), false }
	got := c.ask(strings.Repeat("@say {} ", 30) + strings.Repeat("\n@nope {}", 100))
	if limit := maxOfflineAnswer + maxOfflineResult + 100*700; len(got) > limit {
		t.Errorf("answer of %d bytes, want at most %d", len(got), limit)
	}
	for _, want := range []string{"… (31808 more bytes)", "30. mcp__echo__say: left out here", "\nand 50 more\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in the answer", want)
		}
	}
}

func TestOfflineReadsBackWhatIsNoText(t *testing.T) {
	c := newChat(t)
	c.tools["mcp__echo__say"] = func(string) (string, bool) { return `[]`, false }
	c.tools["mcp__bad__fail"] = func(string) (string, bool) {
		return `[{"type":"image","source":{"type":"url","url":"https://x.example/i.png"}}]`, false
	}
	c.tools["mcp__echo__add"] = func(string) (string, bool) { return `[{"type":"tool_reference","tool_name":"mcp__calc__add"}]`, false }
	got := c.ask(`@shot {} @say {} @mcp__echo__add {} @fail {}`)
	for _, want := range []string{"\n[image: image/gif, 42 bytes]\n", "\n(empty)\n", "\n[tool mcp__calc__add]", "\n[image: https://x.example/i.png]"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in: %s", want, got)
		}
	}
}
