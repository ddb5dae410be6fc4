package claudecode

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/internal/kit"
	"github.com/tenon-sdk/tenon/internal/peers"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
	"github.com/tenon-sdk/tenon/permission"
)

// What the CLI may have rounded on its way to a tool that came too late for the stream is not taken for what was meant.
func TestUnsafeIntegers(t *testing.T) {
	for args, want := range map[string]string{
		`{}`: "", `{"a":1,"b":[9007199254740991,-9007199254740991],"c":0.30000000000000004,"d":"12345678901234567890"}`: "",
		`{"id":9007199254740992}`:                      "9007199254740992",
		`{"id":-12345678901234567000}`:                 "-12345678901234567000",
		`{"a":{"b":[1,{"c":1.2345678901234568e+24}]}}`: "1.2345678901234568e+24",
		`[10000000000000000]`:                          "10000000000000000",
		`no JSON 12345678901234567890`:                 "",
	} {
		if got := unsafeInteger(json.RawMessage(args)); got != want {
			t.Errorf("%s: got %q, want %q", args, got, want)
		}
	}
}

// A program hands on what it was told: that makes an integer that the CLI may have rounded no more certain.
// What it puts there itself is.
func TestHandedOnIntegersStayUncertain(t *testing.T) {
	const told = `{"id":12345678901234567000,"note":"a"}`
	for given, certain := range map[string]bool{
		told:                                     false,
		`{"note":"b","id":12345678901234567000}`: false,
		`{"id":12345678901234567168}`:            false, // what a float64 is in full
		`{"id":1.2345678901234567e+19}`:          false,
		`{"list":[12345678901234567000]}`:        false,
		`{"id":12345678901234567890}`:            true,
		`{"id":98765432109876543210}`:            true,
	} {
		answers := map[string]func(s *session) (any, error){
			"a verdict": func(s *session) (any, error) {
				s.opts.CanUseTool = func(context.Context, *agent.ToolRequest) (*permission.PromptResult, error) {
					return &permission.PromptResult{Behavior: permission.Allow, UpdatedInput: json.RawMessage(given)}, nil
				}
				return s.serve(t.Context(), "can_use_tool", json.RawMessage(`{"tool_name":"t","tool_use_id":"call","input":`+told+`}`))
			},
			"a typed hook": func(s *session) (any, error) {
				s.hooks.funcs["h"] = func(context.Context, json.RawMessage) (any, error) {
					return &kit.HookReply{Specific: kit.HookSpecifics{UpdatedInput: json.RawMessage(given)}}, nil
				}
				return s.serve(t.Context(), "hook_callback", json.RawMessage(`{"callback_id":"h","input":{"tool_use_id":"call","tool_input":`+told+`}}`))
			},
			"a hook": func(s *session) (any, error) {
				s.hooks.funcs["h"] = func(context.Context, json.RawMessage) (any, error) {
					return json.RawMessage(`{"hookSpecificOutput":{"updatedInput":` + given + `}}`), nil
				}
				return s.serve(t.Context(), "hook_callback", json.RawMessage(`{"callback_id":"h","input":{"tool_use_id":"call","tool_input":`+told+`}}`))
			},
		}
		for by, answer := range answers {
			s := sessionOf(t, &agent.Options{})
			if _, err := answer(s); err != nil {
				t.Error(err)
			}
			var rounded any
			if err := json.Unmarshal([]byte(given), &rounded); err != nil {
				t.Fatal(err)
			}
			cli, err := json.Marshal(rounded)
			if err != nil {
				t.Fatal(err)
			}
			args := s.inputs.inCall("call", cli)
			refused := unsafeInteger(args) != "" && !s.inputs.certain("call", args)
			if refused == certain {
				t.Errorf("%s gives %s, the call has %s: refused %v", by, given, args, refused)
			}
		}
	}
}

func TestIsLossless(t *testing.T) {
	for raw, want := range map[string]bool{
		`{"a":1,"b":0,"c":[123456789012345,"1.5"],"d":"x1e5"}`: true, `0`: true, `-1`: true, `1.5`: true, `"AB-000000000000000001"`: true, `null`: true,
		`9007199254740993`: false, `1.50`: false, `1e3`: false, `{"a":12345678901234567890}`: false, `{`: false, ``: false,
	} {
		if got := isLossless(json.RawMessage(raw)); got != want {
			t.Errorf("%s: got %v", raw, got)
		}
	}
}

