package mcpbridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpbridge"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// request is one exchange with a bridge, which must answer.
func request(t *testing.T, b *mcpbridge.Bridge, raw string) string {
	t.Helper()
	reply, err := b.Handle(t.Context(), json.RawMessage(raw))
	if err != nil || reply == nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return string(reply)
}

// Each level of the protocol lets itself and what is more severe through.
//
// fault F6
func TestLevelsInTheirOrder(t *testing.T) {
	levels := []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
	s := bare(t, nil)
	err := s.AddTool(&mcpserver.Tool{Name: "all"}, func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
		for _, level := range levels {
			if err := mcpserver.RequestFrom(ctx).Log(ctx, mcp.LoggingLevel(level), "l", level); err != nil {
				return nil, err
			}
		}
		return mcpserver.Text("told"), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, level := range levels {
		for _, stateless := range []bool{true, false} {
			var got []string
			b := mcpbridge.New(s, &mcpbridge.Options{LookupEnv: noEnv, Send: func(_ context.Context, raw json.RawMessage) error {
				var n struct{ Params struct{ Data string } }
				if err := json.Unmarshal(raw, &n); err != nil {
					return err
				}
				got = append(got, n.Params.Data)
				return nil
			}})
			if stateless {
				request(t, b, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"all","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"`+level+`"}}}`)
			} else {
				request(t, b, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
				request(t, b, `{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"`+level+`"}}`)
				request(t, b, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"all"}}`)
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
			if fmt.Sprint(got) != fmt.Sprint(levels[i:]) {
				t.Errorf("at %s, stateless %v: got %q, want %q", level, stateless, got, levels[i:])
			}
		}
	}
}

// A server of the program's own that returns nothing is told from one that fails.
func TestNothingReturnedIsAnError(t *testing.T) {
	b := mcpbridge.New(forgetful{full(t, nil)}, nil)
	defer b.Close()
	for params, want := range map[string]string{
		`"method":"tools/call","params":{"name":"echo"}`:                                                                      `tool \"echo\" has no result`,
		`"method":"prompts/get","params":{"name":"p"}`:                                                                        `the prompt p has no result`,
		`"method":"resources/read","params":{"uri":"mem:r"}`:                                                                  `the resource mem:r has no result`,
		`"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}}`: `the completion has no result`,
	} {
		want := `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"internal error: ` + want + `"}}`
		if got := request(t, b, `{"jsonrpc":"2.0","id":1,`+params+`}`); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// A forgetful server returns nil and no error.
type forgetful struct{ mcpserver.Provider }

func (f forgetful) OpenSession(ctx context.Context, o *mcpserver.SessionOptions) (mcpserver.ServerSession, error) {
	s, err := f.Provider.OpenSession(ctx, o)
	return forgetfulSession{s}, err
}

type forgetfulSession struct{ mcpserver.ServerSession }

func (forgetfulSession) CallTool(context.Context, mcpserver.Call) (*mcpserver.Result, error) {
	return nil, nil
}

func (forgetfulSession) GetPrompt(context.Context, string, map[string]string) (*mcp.GetPromptResult, error) {
	return nil, nil
}

func (forgetfulSession) ReadResource(context.Context, string) (*mcp.ReadResourceResult, error) {
	return nil, nil
}

func (forgetfulSession) Complete(context.Context, *mcp.CompleteParams) (*mcp.CompleteResult, error) {
	return nil, nil
}

// A question goes to a client that supports its mode: one that names no mode supports forms.
func TestModesOfElicitation(t *testing.T) {
	for _, tt := range []struct {
		caps  string
		p     mcp.ElicitParams
		mode  string // as it was asked; empty: not at all
		wrong string
	}{
		{`{}`, mcp.ElicitParams{}, "", "the client does not support elicitation"},
		{`{"elicitation":{}}`, mcp.ElicitParams{}, "form", ""},
		{`{"elicitation":{"form":{}}}`, mcp.ElicitParams{}, "form", ""},
		{`{"elicitation":{"form":{},"url":{}}}`, mcp.ElicitParams{}, "form", ""},
		{`{"elicitation":{"url":{}}}`, mcp.ElicitParams{}, "", "the client does not support elicitation by form"},
		{`{"elicitation":{}}`, mcp.ElicitParams{URL: "https://a.example", ElicitationID: "e"}, "", "the client does not support elicitation by url"},
		{`{"elicitation":{"form":{}}}`, mcp.ElicitParams{URL: "https://a.example", ElicitationID: "e"}, "", "the client does not support elicitation by url"},
		{`{"elicitation":{"url":{}}}`, mcp.ElicitParams{URL: "https://a.example", ElicitationID: "e"}, "url", ""},
		{`{"elicitation":{"form":{},"url":{}}}`, mcp.ElicitParams{URL: "https://a.example", ElicitationID: "e"}, "url", ""},
	} {
		s := mcpserver.New("s", &mcpserver.Options{LookupEnv: noEnv})
		err := s.AddTool(&mcpserver.Tool{Name: "ask"}, func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
			p := tt.p
			p.Message = "?"
			if p.URL == "" {
				p.RequestedSchema = question("?", "a").RequestedSchema
			}
			answer, err := mcpserver.RequestFrom(ctx).Elicit(ctx, &p)
			if err != nil {
				return nil, err
			}
			return mcpserver.Text(answer.Action), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		var b *mcpbridge.Bridge
		var mode string
		var answering sync.WaitGroup
		b = mcpbridge.New(s, &mcpbridge.Options{LookupEnv: noEnv, Send: func(ctx context.Context, raw json.RawMessage) error {
			var asked struct {
				ID     json.RawMessage
				Method string
				Params struct{ Mode string }
			}
			if err := json.Unmarshal(raw, &asked); err != nil || asked.Method != "elicitation/create" {
				return err
			}
			mode = asked.Params.Mode
			answering.Go(func() {
				if _, err := b.Handle(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"action":"decline"}}`, asked.ID)); err != nil {
					t.Error(err)
				}
			})
			return nil
		}})
		request(t, b, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":`+tt.caps+`,"clientInfo":{"name":"c","version":"1"}}}`)
		got := request(t, b, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask"}}`)
		answering.Wait()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		want := or(tt.wrong, "decline")
		if mode != tt.mode || !strings.Contains(got, `"text":"`+want+`"`) {
			t.Errorf("%s, %+v: asked by %q, got %s; want %q and %q", tt.caps, tt.p, mode, got, tt.mode, want)
		}
	}
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// A notification that cannot be sent is in the log, and no other.
func TestNotificationsThatAreNotSentAreLogged(t *testing.T) {
	s := bare(t, nil)
	if err := s.AddTool(&mcpserver.Tool{Name: "log"}, func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
		return mcpserver.Text("told"), mcpserver.RequestFrom(ctx).Log(ctx, "info", "l", "x")
	}); err != nil {
		t.Fatal(err)
	}
	for _, fails := range []bool{false, true} {
		var log strings.Builder
		b := mcpbridge.New(s, &mcpbridge.Options{
			LookupEnv: noEnv, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Send: func(context.Context, json.RawMessage) error {
				if fails {
					return errors.New("no pipe")
				}
				return nil
			},
		})
		if got := request(t, b, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"log"}}`); !strings.Contains(got, "told") {
			t.Errorf("got %s", got)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		const want = `msg="mcpbridge: notification not sent" method=notifications/message error="no pipe"`
		if strings.Contains(log.String(), want) != fails || !fails && log.String() != "" {
			t.Errorf("Send fails %v: the log is %s", fails, log.String())
		}
	}
}
