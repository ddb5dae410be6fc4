//go:build unix

package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNear(t *testing.T) {
	known := []string{"read_file", "read_text_file", "write_file", "list_directory", "echo", "add"}
	tests := []struct {
		in   string
		want []string
	}{
		{"read_fil", []string{"read_file"}},
		{"READ_FILE", []string{"read_file"}},
		{"ad", []string{"add"}},
		{"file", []string{"read_file", "write_file", "read_text_file"}},
		{"ehco", []string{"echo"}},
		{"dad", []string{"add"}},
		{"zzz", nil},
		{"", nil},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, near(tt.in, known)); diff != "" {
			t.Errorf("near(%q) (-want +got):\n%s", tt.in, diff)
		}
	}
}

// A wrong command line is one line on standard error that names the remedy, and exit status 2.
func TestUsageErrors(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"no command", nil, `no command given; try 'tenon --help'`},
		{"unknown command", []string{"rum"}, `unknown command "rum"; did you mean "run"?; try 'tenon --help'`},
		{"unknown command, letters swapped", []string{"rnu"}, `unknown command "rnu"; did you mean "run"?; try 'tenon --help'`},
		{"help for nothing", []string{"mcp", "help", "lst"}, `no help for "lst"; try 'tenon mcp --help'`},
		{"a variable as a program", []string{"mcp", "add", "x", "--env", "A=1", "B=hunter2", "--", "srv"}, `B=… is a variable and no program; give each variable with an --env of its own: --env B=…`},
		{"no sub-command", []string{"mcp"}, `no command given; try 'tenon mcp --help'`},
		{"unknown sub-command", []string{"mcp", "lsit"}, `unknown command "lsit"; did you mean "list"?; try 'tenon mcp --help'`},
		{"unknown flag", []string{"run", "--modell", "x"}, `unknown flag --modell; did you mean --model?; try 'tenon run --help'`},
		{"unknown short flag", []string{"run", "-x"}, `unknown flag -x; try 'tenon run --help'`},
		{"flag without value", []string{"run", "--model"}, `--model wants a value: MODEL; try 'tenon run --help'`},
		{"bad number", []string{"run", "--max-turns", "many"}, `--max-turns is "many", want a whole number, such as 10; try 'tenon run --help'`},
		{"no number", []string{"run", "--max-budget-usd=lots"}, `--max-budget-usd is "lots", want a number, such as 0.5; try 'tenon run --help'`},
		{"a time without a unit", []string{"mcp", "list", "--connect-timeout", "5"}, `--connect-timeout is "5", want a time with its unit, such as 5s or 2m; try 'tenon mcp list --help'`},
		{"no switch", []string{"run", "--offline=perhaps"}, `--offline is "perhaps", want true or false, or no value at all; try 'tenon run --help'`},
		{"short flag without value", []string{"mcp", "add", "x", "-e"}, `-e wants a value: NAME=VALUE; if it belongs to the server's program, put -- before the program`},
		{"empty name", []string{"mcp", "add", "", "--", "x"}, `mcp add wants NAME and PROGRAM or URL, but the first argument is empty; try 'tenon mcp add --help'`},
		{"empty server", []string{"mcp", "tools", " "}, `mcp tools wants at most one SERVER, but the first argument is empty; try 'tenon mcp tools --help'`},
		{"too many arguments", []string{"mcp", "list", "a", "b"}, `mcp list wants no arguments, got 2 arguments; try 'tenon mcp list --help'`},
		{"settings that are a list", []string{"run", "--offline", "hi", "--settings", "[]"}, `--settings cannot be used: the JSON:1:1: is a list, want an object: set the path of a settings file, or a JSON object`},
		{"settings that are a number", []string{"run", "--offline", "hi", "--settings", "5"}, `--settings cannot be used: the JSON:1:1: is a number, want an object: set the path of a settings file, or a JSON object`},
		{"servers that are a list", []string{"mcp", "list", "--mcp-config", "[]"}, `--mcp-config:1:1: is a list, want an object like {"mcpServers": {…}}`},
		{"servers that are a text, in the second place", []string{"mcp", "list", "--mcp-config", "{}", "--mcp-config", `"x"`}, `--mcp-config (number 2):1:1: is a string, want an object like {"mcpServers": {…}}`},
		{"a server that cannot be used", []string{"mcp", "add", "x", "--json", `{"command": 5}`}, `nothing was added: mcpServers.x.command: is a number, want a string: the program to start; write it in quotation marks`},
		{"a name with more than one blank", []string{"mcp", "get", "a  b", "--scope", "project"}, `no server "a  b" in .mcp.json or ~/.claude.json`},
		{"a name that cannot be seen", []string{"mcp", "add", "a\x1b[31m", "--", "x"}, `the name "a\x1b[31m" holds a character that cannot be seen; give another`},
		{"a name that is no text", []string{"mcp", "add", "a\xff", "--", "x"}, `the name "a\xff" is not valid UTF-8; give another`},
		{"a long name", []string{"mcp", "add", strings.Repeat("n", 200), "--", "x"}, `the name "` + strings.Repeat("n", 80) + `" is longer than 128 bytes; give another`},
		{"an argument that is no text", []string{"mcp", "add", "a", "--", "x", "\xff"}, `an argument is not valid UTF-8, and a configuration file can hold nothing else`},
		{"a URL as a program", []string{"mcp", "add", "a", "-t", "stdio", "https://h/mcp"}, `--transport stdio is for a program, and "https://h/mcp" is a URL; leave it out`},
		{"a directory that is not there", []string{"run", "--offline", "hi", "--add-dir", "nowhere"}, `--add-dir nowhere: no such file or directory`},
		{"bad format", []string{"run", "hi", "--output-format", "xml"}, `--output-format: unknown format "xml"; give text, json or stream-json`},
		{"bad mode", []string{"run", "hi", "--permission-mode", "yolo"}, `--permission-mode: unknown mode "yolo"; give default, acceptEdits, plan, bypassPermissions, dontAsk or auto`},
		{"no key", []string{"run", "hi"}, `no ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN in the environment; set one, or add --offline to run without a model`},
		{"empty prompt", []string{"run", "--offline"}, `the prompt is empty; try: tenon run "What can you do?"`},
		{"two prompts", []string{"run", "--offline", "What", "now?"}, `one PROMPT wanted, got 2 arguments; quote the prompt`},
		{"negative turns", []string{"run", "--offline", "hi", "--strict-mcp-config", "--max-turns=-1"}, `--max-turns is -1: set a positive number, or 0 for the default`},
		{"a budget that cannot be kept", []string{"run", "--offline", "hi", "--strict-mcp-config", "--max-budget-usd=1"}, `--max-budget-usd cannot be kept with model "offline", whose price is not known; leave it out, or ask a model whose price is known`},
		{"a session that is no UUID", []string{"run", "--offline", "hi", "--strict-mcp-config", "--session-id=7"}, `--session-id is "7": set a UUID, or leave it empty for a new one`},
		{"bad source", []string{"mcp", "list", "--setting-sources", "moon"}, `--setting-sources: unknown source "moon"; give any of user, project, local`},
		{"too few arguments", []string{"mcp", "call", "files"}, `no TOOL given; 'tenon mcp tools files' lists those of the server`},
		{"no servers", []string{"mcp", "call", "files", "read", "--strict-mcp-config"}, `no server "files": no servers are configured; add some to .mcp.json or give --mcp-config FILE`},
		{"unknown server", []string{"mcp", "tools", "fils", "--strict-mcp-config", "--mcp-config", `{"mcpServers":{"files":{"command":"x"}}}`}, `no server "fils"; did you mean "files"?`},
		{"unlike any server", []string{"mcp", "tools", "zzz", "--strict-mcp-config", "--mcp-config", `{"mcpServers":{"files":{"command":"x"},"calc":{"command":"x"}}}`}, `no server "zzz"; there is calc or files`},
		{"bad JSON", []string{"mcp", "call", "files", "read", "{", "--strict-mcp-config", "--mcp-config", `{"mcpServers":{"files":{"command":"x"}}}`}, `the arguments are not a JSON object: it ends too soon: a bracket or a quotation mark is not closed; write for instance '{"path": "notes.txt"}'`},
		{"JSON with a fault", []string{"mcp", "call", "files", "read", `{"ä": x}`, "--strict-mcp-config"}, `the arguments are not a JSON object: 'x' at character 7 has no place there; write for instance '{"path": "notes.txt"}'`},
		{"JSON that is no text", []string{"mcp", "call", "files", "read", "{\"a\": \"\xff\"}", "--strict-mcp-config"}, `the arguments are not valid UTF-8`},
		{"JSON that is no object", []string{"mcp", "call", "files", "read", "[1]", "--strict-mcp-config", "--mcp-config", `{"mcpServers":{"files":{"command":"x"}}}`}, `the arguments are not a JSON object: it is an array; write for instance '{"path": "notes.txt"}'`},
		{"no such file", []string{"mcp", "call", "files", "read", "@nope.json", "--strict-mcp-config", "--mcp-config", `{"mcpServers":{"files":{"command":"x"}}}`}, `reading the arguments from nope.json: no such file or directory`},
		{"an argument of a command of cobra's", []string{"completion", "bash", "extra"}, `unknown command "extra" for "tenon completion bash"; try 'tenon --help'`},
		{"two ways at once", []string{"mcp", "status", "--watch", "--json"}, `--watch prints lines as they come; leave --json out`},
		{"negative time", []string{"mcp", "call", "files", "read", "--timeout=-1s"}, `--timeout is -1s; give more than 0, such as 90s`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			t.Chdir(t.TempDir())
			code := run(t.Context(), tt.args, &process{in: strings.NewReader(""), out: &out, err: &errs})
			if code != exitUsage || out.Len() > 0 || errs.String() != "tenon: "+tt.want+"\n" {
				t.Errorf("tenon %q: exit status %d, want 2; stdout %q, want none\n got %s\nwant tenon: %s", tt.args, code, &out, &errs, tt.want)
			}
		})
	}
}

