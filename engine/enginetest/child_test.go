package enginetest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcpbridge"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

// A seen is what the child sees of the world.
type seen struct {
	Notes  string `json:"notes"`            // what is in the file that its last argument names
	Word   string `json:"word"`             // ENGINETEST_WORD
	Parent string `json:"parent"`           // ENGINETEST_PARENT
	Clash  string `json:"clash"`            // ENGINETEST_CLASH
	Secret string `json:"secret,omitempty"` // a credential of the model
}

// serveChild is an MCP server over stdio with one tool, x, that returns what the process sees.
func serveChild(ctx context.Context) {
	s := server("child")
	err := s.AddTool(&mcpserver.Tool{Name: "x", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
		notes, err := os.ReadFile(os.Args[len(os.Args)-1])
		if err != nil {
			return nil, err
		}
		return mcpserver.Structured(seen{string(notes), os.Getenv("ENGINETEST_WORD"), os.Getenv("ENGINETEST_PARENT"), os.Getenv("ENGINETEST_CLASH"), os.Getenv(modelSecret)}), nil
	})
	if err == nil {
		err = mcpbridge.ServeStdio(ctx, s, nil)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A child process, given in code or in a file: it runs in the session's directory, where its relative argument is
// found, and sees the parent's variables with the entry's on top, those of a file expanded. // D05 D50 D58 D59 D99 D100
func childServer(e *env) {
	e.Setenv("ENGINETEST_PARENT", "from the parent")
	e.Setenv("ENGINETEST_CLASH", "the parent's")
	entry := func(word string) mcphost.Stdio {
		c := mcphost.Stdio{Command: e.child.Command, Args: append(append([]string{}, e.child.Args...), "notes"), Env: map[string]string{}}
		for name, value := range e.child.Env {
			c.Env[name] = value
		}
		c.Env["ENGINETEST_WORD"], c.Env["ENGINETEST_CLASH"] = word, "the entry's"
		return c
	}
	for _, where := range []string{"code", "file"} {
		engine := e.script(modeltest.ToolUseID("toolu_1", toolP, `{}`), modeltest.Text("done"))
		c := entry("sesame")
		file := `{"command":"/does/not/exist"}`
		if where == "file" {
			c = entry("${ENGINETEST_TOKEN}")
			data, err := json.Marshal(map[string]any{"command": c.Command, "args": c.Args, "env": c.Env})
			if err != nil {
				e.Fatal(err)
			}
			file = string(data)
		}
		o := &agent.Options{
			Dir: e.project("p", file), AllowedTools: []string{"mcp__p__*"}, SettingSources: []agent.SettingSource{agent.SourceProject},
			Env: map[string]string{"ENGINETEST_TOKEN": "sesame", "CLAUDE_CODE_MCP_STARTUP_WAIT_MS": "20000"},
		}
		if where == "code" { // before the file's of the same name
			o.MCPServers = map[string]mcphost.ServerConfig{"p": c}
		}
		if err := os.WriteFile(filepath.Join(o.Dir, "notes"), []byte("remember"), 0o600); err != nil {
			e.Fatal(err)
		}
		tr, _ := e.answered(engine, "x", o)
		want := `{"notes":"remember","word":"sesame","parent":"from the parent","clash":"the entry's"}`
		if got := tr.toolResult(e, "toolu_1"); got.IsError || !sameJSON(json.RawMessage(got.Text()), json.RawMessage(want)) {
			e.Errorf("in %s: the child sees %s, want %s", where, got.Text(), want)
		}
	}
}
