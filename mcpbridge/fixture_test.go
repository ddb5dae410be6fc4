package mcpbridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/tenon-sdk/tenon/mcpserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type sumIn struct {
	A int `json:"a"`
	B int `json:"b"`
}

type sumOut struct {
	Sum int `json:"sum"`
}

func noEnv(string) (string, bool) { return "", false }

// bare is a server with tools only.
func bare(t testing.TB, o *mcpserver.Options) *mcpserver.Server {
	t.Helper()
	var opts mcpserver.Options
	if o != nil {
		opts = *o
	}
	if opts.Version == "" {
		opts.Version = "1.2.3"
	}
	if opts.LookupEnv == nil {
		opts.LookupEnv = noEnv
	}
	s := mcpserver.New("calc", &opts)
	err := errors.Join(
		mcpserver.AddTool(s, &mcpserver.Tool{Name: "add", Description: "Add two numbers", ReadOnly: true},
			func(_ context.Context, in sumIn) (sumOut, error) { return sumOut{in.A + in.B}, nil }),
		s.AddTool(&mcpserver.Tool{Name: "echo"},
			func(_ context.Context, args json.RawMessage) (*mcpserver.Result, error) {
				return mcpserver.Text(string(args)), nil
			}),
		s.AddTool(&mcpserver.Tool{Name: "fail"},
			func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
				return nil, errors.New("the disk is full")
			}),
		s.AddTool(&mcpserver.Tool{Name: "panic"},
			func(context.Context, json.RawMessage) (*mcpserver.Result, error) { panic("secret detail") }),
		s.AddTool(&mcpserver.Tool{Name: "wait", Description: "Wait until cancelled"},
			func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}),
		s.AddTool(&mcpserver.Tool{Name: "ask"}, asks),
		s.AddTool(&mcpserver.Tool{Name: "tell"}, tells),
	)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asks asks the client for everything that a client can be asked for.
func asks(ctx context.Context, args json.RawMessage) (*mcpserver.Result, error) {
	var in struct{ For string }
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, err
	}
	r := mcpserver.RequestFrom(ctx)
	switch in.For {
	case "roots":
		roots, err := r.ListRoots(ctx)
		if err != nil {
			return nil, err
		}
		var uris []string
		for _, root := range roots {
			uris = append(uris, root.URI)
		}
		return mcpserver.Text("roots: " + strings.Join(uris, " ")), nil
	case "sample":
		answer, err := r.Sample(ctx, &mcp.CreateMessageParams{MaxTokens: 10, Messages: []*mcp.SamplingMessage{
			{Role: "user", Content: &mcp.TextContent{Text: "Hello"}},
		}})
		if err != nil {
			return nil, err
		}
		return mcpserver.Mixed(answer.Content), nil
	}
	name, err := r.Elicit(ctx, question("Your name?", "name"))
	if err != nil {
		return nil, fmt.Errorf("asking for the name: %w", err)
	}
	if in.For != "both" {
		return mcpserver.Text(fmt.Sprintf("%s %v", name.Action, name.Content["name"])), nil
	}
	color, err := r.Elicit(ctx, question("Your color?", "color"))
	if err != nil {
		return nil, err
	}
	return mcpserver.Text(fmt.Sprintf("%v likes %v", name.Content["name"], color.Content["color"])), nil
}

func question(message, property string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Message: message, RequestedSchema: json.RawMessage(
		`{"type":"object","properties":{"` + property + `":{"type":"string"}},"required":["` + property + `"]}`,
	)}
}

// tells reports progress and logs.
func tells(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
	r := mcpserver.RequestFrom(ctx)
	return mcpserver.Text("told"), errors.Join(
		r.Progress(ctx, 1, 2, "half"),
		r.Log(ctx, "debug", "tells", "a detail"),
		r.Log(ctx, "error", "tells", map[string]string{"what": "a fault"}),
	)
}

// full is bare with resources, prompts, completion and raw tools as well.
func full(t testing.TB, o *mcpserver.Options) *mcpserver.Server {
	t.Helper()
	var opts mcpserver.Options
	if o != nil {
		opts = *o
	}
	opts.Instructions = "Add before you multiply."
	opts.Complete = func(_ context.Context, p *mcp.CompleteParams) (*mcp.CompleteResult, error) {
		return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{p.Argument.Value + "1", p.Argument.Value + "2"}}}, nil
	}
	s := bare(t, &opts)
	text := func(uri, content string) mcpserver.ResourceReader {
		return func(context.Context) (*mcp.ReadResourceResult, error) {
			return mcpserver.TextResource(uri, "text/plain", content), nil
		}
	}
	err := errors.Join(
		s.AddResource(&mcp.Resource{URI: "mem:one", Name: "one", MIMEType: "text/plain"}, text("mem:one", "first")),
		s.AddResource(&mcp.Resource{URI: "mem:empty", Name: "empty"}, text("mem:empty", "")),
		s.AddResource(&mcp.Resource{URI: "mem:broken", Name: "broken"},
			func(context.Context) (*mcp.ReadResourceResult, error) { return nil, errors.New("no such sector") }),
		s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "mem:item/{id}", Name: "item"},
			func(_ context.Context, uri string, vars map[string]string) (*mcp.ReadResourceResult, error) {
				return mcpserver.TextResource(uri, "text/plain", "item "+vars["id"]), nil
			}),
		s.AddPrompt(&mcp.Prompt{Name: "greet", Arguments: []*mcp.PromptArgument{{Name: "who", Required: true}}},
			func(_ context.Context, args map[string]string) (*mcp.GetPromptResult, error) {
				return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{mcpserver.UserMessage("Greet " + args["who"])}}, nil
			}),
		s.AddPrompt(&mcp.Prompt{Name: "interview"},
			func(ctx context.Context, _ map[string]string) (*mcp.GetPromptResult, error) {
				answer, err := mcpserver.RequestFrom(ctx).Elicit(ctx, question("Topic?", "topic"))
				if err != nil {
					return nil, err
				}
				return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{mcpserver.UserMessage(fmt.Sprint(answer.Content["topic"]))}}, nil
			}),
		s.AddPrompt(&mcp.Prompt{Name: "spoiled"},
			func(context.Context, map[string]string) (*mcp.GetPromptResult, error) {
				return nil, errors.New("the ink is dry")
			}),
		addRaw(s, "number", `{"content":[{"type":"text","text":42.50}]}`),
		addRaw(s, "untyped", `{"content":[{"text":"who am I"}]}`),
		addRaw(s, "contentless", `{"isError":false}`),
		addRaw(s, "list", `[1,2]`),
		addRaw(s, "extra", `{"content":[],"structuredContent":{"a":1},"_meta":{"k":"v"},"vendor":{"x":[1]}}`),
	)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func addRaw(s *mcpserver.Server, name, result string) error {
	return s.AddRawTool(&mcpserver.Tool{Name: name}, func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(result), nil
	})
}

// stateful asks by its result and carries a state of its own.
func stateful(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
	r := mcpserver.RequestFrom(ctx)
	if answer, ok := r.InputResponses["mine"].(*mcp.ElicitResult); ok {
		return mcpserver.Text(fmt.Sprintf("%s, %v", r.RequestState, answer.Content["name"])), nil
	}
	return &mcpserver.Result{InputRequests: mcp.InputRequestMap{"mine": question("Name?", "name")}, RequestState: "plain state"}, nil
}

// sendTo puts what is sent into a channel.
func sendTo(c chan<- json.RawMessage) func(context.Context, json.RawMessage) error {
	return func(_ context.Context, raw json.RawMessage) error {
		c <- raw
		return nil
	}
}
