package mcphost

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/toolresult"
)

// A modernHTTP is a server of protocol 2026-07-28 made by hand. ask answers all
// requests but discovery and the list of tools.
func modernHTTP(t *testing.T, ask func(method string, params roundParams) string) HTTP {
	raw := &rawHTTP{before: func(w http.ResponseWriter, r *http.Request, m rawMsg) bool {
		switch {
		case r.Method != http.MethodPost || m.ID == nil:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case m.Method == "server/discover":
			answer(w, m.ID, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":{},"prompts":{}}}`)
		case m.Method == "tools/list":
			answer(w, m.ID, `{"resultType":"complete","tools":[`+echoTool+`]}`)
		default:
			var p roundParams
			_ = json.Unmarshal(m.Params, &p)
			answer(w, m.ID, ask(m.Method, p))
		}
		return true
	}}
	return HTTP{URL: serve(t, raw).URL}
}

// roundParams are the parameters of a request that goes on.
type roundParams struct {
	InputResponses json.RawMessage `json:"inputResponses"`
	RequestState   string          `json:"requestState"`
}

// A result of 2026-07-28 that only wants to be asked again with a state is asked again, a bounded number of times,
// whatever the request; roots/list needs no params; what cannot be answered is an error and never an empty result.
// fault B6
// fault B7
func TestInputRequired(t *testing.T) {
	const (
		again  = `{"resultType":"input_required","requestState":"x"}`
		nought = `{"resultType":"input_required"}`
		roots  = `{"resultType":"input_required","requestState":"x","inputRequests":{"r":{"method":"roots/list"}}}`
	)
	var mu sync.Mutex
	var first string
	var rounds []string
	h := newHost(t, map[string]ServerConfig{"m": modernHTTP(t, func(method string, p roundParams) string {
		mu.Lock()
		defer mu.Unlock()
		rounds = append(rounds, p.RequestState+string(p.InputResponses))
		if first == "forever" {
			return again
		}
		if p.RequestState == "" {
			return first
		}
		switch method {
		case "tools/call":
			return `{"content":[{"type":"text","text":"done"}]}`
		case "resources/read":
			return `{"contents":[{"uri":"a://b","text":"done"}]}`
		}
		return `{"messages":[{"role":"user","content":{"type":"text","text":"done"}}]}`
	})}, func(o *Options) { o.Roots = []string{"/a"} })
	connected(t, h)
	if v := status(t, h, "m").ProtocolVersion; v != "2026-07-28" {
		t.Fatalf("the version is %s", v)
	}
	requests := map[string]func() (string, error){
		"call": func() (string, error) {
			r, err := h.CallServer(soon(t), "m", "echo", nil, nil)
			if err != nil {
				return "", err
			}
			return plainText(r), nil
		},
		"resource": func() (string, error) {
			r, err := h.ReadResource(soon(t), "m", "a://b")
			if err != nil {
				return "", err
			}
			return r.Contents[0].Text, nil
		},
		"prompt": func() (string, error) {
			r, err := h.GetPrompt(soon(t), "m", "p", nil)
			if err != nil {
				return "", err
			}
			return r.Messages[0].Content.(*mcp.TextContent).Text, nil
		},
	}
	const answered = `x{"r":{"roots":[{"uri":"file:///a"}]}}`
	for what, do := range requests {
		for _, tt := range []struct {
			first, err string
			rounds     []string
		}{
			{first: again, rounds: []string{"", "x"}},
			{first: roots, rounds: []string{"", answered}},
			{first: strings.Replace(roots, `"roots/list"`, `"roots/list","params":null`, 1), rounds: []string{"", answered}},
			{first: nought, err: "the server wants input and says neither what nor with which state to call again", rounds: []string{""}},
			{first: strings.Replace(roots, "roots/list", "roots/steal", 1), err: `reading the server's request for input "r" (roots/steal): there is no such question`, rounds: []string{""}},
			{first: strings.Replace(roots, "roots/list", "elicitation/create", 1), err: `reading the server's request for input "r" (elicitation/create): it has no params`, rounds: []string{""}},
			{first: strings.Replace(roots, `{"r":`, `{"s":null,"r":`, 1), err: `reading the server's request for input "s" (): there is no such question`, rounds: []string{""}},
			{first: "forever", err: "the server asked for input more than 10 times", rounds: append([]string{""}, slices.Repeat([]string{"x"}, 9)...)},
		} {
			mu.Lock()
			first, rounds = tt.first, nil
			mu.Unlock()
			got, err := do()
			if tt.err == "" && (got != "done" || err != nil) || tt.err != "" && (err == nil || !strings.HasSuffix(err.Error(), tt.err)) {
				t.Errorf("%s, %s: %q, %v", what, tt.first, got, err)
			}
			if !slices.Equal(rounds, tt.rounds) {
				t.Errorf("%s, %s: the rounds were %q", what, tt.first, rounds)
			}
		}
	}
}

// The questions that a result asks at once are bounded.
func TestManyInputRequests(t *testing.T) {
	ask := func(n int) error {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"%d":{"method":"roots/list"}`, i))
		}
		_, err := toolresult.Decode([]byte(`{"resultType":"input_required","inputRequests":{` + strings.Join(all, ",") + `}}`))
		return err
	}
	if err := ask(64); err != nil {
		t.Error(err)
	}
	if err := ask(65); err == nil || err.Error() != "the server asks 65 questions at once, at most 64 are answered" {
		t.Errorf("got %v", err)
	}
}
