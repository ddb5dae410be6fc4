package mcpserver_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpserver"
)

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
