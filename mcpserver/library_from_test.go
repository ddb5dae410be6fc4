package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpserver"
)

func noEnv(string) (string, bool) { return "", false }

// A novelContent is a content block of a kind that the library does not know; this
// is how a program can make one.
type novelContent struct{ *mcp.TextContent }

func (novelContent) MarshalJSON() ([]byte, error) {
	return []byte(`{"type":"hologram","depth":3}`), nil
}

// foreign is a server written for the official library.
func foreign() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "foreign", Version: "7", Title: "From afar"}, &mcp.ServerOptions{
		Instructions: "Mind the gap.", PageSize: 2,
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		CompletionHandler: func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{"x"}}}, nil
		},
	})
	type sumIn struct{ A, B int }
	mcp.AddTool(s, &mcp.Tool{Name: "sum", Description: "Add"},
		func(_ context.Context, _ *mcp.CallToolRequest, in sumIn) (*mcp.CallToolResult, map[string]int, error) {
			return nil, map[string]int{"sum": in.A + in.B}, nil
		})
	raw := func(name string, h mcp.ToolHandler) {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object","title":"T","x-order":[3,1,2]}`)}, h)
	}
	raw("fails", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, &jsonrpc.Error{Code: -32099, Message: "out of order"}
	})
	raw("panics", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { panic("secret") })
	raw("novel", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "known"}, novelContent{}}}, nil
	})
	raw("waits", func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	raw("tells", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{}}, errors.Join(
			r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1, Message: "half"}),
			r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "error", Data: "careful"}),
		)
	})
	raw("asks", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answer, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Name?", RequestedSchema: json.RawMessage(`{"type":"object"}`)})
		if err != nil {
			return nil, err
		}
		roots, err := r.Session.ListRoots(ctx, nil)
		if err != nil {
			return nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(answer.Content["name"], " ", roots.Roots[0].URI)}}}, nil
	})
	raw("asks later", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if answer, ok := r.Params.InputResponses["q"].(*mcp.ElicitResult); ok {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(answer.Content["name"])}}}, nil
		}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{Message: "Name?"}}}, nil
	})
	read := func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: "text of " + r.Params.URI}}}, nil
	}
	for _, name := range []string{"a", "b", "c"} {
		s.AddResource(&mcp.Resource{URI: "mem:" + name, Name: name}, read)
	}
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "mem:t/{x}", Name: "t"}, read)
	s.AddPrompt(&mcp.Prompt{Name: "hello"}, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: r.Params.Arguments["who"]}}}}, nil
	})
	return s
}

