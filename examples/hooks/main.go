// Command hooks shows two hooks around every tool call: one that runs before and refuses paths outside of the notes
// and mends sloppy ones, and one that runs after and blacks out what looks like a key before the model reads it.
//
//	go run ./examples/hooks
//
// Without ANTHROPIC_API_KEY it runs on the offline model and says so in its first line.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"strings"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
	"github.com/tenon-sdk/tenon/permission"
)

const question = "Read notes/deploy.txt, then /etc/passwd, and tell me what they say."

const offlinePrompt = `@mcp__notes__read {"path": "notes/drafts/../deploy.txt"}
@mcp__notes__read {"path": "/etc/passwd"}`

// readIn is the input of the tool, and of the hook that guards it.
type readIn struct {
	Path string `json:"path"`
}

// guard runs before each call. It decides by the path as it is and not as it is written.
func guard(_ context.Context, in *agent.PreToolUse) (*agent.PreToolUseOutput, error) {
	var call readIn
	if err := json.Unmarshal(in.ToolInput, &call); err != nil {
		return nil, err // with FailClosed, an error refuses the call
	}
	call.Path = path.Clean(call.Path)
	if !strings.HasPrefix(call.Path, "notes/") {
		return &agent.PreToolUseOutput{
			Decision: permission.Deny,
			Reason:   call.Path + " is not a note: only paths that begin with notes/ can be read.",
		}, nil
	}
	input, err := json.Marshal(call)
	return &agent.PreToolUseOutput{UpdatedInput: input}, err
}

var secret = regexp.MustCompile(`\b(sk|ghp|AKIA)[-_A-Za-z0-9]{8,}`)

// redact runs after each call that succeeded. The tool's own result stays as it is for the hooks; the model reads this one.
func redact(_ context.Context, in *agent.PostToolUse) (*agent.PostToolUseOutput, error) {
	if !secret.Match(in.ToolResponse) {
		return nil, nil
	}
	var result agent.ToolResultBlock
	if err := json.Unmarshal(in.ToolResponse, &result.Content); err != nil {
		return nil, err
	}
	return &agent.PostToolUseOutput{
		UpdatedOutput: agent.TextContent(secret.ReplaceAllString(result.Text(), "[a key]")),
		HookOutput:    agent.HookOutput{SystemMessage: "a key was kept from the model"},
	}, nil
}

func run(ctx context.Context, stdout io.Writer) error {
	engine, prompt := native.New(nil), question
	if os.Getenv("ANTHROPIC_API_KEY") == "" {
		fmt.Fprintln(stdout, "No ANTHROPIC_API_KEY is set, so this runs on the offline model: it makes the calls that it is told to.")
		engine, prompt = native.New(&native.Options{APIKey: "none", HTTPClient: modeltest.Offline().Client()}), offlinePrompt
	}
	notes := mcpserver.New("notes", nil)
	mcpserver.MustAddTool(notes, &mcpserver.Tool{Name: "read", Description: "Read a file", ReadOnly: true},
		func(_ context.Context, in readIn) (string, error) {
			return in.Path + ": deploy with the key sk-live-0123456789 on Fridays", nil
		})
	for msg, err := range agent.Query(ctx, engine, prompt, &agent.Options{
		MCPServers:   map[string]mcphost.ServerConfig{"notes": mcphost.InProcess(notes)},
		AllowedTools: []string{"mcp__notes__read"}, // a hook that denies stands above it
		Hooks: &agent.Hooks{
			PreToolUse:  []agent.Hook[agent.PreToolUse, agent.PreToolUseOutput]{{Matcher: "mcp__notes__.*", FailClosed: true, Func: guard}},
			PostToolUse: []agent.Hook[agent.PostToolUse, agent.PostToolUseOutput]{{FailClosed: true, Func: redact}},
		},
	}) {
		if err != nil {
			return err
		}
		switch m := msg.(type) {
		case *agent.Assistant:
			for _, use := range m.ToolUses() {
				fmt.Fprintf(stdout, "call   %s\n", use.Input)
			}
		case *agent.User:
			for _, result := range m.ToolResults() {
				fmt.Fprintf(stdout, "result %s\n", result.Text())
			}
		case *agent.Result:
			fmt.Fprintf(stdout, "\n%s\n", m.Result)
		}
	}
	return nil
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "hooks:", err)
		os.Exit(1)
	}
}
