package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// asker asks for a name and a colour, one after the other.
func asker(ctx context.Context) (string, error) {
	r := RequestFrom(ctx)
	var parts []string
	for _, question := range []string{"name?", "colour?"} {
		answer, err := r.Elicit(ctx, &mcp.ElicitParams{Message: question})
		if err != nil {
			return "", fmt.Errorf("asking %q: %w", question, err)
		}
		parts = append(parts, fmt.Sprint(answer.Content["v"]))
	}
	return strings.Join(parts, " "), nil
}

func askingServer(t *testing.T, o *Options) *Server {
	t.Helper()
	s := newTestServer(t, o)
	if err := errors.Join(
		s.AddTool(&Tool{Name: "ask"}, func(ctx context.Context, _ json.RawMessage) (*Result, error) {
			text, err := asker(ctx)
			return Text(text), err
		}),
		s.AddResource(&mcp.Resource{URI: "mem:ask"}, func(ctx context.Context) (*mcp.ReadResourceResult, error) {
			text, err := asker(ctx)
			return TextResource("mem:ask", "", text), err
		}),
		s.AddPrompt(&mcp.Prompt{Name: "ask"}, func(ctx context.Context, _ map[string]string) (*mcp.GetPromptResult, error) {
			text, err := asker(ctx)
			return says(text), err
		}),
	); err != nil {
		t.Fatal(err)
	}
	return s
}

var canElicit = &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}}

// answers answers each question with its own number.
func answers(requests mcp.InputRequestMap) mcp.InputResponseMap {
	responses := mcp.InputResponseMap{}
	for key, request := range requests {
		responses[key] = &mcp.ElicitResult{Action: "accept", Content: map[string]any{"v": request.(*mcp.ElicitParams).Message + key}}
	}
	return responses
}

func TestAskingInRounds(t *testing.T) {
	s := askingServer(t, nil)
	const want = "name?tenon-elicitation-1 colour?tenon-elicitation-2"
	c := Call{Name: "ask", Arguments: json.RawMessage(`{"a":1}`), Rounds: true, ClientCapabilities: canElicit}
	for round := 1; ; round++ {
		ss := s.NewSession(nil) // each round may come to another session
		r, err := ss.CallTool(t.Context(), c)
		_ = ss.Close()
		if err != nil {
			t.Fatal(err)
		}
		if r.InputRequests == nil {
			if r.Text() != want || round != 3 {
				t.Errorf("round %d: %s, want %s in round 3", round, r.Text(), want)
			}
			break
		}
		if len(r.InputRequests) != 1 || len(r.Content) != 0 || round > 2 {
			t.Fatalf("round %d: %+v", round, r)
		}
		c.InputResponses, c.RequestState = answers(r.InputRequests), r.RequestState
		c.Arguments = json.RawMessage(`{ "a": 1 }`)
	}
}

func TestReadersAndPromptsInRounds(t *testing.T) {
	s := askingServer(t, nil)
	ss := s.NewSession(nil)
	defer ss.Close()
	c := Call{Rounds: true, ClientCapabilities: canElicit}
	read, get := "", ""
	for range 3 {
		r, err := ss.ReadResource(WithCall(t.Context(), c), "mem:ask")
		if err != nil {
			t.Fatal(err)
		}
		if r.InputRequests == nil {
			read = r.Contents[0].Text
			break
		}
		c.InputResponses, c.RequestState = answers(r.InputRequests), r.RequestState
	}
	c = Call{Rounds: true, ClientCapabilities: canElicit}
	for range 3 {
		p, err := ss.GetPrompt(WithCall(t.Context(), c), "ask", nil)
		if err != nil {
			t.Fatal(err)
		}
		if p.InputRequests == nil {
			get = p.Messages[0].Content.(*mcp.TextContent).Text
			break
		}
		c.InputResponses, c.RequestState = answers(p.InputRequests), p.RequestState
	}
	if want := "name?tenon-elicitation-1 colour?tenon-elicitation-2"; read != want || get != want {
		t.Errorf("resource %q, prompt %q, want %q", read, get, want)
	}
}

