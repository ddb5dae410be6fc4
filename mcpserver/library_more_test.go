package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpserver"
)

// A tool of a library server that cannot be used is left out and can be asked for,
// whatever logger the server has; the others stay, and one that is mended is back.
//
// # D112
//
// fault I4
func TestLibraryServersTellWhatTheyLeaveOut(t *testing.T) {
	lib := mcp.NewServer(&mcp.Implementation{Name: "lib", Version: "1"}, nil)
	lib.AddTool(&mcp.Tool{Name: "good", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, nil })
	broken := true
	lib.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			result, err := next(ctx, method, req)
			if list, ok := result.(*mcp.ListToolsResult); ok && broken {
				list.Tools = append(list.Tools, &mcp.Tool{Name: "listed", InputSchema: []int{1}}, &mcp.Tool{Name: "none"},
					&mcp.Tool{InputSchema: map[string]any{"type": "object"}})
			}
			return result, err
		}
	})
	p := mcpserver.FromLibrary(lib)
	var log records
	for range 2 { // without and with a logger
		ss, err := p.OpenSession(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		tools, err := ss.ListTools(t.Context())
		if err != nil || len(tools) != 1 || tools[0].Name != "good" {
			t.Errorf("the list is %v, %v", tools, err)
		}
		var got []string
		for _, r := range p.Rejected() {
			got = append(got, fmt.Sprint(r.Kind, " ", r.Err))
		}
		want := []string{
			`tool mcpserver: tool "listed" on server "lib" was left out: the input schema must be a JSON object, and is [1]`,
			`tool mcpserver: tool "none" on server "lib" was left out: the input schema must be a JSON object, and is null`,
			`tool mcpserver: tool "" on server "lib" was left out: it has no name`,
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("rejected %q, want %q", got, want)
		}
		_ = ss.Close()
		p.SetLogger(log.logger())
	}
	all, text := log.take(t)
	if len(all) != 3 || strings.Count(text, "CLAUDE_SDK_MCP_TOOL_SCHEMA_UNCONVERTIBLE") != 2 || !strings.HasPrefix(all[0].Msg, `Tool "listed" on SDK MCP server "lib" was left out`) {
		t.Errorf("the log is %s", text)
	}
	broken = false
	ss, err := p.OpenSession(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ss.Close()
	if _, err := ss.ListTools(t.Context()); err != nil || len(p.Rejected()) != 0 {
		t.Errorf("after it was mended: %v, %v", p.Rejected(), err)
	}
}

// A list that never ends is cut, with a word in the log.
//
// fault H14
func TestListsOfLibraryServersEnd(t *testing.T) {
	for method, tt := range map[string]struct {
		page func(next string) mcp.Result
		list func(mcpserver.ServerSession) (int, error)
	}{
		"tools/list": {
			func(next string) mcp.Result {
				return &mcp.ListToolsResult{NextCursor: next, Tools: []*mcp.Tool{{Name: "t" + next, InputSchema: json.RawMessage(`{"type":"object"}`)}}}
			},
			func(ss mcpserver.ServerSession) (int, error) {
				all, err := ss.ListTools(t.Context())
				return len(all), err
			},
		},
		"resources/list": {
			func(next string) mcp.Result {
				return &mcp.ListResourcesResult{NextCursor: next, Resources: []*mcp.Resource{{Name: "r", URI: "mem:" + next}}}
			},
			func(ss mcpserver.ServerSession) (int, error) {
				all, err := ss.ListResources(t.Context())
				return len(all), err
			},
		},
	} {
		for once, want := range map[bool]int{false: 1000, true: 2} {
			lib := mcp.NewServer(&mcp.Implementation{Name: "lib", Version: "1"}, &mcp.ServerOptions{
				Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}, Resources: &mcp.ResourceCapabilities{}},
			})
			asked := 0
			lib.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
				return func(ctx context.Context, m string, req mcp.Request) (mcp.Result, error) {
					if m != method {
						return next(ctx, m, req)
					}
					if asked++; once {
						return tt.page("same"), nil
					}
					return tt.page(strconv.Itoa(asked)), nil
				}
			})
			p := mcpserver.FromLibrary(lib)
			var log records
			p.SetLogger(log.logger())
			ss, err := p.OpenSession(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			n, err := tt.list(ss)
			_ = ss.Close()
			_, text := log.take(t)
			if n != want || asked != want || err != nil || strings.Contains(text, "does not end") == once {
				t.Errorf("%s, the same cursor %v: %d entries of %d pages, %v; log %s", method, once, n, asked, err, text)
			}
		}
	}
}

// A client that cannot tell its roots says why, and the handler learns of it.
//
// fault F8
func TestErrorsOfRootsReachLibraryHandlers(t *testing.T) {
	lib := mcp.NewServer(&mcp.Implementation{Name: "lib", Version: "1"}, nil)
	lib.AddTool(&mcp.Tool{Name: "roots", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			roots, err := r.Session.ListRoots(ctx, nil)
			if err != nil {
				return nil, fmt.Errorf("no roots: %w", err)
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(len(roots.Roots))}}}, nil
		})
	p := mcpserver.FromLibrary(lib)
	var log records
	p.SetLogger(log.logger())
	for name, tt := range map[string]struct {
		roots func(context.Context) ([]*mcp.Root, error)
		want  string
		fails bool
	}{
		"an error":    {func(context.Context) ([]*mcp.Root, error) { return nil, errors.New("the disk is gone") }, "the disk is gone", true},
		"a panic":     {func(context.Context) ([]*mcp.Root, error) { panic("secret") }, "SessionOptions.ListRoots panicked", true},
		"a null root": {func(context.Context) ([]*mcp.Root, error) { return []*mcp.Root{nil}, nil }, "root 0 is null", true},
		"none":        {func(context.Context) ([]*mcp.Root, error) { return nil, nil }, "0", false},
	} {
		ss, err := p.OpenSession(t.Context(), &mcpserver.SessionOptions{ListRoots: tt.roots})
		if err != nil {
			t.Fatal(err)
		}
		r, err := ss.CallTool(t.Context(), mcpserver.Call{Name: "roots"})
		if err != nil || r.IsError != tt.fails || !strings.Contains(r.Text(), tt.want) || strings.Contains(r.Text(), "secret") {
			t.Errorf("%s: %+v, %v; want %s", name, r, err, tt.want)
		}
		_ = ss.Close()
	}
	if _, text := log.take(t); !strings.Contains(text, "secret") || !strings.Contains(text, "goroutine") {
		t.Errorf("the panic is not in the log: %s", text)
	}
}

