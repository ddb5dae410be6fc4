package claudecode

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
)

func init() { children["trapper"] = trapperMain }

// A step is a JSON-RPC message of a scripted CLI to a server in the program's process. Steps follow
// each other's answers, but for those with Later, whose answers are awaited at the end.
type step struct {
	Server  string          `json:"server,omitempty"` // "mine" if empty
	Message json.RawMessage `json:"message,omitempty"`
	Later   bool            `json:"later,omitempty"`
	// Hear waits for a message of the server's own that has the text in it, in place of sending one.
	Hear string `json:"hear,omitempty"`
}

// trapper is a CLI that, in a turn, takes the steps in its environment and answers with the lines
// that it got for each.
type trapper struct {
	*fakeCLI
	answers map[string]json.RawMessage
}

func trapperMain() {
	f := &trapper{newFakeCLI(), map[string]json.RawMessage{}}
	var steps []step
	if json.Unmarshal([]byte(os.Getenv("CLAUDECODE_TEST_STEPS")), &steps) != nil {
		os.Exit(2)
	}
	for f.in.Scan() {
		var m struct {
			Type      string          `json:"type"`
			RequestID string          `json:"request_id"`
			Request   json.RawMessage `json:"request"`
			UUID      string          `json:"uuid"`
		}
		if json.Unmarshal(f.in.Bytes(), &m) != nil {
			os.Exit(2)
		}
		switch m.Type {
		case "control_request":
			f.control(m.RequestID, m.Request)
		case "user":
			text := f.take(steps)
			say(object{"type": "system", "subtype": "init", "session_id": "s"})
			say(object{"type": "result", "subtype": "success", "result": text, "user_message_uuids": []string{m.UUID}})
			say(object{"type": "system", "subtype": "session_state_changed", "state": "idle", "sdk_host_only": true})
		}
	}
}

func (f *trapper) take(steps []step) string {
	ids := make([]string, len(steps))
	for i, s := range steps {
		if s.Hear != "" {
			f.until(func() bool {
				return slices.ContainsFunc(f.heard, func(line string) bool { return strings.Contains(line, s.Hear) })
			})
			continue
		}
		if s.Server == "" {
			s.Server = "mine"
		}
		ids[i] = fmt.Sprintf("step-%d", i)
		say(object{"type": "control_request", "request_id": ids[i], "request": object{"subtype": "mcp_message", "server_name": s.Server, "message": s.Message}})
		if !s.Later {
			f.until(func() bool { return f.answers[ids[i]] != nil })
		}
	}
	lines := make([]string, len(steps))
	for i, id := range ids {
		if id != "" {
			f.until(func() bool { return f.answers[id] != nil })
			lines[i] = string(f.answers[id])
		}
	}
	return strings.Join(lines, "\n")
}

// until reads what the program says; its requests are acknowledged.
func (f *trapper) until(done func() bool) {
	for !done() {
		if !f.in.Scan() {
			os.Exit(0)
		}
		var m struct {
			Type     string          `json:"type"`
			Response json.RawMessage `json:"response"`
		}
		if json.Unmarshal(f.in.Bytes(), &m) != nil {
			os.Exit(2)
		}
		if m.Type != "control_response" {
			f.listen(f.in.Bytes())
			continue
		}
		var a struct {
			RequestID string `json:"request_id"`
		}
		_ = json.Unmarshal(m.Response, &a)
		f.answers[a.RequestID] = m.Response
	}
}

// A trapped answer is a control_response to a step, with the JSON-RPC reply in it.
type trapped struct {
	Subtype  string `json:"subtype"`
	Error    string `json:"error"`
	Response struct {
		Reply *reply `json:"mcp_response"`
	} `json:"response"`
}

type reply struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Code    *int    `json:"code"`
		Message *string `json:"message"`
	} `json:"error"`
}

// trap has a scripted CLI take steps with servers, and returns the answers that it got.
func trap(t *testing.T, servers map[string]mcphost.ServerConfig, steps ...step) []trapped {
	t.Helper()
	script, err := json.Marshal(steps)
	if err != nil {
		t.Fatal(err)
	}
	e, o := fake("polite")
	o.Env["CLAUDECODE_TEST_CHILD"], o.Env["CLAUDECODE_TEST_STEPS"] = "trapper", string(script)
	o.MCPServers = servers
	msgs, err := ask(t, e, o)
	if err != nil {
		t.Fatal(err)
	}
	r, ok := msgs[len(msgs)-1].(*agent.Result)
	if !ok {
		t.Fatalf("the last message is %T", msgs[len(msgs)-1])
	}
	all := make([]trapped, len(steps))
	for i, line := range strings.Split(r.Result, "\n") {
		if line == "" {
			continue
		}
		if err := json.Unmarshal([]byte(line), &all[i]); err != nil {
			t.Fatalf("step %d was answered %s: %v", i, line, err)
		}
		t.Logf("step %d: %s", i, line)
	}
	return all
}

