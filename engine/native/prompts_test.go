package native

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

// tinyPNG is an image of one pixel.
func tinyPNG(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// greeter is a server with prompts.
func greeter(t *testing.T) *mcpserver.Server {
	t.Helper()
	s := mcpserver.New("greeter", &mcpserver.Options{Complete: func(_ context.Context, p *mcp.CompleteParams) (*mcp.CompleteResult, error) {
		given := ""
		if p.Context != nil {
			given = p.Context.Arguments["name"]
		}
		return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{p.Argument.Value + "ly", p.Ref.Name, p.Argument.Name, given}, Total: 9, HasMore: true}}, nil
	}})
	message := func(role, text string) *mcp.PromptMessage {
		return &mcp.PromptMessage{Role: mcp.Role(role), Content: &mcp.TextContent{Text: text}}
	}
	args := []*mcp.PromptArgument{{Name: "name", Required: true, Description: "who"}, {Name: "style"}}
	for _, err := range []error{
		s.AddPrompt(&mcp.Prompt{Name: "greet", Description: "Greets someone", Arguments: args}, func(_ context.Context, args map[string]string) (*mcp.GetPromptResult, error) {
			given, err := json.Marshal(args)
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{message("user", "Greet "+string(given)), message("assistant", "I will."), {Role: "user", Content: &mcp.ImageContent{MIMEType: "image/png", Data: tinyPNG(t)}}}}, err
		}),
		s.AddPrompt(&mcp.Prompt{Name: "with space"}, func(context.Context, map[string]string) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{message("user", "spaced")}}, nil
		}),
		s.AddPrompt(&mcp.Prompt{Name: "broken"}, func(context.Context, map[string]string) (*mcp.GetPromptResult, error) {
			return nil, errors.New("out of order")
		}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func withPrompts(t *testing.T) *agent.Options {
	return &agent.Options{MCPServers: map[string]mcphost.ServerConfig{"my.greeter": mcphost.InProcess(greeter(t))}}
}

// A prompt is a command: its messages are what the model reads.
func TestPromptCommands(t *testing.T) {
	tests := map[string]string{ // input -> what the model reads of it
		`/mcp__my_greeter__greet "Ann Lee" 'very polite'`:     `Greet {"name":"Ann Lee","style":"very polite"}`,
		`/mcp__my_greeter__greet Ann`:                         `Greet {"name":"Ann"}`,
		`/mcp__my_greeter__greet style=curt name="A=B \"q\""`: `Greet {"name":"A=B \"q\"","style":"curt"}`,
		"  /mcp__my_greeter__greet  Ann\tcurt ":               `Greet {"name":"Ann","style":"curt"}`,
		`/mcp__my_greeter__with space`:                        `spaced`,
		`/other command`:                                      `/other command`,
		`say /mcp__my_greeter__greet Ann`:                     `say /mcp__my_greeter__greet Ann`,
	}
	for input, want := range tests {
		model := modeltest.New(t, modeltest.Text("x"))
		c := open(t, model, withPrompts(t))
		if r, _ := say(t, c, input); r.IsError {
			t.Errorf("%s: %+v", input, r)
		}
		if got := model.Last().LastUserText(); !strings.Contains(got, want) {
			t.Errorf("%s: the model reads %q", input, got)
		}
		if !strings.Contains(input, "Lee") {
			continue
		}
		var types []string
		for _, b := range model.Last().Messages[0].Content {
			types = append(types, b.Type)
		}
		if text := model.Last().LastUserText(); len(types) < 4 || types[3] != "image" || !strings.Contains(text, "I will.") || !strings.Contains(text, "<command-name>/mcp__my_greeter__greet</command-name>") {
			t.Errorf("blocks %q: %s", types, text)
		}
	}
}

// A command that cannot be carried out ends its turn, says why, and spoils nothing.
func TestFaultyCommands(t *testing.T) {
	model := modeltest.New(t, modeltest.Text("fine"))
	c := open(t, model, withPrompts(t))
	for input, want := range map[string]string{
		`/mcp__my_greeter__greet`:                 `argument "name" is missing. Usage: /mcp__my_greeter__greet <name> [style]`,
		`/mcp__my_greeter__greet "Ann`:            `a quote " is not closed`,
		`/mcp__my_greeter__greet Ann Lee is here`: `2 arguments too many, from "is" on`,
		`/mcp__my_greeter__broken`:                `out of order`,
		`/mcp__my_greeter__nobody x`:              `Unknown command: /mcp__my_greeter__nobody. There are: /mcp__my_greeter__broken, /mcp__my_greeter__greet, /mcp__my_greeter__with space`,
		`/mcp__nobody__greet`:                     `Unknown command`,
	} {
		r, _ := say(t, c, input)
		if r.Subtype != agent.SubtypeErrorDuringExecution || r.TerminalReason != agent.ReasonTurnSetupFailed || len(r.Errors) != 1 || !strings.Contains(r.Errors[0], want) {
			t.Errorf("%s: %+v", input, r)
		}
	}
	if r, _ := say(t, c, "hello"); r.Result != "fine" || len(model.Requests()) != 1 {
		t.Errorf("%d requests, %+v", len(model.Requests()), r)
	}
}

// The program sees the commands in init and by a method, and can have their arguments completed.
func TestCommands(t *testing.T) {
	model := modeltest.New(t, modeltest.Text("x"))
	c := open(t, model, withPrompts(t))
	_, msgs := say(t, c, "x")
	if diff := cmp.Diff([]string{"mcp__my_greeter__broken", "mcp__my_greeter__greet", "mcp__my_greeter__with space"}, last[*agent.SystemInit](msgs).SlashCommands); diff != "" {
		t.Error(diff)
	}
	list, err := c.Commands(t.Context())
	if err != nil || len(list) != 3 {
		t.Fatalf("%v: %+v", err, list)
	}
	want := agent.Command{
		Name: "mcp__my_greeter__greet", Description: "Greets someone", ArgumentHint: "<name> [style]", Server: "my.greeter", Prompt: "greet",
		Arguments: []agent.CommandArgument{{Name: "name", Description: "who", Required: true}, {Name: "style"}},
	}
	if diff := cmp.Diff(want, list[1]); diff != "" {
		t.Error(diff)
	}
	got, err := c.CompleteCommand(t.Context(), "/mcp__my_greeter__greet", "style", "kind", map[string]string{"name": "Ann"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&agent.Completion{Values: []string{"kindly", "greet", "style", "Ann"}, Total: 9, HasMore: true}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := c.CompleteCommand(t.Context(), "nobody", "a", "", nil); err == nil {
		t.Error("an unknown command was completed")
	}
}

func TestSplitArguments(t *testing.T) {
	tests := map[string][]string{
		``: nil, ` a  b `: {"a", "b"}, `"a b" c`: {"a b", "c"}, `'a "b"' "c 'd'"`: {`a "b"`, `c 'd'`}, `a\ b \"c`: {"a b", `"c`},
		`""`: {""}, `x"y z"w`: {"xy zw"}, `'a\'`: {`a\`}, `C:\dir`: {`C:\dir`}, "日本 語": {"日本", "語"},
	}
	for in, want := range tests {
		words, err := splitArguments(in)
		var got []string
		for _, w := range words {
			got = append(got, w.text)
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", in, err, diff)
		}
	}
}
