package modeltest

import (
	"encoding/json"
	"strings"
	"testing"
)

// usageOf is the usage that a model tells of a request.
func usageOf(t *testing.T, m *Model, body string) Usage {
	t.Helper()
	var answer struct {
		Usage struct {
			Input    int `json:"input_tokens"`
			Output   int `json:"output_tokens"`
			Read     int `json:"cache_read_input_tokens"`
			Creation int `json:"cache_creation_input_tokens"`
		}
	}
	if err := json.Unmarshal([]byte(post(t, m, body).body), &answer); err != nil {
		t.Fatal(err)
	}
	u := answer.Usage
	return Usage{InputTokens: u.Input, OutputTokens: u.Output, CacheReadInputTokens: u.Read, CacheCreationInputTokens: u.Creation}
}

func TestUsageTellsWhatTheCacheKnows(t *testing.T) {
	const marked = `"cache_control":{"type":"ephemeral"}`
	text := func(s string, extra string) string {
		return `{"type":"text","text":"` + strings.Repeat(s, 400) + `"` + extra + `}`
	}
	system := func(s string) func(string) string {
		return func(body string) string { return set(body, "system", `[`+text(s, ","+marked)+`]`) }
	}
	first := messages(user(text("a", ","+marked)))
	second := messages(user(text("a", "")), assistant(text("b", "")), user(text("c", ","+marked)))
	m := NewModel(&Options{TB: t, CountTokens: func(r *Request) int { return 1000 }, Turns: []Turn{Func(func(*Request) Turn { return Text("x") })}})
	steps := []struct {
		name, body            string
		read, creation, input string // all, some or none of the input
	}{
		{"nothing asked for", messages(user(text("a", ""))), "none", "none", "all"},
		{"first time", first, "none", "all", "none"},
		{"again", first, "all", "none", "none"},
		{"the next turn, with the mark moved on", second, "some", "some", "none"},
		{"and again", second, "all", "none", "none"},
		{"another system prompt", system("s")(second), "none", "all", "none"},
		{"the same one, and another end", system("s")(messages(user(text("z", "")))), "some", "none", "some"},
		{"a word changed in front", strings.Replace(system("s")(second), "ssss", "sSss", 1), "none", "all", "none"},
		{"automatic", set(messages(user(text("q", ""))), "cache_control", `{"type":"ephemeral"}`), "none", "all", "none"},
		{"automatic, again", set(messages(user(text("q", ""))), "cache_control", `{"type":"ephemeral"}`), "all", "none", "none"},
		{"a string for a text block", set(messages(`{"role":"user","content":"`+strings.Repeat("q", 400)+`"}`), "cache_control", `{"type":"ephemeral"}`), "all", "none", "none"},
		{"another model", set(first, "model", `"other"`), "none", "all", "none"},
	}
	level := func(n int) string {
		switch n {
		case 0:
			return "none"
		case 1000:
			return "all"
		}
		return "some"
	}
	for _, tt := range steps {
		u := usageOf(t, m, tt.body)
		if u.InputTokens+u.CacheReadInputTokens+u.CacheCreationInputTokens != 1000 ||
			level(u.CacheReadInputTokens) != tt.read || level(u.CacheCreationInputTokens) != tt.creation || level(u.InputTokens) != tt.input {
			t.Errorf("%s: %+v, want read %s, creation %s, input %s", tt.name, u, tt.read, tt.creation, tt.input)
		}
	}
}

func TestCacheReachesBackTwentyBlocks(t *testing.T) {
	const marked = `,"cache_control":{"type":"ephemeral"}}`
	grown := func(n int) string {
		blocks := []string{hi}
		for range n {
			blocks = append(blocks, hi)
		}
		blocks[len(blocks)-1] = strings.TrimSuffix(hi, "}") + marked
		return messages(user(blocks...))
	}
	for n, want := range map[int]bool{19: true, 20: false} {
		m := NewModel(&Options{TB: t, Turns: []Turn{Text("x"), Text("y")}})
		usageOf(t, m, grown(0))
		if u := usageOf(t, m, grown(n)); (u.CacheReadInputTokens > 0) != want {
			t.Errorf("%d blocks later: %+v, want a read: %t", n, u, want)
		}
	}
}