func openForeign(t *testing.T, p mcpserver.Provider, o *mcpserver.SessionOptions) mcpserver.ServerSession {
	t.Helper()
	if o == nil {
		o = &mcpserver.SessionOptions{}
	}
	o.LookupEnv = noEnv
	session, err := p.OpenSession(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return session
}

func TestForeignServerTellsAboutItself(t *testing.T) {
	lib := foreign()
	p := mcpserver.FromLibrary(lib)
	if got, want := *p.Info(), (mcp.Implementation{Name: "foreign", Version: "7", Title: "From afar"}); !cmp.Equal(got, want) {
		t.Errorf("Info %+v, want %+v", got, want)
	}
	if got := p.Instructions(); got != "Mind the gap." {
		t.Errorf("Instructions %q", got)
	}
	if caps := p.Capabilities(); caps.Tools == nil || caps.Resources == nil || !caps.Resources.Subscribe || caps.Prompts == nil || caps.Completions == nil {
		t.Errorf("Capabilities %+v", caps)
	}
}

// What a foreign server gets later it offers later.
func TestForeignServerGrows(t *testing.T) {
	lib := mcp.NewServer(&mcp.Implementation{Name: "small", Version: "1"}, nil)
	p := mcpserver.FromLibrary(lib)
	changed := make(chan string, 4)
	session := openForeign(t, p, &mcpserver.SessionOptions{Notify: func(_ context.Context, n mcpserver.Notification) { changed <- n.Method }})
	if prompts, err := session.ListPrompts(t.Context()); len(prompts) != 0 || err != nil || p.Capabilities().Prompts != nil {
		t.Errorf("at first: %v, %v", prompts, err)
	}
	lib.AddPrompt(&mcp.Prompt{Name: "late"}, nil)
	if got := <-changed; got != mcpserver.MethodPromptListChanged {
		t.Errorf("notified of %s", got)
	}
	if prompts, err := session.ListPrompts(t.Context()); len(prompts) != 1 || err != nil || p.Capabilities().Prompts == nil {
		t.Errorf("later: %v, %v", prompts, err)
	}
}

// All pages of a list, and schemas as they were written.
func TestForeignListsAreWhole(t *testing.T) {
	session := openForeign(t, mcpserver.FromLibrary(foreign()), nil)
	tools, err := session.ListTools(t.Context())
	if err != nil || len(tools) != 8 {
		t.Fatalf("%d tools, %v; want 8", len(tools), err)
	}
	for _, tool := range tools {
		schema, ok := tool.InputSchema.(json.RawMessage)
		if !ok {
			t.Errorf("%s: the schema is a %T", tool.Name, tool.InputSchema)
		}
		if tool.Name == "novel" && string(schema) != `{"type":"object","title":"T","x-order":[3,1,2]}` {
			t.Errorf("the schema came as %s", schema)
		}
		if (tool.Name == "sum") != (tool.OutputSchema != nil) {
			t.Errorf("%s: output schema %v", tool.Name, tool.OutputSchema)
		}
	}
	resources, err := session.ListResources(t.Context())
	if err != nil || len(resources) != 3 {
		t.Errorf("%d resources, %v; want 3", len(resources), err)
	}
	templates, err := session.ListResourceTemplates(t.Context())
	if err != nil || len(templates) != 1 {
		t.Errorf("%d templates, %v; want 1", len(templates), err)
	}
}

func TestForeignCalls(t *testing.T) {
	var log bytes.Buffer
	p := mcpserver.FromLibrary(foreign())
	p.SetLogger(slog.New(slog.NewTextHandler(&log, nil)))
	session := openForeign(t, p, nil)
	call := func(name, args string) *mcpserver.Result {
		t.Helper()
		r, err := session.CallTool(t.Context(), mcpserver.Call{Name: name, Arguments: json.RawMessage(args)})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return r
	}
	if r := call("sum", `{"A":1,"B":2}`); string(r.StructuredContent) != `{"sum":3}` || r.IsError {
		t.Errorf("sum: %+v", r)
	}
	for name, want := range map[string]string{"sum": "A", "fails": "out of order", "panics": "internal error", "nobody": "Tool 'nobody' not found"} {
		r := call(name, "")
		if !r.IsError || !strings.Contains(r.Text(), want) || strings.Contains(r.Text(), "secret") || r.ToolNotFound() != (name == "nobody") {
			t.Errorf("%s: %q, not found %v; want an error with %q", name, r.Text(), r.ToolNotFound(), want)
		}
	}
	if !strings.Contains(log.String(), "secret") || !strings.Contains(log.String(), "stack=") {
		t.Errorf("the logger did not hear of the panic: %s", &log)
	}
	r := call("novel", "null")
	if len(r.Content) != 2 || r.Text() != "known" {
		t.Fatalf("novel: %+v", r.Content)
	}
	if novel, ok := r.Content[1].(*mcpserver.UnknownContent); !ok || novel.Type != "hologram" || string(novel.Raw) != `{"type":"hologram","depth":3}` {
		t.Errorf("a block of an unknown kind: %+v", r.Content[1])
	}
}

func TestForeignReads(t *testing.T) {
	session := openForeign(t, mcpserver.FromLibrary(foreign()), nil)
	read, err := session.ReadResource(t.Context(), "mem:t/9")
	if err != nil || read.Contents[0].Text != "text of mem:t/9" {
		t.Errorf("read: %+v, %v", read, err)
	}
	var missing *mcpserver.NotFoundError
	if _, err := session.ReadResource(t.Context(), "mem:no"); !errors.As(err, &missing) || missing.Kind != mcpserver.KindResource || missing.Name != "mem:no" {
		t.Errorf("an unknown resource: %v", err)
	}
	prompt, err := session.GetPrompt(t.Context(), "hello", map[string]string{"who": "Cy"})
	if err != nil || prompt.Messages[0].Content.(*mcp.TextContent).Text != "Cy" {
		t.Errorf("prompt: %+v, %v", prompt, err)
	}
	if _, err := session.GetPrompt(t.Context(), "no", nil); !errors.As(err, &missing) || missing.Kind != mcpserver.KindPrompt {
		t.Errorf("an unknown prompt: %v", err)
	}
	done, err := session.Complete(t.Context(), &mcp.CompleteParams{
		Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "hello"}, Argument: mcp.CompleteParamsArgument{Name: "who"},
	})
	if err != nil || len(done.Completion.Values) != 1 {
		t.Errorf("completion: %+v, %v", done, err)
	}
}

