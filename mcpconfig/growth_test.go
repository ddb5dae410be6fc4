package mcpconfig

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/internal/growth"
)

// background is more than what goes on beside a measurement allocates, such as a pool that is filled again.
const background = 64 << 10

// What a document costs grows with its length, whatever it holds.
func TestParsingGrowsWithTheInput(t *testing.T) {
	repeat := func(before, one, after string) func(n int) string {
		return func(n int) string { return before + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + after }
	}
	entry := func(rest string) string { return `{"mcpServers": {"s": {"command": "x", ` + rest }
	tests := map[string]func(n int) string{
		"entries": func(n int) string {
			var b strings.Builder
			for i := range n {
				fmt.Fprintf(&b, `"s%d": {"command": "x"},`, i)
			}
			return `{"mcpServers": {` + b.String() + `}}`
		},
		"refused entries": func(n int) string {
			var b strings.Builder
			for i := range n {
				fmt.Fprintf(&b, `"s%d": 1,`, i)
			}
			return `{"mcpServers": {` + b.String() + `}}`
		},
		"one name":            repeat(`{"mcpServers": {`, `"s": {"command": "x"}`, `}}`),
		"faults of one entry": repeat(entry(`"args": [`), `1`, `]}}}`),
		"unknown keys": func(n int) string {
			var b strings.Builder
			for i := range n {
				fmt.Fprintf(&b, `"k%d": 1,`, i)
			}
			return entry(b.String() + `}}}`)
		},
		"one unknown key":       repeat(entry(``), `"k": 1`, `}}}`),
		"policies":              repeat(entry(`"tools": [`), `{"name": "t", "permission_policy": "always_ask"}`, `]}}}`),
		"comments":              func(n int) string { return `{"mcpServers": {` + strings.Repeat("/* x */ // y\n", n) + `}}` },
		"slashes":               func(n int) string { return strings.Repeat("/", n) },
		"open comments":         func(n int) string { return strings.Repeat("/*", n) },
		"braces":                func(n int) string { return strings.Repeat(`{"a":`, n) },
		"references":            func(n int) string { return entry(`"args": ["` + strings.Repeat("${A}", n) + `"]}}}`) },
		"references not closed": func(n int) string { return entry(`"args": ["` + strings.Repeat("${", n) + `"]}}}`) },
		"references in references": func(n int) string {
			return entry(`"args": ["` + strings.Repeat("${X:-", n) + strings.Repeat("}", n) + `"]}}}`)
		},
		"defaults side by side": func(n int) string {
			return entry(`"args": ["` + strings.Repeat("${X:-${Y:-${Z:-z}}}", n) + `"]}}}`)
		},
		"a long name, and long lists below it": func(n int) string {
			return `{"mcpServers": {"` + strings.Repeat("s", n) + `": {"command": "x", "args": [` + strings.TrimSuffix(strings.Repeat(`"a",`, n), ",") + `]}}}`
		},
	}
	for name, input := range tests {
		t.Run(name, func(t *testing.T) {
			for _, untrusted := range []bool{false, true} {
				growth.Check(t, 500, func(n int) int {
					data := []byte(input(n))
					return background + growth.Bytes(func() {
						Parse(data, &ParseOptions{File: "f", Untrusted: untrusted, LookupEnv: env("A", "1")})
					})
				})
			}
		})
	}
}

// What references of a document come to is bounded, and so is the number of servers, of problems and of the faults that
// are told of an entry.
func TestBoundsOfADocument(t *testing.T) {
	big := strings.Repeat("x", 512<<10)
	text := `{"mcpServers": {"s": {"command": "x", "args": [` + strings.TrimSuffix(strings.Repeat(`"${BIG}",`, 1000), ",") + `]}, "other": {"command": "x"}}}`
	growth.AtMost(t, 4*maxExpandedAll, []int{1}, func(int) int {
		return growth.Bytes(func() {
			cfg, problems := Parse([]byte(text), &ParseOptions{LookupEnv: env("BIG", big)})
			if len(cfg.Servers) != 1 || len(problems) != 1 || !strings.Contains(problems[0].Message, "come to more than 16777216 bytes") || len(problems[0].Also) != maxFaults {
				t.Errorf("%d servers, problems %v", len(cfg.Servers), problems)
			}
		})
	})
	var b strings.Builder
	for i := range maxServers + 7 {
		fmt.Fprintf(&b, `"s%d": {"command": "x", "strange": 1},`, i)
	}
	cfg, problems := Parse([]byte(`{"mcpServers": {`+b.String()+`"bad": 1}}`), &ParseOptions{LookupEnv: env()})
	if len(cfg.Servers) != maxServers || len(cfg.Refused) != 0 || len(problems) != maxProblems+1 {
		t.Errorf("%d servers, %d refused, %d problems", len(cfg.Servers), len(cfg.Refused), len(problems))
	}
	if last := problems[len(problems)-1].String(); last != "has 901 more problems, which are not listed" {
		t.Errorf("the last problem is %q", last)
	}
	if first := problems[0].String(); !strings.Contains(first, "more than 1000 servers: the last 8 are left out") {
		t.Errorf("the first problem is %q", first)
	}
}

// The settings of a checkout cost what they are long.
func TestSettingsGrowWithTheInput(t *testing.T) {
	for name, one := range map[string]string{
		"rules": `"permissions": {"allow": [%s]}|"mcp__a"`, "no rules": `"permissions": {"deny": [%s]}|7`, "hooks": `"hooks": {"Stop": [%s]}|{"hooks": [{"type": "command"}]}`,
		"variables": `"env": {%s}|"A": "b"`, "keys": `%s|"model": "x"`,
	} {
		form, element, _ := strings.Cut(one, "|")
		dir := tree(t, nil)
		growth.Check(t, 500, func(n int) int {
			write(t, filepath.Join(dir, ".claude", "settings.json"), "{"+fmt.Sprintf(form, strings.TrimSuffix(strings.Repeat(element+",", n), ","))+"}")
			return background + growth.Bytes(func() { LoadSettings(&SettingsOptions{Dir: dir, LookupEnv: env(), TrustFile: trusted}) })
		})
		if t.Failed() {
			t.Fatalf("%s", name)
		}
	}
}

// An entry that is in a document many times is removed each time, in linear time.
func TestRemoveRepeatedEntries(t *testing.T) {
	doc := `{"mcpServers": {` + strings.Repeat(`"s": {"command": "x"}, `, 20_000) + `"o": {"command": "y"}}}`
	edited, removed, err := RemoveServer([]byte(doc), nil, "s")
	if err != nil || !removed || string(edited) != `{"mcpServers": { "o": {"command": "y"}}}` {
		t.Errorf("%.200s, %v, %v", edited, removed, err)
	}
}