func TestTheStateOfRoundsIsSealed(t *testing.T) {
	s := askingServer(t, nil)
	ss := s.NewSession(nil)
	defer ss.Close()
	addRaw(t, s, "other", func(ctx context.Context, _ json.RawMessage) (*Result, error) {
		text, err := asker(ctx)
		return Text(text), err
	})
	first, err := ss.CallTool(t.Context(), Call{Name: "ask", Rounds: true, ClientCapabilities: canElicit})
	if err != nil {
		t.Fatal(err)
	}
	second, err := ss.CallTool(t.Context(), Call{Name: "ask", Rounds: true, ClientCapabilities: canElicit, InputResponses: answers(first.InputRequests), RequestState: first.RequestState})
	if err != nil || second.InputRequests == nil {
		t.Fatalf("%+v, %v", second, err)
	}
	state := second.RequestState
	for name, c := range map[string]Call{
		"changed":         {Name: "ask", RequestState: "AA" + state[2:]},
		"short":           {Name: "ask", RequestState: "AAAA"},
		"no base64":       {Name: "ask", RequestState: "!"},
		"other tool":      {Name: "other", RequestState: state},
		"other arguments": {Name: "ask", Arguments: json.RawMessage(`{"a":2}`), RequestState: state},
	} {
		c.Rounds, c.ClientCapabilities = true, canElicit
		if r, err := ss.CallTool(t.Context(), c); err == nil || !strings.Contains(err.Error(), "requestState") {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	other := askingServer(t, nil)
	if r, err := other.NewSession(nil).CallTool(t.Context(), Call{Name: "ask", Rounds: true, ClientCapabilities: canElicit, RequestState: state}); err == nil {
		t.Errorf("another server took the state: %+v", r)
	}
	// With one key two processes are one server.
	key := []byte("0123456789abcdef0123456789abcdef")
	a, b := askingServer(t, &Options{StateKey: key}), askingServer(t, &Options{StateKey: key})
	first, err = a.NewSession(nil).CallTool(t.Context(), Call{Name: "ask", Rounds: true, ClientCapabilities: canElicit})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := b.NewSession(nil).CallTool(t.Context(), Call{
		Name: "ask", Rounds: true, ClientCapabilities: canElicit, InputResponses: answers(first.InputRequests), RequestState: first.RequestState,
	}); err != nil || r.IsError {
		t.Errorf("%+v, %v", r, err)
	}
}

// A handler that speaks in rounds itself works with clients that do not know of it.
func TestRoundsOfTheHandlersOwn(t *testing.T) {
	s := newTestServer(t, nil)
	addRaw(t, s, "own", func(ctx context.Context, _ json.RawMessage) (*Result, error) {
		r := RequestFrom(ctx)
		if answer, ok := r.InputResponses["q"].(*mcp.ElicitResult); ok {
			return Text(fmt.Sprint(answer.Content["v"], " ", r.RequestState)), nil
		}
		return &Result{InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{Message: "why?"}}, RequestState: "step-2"}, nil
	})
	addRaw(t, s, "endless", returns(&Result{InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{}}}, nil))
	ss := s.NewSession(&SessionOptions{Elicit: func(_ context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"v": p.Message}}, nil
	}})
	defer ss.Close()
	if r, err := ss.CallTool(t.Context(), Call{Name: "own"}); err != nil || r.Text() != "why? step-2" {
		t.Errorf("%v, %v", r.Text(), err)
	}
	if r, err := ss.CallTool(t.Context(), Call{Name: "endless"}); err != nil || !r.IsError || !strings.Contains(r.Text(), "more than 10 times") {
		t.Errorf("%v, %v", r.Text(), err)
	}
	mute := s.NewSession(nil)
	defer mute.Close()
	if r, err := mute.CallTool(t.Context(), Call{Name: "own"}); err != nil || !r.IsError || !strings.Contains(r.Text(), "does not support") {
		t.Errorf("%v, %v", r.Text(), err)
	}
	first, err := mute.CallTool(t.Context(), Call{Name: "own", Rounds: true, ClientCapabilities: canElicit})
	if err != nil || first.InputRequests == nil || strings.Contains(first.RequestState, "step-2") {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := mute.CallTool(t.Context(), Call{
		Name: "own", Rounds: true, ClientCapabilities: canElicit, InputResponses: answers(first.InputRequests), RequestState: first.RequestState,
	})
	if err != nil || again.Text() != "why?q step-2" {
		t.Errorf("%+v, %v", again, err)
	}
}
