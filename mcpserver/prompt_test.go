package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func says(text string) *mcp.GetPromptResult {
	return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{UserMessage(text)}}
}

// R51
func TestListPrompts(t *testing.T) {
	s := newTestServer(t, nil)
	h := func(context.Context, map[string]string) (*mcp.GetPromptResult, error) { return says(""), nil }
	if err := errors.Join(
		s.AddPrompt(&mcp.Prompt{Name: "b", Title: "B", Description: "the b", Arguments: []*mcp.PromptArgument{{Name: "x", Required: true}}}, h),
		s.AddPrompt(&mcp.Prompt{Name: "a"}, h),
	); err != nil {
		t.Fatal(err)
	}
	want := `[{"arguments":[{"name":"x","required":true}],"description":"the b","name":"b","title":"B"},{"name":"a"}]`
	if got := jsonOf(t, s.ListPrompts()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// R33 R34 R36 R37 R62 R64
func TestGetPrompt(t *testing.T) {
	s := newTestServer(t, nil)
	var args map[string]string
	same := says("hello")
	for name, h := range map[string]PromptHandler{
		"greet": func(_ context.Context, a map[string]string) (*mcp.GetPromptResult, error) {
			args = a
			return same, nil
		},
		"nil": func(context.Context, map[string]string) (*mcp.GetPromptResult, error) { return nil, nil },
		"none": func(context.Context, map[string]string) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{}, nil
		},
		"fails": func(context.Context, map[string]string) (*mcp.GetPromptResult, error) { return nil, errTest },
		"panic": func(context.Context, map[string]string) (*mcp.GetPromptResult, error) { panic("secret") },
		"empty": func(context.Context, map[string]string) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{}}, nil
		},
	} {
		if err := s.AddPrompt(&mcp.Prompt{Name: name}, h); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := s.GetPrompt(t.Context(), "greet", nil); err != nil || r != same || args == nil || len(args) != 0 {
		t.Errorf("without arguments: %+v, %v, handler got %v", r, err, args)
	}
	sent := map[string]string{"a": "1", "": " x ", "ä": "\x00"}
	if _, err := s.GetPrompt(t.Context(), "greet", sent); err != nil || !maps.Equal(args, sent) {
		t.Errorf("%v: handler got %v", err, args)
	}
	var missing *NotFoundError
	if _, err := s.GetPrompt(t.Context(), "Greet", nil); !errors.As(err, &missing) || err.Error() != "Prompt 'Greet' not found" {
		t.Errorf("unknown: %v", err)
	}
	for _, name := range []string{"nil", "none"} {
		if _, err := s.GetPrompt(t.Context(), name, nil); err == nil || !strings.Contains(err.Error(), "'"+name+"'") || !strings.Contains(err.Error(), "messages") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.GetPrompt(t.Context(), "empty", nil); err != nil {
		t.Errorf("no messages: %v", err)
	}
	if _, err := s.GetPrompt(t.Context(), "fails", nil); err != errTest { //nolint:errorlint // unchanged
		t.Errorf("the handler's error became %v", err)
	}
	if _, err := s.GetPrompt(t.Context(), "panic", nil); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("panic: %v", err)
	}
}

type reviewArgs struct {
	Language string    `json:"language" jsonschema:"enum=go,enum=gdscript,enum=c,description=programming language"`
	Depth    int       `json:"depth,omitempty" jsonschema:"minimum=1,maximum=3,default=2"`
	Strict   *bool     `json:"strict,omitempty"`
	Since    time.Time `json:"since,omitzero"`
}

