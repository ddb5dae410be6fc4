// Command permission shows who decides about tool calls: what AllowedTools names runs by itself, everything else is
// asked about on the terminal, and "always" is remembered for the session.
//
//	go run ./examples/permission
//
// Without ANTHROPIC_API_KEY it runs on the offline model and says so in its first line.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
	"github.com/tenon-sdk/tenon/permission"
)

const question = "Read the shopping list, then add bread, butter and jam to it, one call for each, and clear nothing."

const offlinePrompt = `@mcp__list__read {}
@mcp__list__add {"item": "bread"}
@mcp__list__add {"item": "butter"}
@mcp__list__add {"item": "jam"}`

// A terminal asks one question at a time: calls that may run together are asked about together.
type terminal struct {
	mu  sync.Mutex // guards the rest, and keeps question and answer together
	in  *bufio.Scanner
	out io.Writer
}

func (t *terminal) printf(format string, args ...any) {
	t.mu.Lock()
	fmt.Fprintf(t.out, format, args...)
	t.mu.Unlock()
}

// canUseTool is called for each call that nothing else settles.
func (t *terminal) canUseTool(_ context.Context, r *agent.ToolRequest) (*permission.PromptResult, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		fmt.Fprintf(t.out, "%s wants to run with %s. Allow? [y]es, [n]o, [a]lways, [q]uit: ", r.ToolName, r.Input)
		if !t.in.Scan() {
			return nil, errors.Join(errors.New("nobody is there to ask"), t.in.Err()) // an error denies
		}
		switch strings.ToLower(strings.TrimSpace(t.in.Text())) {
		case "y", "yes":
			return agent.Allow(), nil
		case "a", "always": // the suggestions are rules that settle such calls from now on
			return &permission.PromptResult{Behavior: permission.Allow, UpdatedPermissions: r.Suggestions}, nil
		case "n", "no":
			return agent.Deny("The user does not want this call. Go on without it."), nil
		case "q", "quit":
			return &permission.PromptResult{Behavior: permission.Deny, Message: "The user stopped here.", Interrupt: true}, nil
		}
	}
}

type addIn struct {
	Item string `json:"item"`
}

// shopping is a list that can be read and added to.
func shopping() *mcpserver.Server {
	var mu sync.Mutex
	items := []string{"milk"}
	list := func(more ...string) string {
		mu.Lock()
		defer mu.Unlock()
		items = append(items, more...)
		return strings.Join(items, ", ")
	}
	s := mcpserver.New("list", nil)
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "read", Description: "Read the shopping list", ReadOnly: true},
		func(context.Context, struct{}) (string, error) { return list(), nil })
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "add", Description: "Add an item to the shopping list"},
		func(_ context.Context, in addIn) (string, error) { return list(in.Item), nil })
	return s
}

func run(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	engine, prompt := native.New(nil), question
	if os.Getenv("ANTHROPIC_API_KEY") == "" {
		fmt.Fprintln(stdout, "No ANTHROPIC_API_KEY is set, so this runs on the offline model: it makes the calls that it is told to.")
		engine, prompt = native.New(&native.Options{APIKey: "none", HTTPClient: modeltest.Offline().Client()}), offlinePrompt
	}
	term := &terminal{in: bufio.NewScanner(stdin), out: stdout}
	for msg, err := range agent.Query(ctx, engine, prompt, &agent.Options{
		MCPServers:   map[string]mcphost.ServerConfig{"list": mcphost.InProcess(shopping())},
		AllowedTools: []string{"mcp__list__read"},
		CanUseTool:   term.canUseTool,
	}) {
		if err != nil {
			return err
		}
		switch m := msg.(type) {
		case *agent.User:
			for _, result := range m.ToolResults() {
				term.printf("-> %s\n", result.Text())
			}
		case *agent.Result:
			term.printf("\n%s\n(%d calls were denied)\n", m.Result, len(m.PermissionDenials))
		}
	}
	return nil
}

func main() {
	if err := run(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "permission:", err)
		os.Exit(1)
	}
}
