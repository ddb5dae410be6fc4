package conformance

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpserver"
)

// newServer returns the server that the suite expects: the tools, resources and prompts that its
// server scenarios name.
func newServer() (*mcpserver.Server, error) {
	opts := mcpserver.Options{HasResources: true, HasPrompts: true}
	opts.Complete = func(context.Context, *mcp.CompleteParams) (*mcp.CompleteResult, error) {
		return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{"paris", "park", "party"}, Total: 3}}, nil
	}
	s := mcpserver.New("tenon-conformance", &opts)
	return s, errors.Join(addTools(s), addAskingTools(s), addRoundTools(s), addResources(s), addPrompts(s))
}

// A tool is a tool without arguments worth a type, and its handler.
type tool struct {
	mcpserver.Tool
	run func(ctx context.Context, args json.RawMessage) (*mcpserver.Result, error)
}

func add(s *mcpserver.Server, tools []tool) error {
	var errs []error
	for _, t := range tools {
		errs = append(errs, s.AddTool(&t.Tool, t.run))
	}
	return errors.Join(errs...)
}

// answers is a handler that always gives the same result.
func answers(r func() *mcpserver.Result) func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
	return func(context.Context, json.RawMessage) (*mcpserver.Result, error) { return r(), nil }
}

func embedded(uri string) *mcp.EmbeddedResource {
	return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{
		URI: uri, MIMEType: "text/plain", Text: "This is an embedded resource",
	}}
}

func addTools(s *mcpserver.Server) error {
	return add(s, []tool{
		{mcpserver.Tool{Name: "test_simple_text", Description: "Answers with a text", ReadOnly: true}, answers(func() *mcpserver.Result {
			return mcpserver.Text("This is a simple text response for testing.")
		})},
		{mcpserver.Tool{Name: "test_image_content", Description: "Answers with an image", ReadOnly: true}, answers(func() *mcpserver.Result {
			return mcpserver.Image(image(), nil)
		})},
		{mcpserver.Tool{Name: "test_audio_content", Description: "Answers with a sound", ReadOnly: true}, answers(func() *mcpserver.Result {
			return mcpserver.Audio(audio(), nil)
		})},
		{mcpserver.Tool{Name: "test_embedded_resource", Description: "Answers with a resource", ReadOnly: true}, answers(func() *mcpserver.Result {
			return mcpserver.Mixed(embedded("test://embedded-resource"))
		})},
		{mcpserver.Tool{Name: "test_multiple_content_types", Description: "Answers with a text, an image and a resource", ReadOnly: true}, answers(func() *mcpserver.Result {
			return mcpserver.Mixed(
				&mcp.TextContent{Text: "This is text content"},
				&mcp.ImageContent{Data: image(), MIMEType: "image/png"},
				embedded("test://embedded-in-multiple"),
			)
		})},
		{mcpserver.Tool{Name: "test_error_handling", Description: "Fails"}, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
			return nil, errors.New("this tool intentionally returns an error for testing")
		}},
		{mcpserver.Tool{Name: "test_tool_with_logging", Description: "Logs while it runs"}, logs},
		{mcpserver.Tool{Name: "test_logging_tool", Description: "Logs, if the client asked for it"}, logs},
		{mcpserver.Tool{Name: "test_tool_with_progress", Description: "Reports its progress"}, progresses},
		{mcpserver.Tool{
			Name: "json_schema_2020_12_tool", Description: "Has a schema with much of 2020-12 in it",
			InputSchema: json.RawMessage(schema2020),
		}, func(_ context.Context, args json.RawMessage) (*mcpserver.Result, error) {
			return mcpserver.Text("called with " + string(args)), nil
		}},
		{mcpserver.Tool{
			Name: "test_x_mcp_header", Description: "Has an argument that clients mirror into a header",
			InputSchema: json.RawMessage(`{"type":"object","properties":{
				"region":{"type":"string","description":"mirrored into Mcp-Param-Region","x-mcp-header":"Region"},
				"level":{"type":"integer","description":"not mirrored"}}}`),
		}, func(_ context.Context, args json.RawMessage) (*mcpserver.Result, error) {
			var in struct{ Region string }
			if err := json.Unmarshal(args, &in); err != nil {
				return nil, err
			}
			return mcpserver.Text("region=" + in.Region), nil
		}},
		{mcpserver.Tool{Name: "test_reconnection", Description: "Lets go of the client, which comes back for the result"}, func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
			mcpserver.CloseStream(ctx, 10*time.Millisecond)
			select { // the client needs a moment to come back
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
			return mcpserver.Text("Reconnection test completed successfully"), ctx.Err()
		}},
		{mcpserver.Tool{Name: "test_trigger_tool_change", Description: "Changes the list of tools"}, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
			const name = "transient_tool"
			s.RemoveTool(name)
			err := s.AddTool(&mcpserver.Tool{Name: name, Description: "Comes and goes"}, answers(func() *mcpserver.Result {
				return mcpserver.Text("still here")
			}))
			return mcpserver.Text("tools changed"), err
		}},
		{mcpserver.Tool{Name: "test_trigger_prompt_change", Description: "Changes the list of prompts"}, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
			const name = "transient_prompt"
			s.RemovePrompt(name)
			err := s.AddPrompt(&mcp.Prompt{Name: name, Description: "Comes and goes"}, prompt("Transient", mcpserver.UserMessage("still here")))
			return mcpserver.Text("prompts changed"), err
		}},
	})
}

func logs(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
	r := mcpserver.RequestFrom(ctx)
	for _, line := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
		if err := r.Log(ctx, "info", "conformance", line); err != nil {
			return nil, err
		}
	}
	return mcpserver.Text("Tool with logging executed successfully"), nil
}

