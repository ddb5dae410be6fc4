package claudecode

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// fakeCLI is the other end of the control protocol, for what the real CLI will not do. Its mode is
// in CLAUDECODE_TEST_MODE.
type fakeCLI struct {
	mode  string
	in    *bufio.Scanner
	hello struct {
		SDKServers []string                   `json:"sdkMcpServers"`
		MCPServers map[string]json.RawMessage `json:"mcpServers"`
		System     []string                   `json:"systemPrompt"`
	}
	helloLine string
	next      int
	heard     []string // requests of the program's servers
}

func fakeMain() { newFakeCLI().run() }

func newFakeCLI() *fakeCLI {
	f := &fakeCLI{mode: os.Getenv("CLAUDECODE_TEST_MODE"), in: bufio.NewScanner(os.Stdin)}
	f.in.Buffer(nil, 64<<20)
	return f
}

func (f *fakeCLI) die(text string, code int) {
	fmt.Fprintln(os.Stderr, text)
	os.Exit(code)
}

func say(v any) {
	data, _ := json.Marshal(v)
	fmt.Println(string(data))
}

type object = map[string]any

func (f *fakeCLI) run() {
	if f.mode == "dies-at-start" {
		f.die("cannot start: bad config", 7)
	}
	if f.mode == "ancient" {
		if slices.Contains(os.Args, "--version") {
			fmt.Println("2.1.197 (Claude Code)")
			return
		}
		f.die("error: unknown option '--await-initialize'", 1)
	}
	for f.in.Scan() {
		var line struct {
			Type      string          `json:"type"`
			RequestID string          `json:"request_id"`
			Request   json.RawMessage `json:"request"`
			UUID      string          `json:"uuid"`
		}
		if json.Unmarshal(f.in.Bytes(), &line) != nil {
			f.die("malformed input", 1)
		}
		switch line.Type {
		case "control_request":
			f.control(line.RequestID, line.Request)
		case "user":
			f.turn(line.UUID)
		}
	}
	if f.mode == "deaf" {
		select {}
	}
}

func (f *fakeCLI) control(id string, request json.RawMessage) {
	var r struct {
		Subtype string `json:"subtype"`
	}
	_ = json.Unmarshal(request, &r)
	answer := object{"claude_code_version": "2.1.332"}
	switch {
	case f.mode == "deaf":
		return
	case f.mode == "dies-at-"+r.Subtype:
		f.die("gone at "+r.Subtype, 7)
	case r.Subtype == "initialize":
		f.helloLine = string(request)
		_ = json.Unmarshal(request, &f.hello)
		for _, name := range f.hello.SDKServers {
			f.handshake(name)
		}
	case r.Subtype == "set_permission_mode":
		say(object{"type": "control_response", "response": object{"subtype": "error", "request_id": id, "error": "no such mode", "error_code": "invalid_mode"}})
		return
	}
	if f.mode == "old" {
		answer["claude_code_version"] = "2.1.200"
	}
	say(object{"type": "control_response", "response": object{"subtype": "success", "request_id": id, "response": answer}})
}

// listen takes a line that is no answer: requests are remembered and acknowledged.
func (f *fakeCLI) listen(line []byte) {
	var m struct {
		Type      string `json:"type"`
		RequestID string `json:"request_id"`
	}
	if json.Unmarshal(line, &m) == nil && m.Type == "control_request" {
		f.heard = append(f.heard, string(line))
		say(object{"type": "control_response", "response": object{"subtype": "success", "request_id": m.RequestID}})
	}
}

// ask sends a control request and returns the answer to it; other lines are put aside.
func (f *fakeCLI) ask(request object) json.RawMessage {
	f.next++
	id := fmt.Sprintf("cli-%d", f.next)
	say(object{"type": "control_request", "request_id": id, "request": request})
	for f.in.Scan() {
		var line struct {
			Type     string `json:"type"`
			Response struct {
				RequestID string          `json:"request_id"`
				Subtype   string          `json:"subtype"`
				Response  json.RawMessage `json:"response"`
				Error     string          `json:"error"`
			} `json:"response"`
		}
		if json.Unmarshal(f.in.Bytes(), &line) == nil && line.Type == "control_response" && line.Response.RequestID == id {
			if line.Response.Subtype != "success" {
				return json.RawMessage(fmt.Sprintf(`{"error":%q}`, line.Response.Error))
			}
			return line.Response.Response
		}
		f.listen(f.in.Bytes())
	}
	os.Exit(0)
	return nil
}

func (f *fakeCLI) mcp(server, message string) string {
	var r struct {
		Reply json.RawMessage `json:"mcp_response"`
	}
	_ = json.Unmarshal(f.ask(object{"subtype": "mcp_message", "server_name": server, "message": json.RawMessage(message)}), &r)
	return string(r.Reply)
}

func (f *fakeCLI) handshake(server string) {
	f.mcp(server, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"claude-code","version":"2.1.332"}}}`)
	if got := f.mcp(server, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); got == "" {
		f.die("a notification was not acknowledged", 1)
	}
	f.mcp(server, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
}

// turn answers with what it was told at the start and what the tools said.
func (f *fakeCLI) turn(uuid string) {
	if f.mode == "closes-stdin" {
		os.Stdin.Close()
		fmt.Println(`{"type":"system","subtype":"init"}`)
		select {}
	}
	if f.mode == "deaf-in-turn" {
		return
	}
	if f.mode == "dies-in-turn" {
		f.die("out of memory", 9)
	}
	if f.mode == "noise" {
		fmt.Println("warning: this is no JSON")
		fmt.Println(`{"no":"type"}`)
		fmt.Println(`{"type":"rate_limit_event","limit":1}`)
		say(object{"type": "control_request", "request_id": "odd-1", "request": object{"subtype": "make_coffee"}})
		say(object{"type": "control_response", "response": object{"subtype": "success", "request_id": "nobody-asked"}})
		say(object{"type": "control_cancel_request", "request_id": "never-sent"})
		fmt.Println(`{"type":"system","subtype":"brand_new","x":1}`)
		fmt.Println(strings.Repeat(" ", 1<<20) + `{"type":"keep_alive"}`)
	}
	say(object{"type": "system", "subtype": "init", "session_id": "s", "mcp_servers": []any{}})
	text := f.helloLine
	for _, name := range f.hello.SDKServers {
		text += "\n" + f.mcp(name, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}`)
	}
	say(object{"type": "assistant", "message": object{"id": "m", "role": "assistant", "model": "fake", "content": []any{object{"type": "text", "text": text}}}})
	say(object{"type": "result", "subtype": "success", "result": text, "user_message_uuids": []string{uuid}})
	say(object{"type": "system", "subtype": "session_state_changed", "state": "idle", "sdk_host_only": true})
}
