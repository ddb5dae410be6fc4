package claudecode

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/engine/claudecode/event"
	"github.com/tenon-sdk/tenon/internal/growth"
)

// What the CLI says, and what it hands on of models and servers, costs in proportion to its length.
func TestLinesGrowWithTheirLength(t *testing.T) {
	quoted := func(s string) string { return `"` + s + `"` }
	lines := map[string]func(n int) string{
		"a long text": func(n int) string {
			return `{"type":"system","subtype":"x","text":` + quoted(strings.Repeat("a", 8*n)) + `}`
		},
		"the type at last": func(n int) string { return `{` + strings.Repeat(`"k":1,`, n) + `"type":"system","subtype":"x"}` },
		"escapes":          func(n int) string { return `{"` + strings.Repeat(`\"`, 4*n) + `":1,"type":"system","subtype":"x"}` },
		"deep": func(n int) string {
			return `{"type":"system","subtype":"x","v":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
		},
		"no JSON": func(n int) string { return `{"type":"system",` + strings.Repeat(`{"type":`, n) },
		"many blocks": func(n int) string {
			return `{"type":"assistant","message":{"id":"m","content":[` + strings.Repeat(`{"type":"text","text":"x"},`, n) + `{"type":"text","text":"x"}]}}`
		},
		"many calls": func(n int) string {
			return `{"type":"assistant","message":{"id":"m","content":[` + list(n, `{"type":"tool_use","id":"t%d","name":"x","input":{"a":1}}`) + `]}}`
		},
		"many results": func(n int) string {
			return `{"type":"user","message":{"content":[` + list(n, `{"type":"tool_result","tool_use_id":"t%d","content":"x"}`) + `]}}`
		},
		"many servers": func(n int) string {
			return `{"type":"system","subtype":"init","mcp_servers":[` + list(n, `{"name":"s%d","status":"connected"}`) + `]}`
		},
		"many inputs ended": func(n int) string {
			return `{"type":"result","subtype":"success","user_message_uuids":[` + list(n, `"u%d"`) + `]}`
		},
		"a piece of a call": func(n int) string {
			return `{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":` + quoted(strings.Repeat("1", 8*n)) + `}}}`
		},
		"a call for a server": func(n int) string {
			return `{"type":"x","method":"tools/call","params":{"name":"x","arguments":{"a":[` + list(n, `%d`) + `]}}}`
		},
	}
	for name, line := range lines {
		t.Run(name, func(t *testing.T) {
			growth.Check(t, 1000, func(n int) int {
				e, o := fake("polite")
				o.Logger = slog.New(slog.DiscardHandler)
				s := connected(t, e, o)
				data := []byte(line(n))
				return len(data) + growth.Bytes(func() {
					if l, err := event.Decode(data, true); err == nil {
						s.ch.take(l, len(data))
					}
					_, _ = readToolsCall(data)
				})
			})
		})
	}
}

// list is a JSON list's elements, each from a format with its number.
func list(n int, format string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = format
		if strings.Contains(format, "%d") {
			all[i] = fmt.Sprintf(format, i)
		}
	}
	return strings.Join(all, ",")
}

// The pieces of a call's arguments, and many calls of a turn, cost no more the more there are.
func TestStreamsGrowWithTheirLength(t *testing.T) {
	growth.Check(t, 1000, func(n int) int {
		return growth.Bytes(func() {
			a := newToolInputs()
			a.add(&event.ToolInput{Starts: true, ID: "t"})
			for range n {
				a.add(&event.ToolInput{Piece: "1111"})
			}
			a.complete("t", json.RawMessage(`{}`))
		})
	})
	growth.Check(t, 500, func(n int) int {
		return growth.Bytes(func() {
			a := newToolInputs()
			for i := range n {
				id := fmt.Sprintf("t%d", i)
				a.add(&event.ToolInput{Starts: true, Index: i, ID: id})
				a.add(&event.ToolInput{Index: i, Piece: `{"n":12345678901234567890}`})
				a.complete(id, json.RawMessage(`{"n":12345678901234567000}`))
				a.restore(id, json.RawMessage(`{"n":12345678901234567000}`))
			}
			a.endTurn()
		})
	})
}

// So do the arguments of a call, in which digits are looked for.
func TestArgumentsGrowWithTheirLength(t *testing.T) {
	values := map[string]func(n int) string{
		"deep, and a big integer": func(n int) string { return strings.Repeat(`[`, n) + "12345678901234567890" + strings.Repeat(`]`, n) },
		"deep objects": func(n int) string {
			return strings.Repeat(`{"a":`, n) + "12345678901234567890" + strings.Repeat(`}`, n)
		},
		"many integers":   func(n int) string { return `[` + list(n, "1234567890123456789%d") + `]` },
		"many members":    func(n int) string { return `{` + list(n, `"k%d":12345678901234567890`) + `}` },
		"a long number":   func(n int) string { return `{"a":1` + strings.Repeat("0", 200) + "." + strings.Repeat("1", 8*n) + `}` },
		"large exponents": func(n int) string { return `[` + list(n, "1e300") + `]` },
	}
	for name, value := range values {
		t.Run(name, func(t *testing.T) {
			growth.Check(t, 1000, func(n int) int {
				raw := json.RawMessage(value(n))
				return len(raw) + growth.Bytes(func() {
					unsafeInteger(raw)
					passesOn(raw, raw)
					isLossless(raw)
					sameRounded(raw, raw)
				})
			})
		})
	}
}