func TestExitStatus(t *testing.T) {
	sig := func(s syscall.Signal) error { return &signalError{s} }
	tests := []struct {
		name  string
		cause error
		err   error
		want  int
		line  string
	}{
		{"fine", nil, nil, 0, ""},
		{"done before the signal could matter", sig(syscall.SIGINT), nil, 0, ""},
		{"failed", nil, io.ErrUnexpectedEOF, 1, "tenon: unexpected EOF\n"},
		{"failed in more than one line", nil, usagef("a\n\tb"), 2, "tenon: a b\n"},
		{"said already", nil, errReported, 1, ""},
		{"Ctrl-C", sig(syscall.SIGINT), context.Canceled, 130, "tenon: interrupted\n"},
		{"SIGTERM", sig(syscall.SIGTERM), context.Canceled, 143, "tenon: stopped by signal 15 (terminated)\n"},
		{"the reader has gone", sig(syscall.SIGPIPE), context.Canceled, 141, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if tt.cause != nil {
				cancel(tt.cause)
			}
			var errs bytes.Buffer
			if got := exitStatus(ctx, tt.err, &errs); got != tt.want || errs.String() != tt.line {
				t.Errorf("got %d and %q, want %d and %q", got, &errs, tt.want, tt.line)
			}
		})
	}
}