func progresses(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
	r := mcpserver.RequestFrom(ctx)
	for _, done := range []float64{0, 50, 100} {
		if err := r.Progress(ctx, done, 100, fmt.Sprintf("Completed step %.0f of 100", done)); err != nil {
			return nil, err
		}
	}
	return mcpserver.Text(fmt.Sprint(r.ProgressToken)), nil
}

const schema2020 = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"$defs": {
		"address": {
			"$anchor": "addressDef",
			"type": "object",
			"properties": {"street": {"type": "string"}, "city": {"type": "string"}}
		}
	},
	"properties": {
		"name": {"type": "string"},
		"address": {"$ref": "#/$defs/address"},
		"contactMethod": {"type": "string", "enum": ["phone", "email"]},
		"phone": {"type": "string"},
		"email": {"type": "string"}
	},
	"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
	"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
	"then": {"required": ["phone"]},
	"else": {"required": ["email"]},
	"additionalProperties": false
}`

func addResources(s *mcpserver.Server) error {
	const static, binary, watched = "test://static-text", "test://static-binary", "test://watched-resource"
	text := func(uri, content string) mcpserver.ResourceReader {
		return func(context.Context) (*mcp.ReadResourceResult, error) {
			return mcpserver.TextResource(uri, "text/plain", content), nil
		}
	}
	return errors.Join(
		s.AddResource(&mcp.Resource{URI: static, Name: "static-text", Description: "A text", MIMEType: "text/plain"},
			text(static, "This is the content of the static text resource.")),
		s.AddResource(&mcp.Resource{URI: binary, Name: "static-binary", Description: "An image", MIMEType: "image/png"},
			func(context.Context) (*mcp.ReadResourceResult, error) {
				return mcpserver.BlobResource(binary, "image/png", image()), nil
			}),
		s.AddResource(&mcp.Resource{URI: watched, Name: "watched-resource", Description: "A text that may change", MIMEType: "text/plain"},
			text(watched, "Watched resource content")),
		s.AddResourceTemplate(&mcp.ResourceTemplate{
			URITemplate: "test://template/{id}/data", Name: "template", Description: "A resource for each id", MIMEType: "application/json",
		}, func(_ context.Context, uri string, vars map[string]string) (*mcp.ReadResourceResult, error) {
			body, err := json.Marshal(map[string]any{"id": vars["id"], "templateTest": true, "data": "Data for ID: " + vars["id"]})
			return mcpserver.TextResource(uri, "application/json", string(body)), err
		}),
	)
}

// prompt is a prompt that is always the same.
func prompt(description string, messages ...*mcp.PromptMessage) mcpserver.PromptHandler {
	return func(context.Context, map[string]string) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Description: description, Messages: messages}, nil
	}
}

func addPrompts(s *mcpserver.Server) error {
	return errors.Join(
		s.AddPrompt(&mcp.Prompt{Name: "test_simple_prompt", Title: "Simple Test Prompt", Description: "A prompt without arguments"},
			prompt("A simple test prompt", mcpserver.UserMessage("This is a simple prompt for testing."))),
		s.AddPrompt(&mcp.Prompt{
			Name: "test_prompt_with_arguments", Title: "Prompt With Arguments", Description: "A prompt with two arguments",
			Arguments: []*mcp.PromptArgument{
				{Name: "arg1", Description: "First test argument", Required: true},
				{Name: "arg2", Description: "Second test argument", Required: true},
			},
		}, func(_ context.Context, args map[string]string) (*mcp.GetPromptResult, error) {
			text := fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", args["arg1"], args["arg2"])
			return &mcp.GetPromptResult{Description: "A prompt with arguments", Messages: []*mcp.PromptMessage{mcpserver.UserMessage(text)}}, nil
		}),
		s.AddPrompt(&mcp.Prompt{
			Name: "test_prompt_with_embedded_resource", Title: "Prompt With Embedded Resource", Description: "A prompt with a resource in it",
			Arguments: []*mcp.PromptArgument{{Name: "resourceUri", Description: "URI of the resource to embed", Required: true}},
		}, func(_ context.Context, args map[string]string) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Description: "A prompt with an embedded resource", Messages: []*mcp.PromptMessage{
				{Role: "user", Content: embedded(args["resourceUri"])},
				mcpserver.UserMessage("Please process the embedded resource above."),
			}}, nil
		}),
		s.AddPrompt(&mcp.Prompt{Name: "test_prompt_with_image", Title: "Prompt With Image", Description: "A prompt with an image in it"},
			prompt("A prompt with an image",
				&mcp.PromptMessage{Role: "user", Content: &mcp.ImageContent{Data: image(), MIMEType: "image/png"}},
				mcpserver.UserMessage("Please analyze the image above."))),
		s.AddPrompt(&mcp.Prompt{Name: "test_input_required_result_prompt", Description: "A prompt that asks for its context"},
			func(ctx context.Context, _ map[string]string) (*mcp.GetPromptResult, error) {
				r := mcpserver.RequestFrom(ctx)
				content := accepted(r.InputResponses, "user_context")
				if content == nil {
					return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{
						"user_context": question("Please provide context for the prompt", "context", "string"),
					}}, nil
				}
				text, _ := content["context"].(string)
				return &mcp.GetPromptResult{Description: "A prompt with elicited context", Messages: []*mcp.PromptMessage{
					mcpserver.UserMessage("Context: " + text),
				}}, nil
			}),
	)
}

// The smallest image and the smallest sound that are one.
const (
	imageBase64 = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
	audioBase64 = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
)

func image() []byte { return decode(imageBase64) }
func audio() []byte { return decode(audioBase64) }

func decode(text string) []byte {
	data, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil {
		panic("a constant of this file is no base64: " + err.Error())
	}
	return data
}
