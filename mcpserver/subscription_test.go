package mcpserver_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/mcpbridge"
)

// A client of 2026-07-28 finds its subscription by the id of its own request, of whatever form; one
// that does not, Claude Code for one, waits for half a minute before it uses the server at all.
func TestStdioSubscriptionsHaveTheClientsID(t *testing.T) {
	for _, id := range []string{`"listen:0"`, `7`, `1.5`, `123456789012345678901234567890`} {
		t.Run(id, func(t *testing.T) {
			s := served(t)
			p := stdio(t, s, mcpbridge.StdioOptions{})
			const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
			p.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"subscriptions/listen","params":{` + meta + `,"notifications":{"toolsListChanged":true}}}`)
			subscription := func(method string) {
				t.Helper()
				var got struct {
					Method string
					Params struct {
						Meta map[string]json.RawMessage `json:"_meta"`
					}
				}
				line := p.next()
				if err := json.Unmarshal([]byte(line), &got); err != nil {
					t.Fatal(err)
				}
				if got.Method != method || string(got.Params.Meta["io.modelcontextprotocol/subscriptionId"]) != id {
					t.Errorf("got %s, want %s under the id %s", line, method, id)
				}
			}
			subscription("notifications/subscriptions/acknowledged")
			s.RemoveTool("sum")
			subscription("notifications/tools/list_changed")
		})
	}
}

// A subscription to nothing ends at once, with the client's id in its result.
func TestStdioSubscriptionToNothing(t *testing.T) {
	p := stdio(t, served(t), mcpbridge.StdioOptions{})
	p.send(`{"jsonrpc":"2.0","id":"none","method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}},"notifications":{}}}`)
	for range 2 {
		if got := p.next(); !strings.Contains(got, `"io.modelcontextprotocol/subscriptionId":"none"`) {
			t.Errorf("got %s", got)
		}
	}
}