// What a foreign server says and asks reaches the session's functions.
func TestForeignTalk(t *testing.T) {
	lib := foreign()
	heard := make(chan mcpserver.Notification, 8)
	session := openForeign(t, mcpserver.FromLibrary(lib), &mcpserver.SessionOptions{
		Notify: func(_ context.Context, n mcpserver.Notification) { heard <- n },
		Elicit: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Di"}}, nil
		},
		ListRoots: func(context.Context) ([]*mcp.Root, error) { return []*mcp.Root{{URI: "file:///r"}}, nil },
	})
	for name, want := range map[string]string{"asks": "Di file:///r", "asks later": "Di"} {
		if r, err := session.CallTool(t.Context(), mcpserver.Call{Name: name}); err != nil || r.Text() != want {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if err := session.SetLevel(t.Context(), "warning"); err != nil {
		t.Fatal(err)
	}
	if _, err := session.CallTool(t.Context(), mcpserver.Call{Name: "tells", ProgressToken: "tok"}); err != nil {
		t.Fatal(err)
	}
	if p, ok := (<-heard).Params.(*mcp.ProgressNotificationParams); !ok || p.ProgressToken != "tok" || p.Message != "half" {
		t.Errorf("progress: %+v", p)
	}
	if p, ok := (<-heard).Params.(*mcp.LoggingMessageParams); !ok || p.Data != "careful" {
		t.Errorf("log: %+v", p)
	}
	if err := session.Subscribe(t.Context(), "mem:a"); err != nil {
		t.Fatal(err)
	}
	if err := lib.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: "mem:a"}); err != nil {
		t.Fatal(err)
	}
	if p, ok := (<-heard).Params.(*mcp.ResourceUpdatedNotificationParams); !ok || p.URI != "mem:a" {
		t.Errorf("update: %+v", p)
	}
	if err := session.Unsubscribe(t.Context(), "mem:a"); err != nil {
		t.Fatal(err)
	}
	lib.RemoveTools("sum")
	if n := <-heard; n.Method != mcpserver.MethodToolListChanged {
		t.Errorf("notified of %s", n.Method)
	}
}

// The limits and the ends of calls are those of a server of ours.
func TestForeignCallsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := mcpserver.FromLibrary(foreign())
		if got := p.Timeout(); got <= 0 {
			t.Errorf("Timeout %v", got)
		}
		var failed []mcpserver.Failure
		session, err := p.OpenSession(t.Context(), &mcpserver.SessionOptions{
			Timeout: 5 * time.Second, OnFailure: func(_ context.Context, f mcpserver.Failure) { failed = append(failed, f) },
		})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		r, err := session.CallTool(t.Context(), mcpserver.Call{Name: "waits"})
		if err != nil || !r.IsError || r.Text() != "Tool 'waits' timed out after 5 seconds" || time.Since(start) != 5*time.Second {
			t.Errorf("the limit: %+v, %v after %v", r, err, time.Since(start))
		}
		want := []mcpserver.Failure{{Kind: mcpserver.KindTool, Name: "waits", Timeout: 5 * time.Second}}
		if !slices.Equal(failed, want) {
			t.Errorf("OnFailure heard %+v, want %+v", failed, want)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if r, err := session.CallTool(ctx, mcpserver.Call{Name: "waits"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller's context: %+v, %v", r, err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := session.CallTool(t.Context(), mcpserver.Call{Name: "waits"})
			ended <- err
		}()
		synctest.Wait()
		if err := session.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, mcpserver.ErrClosed) {
			t.Errorf("Close: %v", err)
		}
		if _, err := session.CallTool(t.Context(), mcpserver.Call{Name: "sum"}); !errors.Is(err, mcpserver.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A handler that heeds nothing does not hold up Close for long.
func TestForeignCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lib := foreign()
		release := make(chan struct{})
		lib.AddTool(&mcp.Tool{Name: "deaf", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			<-release
			return &mcp.CallToolResult{}, nil
		})
		session, err := mcpserver.FromLibrary(lib).OpenSession(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = session.CallTool(t.Context(), mcpserver.Call{Name: "deaf"}) }()
		synctest.Wait()
		start := time.Now()
		if err := session.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("Close took %v", took)
		}
		close(release)
	})
}

// Many sessions on one foreign server at once.
func TestForeignSessionsAreSeparate(t *testing.T) {
	p := mcpserver.FromLibrary(foreign())
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			session, err := p.OpenSession(t.Context(), nil)
			if err != nil {
				t.Error(err)
				return
			}
			for n := range 10 {
				r, err := session.CallTool(t.Context(), mcpserver.Call{Name: "sum", Arguments: fmt.Appendf(nil, `{"A":%d,"B":%d}`, i, n)})
				if err != nil || string(r.StructuredContent) != fmt.Sprintf(`{"sum":%d}`, i+n) {
					t.Errorf("session %d: %+v, %v", i, r, err)
				}
			}
			if err := session.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