// What is as it was is not announced, what changed is announced once, and the last
// of a kind can be removed.
//
// fault F9
func TestLibraryClientsHearOfChangesOnly(t *testing.T) {
	tool := func(context.Context, json.RawMessage) (*mcpserver.Result, error) { return mcpserver.Text("x"), nil }
	read := func(context.Context) (*mcp.ReadResourceResult, error) {
		return mcpserver.TextResource("mem:x", "", "x"), nil
	}
	made := func(context.Context, string, map[string]string) (*mcp.ReadResourceResult, error) {
		return mcpserver.TextResource("mem:x", "", "x"), nil
	}
	prompt := func(context.Context, map[string]string) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{}, nil
	}
	for _, kind := range []struct {
		name   string
		add    func(s *mcpserver.Server, name string) error
		remove func(s *mcpserver.Server, names ...string)
	}{
		{
			"tools",
			func(s *mcpserver.Server, name string) error { return s.AddTool(&mcpserver.Tool{Name: name}, tool) },
			(*mcpserver.Server).RemoveTool,
		},
		{
			"prompts",
			func(s *mcpserver.Server, name string) error { return s.AddPrompt(&mcp.Prompt{Name: name}, prompt) },
			(*mcpserver.Server).RemovePrompt,
		},
		{
			"resources",
			func(s *mcpserver.Server, name string) error {
				return s.AddResource(&mcp.Resource{URI: "mem:" + name, Name: name}, read)
			},
			func(s *mcpserver.Server, names ...string) {
				for _, name := range names {
					s.RemoveResource("mem:" + name)
				}
			},
		},
		{
			"templates",
			func(s *mcpserver.Server, name string) error {
				return s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "mem:" + name + "/{x}", Name: name}, made)
			},
			func(s *mcpserver.Server, names ...string) {
				for _, name := range names {
					s.RemoveResourceTemplate("mem:" + name + "/{x}")
				}
			},
		},
	} {
		t.Run(kind.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { libraryHears(t, kind.name, kind.add, kind.remove) })
		})
	}
}

func libraryHears(t *testing.T, kind string, add func(s *mcpserver.Server, name string) error, remove func(s *mcpserver.Server, names ...string)) {
	s := mcpserver.New("s", nil)
	defer s.Close()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(add(s, "one"))
	heard := make(chan string, 10)
	hear := func(what string) { heard <- what }
	session := connect(t, s.Library(), "2025-11-25", &mcp.ClientOptions{
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { hear("tools") },
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { hear("prompts") },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { hear("resources") },
	})
	defer session.Close()
	announced := kind
	if kind == "templates" {
		announced = "resources"
	}
	for _, step := range []struct {
		what  string
		do    func()
		heard string
		names string
	}{
		{"looking again", func() { s.Library(); s.Library() }, "", "one"},
		{"removing what is not there", func() { remove(s, "nobody") }, "", "one"},
		{"adding", func() { must(add(s, "two")) }, announced, "one two"},
		{"removing", func() { remove(s, "two") }, announced, "one"},
		{"removing the last", func() { remove(s, "one") }, announced, ""},
		{"adding again", func() { must(add(s, "three")) }, announced, "three"},
		{"a change that is undone", func() { must(add(s, "four")); remove(s, "four") }, announced, "three"},
	} {
		step.do()
		time.Sleep(time.Second) // fake time: the library announces changes close together once
		synctest.Wait()
		var got []string
		for len(heard) > 0 {
			got = append(got, <-heard)
		}
		if names := listedNames(t, session, kind); strings.Join(got, " ") != step.heard || names != step.names {
			t.Errorf("%s: heard %q, listed %q; want %q and %q", step.what, got, names, step.heard, step.names)
		}
	}
}

func listedNames(t *testing.T, session *mcp.ClientSession, kind string) string {
	t.Helper()
	var names []string
	collect := func(name string, err error) bool {
		if err != nil {
			t.Error(err)
		}
		names = append(names, name)
		return err == nil
	}
	ctx := t.Context()
	switch kind {
	case "tools":
		session.Tools(ctx, nil)(func(x *mcp.Tool, err error) bool { return collect(x.Name, err) })
	case "prompts":
		session.Prompts(ctx, nil)(func(x *mcp.Prompt, err error) bool { return collect(x.Name, err) })
	case "resources":
		session.Resources(ctx, nil)(func(x *mcp.Resource, err error) bool { return collect(x.Name, err) })
	case "templates":
		session.ResourceTemplates(ctx, nil)(func(x *mcp.ResourceTemplate, err error) bool { return collect(x.Name, err) })
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}
