package mcpbridge_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/mcpbridge"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// Tools are listed with their description, even an empty one, and the title in their annotations.
//
// # R47 T06
//
// fault I5
// fault I6
func TestListedTools(t *testing.T) {
	s := mcpserver.New("s", nil)
	defer s.Close()
	for _, tool := range []mcpserver.Tool{{Name: "bare"}, {Name: "titled", AnnotationTitle: "Titled"}} {
		if err := s.AddTool(&tool, func(context.Context, json.RawMessage) (*mcpserver.Result, error) { return nil, nil }); err != nil {
			t.Fatal(err)
		}
	}
	b := newBridge(t, s, nil)
	handle(t, b, `{"id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}`)
	const want = `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"inputSchema":{"type":"object"},"name":"bare","description":""},` +
		`{"annotations":{"idempotentHint":false,"readOnlyHint":false,"title":"Titled"},"inputSchema":{"type":"object"},"name":"titled","description":""}]}}`
	if got := handle(t, b, `{"id":1,"method":"tools/list"}`); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := handle(t, newBridge(t, mcpserver.New("none", nil), nil), `{"id":1,"method":"tools/list"}`); !strings.Contains(got, `"tools":[]`) {
		t.Errorf("no tools: %s", got)
	}
}

// A handshake agrees on a version that has one: the offered one if it is spoken,
// the latest otherwise. A version without a handshake is not agreed on.
//
// # B05
//
// fault I12
func TestHandshakesAgreeOnAVersion(t *testing.T) {
	b := newBridge(t, bare(t, nil), nil)
	for offer, want := range map[string]string{
		`"2024-11-05"`: "2024-11-05", `"2025-03-26"`: "2025-03-26", `"2025-06-18"`: "2025-06-18", `"2025-11-25"`: "2025-11-25",
		`"2026-07-28"`: "2025-11-25", `"1999-01-01"`: "2025-11-25", `"2025-11-26"`: "2025-11-25", `"next"`: "2025-11-25", `7`: "2025-11-25", `null`: "2025-11-25",
	} {
		got := handle(t, b, `{"id":1,"method":"initialize","params":{"protocolVersion":`+offer+`}}`)
		if !strings.Contains(got, `"protocolVersion":"`+want+`"`) {
			t.Errorf("offered %s: %s, want %s", offer, got, want)
		}
	}
}

// What comes by message is validated where direct calls are not.
//
// # R31 R32
//
// fault I7
func TestMessagesAreValidatedWhereDirectCallsAreNot(t *testing.T) {
	s := bare(t, &mcpserver.Options{SkipDirectValidation: true})
	b := newBridge(t, s, nil)
	const args = `{"a":1,"b":2,"c":3}`
	if r, err := s.CallTool(t.Context(), "add", json.RawMessage(args)); err != nil || r.IsError || r.Text() != `{"sum":3}` {
		t.Errorf("directly: %+v, %v", r, err)
	}
	if got := handle(t, b, `{"id":1,"method":"tools/call","params":{"name":"add","arguments":`+args+`}}`); !strings.Contains(got, `"isError":true`) {
		t.Errorf("by message: %s", got)
	}
	all := newBridge(t, bare(t, &mcpserver.Options{SkipValidation: true}), &mcpbridge.Options{})
	if got := handle(t, all, `{"id":1,"method":"tools/call","params":{"name":"add","arguments":`+args+`}}`); !strings.Contains(got, `"isError":false`) {
		t.Errorf("by message, with SkipValidation: %s", got)
	}
}
