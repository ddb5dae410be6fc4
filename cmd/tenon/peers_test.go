//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/internal/peers"
)

// entry is a server of a configuration file.
type entry struct {
	Type    string            `json:"type,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
}

func stdioEntry(c peers.Command) entry { return entry{Command: c.Path, Args: c.Args, Env: c.Env} }

// realServers writes a .mcp.json with real npm servers, each wire transport among them, into a directory that
// has a file to read.
func realServers(t *testing.T) (dir string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("the spare key is under the mat\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(map[string]map[string]entry{"mcpServers": {
		"everything": stdioEntry(peers.Everything(t, "stdio")),
		"files":      stdioEntry(peers.Filesystem(t, dir)),
		"streamable": {Type: "http", URL: peers.ServeEverything(t, "streamableHttp").URL},
		"events":     {Type: "sse", URL: peers.ServeEverything(t, "sse").URL},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".mcp.json"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// tenonIn runs tenon in a directory, with the project's servers only, and wants exit status 0.
func tenonIn(t *testing.T, dir string, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	t.Chdir(dir)
	p := &process{in: strings.NewReader(""), out: &out, err: &errs, environ: append(os.Environ(), "TENON_TRUST_PROJECT=1")}
	if code := run(t.Context(), append(args, "--setting-sources", "project"), p); code != exitOK {
		t.Fatalf("tenon %q: exit status %d\nstdout: %s\nstderr: %s", args, code, &out, &errs)
	}
	return out.String(), errs.String()
}

// The wire transports against servers of others, as one would try them from the shell.
// D01 D50 D51 D52
func TestRealServers(t *testing.T) {
	dir := realServers(t)

	t.Run("list", func(t *testing.T) {
		out, _ := tenonIn(t, dir, "mcp", "list", "--json")
		var list serverList
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		got := map[string]string{}
		for _, s := range list.MCPServers {
			got[s.Name] = string(s.Status) + " " + s.Transport
			if len(s.Tools) == 0 {
				t.Errorf("%s has no tools", s.Name)
			}
		}
		want := map[string]string{"everything": "connected stdio", "files": "connected stdio", "streamable": "connected http", "events": "connected sse"}
		for name, w := range want {
			if got[name] != w {
				t.Errorf("%s is %q, want %q: %s", name, got[name], w, out)
			}
		}
	})
	t.Run("tools", func(t *testing.T) {
		out, _ := tenonIn(t, dir, "mcp", "tools")
		for _, name := range []string{"mcp__everything__echo", "mcp__files__read_text_file", "mcp__streamable__echo", "mcp__events__echo"} {
			if !strings.Contains(out, name+" ") {
				t.Errorf("no %s in\n%s", name, out)
			}
		}
	})
	for _, server := range []string{"everything", "streamable", "events"} {
		t.Run("call "+server, func(t *testing.T) {
			out, _ := tenonIn(t, dir, "mcp", "call", server, "get-sum", `{"a": 19, "b": 23}`)
			if !strings.Contains(out, "42") {
				t.Errorf("19 + 23 = %s", out)
			}
		})
	}
	t.Run("call files", func(t *testing.T) {
		out, _ := tenonIn(t, dir, "mcp", "call", "files", "read_text_file", `{"path": "notes.txt"}`)
		if !strings.Contains(out, "under the mat") {
			t.Errorf("the file reads %s", out)
		}
	})
}

// One run reads a file through one server and adds numbers through another.
func TestRealServersInOneOfflineRun(t *testing.T) {
	dir := realServers(t)
	prompt := `@mcp__files__read_text_file {"path": "notes.txt"} @mcp__everything__get-sum {"a": 19, "b": 23}
@mcp__streamable__get-sum {"a": 1, "b": 2}`
	rules := "mcp__files__read_text_file, mcp__everything, mcp__streamable__get-sum"

	out, errs := tenonIn(t, dir, "run", "--offline", prompt, "--allowedTools", rules)
	for _, want := range []string{"under the mat", "42", "3"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in the answer\n%s", want, out)
		}
	}
	if errs != "" {
		t.Errorf("stderr: %s", errs)
	}

	out, _ = tenonIn(t, dir, "run", "--offline", prompt, "--allowedTools", rules, "--output-format", "stream-json")
	var kinds []string
	for line := range strings.Lines(out) {
		m, err := agent.DecodeMessage(json.RawMessage(line))
		if err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		switch m := m.(type) {
		case *agent.SystemInit:
			kinds = append(kinds, "init")
		case *agent.Assistant:
			for _, use := range m.ToolUses() {
				kinds = append(kinds, use.Name)
			}
		case *agent.Result:
			kinds = append(kinds, m.Subtype)
		}
	}
	want := "init mcp__files__read_text_file mcp__everything__get-sum mcp__streamable__get-sum success"
	if got := strings.Join(kinds, " "); got != want {
		t.Errorf("the run was %q, want %q", got, want)
	}
}
