//go:build linux

// Command clifloor is the least that a program must do to host the Claude Code CLI: it starts it with
// the flags of engine/claudecode, reads its lines, and answers what it asks with fixed texts. What it
// costs is what any such program pays for being woken by each line. The benchmarks build and start it.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec" //nolint:depguard // the least program does without internal/subproc
	"syscall"
	"time"
)

func main() {
	claude := flag.String("claude", "", "the CLI")
	flag.Parse()
	if err := run(*claude); err != nil {
		fmt.Fprintln(os.Stderr, "clifloor:", err)
		os.Exit(1)
	}
}

func run(claude string) error {
	cmd := exec.Command(
		claude, "--output-format=stream-json", "--verbose", "--input-format=stream-json", "--await-initialize",
		"--allowedTools=mcp__bench__*", "--permission-prompt-tool=stdio",
		"--tools=", "--setting-sources=", "--strict-mcp-config", "--no-session-persistence",
	)
	cmd.Env = append(os.Environ(), "ENABLE_TOOL_SEARCH=false")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = talk(stdin, stdout)
	return errors.Join(err, stdin.Close(), cmd.Wait(), report())
}

const (
	hello    = `{"type":"control_request","request_id":"1","request":{"subtype":"initialize","sdkMcpServers":["bench"]}}`
	question = `{"type":"user","message":{"role":"user","content":"question"},"parent_tool_use_id":null}`
)

// talk asks the question and answers the CLI's requests until it has the result.
func talk(stdin io.Writer, stdout io.Reader) error {
	if _, err := io.WriteString(stdin, hello+"\n"+question+"\n"); err != nil {
		return err
	}
	lines := bufio.NewReaderSize(stdout, 1<<20)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return fmt.Errorf("no result: %w", err)
		}
		switch {
		case bytes.HasPrefix(line, []byte(`{"type":"control_request"`)):
			if err := answer(stdin, line); err != nil {
				return err
			}
		case bytes.HasPrefix(line, []byte(`{"type":`)):
		case bytes.Contains(line, []byte(`"type":"result"`)): // a result has its type further back
			return nil
		}
	}
}

func answer(stdin io.Writer, line []byte) error {
	var m struct {
		ID      string `json:"request_id"`
		Request struct {
			Message struct {
				ID     json.RawMessage `json:"id"`
				Method string          `json:"method"`
			} `json:"message"`
		} `json:"request"`
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return err
	}
	id, result := string(m.Request.Message.ID), "{}"
	if id == "" {
		id = "0" // a notification is acknowledged, too
	}
	switch m.Request.Message.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}`
	case "tools/list":
		result = `{"tools":[{"name":"lookup","description":"Find an article on the shelves","annotations":{"readOnlyHint":true},` +
			`"inputSchema":{"type":"object","properties":{"sku":{"type":"string"}},"required":["sku"]}}]}`
	case "tools/call":
		result = `{"content":[{"type":"text","text":"{\"quantity\":7,\"shelf\":\"C3\"}"}],"structuredContent":{"quantity":7,"shelf":"C3"}}`
	}
	_, err := fmt.Fprintf(stdin, `{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":{"mcp_response":`+
		`{"jsonrpc":"2.0","id":%s,"result":%s}}}}`+"\n", m.ID, id, result)
	return err
}

// report says what this process alone has used.
func report() error {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return err
	}
	cpu := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	return json.NewEncoder(os.Stdout).Encode(map[string]float64{"CPU": float64(cpu.Microseconds()) / 1000})
}
