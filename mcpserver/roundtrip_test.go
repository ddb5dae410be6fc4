package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
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
	c := Call{Name: "ask", Arguments: json.RawMessage(`{"a":1}`), MultiRoundTrip: true, ClientCapabilities: canElicit}
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
	c := Call{MultiRoundTrip: true, ClientCapabilities: canElicit}
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
	c = Call{MultiRoundTrip: true, ClientCapabilities: canElicit}
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
	first, err := ss.CallTool(t.Context(), Call{Name: "ask", MultiRoundTrip: true, ClientCapabilities: canElicit})
	if err != nil {
		t.Fatal(err)
	}
	second, err := ss.CallTool(t.Context(), Call{Name: "ask", MultiRoundTrip: true, ClientCapabilities: canElicit, InputResponses: answers(first.InputRequests), RequestState: first.RequestState})
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
		c.MultiRoundTrip, c.ClientCapabilities = true, canElicit
		if r, err := ss.CallTool(t.Context(), c); err == nil || !strings.Contains(err.Error(), "requestState") {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	other := askingServer(t, nil)
	if r, err := other.NewSession(nil).CallTool(t.Context(), Call{Name: "ask", MultiRoundTrip: true, ClientCapabilities: canElicit, RequestState: state}); err == nil {
		t.Errorf("another server took the state: %+v", r)
	}
	// With one key two processes are one server.
	key := []byte("0123456789abcdef0123456789abcdef")
	a, b := askingServer(t, &Options{StateKey: key}), askingServer(t, &Options{StateKey: key})
	first, err = a.NewSession(nil).CallTool(t.Context(), Call{Name: "ask", MultiRoundTrip: true, ClientCapabilities: canElicit})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := b.NewSession(nil).CallTool(t.Context(), Call{
		Name: "ask", MultiRoundTrip: true, ClientCapabilities: canElicit, InputResponses: answers(first.InputRequests), RequestState: first.RequestState,
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
	first, err := mute.CallTool(t.Context(), Call{Name: "own", MultiRoundTrip: true, ClientCapabilities: canElicit})
	if err != nil || first.InputRequests == nil || strings.Contains(first.RequestState, "step-2") {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := mute.CallTool(t.Context(), Call{
		Name: "own", MultiRoundTrip: true, ClientCapabilities: canElicit, InputResponses: answers(first.InputRequests), RequestState: first.RequestState,
	})
	if err != nil || again.Text() != "why?q step-2" {
		t.Errorf("%+v, %v", again, err)
	}
}

// The state of a call is worth nothing to a call whose arguments differ in any
// digit, whatever a float64 makes of them.
//
// fault H5
func TestStatesAreBoundToExactArguments(t *testing.T) {
	s := askingServer(t, nil)
	ss := s.NewSession(nil)
	defer ss.Close()
	tests := []struct {
		name, sealed, opened string
		same                 bool
	}{
		{"spaces", `{"a":1,"b":[1,2]}`, ` { "a" : 1 , "b" : [ 1 , 2 ] } `, true},
		{"order of members", `{"a":1,"b":{"c":1,"d":2}}`, `{"b":{"d":2,"c":1},"a":1}`, true},
		{"escapes", `{"a":"A"}`, `{"a":"\u0041"}`, true},
		{"no arguments", ``, `{}`, true},
		{"null arguments", `null`, `{}`, true},
		{"beyond 2^53", `{"account":9007199254740992}`, `{"account":9007199254740993}`, false},
		{"beyond 2^53, nested", `{"a":[{"account":9007199254740992}]}`, `{"a":[{"account":9007199254740993}]}`, false},
		{"many digits", `{"a":0.12345678901234567890}`, `{"a":0.12345678901234567891}`, false},
		{"huge exponents", `{"a":1e400}`, `{"a":1e401}`, false},
		{"zeros with a sign", `{"a":0}`, `{"a":-0}`, false},
		{"a number as text", `{"a":1}`, `{"a":"1"}`, false},
		{"null and an empty array", `{"a":null}`, `{"a":[]}`, false},
		{"empty array and object", `{"a":[]}`, `{"a":{}}`, false},
		{"order of items", `{"a":[1,2]}`, `{"a":[2,1]}`, false},
		{"a member twice", `{"a":2}`, `{"a":1,"a":2}`, false},
		{"two broken texts", `{"a":"\ud800"}`, `{"a":"\ud801"}`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := Call{Name: "ask", MultiRoundTrip: true, ClientCapabilities: canElicit, Arguments: json.RawMessage(tt.sealed)}
			first, err := ss.CallTool(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			c.InputResponses, c.RequestState = answers(first.InputRequests), first.RequestState
			c.Arguments = json.RawMessage(tt.opened)
			if _, err := ss.CallTool(t.Context(), c); (err == nil) != tt.same {
				t.Errorf("sealed for %s, opened with %s: %v", tt.sealed, tt.opened, err)
			}
		})
	}
}

// The arguments of a prompt count as those of a tool do.
//
// fault H5
func TestStatesOfPromptsAreBoundToTheirArguments(t *testing.T) {
	ss := askingServer(t, nil).NewSession(nil)
	defer ss.Close()
	c := Call{MultiRoundTrip: true, ClientCapabilities: canElicit}
	first, err := ss.GetPrompt(WithCall(t.Context(), c), "ask", map[string]string{"for": "ann"})
	if err != nil {
		t.Fatal(err)
	}
	c.InputResponses, c.RequestState = answers(first.InputRequests), first.RequestState
	if p, err := ss.GetPrompt(WithCall(t.Context(), c), "ask", map[string]string{"for": "bob"}); err == nil {
		t.Errorf("got %+v", p)
	}
	if _, err := ss.GetPrompt(WithCall(t.Context(), c), "ask", map[string]string{"for": "ann"}); err != nil {
		t.Error(err)
	}
}

// An answer to what nobody asked reaches no handler: not one under a key that
// only the server chooses, not one that the handler would ask for, not with the
// state of an earlier round, and not in a protocol without rounds.
//
// fault H5
func TestAnswersToNothingAreRefused(t *testing.T) {
	s := askingServer(t, nil)
	addRaw(t, s, "own", func(ctx context.Context, _ json.RawMessage) (*Result, error) {
		if _, ok := RequestFrom(ctx).InputResponses["confirm"]; ok {
			return Text("paid"), nil
		}
		return &Result{InputRequests: mcp.InputRequestMap{"confirm": &mcp.ElicitParams{Message: "pay?"}}}, nil
	})
	ss := s.NewSession(nil)
	defer ss.Close()
	yes := &mcp.ElicitResult{Action: "accept", Content: map[string]any{"v": "forged"}}
	c := Call{Name: "ask", MultiRoundTrip: true, ClientCapabilities: canElicit}
	first, err := ss.CallTool(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for name, state := range map[string]string{"no state": "", "the state of another question": first.RequestState} {
		c.RequestState = state
		c.InputResponses = mcp.InputResponseMap{"tenon-elicitation-1": yes, "tenon-elicitation-2": yes}
		if r, err := ss.CallTool(t.Context(), c); err == nil || !strings.Contains(err.Error(), "answers nothing that was asked") {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	c = Call{Name: "own", MultiRoundTrip: true, ClientCapabilities: canElicit, InputResponses: mcp.InputResponseMap{"confirm": yes}}
	r, err := ss.CallTool(t.Context(), c)
	if err != nil || r.InputRequests["confirm"] == nil || r.Text() != "" {
		t.Errorf("a handler's own key: %+v, %v; want the question", r, err)
	}
	c.RequestState = r.RequestState
	c.InputResponses["more"] = yes // as the protocol wants it, what is unknown beside the answer is passed over
	if r, err = ss.CallTool(t.Context(), c); err != nil || r.Text() != "paid" {
		t.Errorf("the answer to what was asked: %+v, %v", r, err)
	}
	// An answer that was given stays as it was given.
	c = Call{Name: "ask", MultiRoundTrip: true, ClientCapabilities: canElicit, InputResponses: answers(first.InputRequests), RequestState: first.RequestState}
	second, err := ss.CallTool(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	c.RequestState, c.InputResponses = second.RequestState, answers(second.InputRequests)
	c.InputResponses["tenon-elicitation-1"] = yes
	if r, err := ss.CallTool(t.Context(), c); err != nil || r.Text() != "name?tenon-elicitation-1 colour?tenon-elicitation-2" {
		t.Errorf("an answer given twice: %+v, %v", r, err)
	}
}

// A state lasts for a time: the default, the server's, or for ever.
//
// fault C8
func TestStatesExpire(t *testing.T) {
	tests := []struct {
		name      string
		life, age time.Duration
		opens     bool
	}{
		{"within the default", 0, DefaultStateLifetime, true},
		{"beyond the default", 0, DefaultStateLifetime + time.Nanosecond, false},
		{"within that of the server", time.Minute, time.Minute, true},
		{"beyond that of the server", time.Minute, time.Minute + time.Nanosecond, false},
		{"for ever", -1, 1000 * time.Hour, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ss := askingServer(t, &Options{StateLifetime: tt.life}).NewSession(nil)
				defer ss.Close()
				c := Call{Name: "ask", MultiRoundTrip: true, ClientCapabilities: canElicit}
				first, err := ss.CallTool(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(tt.age)
				c.InputResponses, c.RequestState = answers(first.InputRequests), first.RequestState
				_, err = ss.CallTool(t.Context(), c)
				if (err == nil) != tt.opens || err != nil && !strings.Contains(err.Error(), "requestState has expired; call again without it") {
					t.Errorf("after %s: %v", tt.age, err)
				}
			})
		})
	}
}

// A state is worth nothing to another user.
//
// fault C8
func TestStatesAreBoundToUsers(t *testing.T) {
	ss := askingServer(t, nil).NewSession(nil)
	defer ss.Close()
	as := func(user string) context.Context {
		return context.WithValue(t.Context(), extraKey{}, &mcp.RequestExtra{TokenInfo: &auth.TokenInfo{UserID: user}})
	}
	c := Call{Name: "ask", MultiRoundTrip: true, ClientCapabilities: canElicit}
	first, err := ss.CallTool(as("ann"), c)
	if err != nil {
		t.Fatal(err)
	}
	c.InputResponses, c.RequestState = answers(first.InputRequests), first.RequestState
	for name, ctx := range map[string]context.Context{"another user": as("bob"), "a token without a user": as(""), "no token": t.Context()} {
		if r, err := ss.CallTool(ctx, c); err == nil || !strings.Contains(err.Error(), "requestState is not one") {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if _, err := ss.CallTool(as("ann"), c); err != nil {
		t.Error(err)
	}
}

// A call may have maxRoundTrips answers, and no more.
//
// fault F19
func TestAnswersAreBounded(t *testing.T) {
	s := newTestServer(t, nil)
	ss := s.NewSession(nil)
	defer ss.Close()
	for questions, fine := range map[int]bool{maxRoundTrips: true, maxRoundTrips + 1: false} {
		name := fmt.Sprint("ask-", questions)
		addRaw(t, s, name, func(ctx context.Context, _ json.RawMessage) (*Result, error) {
			var failed error
			for range questions {
				if _, err := RequestFrom(ctx).Elicit(ctx, &mcp.ElicitParams{Message: "?"}); err != nil {
					failed = err
				}
			}
			return Text("done"), failed
		})
		c := Call{Name: name, MultiRoundTrip: true, ClientCapabilities: canElicit}
		first, err := ss.CallTool(t.Context(), c)
		if err != nil || len(first.InputRequests) != questions {
			t.Fatalf("%+v, %v", first, err)
		}
		c.InputResponses, c.RequestState = answers(first.InputRequests), first.RequestState
		r, err := ss.CallTool(t.Context(), c)
		if fine && (err != nil || r.Text() != "done") || !fine && (err == nil || !strings.Contains(err.Error(), "more than 10 answers")) {
			t.Errorf("%d answers: %+v, %v", questions, r, err)
		}
	}
}
