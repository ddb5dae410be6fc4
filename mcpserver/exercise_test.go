package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpserver"
)

// exercise connects a client of the official library and uses all that served has.
func exercise(t *testing.T, s *mcpserver.Server, version string, transport mcp.Transport) {
	t.Helper()
	const room = 16
	tools, updates := make(chan struct{}, room), make(chan string, room)
	progress, logged := make(chan string, room), make(chan any, room)
	client := mcp.NewClient(&mcp.Implementation{Name: "exercise", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
		},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { tools <- struct{}{} },
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
			select {
			case updates <- r.Params.URI:
			default: // one is enough, and a full channel must not hold up what else arrives
			}
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			progress <- r.Params.Message
		},
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) { logged <- r.Params.Data },
	})
	session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	about := session.InitializeResult()
	if about.ProtocolVersion != version || about.ServerInfo.Name != "served" || about.ServerInfo.Version != "2.0.0" || about.Instructions != "Be kind." {
		t.Errorf("handshake: %+v", about)
	}
	exerciseTools(t, s, session)
	exerciseReads(t, session, version)

	call := func(name string, meta mcp.Meta) string { return textOf(t, session, name, nil, meta) }
	if version < "2026-07-28" {
		if err := session.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "info"}); err != nil {
			t.Error(err)
		}
	}
	if got := call("tell", mcp.Meta{"progressToken": "p", "io.modelcontextprotocol/logLevel": "info"}); got != "told" {
		t.Errorf("tell: %s", got)
	}
	if got := <-progress; got != "half" {
		t.Errorf("progress: %s", got)
	}
	if got := <-logged; got != "careful" {
		t.Errorf("log message: %v", got)
	}
	if got := call("ask", nil); got != "accept Ada" {
		t.Errorf("elicitation: %s", got)
	}

	if err := session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "mem:a"}); err != nil {
		t.Fatal(err)
	}
	awaitUpdate(t, s, updates)
	if err := s.AddTool(&mcpserver.Tool{Name: "late"}, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
		return mcpserver.Text("better late than never"), nil
	}); err != nil {
		t.Fatal(err)
	}
	<-tools
	if got := call("late", nil); got != "better late than never" {
		t.Errorf("a tool that was added later: %s", got)
	}
	s.RemoveTool("late")
	<-tools
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "late"}); !hasCode(err, jsonrpc.CodeMethodNotFound) {
		t.Errorf("a tool that was removed: %v", err)
	}
}

// awaitUpdate tells of an update until the client hears of it: where the client
// subscribes by a stream of its own, it returns before the stream is there.
func awaitUpdate(t *testing.T, s *mcpserver.Server, updates <-chan string) {
	t.Helper()
	for {
		s.NotifyResourceUpdated("mem:a")
		select {
		case uri := <-updates:
			if uri != "mem:a" {
				t.Errorf("update of %s", uri)
			}
			return
		case <-t.Context().Done():
			t.Fatal("no update came")
		default:
		}
	}
}

func exerciseTools(t *testing.T, s *mcpserver.Server, session *mcp.ClientSession) {
	t.Helper()
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := s.ListTools()
	if len(list.Tools) != len(want) {
		t.Fatalf("%d tools, want %d", len(list.Tools), len(want))
	}
	for i, tool := range list.Tools {
		if tool.Name != want[i].Name {
			t.Errorf("tool %d is %s, want %s: the order of registration", i, tool.Name, want[i].Name)
		}
	}
	if got := textOf(t, session, "sum", map[string]int{"A": 1, "B": 2}, nil); got != `{"sum":3}` {
		t.Errorf("sum: %s", got)
	}
	for name, want := range map[string]string{"fail": "no luck", "sum": "/A", "loop": "refers to itself"} {
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: map[string]string{"A": "x", "B": "y"}})
		if err != nil || !result.IsError || !strings.Contains(result.Content[0].(*mcp.TextContent).Text, want) {
			t.Errorf("%s: %+v, %v; want an error result with %q", name, result, err, want)
		}
	}
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "panic"})
	if err != nil || !result.IsError || strings.Contains(result.Content[0].(*mcp.TextContent).Text, "secret") {
		t.Errorf("a panic: %+v, %v", result, err)
	}
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "nobody"}); !hasCode(err, jsonrpc.CodeMethodNotFound) {
		t.Errorf("an unknown tool: %v, want the code -32601", err)
	}
}

func exerciseReads(t *testing.T, session *mcp.ClientSession, version string) {
	t.Helper()
	resources, err := session.ListResources(t.Context(), nil)
	if err != nil || len(resources.Resources) != 2 {
		t.Errorf("resources: %+v, %v", resources, err)
	}
	templates, err := session.ListResourceTemplates(t.Context(), nil)
	if err != nil || len(templates.ResourceTemplates) != 1 {
		t.Errorf("templates: %+v, %v", templates, err)
	}
	for uri, want := range map[string]string{"mem:a": "content of a", "mem:t/7": "x=7", "mem:empty": ""} {
		read, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil || len(read.Contents) != 1 || read.Contents[0].Text != want {
			t.Errorf("%s: %+v, %v", uri, read, err)
		}
	}
	code := int64(-32002)
	if version >= "2026-07-28" {
		code = jsonrpc.CodeInvalidParams
	}
	_, err = session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "mem:nothing"})
	if !hasCode(err, code) || !strings.Contains(err.Error(), "Resource 'mem:nothing' not found") {
		t.Errorf("an unknown resource: %v, want the code %d", err, code)
	}
	prompts, err := session.ListPrompts(t.Context(), nil)
	if err != nil || len(prompts.Prompts) != 1 {
		t.Errorf("prompts: %+v, %v", prompts, err)
	}
	prompt, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "hello", Arguments: map[string]string{"who": "Bo"}})
	if err != nil || prompt.Messages[0].Content.(*mcp.TextContent).Text != "Hello Bo" {
		t.Errorf("prompt: %+v, %v", prompt, err)
	}
	if _, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "nobody"}); !hasCode(err, jsonrpc.CodeInvalidParams) {
		t.Errorf("an unknown prompt: %v", err)
	}
	done, err := session.Complete(t.Context(), &mcp.CompleteParams{
		Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "hello"}, Argument: mcp.CompleteParamsArgument{Name: "who", Value: "B"},
	})
	if err != nil || len(done.Completion.Values) != 1 || done.Completion.Values[0] != "B!" {
		t.Errorf("completion: %+v, %v", done, err)
	}
}

func textOf(t *testing.T, session *mcp.ClientSession, name string, args any, meta mcp.Meta) string {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args, Meta: meta})
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return ""
	}
	if len(result.Content) != 1 {
		t.Errorf("%s: %+v", name, result)
		return ""
	}
	text, _ := result.Content[0].(*mcp.TextContent)
	if text == nil {
		return ""
	}
	return text.Text
}

func hasCode(err error, code int64) bool {
	var coded *jsonrpc.Error
	return errors.As(err, &coded) && coded.Code == code
}
