package agent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/permission"
)

// A parrot is an engine that repeats what it hears. Programs use one of the packages under engine/.
type parrot struct{}

func (parrot) Name() string { return "parrot" }

func (parrot) Open(context.Context, *agent.Options) (agent.Session, error) {
	return &perch{said: make(chan agent.Message, 10)}, nil
}

type perch struct{ said chan agent.Message }

func (p *perch) Send(_ context.Context, in *agent.Input) error {
	text := in.Content.Text()
	result := &agent.Result{Subtype: agent.SubtypeSuccess, Result: text}
	if strings.Contains(text, "fly") {
		result = &agent.Result{Subtype: agent.SubtypeErrorMaxTurns, IsError: true, Errors: []string{"too many turns in the air"}}
	}
	p.said <- &agent.SystemInit{Model: "parrot-1"}
	p.said <- &agent.Assistant{Message: agent.APIMessage{Content: agent.TextContent(text)}}
	p.said <- result
	return nil
}

func (p *perch) ContextUsage(context.Context) (*agent.ContextUsage, error) {
	return &agent.ContextUsage{Model: "parrot-1"}, nil
}

func (p *perch) Receive(context.Context) (agent.Message, error) {
	m, ok := <-p.said
	if !ok {
		return nil, io.EOF
	}
	return m, nil
}

func (p *perch) EndInput() error {
	close(p.said)
	return nil
}

func (*perch) Close() error                                                   { return nil }
func (*perch) Interrupt(context.Context) error                                { return nil }
func (*perch) SetModel(context.Context, string) error                         { return nil }
func (*perch) SetPermissionMode(context.Context, permission.Mode) error       { return nil }
func (*perch) MCPStatus(context.Context) ([]mcphost.ServerStatus, error)      { return nil, nil }
func (*perch) ReconnectMCPServer(context.Context, string) error               { return nil }
func (*perch) SetMCPServerEnabled(_ context.Context, _ string, on bool) error { return nil }
func (*perch) SetMCPServers(context.Context, map[string]mcphost.ServerConfig) (mcphost.SetResult, error) {
	return mcphost.SetResult{}, nil
}

func ExampleQuery() {
	for msg, err := range agent.Query(context.Background(), parrot{}, "hello", nil) {
		if err != nil {
			slog.Error("run failed", "error", err)
			return
		}
		switch m := msg.(type) {
		case *agent.SystemInit:
			fmt.Println("model:", m.Model)
		case *agent.Assistant:
			fmt.Println("assistant:", m.Text())
		case *agent.Result:
			fmt.Println("result:", m.Result)
		}
	}
	// Output:
	// model: parrot-1
	// assistant: hello
	// result: hello
}

// An error result comes as a message, and then as the last error.
func ExampleQuery_error() {
	for msg, err := range agent.Query(context.Background(), parrot{}, "fly", nil) {
		if r, ok := msg.(*agent.Result); ok {
			fmt.Println("result:", r.Subtype)
		}
		if errors.Is(err, agent.ErrMaxTurns) {
			fmt.Println("error:", err)
		}
	}
	// Output:
	// result: error_max_turns
	// error: agent: error_max_turns: too many turns in the air
}

func ExampleOpen() {
	ctx := context.Background()
	client, err := agent.Open(ctx, parrot{}, nil)
	if err != nil {
		slog.Error("no client", "error", err)
		return
	}
	defer client.Close()
	for _, text := range []string{"hello", "goodbye"} {
		if err := client.Send(ctx, text); err != nil {
			slog.Error("not sent", "error", err)
			return
		}
		for msg, err := range client.Response(ctx) {
			if err != nil {
				slog.Error("no answer", "error", err)
				return
			}
			if r, ok := msg.(*agent.Result); ok {
				fmt.Println(r.Result)
			}
		}
	}
	// Output:
	// hello
	// goodbye
}

// Messages of other programs are read the same way. What is not known here is passed on whole.
func ExampleDecodeMessage() {
	for _, line := range []string{
		`{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"hi"}]},"session_id":"s","uuid":"u"}`,
		`{"type":"weather_report","sky":"blue"}`,
	} {
		msg, err := agent.DecodeMessage([]byte(line))
		if err != nil {
			slog.Error("no message", "error", err)
			return
		}
		switch m := msg.(type) {
		case *agent.Assistant:
			fmt.Println("assistant:", m.Text())
		case *agent.Unknown:
			fmt.Println("unknown:", m.Type, string(m.Raw))
		}
	}
	// Output:
	// assistant: hi
	// unknown: weather_report {"type":"weather_report","sky":"blue"}
}
