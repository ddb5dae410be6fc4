package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/tenon-sdk/tenon/agent"
)

// Who sees no progress is told once that the model cannot be asked, and of which server a tool is that was left out.
func TestWhatIsToldWithoutATerminal(t *testing.T) {
	var errs bytes.Buffer
	p := &process{err: &errs, out: &bytes.Buffer{}}
	v := &view{reporter: newReporter(p, nil), format: "text"}
	messages := []agent.Message{&agent.SystemInit{MCPServerErrors: []agent.MCPServerError{
		{Name: "stock", Type: "tool_left_out", Message: `tool "x" is left out: no schema`},
		{Name: "files", Type: "invalid_config", Message: "mcpServers.files: is null"},
	}}}
	for attempt := range 5 {
		raw := json.RawMessage(fmt.Sprintf(`{"type":"system","subtype":"api_retry","attempt":%d,"max_retries":10,"retry_delay_ms":5,"error_status":500,"error":"server_error"}`, attempt+1))
		messages = append(messages, &agent.System{Subtype: "api_retry", Raw: raw})
	}
	for _, m := range messages {
		if err := v.message(m); err != nil {
			t.Fatal(err)
		}
	}
	want := `tenon: server "stock": tool "x" is left out: no schema
tenon: mcpServers.files: is null
tenon: the model cannot be asked (server_error); it is tried up to 10 times (--verbose shows each)
`
	if errs.String() != want {
		t.Errorf("got\n%swant\n%s", &errs, want)
	}
}
