package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpserver"
)

type lookupIn struct {
	SKU string `json:"sku" jsonschema:"stock keeping unit, eight characters"`
}

type lookupOut struct {
	Quantity int    `json:"quantity"`
	Shelf    string `json:"shelf"`
}

// A typed tool: its schemas come from the Go types, and what does not match
// never reaches the handler.
func ExampleAddTool() {
	stock := mcpserver.New("stock", &mcpserver.Options{Version: "1.2.0"})
	defer stock.Close()
	err := mcpserver.AddTool(stock, &mcpserver.Tool{Name: "lookup", Description: "Find an article on the shelves", ReadOnly: true},
		func(_ context.Context, in lookupIn) (lookupOut, error) {
			if in.SKU != "AB-00017" {
				return lookupOut{}, fmt.Errorf("no article %s", in.SKU)
			}
			return lookupOut{Quantity: 4, Shelf: "C3"}, nil
		})
	if err != nil {
		log.Fatal(err)
	}
	for _, args := range []string{`{"sku":"AB-00017"}`, `{"sku":"XX-00000"}`, `{"SKU":17}`} {
		r, err := stock.CallTool(context.Background(), "lookup", json.RawMessage(args))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.IsError, r.Text())
	}
	// Output:
	// false {"quantity":4,"shelf":"C3"}
	// true no article XX-00000
	// true Tool 'lookup': the arguments do not match the input schema:
	// - /SKU: unknown property; did you mean "sku"?
	// - /sku: required, but missing; expected a string (stock keeping unit, eight characters)
}

// A raw tool has a schema written by hand and gets its arguments as JSON.
func ExampleServer_AddTool() {
	s := mcpserver.New("geo", nil)
	defer s.Close()
	err := s.AddTool(&mcpserver.Tool{
		Name:        "distance",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"km":{"type":"number","exclusiveMinimum":0}},"required":["km"]}`),
	}, func(_ context.Context, args json.RawMessage) (*mcpserver.Result, error) {
		return mcpserver.Text("got " + string(args)), nil
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, args := range []string{`{"km":1.50}`, `{"km":0}`} {
		r, err := s.CallTool(context.Background(), "distance", json.RawMessage(args))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.Text())
	}
	// Output:
	// got {"km":1.50}
	// Tool 'distance': the arguments do not match the input schema:
	// - /km: expected more than 0, got the number 0
}

// One bad registration is left out; the others work.
func ExampleServer_Rejected() {
	s := mcpserver.New("mixed", nil)
	defer s.Close()
	ok := func(context.Context, json.RawMessage) (*mcpserver.Result, error) { return mcpserver.Text("ok"), nil }
	_ = s.AddTool(&mcpserver.Tool{Name: "good"}, ok)
	_ = s.AddTool(&mcpserver.Tool{Name: "bad", InputSchema: json.RawMessage(`{"type":"strnig"}`)}, ok)
	fmt.Println(len(s.ListTools()), "tool")
	for _, r := range s.Rejected() {
		fmt.Println(r.Kind, r.Name)
	}
	// Output:
	// 1 tool
	// tool bad
}

// A middleware wraps each call of a handler.
func ExampleMiddleware() {
	audit := func(ctx context.Context, inv *mcpserver.Invocation, next func(context.Context) error) error {
		err := next(ctx)
		fmt.Println(inv.Kind, inv.Name, "error:", err)
		return err
	}
	s := mcpserver.New("audited", &mcpserver.Options{Middleware: audit})
	defer s.Close()
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "open"}, func(context.Context, struct{}) (string, error) {
		return "", errors.New("the door is locked")
	})
	if _, err := s.CallTool(context.Background(), "open", nil); err != nil {
		log.Fatal(err)
	}
	// Output:
	// tool open error: the door is locked
}

// A session hears of progress, and can be asked by the handler.
func ExampleServer_NewSession() {
	s := mcpserver.New("polite", nil)
	defer s.Close()
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "greet"}, func(ctx context.Context, _ struct{}) (string, error) {
		r := mcpserver.RequestFrom(ctx)
		if err := r.Progress(ctx, 1, 2, "asking"); err != nil {
			return "", err
		}
		answer, err := r.Elicit(ctx, &mcp.ElicitParams{Message: "What is your name?"})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("Hello %v!", answer.Content["name"]), nil
	})
	session := s.NewSession(&mcpserver.SessionOptions{
		Notify: func(_ context.Context, n mcpserver.Notification) {
			if p, ok := n.Params.(*mcp.ProgressNotificationParams); ok {
				fmt.Println("progress:", p.Message)
			}
		},
		Elicit: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
		},
	})
	defer session.Close()
	r, err := session.CallTool(context.Background(), mcpserver.Call{Name: "greet", ProgressToken: 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Text())
	// Output:
	// progress: asking
	// Hello Ada!
}

// A resource template serves a family of resources.
func ExampleServer_AddResourceTemplate() {
	s := mcpserver.New("notes", nil)
	defer s.Close()
	err := s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "note:{id}", Name: "note"},
		func(_ context.Context, uri string, vars map[string]string) (*mcp.ReadResourceResult, error) {
			if vars["id"] != "7" {
				return nil, &mcpserver.NotFoundError{Kind: mcpserver.KindResource, Name: uri}
			}
			return mcpserver.TextResource(uri, "text/plain", "buy milk"), nil
		})
	if err != nil {
		log.Fatal(err)
	}
	for _, uri := range []string{"note:7", "note:8"} {
		r, err := s.ReadResource(context.Background(), uri)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(r.Contents[0].Text)
	}
	// Output:
	// buy milk
	// Resource 'note:8' not found
}

// The arguments of a prompt are strings in the protocol and a struct here.
func ExampleAddPrompt() {
	s := mcpserver.New("review", nil)
	defer s.Close()
	type args struct {
		Language string `json:"language" jsonschema:"enum=go,enum=c"`
		Strict   bool   `json:"strict,omitempty"`
	}
	err := mcpserver.AddPrompt(s, &mcp.Prompt{Name: "review"}, func(_ context.Context, in args) (*mcp.GetPromptResult, error) {
		text := fmt.Sprintf("Review this %s code, strictly: %t.", strings.ToUpper(in.Language), in.Strict)
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{mcpserver.UserMessage(text)}}, nil
	})
	if err != nil {
		log.Fatal(err)
	}
	p, err := s.GetPrompt(context.Background(), "review", map[string]string{"language": "go", "strict": "true"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(p.Messages[0].Content.(*mcp.TextContent).Text)
	// Output:
	// Review this GO code, strictly: true.
}
