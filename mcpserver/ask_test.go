package mcpserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpbridge"
	"github.com/tenon-sdk/tenon/mcpserver"
)

const nameSchema = `{"type":"object","properties":{"name":{"type":"string","minLength":2},"unit":{"type":"string","default":"kg"}},"required":["name"]}`

// asksForName is a server with one tool that asks for a name and shows the answer.
func asksForName(t *testing.T) *mcpserver.Server {
	t.Helper()
	s := mcpserver.New("asks", nil)
	t.Cleanup(func() { _ = s.Close() })
	if err := s.AddTool(&mcpserver.Tool{Name: "ask"}, func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
		answer, err := mcpserver.RequestFrom(ctx).Elicit(ctx, &mcp.ElicitParams{Message: "Name?", RequestedSchema: json.RawMessage(nameSchema)})
		if err != nil {
			return nil, err
		}
		content, err := json.Marshal(answer.Content)
		if err != nil {
			return nil, err
		}
		return mcpserver.Text(answer.Action + " " + string(content)), nil
	}); err != nil {
		t.Fatal(err)
	}
	return s
}

// transports call the tool of asksForName as a client that answers its question
// with the given JSON, and return the result's text.
var transports = map[string]func(t *testing.T, answer string) string{
	"in process": func(t *testing.T, answer string) string {
		ss := asksForName(t).NewSession(&mcpserver.SessionOptions{Elicit: answers(t, answer)})
		defer ss.Close()
		r, err := ss.CallTool(t.Context(), mcpserver.Call{Name: "ask"})
		if err != nil {
			t.Fatal(err)
		}
		return r.Text()
	},
	"in rounds": func(t *testing.T, answer string) string {
		ss := asksForName(t).NewSession(nil)
		defer ss.Close()
		c := mcpserver.Call{Name: "ask", MultiRoundTrip: true, ClientCapabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}}}
		first, err := ss.CallTool(t.Context(), c)
		if err != nil || len(first.InputRequests) != 1 {
			t.Fatalf("%+v, %v", first, err)
		}
		c.RequestState = first.RequestState
		if err := json.Unmarshal([]byte(`{"tenon-elicitation-1":`+answer+`}`), &c.InputResponses); err != nil {
			t.Fatal(err)
		}
		r, err := ss.CallTool(t.Context(), c)
		if err != nil {
			return err.Error()
		}
		return r.Text()
	},
	"stdio": func(t *testing.T, answer string) string {
		p := stdio(t, asksForName(t), mcpbridge.StdioOptions{})
		p.send(strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1))
		p.next()
		p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask"}}`)
		p.send(answerTo(t, p.next(), answer))
		return toolText(t, p.next())
	},
	"HTTP": func(t *testing.T, answer string) string {
		_, url := web(t, asksForName(t), nil)
		shake := strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1)
		id := post(t, url, shake).header.Get("Mcp-Session-Id")
		post(t, url, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", id)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url,
			strings.NewReader(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask"}}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Mcp-Session-Id", id)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		events := bufio.NewScanner(resp.Body)
		if r := post(t, url, answerTo(t, nextData(t, events), answer), "Mcp-Session-Id", id); r.status != http.StatusAccepted {
			t.Fatalf("the answer: %d %s", r.status, r.body)
		}
		return toolText(t, nextData(t, events))
	},
}

// answers is a client that gives one answer to all questions.
func answers(t *testing.T, answer string) func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	return func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		r := new(mcp.ElicitResult)
		if err := json.Unmarshal([]byte(answer), r); err != nil {
			t.Error(err)
		}
		return r, nil
	}
}

// answerTo is the reply to a server's request.
func answerTo(t *testing.T, request, answer string) string {
	t.Helper()
	var r struct {
		ID     json.RawMessage
		Method string
	}
	if err := json.Unmarshal([]byte(request), &r); err != nil || r.Method != "elicitation/create" {
		t.Fatalf("got %s, %v; want an elicitation", request, err)
	}
	return `{"jsonrpc":"2.0","id":` + string(r.ID) + `,"result":` + answer + `}`
}

