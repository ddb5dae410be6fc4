// Command structured shows an answer that is a Go value: Options.OutputSchema says what it looks like, an answer that
// does not match is sent back to the model with the reason, and the one that does is decoded into a struct.
//
//	go run ./examples/structured
//
// Without ANTHROPIC_API_KEY it runs on the offline model and says so in its first line.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

const question = "Which article do we have to order, how many of it, and how urgent is it? We want 20 of everything."

// The second call is refused, as "soon" is no urgency; the model reads why and tries again.
const offlinePrompt = `@mcp__stock__low {}
@StructuredOutput {"sku": "{{1.0.sku}}", "quantity": 15, "urgency": "soon"}
@StructuredOutput {"sku": "{{1.0.sku}}", "quantity": 15, "urgency": "high"}`

// An order is the answer. The schema says the rest.
type order struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
	Urgency  string `json:"urgency"`
}

var orderSchema = json.RawMessage(`{
	"type": "object",
	"properties": {
		"sku": {"type": "string", "description": "stock keeping unit"},
		"quantity": {"type": "integer", "minimum": 1},
		"urgency": {"enum": ["low", "high"]}
	},
	"required": ["sku", "quantity", "urgency"],
	"additionalProperties": false
}`)

// ask returns the answer to a prompt as a Go value.
func ask[T any](ctx context.Context, e agent.Engine, prompt string, o *agent.Options, stdout io.Writer) (T, error) {
	var answer T
	for msg, err := range agent.Query(ctx, e, prompt, o) {
		if err != nil {
			return answer, err
		}
		switch m := msg.(type) {
		case *agent.User:
			for _, result := range m.ToolResults() {
				fmt.Fprintf(stdout, "result %s\n", result.Text())
			}
		case *agent.Result:
			if err := m.Err(); err != nil { // such as SubtypeErrorStructuredOutput: no try matched
				return answer, err
			}
			return answer, json.Unmarshal(m.StructuredOutput, &answer)
		}
	}
	return answer, agent.ErrNoResult
}

func run(ctx context.Context, stdout io.Writer) error {
	engine, prompt := native.New(nil), question
	if os.Getenv("ANTHROPIC_API_KEY") == "" {
		fmt.Fprintln(stdout, "No ANTHROPIC_API_KEY is set, so this runs on the offline model: it makes the calls that it is told to.")
		engine, prompt = native.New(&native.Options{APIKey: "none", HTTPClient: modeltest.Offline().Client()}), offlinePrompt
	}
	type article struct {
		SKU  string `json:"sku"`
		Left int    `json:"left"`
	}
	stock := mcpserver.New("stock", nil)
	mcpserver.MustAddTool(stock, &mcpserver.Tool{Name: "low", Description: "List the articles of which few are left", ReadOnly: true},
		func(context.Context, struct{}) ([]article, error) { return []article{{"AB-00017", 5}}, nil })
	answer, err := ask[order](ctx, engine, prompt, &agent.Options{
		MCPServers:   map[string]mcphost.ServerConfig{"stock": mcphost.InProcess(stock)},
		AllowedTools: []string{"mcp__stock__low"},
		OutputSchema: orderSchema,
	}, stdout)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\norder %d of %s, urgency %s\n", answer.Quantity, answer.SKU, answer.Urgency)
	return nil
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "structured:", err)
		os.Exit(1)
	}
}