func mine(p mcpserver.Provider) map[string]mcphost.ServerConfig {
	return map[string]mcphost.ServerConfig{"mine": mcphost.InProcess(p)}
}

func rpc(id, method, params string) step {
	text := `{"jsonrpc":"2.0"`
	if id != "" {
		text += `,"id":` + id
	}
	text += `,"method":"` + method + `"`
	if params != "" {
		text += `,"params":` + params
	}
	return step{Message: json.RawMessage(text + "}")}
}

func hello(version string) step {
	return rpc("0", "initialize", `{"protocolVersion":"`+version+`","capabilities":{},"clientInfo":{"name":"claude-code","version":"2.1.332"}}`)
}

// trapServer has tools that go wrong in each way.
func trapServer(t *testing.T) *mcpserver.Server {
	t.Helper()
	s := echo(t)
	for name, h := range map[string]func(context.Context) (*mcpserver.Result, error){
		"fails":  func(context.Context) (*mcpserver.Result, error) { return nil, errors.New("out of stock") },
		"panics": func(context.Context) (*mcpserver.Result, error) { panic("oops") },
		"waits":  func(ctx context.Context) (*mcpserver.Result, error) { <-ctx.Done(); return nil, context.Cause(ctx) },
		"grows": func(context.Context) (*mcpserver.Result, error) {
			err := s.AddTool(&mcpserver.Tool{Name: "grown", InputSchema: json.RawMessage(`{"type":"object"}`)},
				func(context.Context, json.RawMessage) (*mcpserver.Result, error) { return mcpserver.Text("new"), nil })
			return mcpserver.Text("grew"), err
		},
	} {
		err := s.AddTool(&mcpserver.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) { return h(ctx) })
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// Trap 3.4.1: a notification that gets no answer, or an error, makes the server "failed". So does
// the acknowledgement's lack of a result; one that nobody knows is acknowledged as well.
// Trap 3.4.2: answers of the CLI to a server's requests, and late ones, come as new requests with an
// id and no method, and are acknowledged like notifications.
func TestTrapNotificationsAreAcknowledged(t *testing.T) {
	for i, a := range trap(t, mine(echo(t)),
		rpc("", "notifications/initialized", ""),
		rpc("", "notifications/cancelled", `{"requestId":77,"reason":"SdkError: Request timed out"}`),
		rpc("", "notifications/made_up", `7`),
		step{Message: json.RawMessage(`{"jsonrpc":"2.0","id":"tenon-99","result":{}}`)},
		step{Message: json.RawMessage(`{"jsonrpc":"2.0","id":5,"error":{"code":-32601,"message":"Method not found"}}`)},
	) {
		if r := a.Response.Reply; a.Subtype != "success" || r == nil || r.Version != "2.0" || string(r.Result) != "{}" || r.Error != nil {
			t.Errorf("step %d: %+v", i, a)
		}
	}
}

// Trap 3.4.3: the CLI takes no version after 2025-11-25 and no answer without serverInfo; and
// without the capability for tools it never lists them, not even later.
func TestTrapHandshake(t *testing.T) {
	accepted := []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}
	empty := mcpserver.New("empty", nil)
	for _, p := range []mcpserver.Provider{echo(t), empty} {
		for i, a := range trap(t, mine(p), hello("2025-11-25"), hello("2026-06-18"), hello("2026-07-28"), hello("1999-01-01"), hello("2024-11-05")) {
			var r mcp.InitializeResult
			if a.Response.Reply == nil || json.Unmarshal(a.Response.Reply.Result, &r) != nil {
				t.Fatalf("step %d: %+v", i, a)
			}
			if !slices.Contains(accepted, r.ProtocolVersion) || r.ServerInfo == nil || r.ServerInfo.Name == "" || r.ServerInfo.Version == "" || r.Capabilities.Tools == nil {
				t.Errorf("step %d: %s", i, a.Response.Reply.Result)
			}
		}
	}
}