// The CLI repeats the model's stream if a tool that is known in time may take numbers, or is not known.
func TestStreamIsReadForNumbers(t *testing.T) {
	slow := func(d time.Duration) mcpserver.Provider {
		return &slowServer{Server: taking(t, textTool), wait: d}
	}
	tests := map[string]struct {
		o    *agent.Options
		want bool
	}{
		"no servers":  {&agent.Options{}, false},
		"texts":       {inProcess(map[string]mcpserver.Provider{"a": taking(t, textTool), "b": taking(t)}), false},
		"an integer":  {inProcess(map[string]mcpserver.Provider{"a": taking(t, textTool), "b": taking(t, textTool, numberTool)}), true},
		"anything":    {inProcess(map[string]mcpserver.Provider{"a": taking(t, `{"type":"object"}`)}), true},
		"in time":     {inProcess(map[string]mcpserver.Provider{"a": slow(listWait - 1)}), false},
		"a late list": {inProcess(map[string]mcpserver.Provider{"a": slow(listWait + 1)}), true},
	}
	synctest.Test(t, func(t *testing.T) {
		for name, tt := range tests {
			s := sessionOf(t, tt.o)
			if got := s.servers.takeNumbers(t.Context()); got != tt.want {
				t.Errorf("%s: %v, want %v", name, got, tt.want)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// A slowServer takes its time for the list of its tools.
type slowServer struct {
	*mcpserver.Server
	wait time.Duration
}

func (p *slowServer) OpenSession(ctx context.Context, o *mcpserver.SessionOptions) (mcpserver.ServerSession, error) {
	ss, err := p.Server.OpenSession(ctx, o)
	return &slowSession{ss, p.wait}, err
}

type slowSession struct {
	mcpserver.ServerSession
	wait time.Duration
}

func (s *slowSession) ListTools(ctx context.Context) ([]*mcp.Tool, error) {
	select {
	case <-time.After(s.wait):
		return s.ServerSession.ListTools(ctx)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// A session that begins without a tool that takes numbers has no stream. A server that joins later gets
// the integers that are certain. A call with another is refused, and the log says so.
func TestRealLateIntegers(t *testing.T) {
	peers.ClaudePath(t)
	m := modeltest.New(t, modeltest.Text("one"),
		modeltest.ToolUseID("small", "mcp__a__tool0", `{"id":9007199254740991}`),
		modeltest.ToolUseID("big", "mcp__a__tool0", `{"id":12345678901234567890}`), modeltest.Text("two"))
	var log bytes.Buffer
	o := &agent.Options{AllowedTools: []string{"mcp__a__*"}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	e, _ := realWith(t, m, &Options{})
	client, err := agent.Open(t.Context(), e, o)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	turn := func() map[string]*agent.ToolResultBlock {
		t.Helper()
		if err := client.Send(t.Context(), "go on"); err != nil {
			t.Fatal(err)
		}
		results := map[string]*agent.ToolResultBlock{}
		for msg, err := range client.Response(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if u, ok := msg.(*agent.User); ok {
				for _, r := range u.ToolResults() {
					results[r.ToolUseID] = r
				}
			}
		}
		return results
	}
	turn()
	if _, err := client.SetMCPServers(t.Context(), inProcess(map[string]mcpserver.Provider{"a": taking(t, numberTool)}).MCPServers); err != nil {
		t.Fatal(err)
	}
	untilListed(t, client, "a", "tool0")
	late := turn()
	if got := late["small"]; got == nil || got.IsError || got.Text() != `got {"id":9007199254740991}` {
		t.Errorf("a small integer: %+v", got)
	}
	if got := late["big"]; got == nil || !got.IsError || !strings.Contains(got.Text(), "integer 12345678901234567000") || !strings.Contains(got.Text(), "as a string") {
		t.Errorf("a big integer: %+v", got)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"Options.IncludePartialMessages", "server=a", "tool=tool0"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q: %s", want, log.String())
		}
	}
}
