package mcpserver_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpbridge"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// lists gives the JSON of a server's tools as each way of listing them has it.
var lists = map[string]func(t *testing.T, s *mcpserver.Server) string{
	"direct": func(t *testing.T, s *mcpserver.Server) string {
		raw, err := json.Marshal(s.ListTools())
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	},
	"session": func(t *testing.T, s *mcpserver.Server) string {
		ss := s.NewSession(nil)
		defer ss.Close()
		tools, err := ss.ListTools(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(mcpserver.ToolList(tools))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	},
	"stdio, 2025-03-26": func(t *testing.T, s *mcpserver.Server) string {
		p := stdio(t, s, mcpbridge.StdioOptions{})
		p.send(strings.Replace(initialize, "2025-11-25", "2025-03-26", 1))
		if got := p.next(); !strings.Contains(got, `"protocolVersion":"2025-03-26"`) {
			t.Fatal(got)
		}
		p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
		return toolsOf(t, p.next())
	},
	"HTTP, 2025-11-25": func(t *testing.T, s *mcpserver.Server) string {
		_, url := web(t, s, &mcpserver.HTTPOptions{JSONResponse: true})
		return toolsOf(t, post(t, url, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, "Mcp-Session-Id", open(t, url)).body)
	},
	"HTTP, 2026-07-28": func(t *testing.T, s *mcpserver.Server) string {
		_, url := web(t, s, nil)
		r := post(t, url, `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
			"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list")
		if r.status != http.StatusOK || !strings.Contains(r.body, `"resultType":"complete"`) {
			t.Errorf("%d %s", r.status, r.body)
		}
		_, data, _ := strings.Cut(r.body, "data: ")
		return toolsOf(t, data)
	},
}

func toolsOf(t *testing.T, reply string) string {
	t.Helper()
	var r struct {
		Result struct{ Tools json.RawMessage }
	}
	if err := json.NewDecoder(strings.NewReader(reply)).Decode(&r); err != nil {
		t.Fatalf("%s: %v", reply, err)
	}
	return string(r.Result.Tools)
}

// However the tools are listed, each has its name, its description and its input
// schema, even where nothing was given; and the title in its annotations, if that
// was.
//
// # R47 R48 T06
//
// fault I5
// fault I6
func TestToolsAreListedAlikeEverywhere(t *testing.T) {
	s := mcpserver.New("s", nil)
	defer s.Close()
	for _, tool := range []mcpserver.Tool{
		{Name: "bare"},
		{Name: "titled", Title: "Titled", AnnotationTitle: "Titled, for old clients", Description: "a <tool>"},
	} {
		if err := s.AddTool(&tool, func(context.Context, json.RawMessage) (*mcpserver.Result, error) { return nil, nil }); err != nil {
			t.Fatal(err)
		}
	}
	want := []map[string]any{
		{"name": "bare", "description": "", "inputSchema": map[string]any{"type": "object"}},
		{
			"name": "titled", "title": "Titled", "description": "a <tool>", "inputSchema": map[string]any{"type": "object"},
			"annotations": map[string]any{"title": "Titled, for old clients", "idempotentHint": false, "readOnlyHint": false},
		},
	}
	for name, list := range lists {
		t.Run(name, func(t *testing.T) {
			raw := list(t, s)
			var got []map[string]any
			if err := json.Unmarshal([]byte(raw), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", raw, diff)
			}
		})
	}
	if raw, err := json.Marshal(mcpserver.ToolList(nil)); err != nil || string(raw) != "[]" {
		t.Errorf("no tools: %s, %v", raw, err)
	}
}

// A handshake agrees on a version that has one: the offered one if it is spoken,
// the latest otherwise. A version without a handshake is not agreed on.
//
// # B05
//
// fault I12
func TestHandshakesAgreeOnAVersion(t *testing.T) {
	s := mcpserver.New("s", nil)
	defer s.Close()
	for offer, want := range map[string]string{
		"2024-11-05": "2024-11-05", "2025-03-26": "2025-03-26", "2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25",
		"2026-07-28": "2025-11-25", "1999-01-01": "2025-11-25", "2025-11-26": "2025-11-25", "next": "2025-11-25",
	} {
		shake := strings.Replace(initialize, "2025-11-25", offer, 1)
		p := stdio(t, s, mcpbridge.StdioOptions{})
		p.send(shake)
		_, url := web(t, s, &mcpserver.HTTPOptions{JSONResponse: true})
		for name, got := range map[string]string{"stdio": p.next(), "HTTP": post(t, url, shake).body} {
			if !strings.Contains(got, `"protocolVersion":"`+want+`"`) {
				t.Errorf("%s, offered %s: %s, want %s", name, offer, got, want)
			}
		}
	}
}

// Direct calls may skip the validation that what comes by message has.
//
// # R31 R32
//
// fault I7
func TestSkipDirectValidation(t *testing.T) {
	s := mcpserver.New("s", &mcpserver.Options{SkipDirectValidation: true})
	defer s.Close()
	type in struct {
		N    int    `json:"n" jsonschema:"minimum=10"`
		Unit string `json:"unit,omitempty" jsonschema:"default=kg"`
	}
	show := func(_ context.Context, in in) (string, error) {
		raw, err := json.Marshal(in)
		return string(raw), err
	}
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "typed"}, show)
	if err := s.AddTool(&mcpserver.Tool{Name: "raw", InputSchema: json.RawMessage(`{"required":["n"]}`)}, func(_ context.Context, args json.RawMessage) (*mcpserver.Result, error) {
		return mcpserver.Text(string(args)), nil
	}); err != nil {
		t.Fatal(err)
	}
	ss := s.NewSession(nil)
	defer ss.Close()
	for _, tt := range []struct{ tool, args, direct, checked string }{
		{"typed", `{"n":1,"more":2,"N":3}`, `{"n":1}`, "at least 10"},
		{"typed", `{"n":10}`, `{"n":10}`, `{"n":10,"unit":"kg"}`},
		{"raw", `{"x":1}`, `{"x":1}`, "n"},
	} {
		r, err := s.CallTool(t.Context(), tt.tool, json.RawMessage(tt.args))
		if err != nil || r.IsError || r.Text() != tt.direct {
			t.Errorf("%s(%s) directly: %+v, %v; want %s", tt.tool, tt.args, r, err, tt.direct)
		}
		if r, err = ss.CallTool(t.Context(), mcpserver.Call{Name: tt.tool, Arguments: json.RawMessage(tt.args)}); err != nil || !strings.Contains(r.Text(), tt.checked) {
			t.Errorf("%s(%s) in a session: %+v, %v; want %s", tt.tool, tt.args, r, err, tt.checked)
		}
	}
	if r, err := ss.CallTool(t.Context(), mcpserver.Call{Name: "raw", Arguments: json.RawMessage(`{"x":1}`)}); err != nil || !r.IsError {
		t.Errorf("a raw tool in a session: %+v, %v", r, err)
	}
}

// What a handler must return is said in the terms of Go.
//
// R27 R28
func TestWhatIsNoResult(t *testing.T) {
	s := mcpserver.New("s", nil)
	defer s.Close()
	if err := s.AddTool(&mcpserver.Tool{Name: "nothing"}, func(context.Context, json.RawMessage) (*mcpserver.Result, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	if err := s.AddRawTool(&mcpserver.Tool{Name: "raw"}, func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`{"isError":false}`), nil
	}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"nothing": "Tool 'nothing' must return a *mcpserver.Result with content, and its handler returned nil",
		"raw":     `Tool 'raw' must return a JSON object with a content array, and its handler returned {"isError":false}`,
	} {
		if r, err := s.CallTool(t.Context(), name, nil); err != nil || !r.IsError || r.Text() != want {
			t.Errorf("%s: %+v, %v; want %s", name, r, err, want)
		}
	}
	if err := s.AddPrompt(&mcp.Prompt{Name: "p"}, func(context.Context, map[string]string) (*mcp.GetPromptResult, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	if err := s.AddResource(&mcp.Resource{URI: "mem:r"}, func(context.Context) (*mcp.ReadResourceResult, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := s.GetPrompt(t.Context(), "p", nil); err == nil || err.Error() != "Prompt 'p' must return a *mcp.GetPromptResult with messages, and its handler returned none" {
		t.Errorf("a prompt: %v", err)
	}
	if _, err := s.ReadResource(t.Context(), "mem:r"); err == nil || err.Error() != "Resource 'mem:r' must return a *mcp.ReadResourceResult with contents, and its reader returned none" {
		t.Errorf("a resource: %v", err)
	}
}