// Trap 3.4.4: a reply without jsonrpc, with another id, with both or neither of result and error, or
// with an error that lacks its code or message is dropped in silence, and the call hangs.
// Trap 3.4.5: of a JSON-RPC error the model gets the bare message, so what a tool has to say is a
// result, and the message for a tool that is not there names it. Arguments are not checked by the CLI, so they are by the server.
func TestTrapRepliesAreWellFormed(t *testing.T) {
	steps := []step{
		rpc("0", "ping", ""), rpc(`"7"`, "ping", ""), rpc("1048576", "tools/list", ""), rpc("9007199254740993", "ping", ""),
		rpc("2", "no/such/method", `{}`), rpc("3", "tools/call", `7`), rpc("4", "tools/call", ""),
		rpc("5", "resources/read", `{"uri":"x://y"}`), rpc("6", "tools/list", `{"cursor":"odd"}`),
	}
	const tools = 5
	for i, call := range []string{`"fails"`, `"panics"`, `"missing"`, `"echo","arguments":{"text":7}`, `"echo","arguments":{}`} {
		steps = append(steps, rpc(fmt.Sprint(10+i), "tools/call", `{"name":`+call+`,"_meta":{"claudecode/toolUseId":"toolu_1","progressToken":`+fmt.Sprint(10+i)+`}}`))
	}
	for i, a := range trap(t, mine(trapServer(t)), steps...) {
		var sent struct{ ID json.RawMessage }
		if err := json.Unmarshal(steps[i].Message, &sent); err != nil {
			t.Fatal(err)
		}
		r := a.Response.Reply
		switch {
		case a.Subtype != "success" || r == nil:
			t.Errorf("step %d: %+v", i, a)
		case r.Version != "2.0" || !bytes.Equal(r.ID, sent.ID) || (len(r.Result) > 0) == (r.Error != nil):
			t.Errorf("step %d: the reply to %s is malformed: %+v", i, steps[i].Message, r)
		case r.Error != nil && (r.Error.Code == nil || r.Error.Message == nil || *r.Error.Message == ""):
			t.Errorf("step %d: the error is %+v", i, r.Error)
		case r.Error != nil && i >= len(steps)-tools && !strings.Contains(*r.Error.Message, "'missing'"):
			t.Errorf("step %d: the model would read %q", i, *r.Error.Message)
		case r.Error == nil && i >= len(steps)-tools && !strings.Contains(string(r.Result), `"isError":true`):
			t.Errorf("step %d: a failed call is answered %s", i, r.Result)
		}
	}
}

// Trap 3.4.6: an error in place of an answer fails the one request with its text; a name that no
// server has must not be met with silence.
func TestTrapUnknownServer(t *testing.T) {
	all := trap(t, mine(echo(t)), step{Server: "nobody", Message: rpc("2", "tools/list", "").Message}, rpc("3", "ping", ""))
	if all[0].Subtype != "error" || !strings.Contains(all[0].Error, `"nobody"`) || all[1].Subtype != "success" {
		t.Errorf("got %+v", all)
	}
}

// Trap 3.4.7: when one server fails, the CLI shakes hands with its healthy siblings anew: ids begin
// at 0 again while calls of the first handshake still run under the same ids.
// Trap 3.4.8: an interrupt comes as notifications/cancelled, and not as control_cancel_request; the
// cancelled request's control request still has to be answered.
func TestTrapHandshakeAgainWhileACallRuns(t *testing.T) {
	waits := rpc("2", "tools/call", `{"name":"waits"}`)
	waits.Later = true
	all := trap(t, mine(trapServer(t)), waits,
		hello("2025-11-25"), rpc("", "notifications/initialized", ""), rpc("1", "tools/list", ""),
		rpc("3", "tools/call", `{"name":"echo","arguments":{"text":"hello"}}`),
		rpc("", "notifications/cancelled", `{"requestId":2,"reason":"AbortError: remote-cancel"}`),
		rpc("2", "tools/call", `{"name":"echo","arguments":{"text":"again"}}`))
	for i, want := range map[int]string{3: `"waits"`, 4: "hello yourself", 6: "again yourself"} {
		if r := all[i].Response.Reply; r == nil || !strings.Contains(string(r.Result), want) {
			t.Errorf("step %d: %+v, want %s", i, all[i], want)
		}
	}
	if all[0].Subtype != "success" {
		t.Errorf("the cancelled call: %+v", all[0])
	}
}