func toolText(t *testing.T, reply string) string {
	t.Helper()
	var r struct{ Result mcpserver.Result }
	if err := json.Unmarshal([]byte(reply), &r); err != nil {
		t.Fatalf("%s: %v", reply, err)
	}
	return r.Result.Text()
}

// nextData is the next message of an event stream.
func nextData(t *testing.T, events *bufio.Scanner) string {
	t.Helper()
	for events.Scan() {
		if data, ok := strings.CutPrefix(events.Text(), "data: "); ok {
			return data
		}
	}
	t.Fatalf("the stream ended: %v", events.Err())
	return ""
}

// What a client answers to an elicitation reaches the handler only if it is an
// answer: on every transport an action that the protocol does not know and
// content that breaks the schema are errors.
//
// fault B11
func TestElicitationAnswersAreChecked(t *testing.T) {
	tests := []struct{ name, answer, want, fails string }{
		{"accepted", `{"action":"accept","content":{"name":"Ada"}}`, `accept {"name":"Ada","unit":"kg"}`, ""},
		{"declined", `{"action":"decline","content":{"name":"x"}}`, "decline null", ""},
		{"cancelled", `{"action":"cancel"}`, "cancel null", ""},
		{"an unknown action", `{"action":"maybe","content":{"name":"Ada"}}`, "", `the action "maybe", want accept, decline or cancel`},
		{"no action", `{"action":"","content":{"name":"Ada"}}`, "", `the action "", want`},
		{"an action in capitals", `{"action":"Accept","content":{"name":"Ada"}}`, "", `the action "Accept", want`},
		{"no content", `{"action":"accept"}`, "", "match"},
		{"empty content", `{"action":"accept","content":{}}`, "", "match"},
		{"content of another type", `{"action":"accept","content":{"name":7}}`, "", "match"},
		{"content that is too short", `{"action":"accept","content":{"name":"A"}}`, "", "match"},
	}
	for name, call := range transports {
		for _, tt := range tests {
			t.Run(name+"/"+tt.name, func(t *testing.T) {
				got := call(t, tt.answer)
				if tt.fails == "" && got != tt.want || !strings.Contains(got, tt.fails) {
					t.Errorf("got %q, want %q%q", got, tt.want, tt.fails)
				}
			})
		}
	}
}

// The same holds for what a handler asks by its result, in sessions and in rounds.
//
// fault B11
func TestAnswersToResultsAreChecked(t *testing.T) {
	s := mcpserver.New("asks", nil)
	defer s.Close()
	if err := s.AddTool(&mcpserver.Tool{Name: "own"}, func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
		if _, ok := mcpserver.RequestFrom(ctx).InputResponses["q"]; ok {
			return mcpserver.Text("ran"), nil
		}
		return &mcpserver.Result{InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{RequestedSchema: json.RawMessage(nameSchema)}}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	for answer, want := range map[string]string{
		`{"action":"accept","content":{"name":"Ada"}}`: "ran",
		`{"action":"maybe"}`:                           `the action "maybe"`,
		`{"action":"accept","content":{"name":1}}`:     "match the requested schema",
		`{"roots":[]}`:                                 "does not answer the elicitation request",
	} {
		ss := s.NewSession(&mcpserver.SessionOptions{Elicit: answers(t, answer)})
		defer ss.Close()
		r, err := ss.CallTool(t.Context(), mcpserver.Call{Name: "own"})
		if err != nil || !strings.Contains(r.Text(), want) && !strings.HasPrefix(answer, `{"roots`) {
			t.Errorf("%s in a session: %+v, %v; want %s", answer, r, err, want)
		}
		c := mcpserver.Call{Name: "own", MultiRoundTrip: true}
		first, err := ss.CallTool(t.Context(), c)
		if err != nil || first.RequestState == "" {
			t.Fatalf("%+v, %v", first, err)
		}
		c.RequestState = first.RequestState
		if err := json.Unmarshal([]byte(`{"q":`+answer+`}`), &c.InputResponses); err != nil {
			t.Fatal(err)
		}
		text := ""
		if r, err = ss.CallTool(t.Context(), c); err != nil {
			text = err.Error()
		} else {
			text = r.Text()
		}
		if !strings.Contains(text, want) {
			t.Errorf("%s in rounds: %q, want %s", answer, text, want)
		}
	}
}
