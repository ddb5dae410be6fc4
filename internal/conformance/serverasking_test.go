package conformance

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpserver"
)

// addAskingTools adds the tools that ask the client while they run. In the
// protocol from 2026-07-28 on the same handlers end with the question instead.
func addAskingTools(s *mcpserver.Server) error {
	return add(s, []tool{
		{mcpserver.Tool{
			Name: "test_sampling", Description: "Asks the client's model",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"prompt":{"type":"string"}},"required":["prompt"]}`),
		}, func(ctx context.Context, args json.RawMessage) (*mcpserver.Result, error) {
			var in struct{ Prompt string }
			if err := json.Unmarshal(args, &in); err != nil {
				return nil, err
			}
			answer, err := mcpserver.RequestFrom(ctx).Sample(ctx, sampling(in.Prompt))
			if err != nil {
				return nil, fmt.Errorf("sampling failed: %w", err)
			}
			return mcpserver.Text("LLM response: " + textOf(answer.Content)), nil
		}},
		{mcpserver.Tool{
			Name: "test_elicitation", Description: "Asks the user",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}`),
		}, func(ctx context.Context, args json.RawMessage) (*mcpserver.Result, error) {
			var in struct{ Message string }
			if err := json.Unmarshal(args, &in); err != nil {
				return nil, err
			}
			return elicits(ctx, question(in.Message, "username", "string"))
		}},
		{mcpserver.Tool{Name: "test_elicitation_sep1034_defaults", Description: "Asks the user with defaults"}, func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
			return elicits(ctx, &mcp.ElicitParams{Message: "Test defaults for primitives", RequestedSchema: json.RawMessage(defaultsSchema)})
		}},
		{mcpserver.Tool{Name: "test_elicitation_sep1330_enums", Description: "Asks the user to choose"}, func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
			return elicits(ctx, &mcp.ElicitParams{Message: "Test enum schemas", RequestedSchema: json.RawMessage(enumsSchema)})
		}},
		{mcpserver.Tool{Name: "test_missing_capability", Description: "Needs the client's model"}, func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
			if _, err := mcpserver.RequestFrom(ctx).Sample(ctx, sampling("Say yes")); err != nil {
				return nil, err
			}
			return mcpserver.Text("the client has a model"), nil
		}},
		{mcpserver.Tool{Name: "test_streaming_elicitation", Description: "Asks the user and reports progress"}, func(ctx context.Context, args json.RawMessage) (*mcpserver.Result, error) {
			if _, err := progresses(ctx, args); err != nil {
				return nil, err
			}
			return elicits(ctx, question("Your name?", "name", "string"))
		}},
	})
}

const defaultsSchema = `{"type":"object","properties":{
	"name":{"type":"string","description":"User name","default":"John Doe"},
	"age":{"type":"integer","description":"User age","default":30},
	"score":{"type":"number","description":"User score","default":95.5},
	"status":{"type":"string","description":"User status","enum":["active","inactive","pending"],"default":"active"},
	"verified":{"type":"boolean","description":"Verification status","default":true}}}`

const enumsSchema = `{"type":"object","properties":{
	"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
	"titledSingle":{"type":"string","oneOf":[
		{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},
	"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},
	"untitledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"string","enum":["option1","option2","option3"]}},
	"titledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"anyOf":[
		{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}}}`

func elicits(ctx context.Context, p *mcp.ElicitParams) (*mcpserver.Result, error) {
	answer, err := mcpserver.RequestFrom(ctx).Elicit(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("elicitation failed: %w", err)
	}
	content, err := json.Marshal(answer.Content)
	if err != nil {
		return nil, err
	}
	return mcpserver.Text(fmt.Sprintf("Elicitation result: action=%s, content=%s", answer.Action, content)), nil
}

// question asks for one property.
func question(message, property, kind string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Message: message, RequestedSchema: map[string]any{
		"type":       "object",
		"properties": map[string]any{property: map[string]any{"type": kind}},
		"required":   []string{property},
	}}
}

func sampling(prompt string) *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{
		MaxTokens: 100,
		Messages:  []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: prompt}}},
	}
}

func textOf(c mcp.Content) string {
	if t, ok := c.(*mcp.TextContent); ok {
		return t.Text
	}
	return "(no text)"
}