// Trap 3.4.9: a server that is slow delays neither its siblings nor its own other calls.
func TestTrapSlowServerDelaysNobody(t *testing.T) {
	slow := rpc("2", "tools/call", `{"name":"waits"}`)
	slow.Later, slow.Server = true, "slow"
	end := rpc("", "notifications/cancelled", `{"requestId":2}`)
	end.Server = "slow"
	sibling := rpc("3", "tools/list", "")
	sibling.Server = "slow"
	all := trap(t, map[string]mcphost.ServerConfig{"slow": mcphost.InProcess(trapServer(t)), "mine": mcphost.InProcess(echo(t))},
		slow, rpc("2", "tools/call", `{"name":"echo","arguments":{"text":"hello"}}`), sibling, end)
	if r := all[1].Response.Reply; r == nil || !strings.Contains(string(r.Result), "hello yourself") {
		t.Errorf("got %+v", all[1])
	}
}

// Trap 3.4.10: the CLI asks for tools again only when it is told, by a control request of ours.
func TestTrapListChanged(t *testing.T) {
	all := trap(t, mine(trapServer(t)), rpc("2", "tools/call", `{"name":"grows"}`),
		step{Hear: "notifications/tools/list_changed"}, rpc("3", "tools/list", ""), rpc("4", "tools/call", `{"name":"grown"}`))
	for i, want := range map[int]string{2: `"grown"`, 3: `"new"`} {
		if r := all[i].Response.Reply; r == nil || !strings.Contains(string(r.Result), want) {
			t.Errorf("step %d: %+v, want %s", i, all[i], want)
		}
	}
}

// Trap 3.4.11: a list that comes in pages is followed by cursor; no tool is lost, and none comes twice.
func TestTrapPages(t *testing.T) {
	s := mcpserver.New("many", nil)
	const tools = 700
	for i := range tools {
		if err := mcpserver.AddTool(s, &mcpserver.Tool{Name: fmt.Sprintf("t%03d", i)}, func(context.Context, struct{}) (string, error) { return "", nil }); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for params := `{}`; params != ""; {
		r := trap(t, mine(s), rpc("1", "tools/list", params))[0].Response.Reply
		var page mcp.ListToolsResult
		if r == nil || json.Unmarshal(r.Result, &page) != nil {
			t.Fatalf("got %+v", r)
		}
		for _, tool := range page.Tools {
			if seen[tool.Name] {
				t.Errorf("%s comes twice", tool.Name)
			}
			seen[tool.Name] = true
		}
		params = ""
		if page.NextCursor != "" {
			params = fmt.Sprintf(`{"cursor":%q}`, page.NextCursor)
		}
	}
	if len(seen) != tools {
		t.Errorf("%d tools, want %d", len(seen), tools)
	}
}

// Trap 3.4.12: the limit of a call is the CLI's own unless it is told another, below 1000 ms it is
// ignored, and progress does not extend it. The server's limit is ours, so the CLI's is out of the way.
func TestTrapLimitOfACall(t *testing.T) {
	e, o := fake("polite")
	o.MCPServers = map[string]mcphost.ServerConfig{"mine": mcphost.InProcessServer{Provider: echo(t), Common: mcphost.Common{CallTimeout: 500 * time.Millisecond}}}
	msgs, err := ask(t, e, o)
	if err != nil {
		t.Fatal(err)
	}
	if r, ok := msgs[len(msgs)-1].(*agent.Result); !ok || !strings.Contains(r.Result, `"sdkMcpServerConfigs":{"mine":{"timeout":100000000}}`) {
		t.Errorf("told %+v", msgs[len(msgs)-1])
	}
}

// Trap 3.4.13: the CLI says nothing when it lets a server go; the server's session ends with the run.
//
// fault F20
func TestTrapNobodySaysGoodbye(t *testing.T) {
	p := &partingProvider{echo(t), make(chan struct{}, 10)}
	trap(t, mine(p), rpc("2", "ping", ""))
	await(t, p.ended, "the end of the server's session")
}

type partingProvider struct {
	*mcpserver.Server
	ended chan struct{}
}

func (p *partingProvider) OpenSession(ctx context.Context, o *mcpserver.SessionOptions) (mcpserver.ServerSession, error) {
	s, err := p.Server.OpenSession(ctx, o)
	return &partingSession{s, p.ended}, err
}

type partingSession struct {
	mcpserver.ServerSession
	ended chan struct{}
}

func (s *partingSession) Close() error {
	s.ended <- struct{}{}
	return s.ServerSession.Close()
}
