package mcpconfig

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/internal/clip"
)

func TestExpand(t *testing.T) {
	lookup := env("A", "a-value", "EMPTY", "", "REF", "${A}", "ProgramFiles(x86)", "C:\\x86")
	tests := []struct{ name, in, want string }{
		{"nothing", "plain", "plain"},
		{"a variable", "x${A}y", "xa-valuey"},
		{"twice", "${A}${A}", "a-valuea-value"},
		{"default not needed", "${A:-d}", "a-value"},
		{"default", "${U:-d}", "d"},
		{"empty default", "${U:-}", ""},
		{"empty counts as set", "${EMPTY:-d}", ""},
		{"dollar name", "$A", "$A"},
		{"dollar digit", "$5", "$5"},
		{"two dollars", "$$A", "$$A"},
		{"empty braces", "${}", "${}"},
		{"a value is not expanded again", "${REF}", "${A}"},
		{"backslash stays", `\${A}`, `\a-value`},
		{"dollar stays", "$${A}", "$a-value"},
		{"default with a reference", "${U:-${A}}", "a-value"},
		{"default with a default", "${U:-${V:-w}}", "w"},
		{"default with text around a reference", "${U:-x${A}y}z", "xa-valueyz"},
		{"default that is not needed is not looked at", "${A:-${MISSING}}", "a-value"},
		{"default ends at the first brace of its own", "${U:-{}}", "{}"},
		{"default with colons", "${U:-http://h:1/}", "http://h:1/"},
		{"odd name that is set", "${ProgramFiles(x86)}", `C:\x86`},
		{"never closed, no brace at all", "echo ${", "echo ${"},
		{"the text of a reference", "${_:-$}{A}", "${A}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := expand(tt.in, lookup)
			if err != nil || got != tt.want {
				t.Errorf("expand(%q): got %q, %v; want %q", tt.in, got, err, tt.want)
			}
		})
	}
}

func TestExpandRefuses(t *testing.T) {
	tests := []struct{ in, message, instead string }{
		{"${MISSING}", "the environment variable MISSING is not set", "${MISSING:-DEFAULT} to give a default, or set it"},
		{"${U:-${MISSING}}", "the environment variable MISSING is not set", "${MISSING:-DEFAULT} to give a default, or set it"},
		{"${U-d}", "the environment variable U-d is not set", "${U:-d}"},
		{"${a b}", "${a b} is no reference to an environment variable", "${NAME} or ${NAME:-DEFAULT}"},
		{"${env:TOKEN}", "${env:TOKEN} is a form of VS Code", "${TOKEN}"},
		{"${input:github-token}", "${input:github-token} is a question that VS Code asks, and nobody is asked here", "${GITHUB_TOKEN} and set that variable"},
		{"${workspaceFolder}/x", "${workspaceFolder} is a form of VS Code", "a relative path: servers start in the session's directory"},
		{"${A and ${A}", "a reference that begins with ${ is not closed", "${NAME} or ${NAME:-DEFAULT}"},
		{strings.Repeat("${U:-", 40) + strings.Repeat("}", 40), "defaults hold references more than 16 levels deep", ""},
		{strings.Repeat("${BIG}", 40), "expands to more than 1048576 bytes", ""},
	}
	lookup := env("A", "1", "BIG", strings.Repeat("x", 1<<16))
	for _, tt := range tests {
		t.Run(clip.Text(tt.in, 40), func(t *testing.T) {
			_, ee := expand(tt.in, lookup)
			if ee == nil {
				t.Fatal("got no error")
			}
			if ee.message != tt.message || ee.instead != tt.instead {
				t.Errorf("got  %s | %s\nwant %s | %s", ee.message, ee.instead, tt.message, tt.instead)
			}
		})
	}
}

// F16 of the field cases: expanded in all places; only the entry with the missing variable is refused, and no
// reference reaches a server.
func TestExpandedInEveryPlace(t *testing.T) {
	const file = `{"mcpServers": {
  "files": {"command": "${A}/run", "args": ["${B:-b}", "${C:-}", "$5", "x${A}"], "env": {"K": "${A}", "${A}": "$5", "E": "${C:-}"}, "cwd": "${A}"},
  "web": {"type": "http", "url": "http://${A}/${B:-b}?p=$5", "headers": {"X": "${A} $5", "Y": "${C:-}"}, "oauth": {"clientId": "${A}"}},
  "bad": {"command": "x", "env": {"K": "${MISSING}"}},
  "worse": {"type": "sse", "url": "http://h/", "headers": {"Authorization": "Bearer ${MISSING}"}}
}}`
	cfg, problems := Parse([]byte(file), &ParseOptions{File: "f", LookupEnv: env("A", "va")})
	want := map[string]Entry{
		// D59: names of variables are not expanded.
		"files": {Name: "files", Scope: ScopeDynamic, Source: "f", Line: 2, Kind: Stdio, Command: "va/run", Args: []string{"b", "", "$5", "xva"}, Env: map[string]string{"K": "va", "${A}": "$5", "E": ""}, Dir: "va"},
		// D61
		"web": {Name: "web", Scope: ScopeDynamic, Source: "f", Line: 3, Kind: HTTP, URL: "http://va/b?p=$5", Headers: map[string]string{"X": "va $5", "Y": ""}, OAuth: &OAuth{ClientID: "va"}},
	}
	if d := cmp.Diff(want, cfg.Servers); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	var got []string
	for _, p := range problems {
		got = append(got, p.String())
	}
	wantProblems := []string{
		"f:4:40: mcpServers.bad.env.K: the environment variable MISSING is not set; write ${MISSING:-DEFAULT} to give a default, or set it (this server is left out)",
		"f:5:77: mcpServers.worse.headers.Authorization: the environment variable MISSING is not set; write ${MISSING:-DEFAULT} to give a default, or set it (this server is left out)",
	}
	if d := cmp.Diff(wantProblems, got); d != "" {
		t.Errorf("problems (-want +got):\n%s", d)
	}
}

func FuzzExpand(f *testing.F) {
	for _, s := range []string{"${A}", "${U:-${A}}", "${", "${}${A}", "$${U:-}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := expand(s, env("A", "v"))
		if err == nil && strings.Contains(got, "${A}") && !strings.Contains(s, "{A}") {
			t.Errorf("%q expands to %q", s, got)
		}
	})
}