func TestTypedPrompts(t *testing.T) {
	s := newTestServer(t, nil)
	if err := AddPrompt(s, &mcp.Prompt{Name: "review"}, func(_ context.Context, in reviewArgs) (*mcp.GetPromptResult, error) {
		return says(fmt.Sprint(in.Language, " ", in.Depth, " ", in.Strict != nil && *in.Strict, " ", in.Since.Year())), nil
	}); err != nil {
		t.Fatal(err)
	}
	want := `[{"arguments":[{"name":"language","description":"programming language","required":true},{"name":"depth"},{"name":"strict"},{"name":"since"}],"name":"review"}]`
	if got := jsonOf(t, s.ListPrompts()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	get := func(args map[string]string) string {
		r, err := s.GetPrompt(t.Context(), "review", args)
		if err != nil {
			return err.Error()
		}
		return r.Messages[0].Content.(*mcp.TextContent).Text
	}
	if got := get(map[string]string{"language": "go", "strict": "true", "since": "2026-07-28T00:00:00Z"}); got != "go 2 true 2026" {
		t.Errorf("got %q", got)
	}
	for says, args := range map[string]map[string]string{
		"/language: required":                         nil,
		`"go", "gdscript", "c"`:                       {"language": "perl"},
		"/depth: expected an integer, got the string": {"language": "go", "depth": "deep"},
		"/depth: expected at most 3":                  {"language": "go", "depth": "4"},
		"/lang: unknown property":                     {"language": "go", "lang": "x"},
		"/since: expected a date and time":            {"language": "go", "since": "today"},
	} {
		if got := get(args); !strings.Contains(got, says) || !strings.Contains(got, "Prompt 'review'") {
			t.Errorf("%v: got %q, want %q", args, got, says)
		}
	}
}

func TestBadPromptsAreLeftOut(t *testing.T) {
	s := newTestServer(t, nil)
	h := func(context.Context, map[string]string) (*mcp.GetPromptResult, error) { return says("first"), nil }
	if err := s.AddPrompt(&mcp.Prompt{Name: "p"}, h); err != nil {
		t.Fatal(err)
	}
	bad := []error{
		s.AddPrompt(&mcp.Prompt{Name: "p"}, h), // R63
		s.AddPrompt(&mcp.Prompt{}, h),
		s.AddPrompt(nil, h),
		s.AddPrompt(&mcp.Prompt{Name: "q"}, nil),
		s.AddPrompt(&mcp.Prompt{Name: "q", Arguments: []*mcp.PromptArgument{nil}}, h),
		s.AddPrompt(&mcp.Prompt{Name: "q", Arguments: []*mcp.PromptArgument{{Name: "a"}, {Name: "a"}}}, h),
		AddPrompt[reviewArgs](s, &mcp.Prompt{Name: "q"}, nil),
		AddPrompt(s, &mcp.Prompt{Name: "q"}, func(context.Context, struct{ L []int }) (*mcp.GetPromptResult, error) { return nil, nil }),
		AddPrompt(s, &mcp.Prompt{Name: "q"}, func(context.Context, struct{ C chan int }) (*mcp.GetPromptResult, error) { return nil, nil }),
		AddPrompt(s, &mcp.Prompt{Name: "q"}, func(context.Context, map[string]string) (*mcp.GetPromptResult, error) { return nil, nil }),
	}
	for i, err := range bad {
		if err == nil {
			t.Errorf("registration %d was taken", i)
		}
	}
	if n := len(s.Rejected()); n != len(bad) {
		t.Errorf("%d rejections, want %d", n, len(bad))
	}
	if r, err := s.GetPrompt(t.Context(), "p", nil); err != nil || len(s.ListPrompts()) != 1 || r.Messages[0].Content.(*mcp.TextContent).Text != "first" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestCompletion(t *testing.T) {
	fixed := &mcp.CompleteResult{}
	s := newTestServer(t, &Options{Complete: func(_ context.Context, p *mcp.CompleteParams) (*mcp.CompleteResult, error) {
		switch p.Argument.Value {
		case "fixed":
			return fixed, nil
		case "fails":
			return nil, errTest
		case "panic":
			panic("secret")
		}
		return nil, nil
	}})
	if err := AddPrompt(s, &mcp.Prompt{Name: "review"}, func(context.Context, reviewArgs) (*mcp.GetPromptResult, error) { return says(""), nil }); err != nil {
		t.Fatal(err)
	}
	if s.Capabilities().Completions == nil {
		t.Error("completion is not announced")
	}
	ss := s.NewSession(nil)
	defer ss.Close()
	complete := func(kind, name, arg, value string) string {
		r, err := ss.Complete(t.Context(), &mcp.CompleteParams{
			Ref: &mcp.CompleteReference{Type: kind, Name: name}, Argument: mcp.CompleteParamsArgument{Name: arg, Value: value},
		})
		if err != nil {
			return err.Error()
		}
		return strings.Join(r.Completion.Values, " ")
	}
	for _, tt := range [][5]string{
		{"ref/prompt", "review", "language", "", "go gdscript c"},
		{"ref/prompt", "review", "language", "G", "go gdscript"},
		{"ref/prompt", "review", "language", "x", ""},
		{"ref/prompt", "review", "depth", "", ""},
		{"ref/prompt", "nobody", "language", "", ""},
		{"ref/resource", "review", "language", "", ""},
		{"ref/prompt", "review", "language", "fails", "test"},
	} {
		if got := complete(tt[0], tt[1], tt[2], tt[3]); got != tt[4] {
			t.Errorf("%v: got %q", tt, got)
		}
	}
	if got := complete("ref/prompt", "review", "language", "panic"); strings.Contains(got, "secret") || got == "" {
		t.Errorf("panic: %q", got)
	}
	if r, err := s.Complete(t.Context(), &mcp.CompleteParams{Argument: mcp.CompleteParamsArgument{Value: "fixed"}}); r != fixed || err != nil {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := s.Complete(t.Context(), &mcp.CompleteParams{}); err != nil || r.Completion.Values == nil {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestMessages(t *testing.T) {
	want := `[{"content":{"type":"text","text":"q"},"role":"user"},{"content":{"type":"text","text":"a"},"role":"assistant"}]`
	if got := jsonOf(t, []*mcp.PromptMessage{UserMessage("q"), AssistantMessage("a")}); got != want {
		t.Errorf("got %s", got)
	}
}
