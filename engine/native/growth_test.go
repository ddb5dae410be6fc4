package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/messages"
	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/internal/growth"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
	"github.com/tenon-sdk/tenon/toolresult"
)

// manyOf is n pieces of text after one another.
func manyOf(n int, piece func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(piece(i))
	}
	return b.String()
}

func sseEvent(kind, data string) string { return "event: " + kind + "\ndata: " + data + "\n\n" }

// streamOf is a response with a stream of events.
func streamOf(events string) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(events)),
	}
}

var noSink = messages.Sink{Block: func(*messages.Response, *messages.Block) {}, Event: func(*messages.Response, []byte) {}}

// A stream of events costs in proportion to its length, whatever is in it.
func TestStreamsGrowWithTheirLength(t *testing.T) {
	start := func(block string) string {
		return sseEvent("content_block_start", `{"type":"content_block_start","index":0,"content_block":`+block+`}`)
	}
	deltas := func(block string, delta func(i int) string) func(n int) string {
		return func(n int) string {
			return start(block) + manyOf(n, func(i int) string {
				return sseEvent("content_block_delta", `{"type":"content_block_delta","index":0,"delta":`+delta(i)+`}`)
			}) + sseEvent("content_block_stop", `{"type":"content_block_stop","index":0}`)
		}
	}
	same := func(delta string) func(int) string { return func(int) string { return delta } }
	for name, events := range map[string]func(n int) string{
		"texts":          deltas(`{"type":"text","text":""}`, same(`{"type":"text_delta","text":"some words "}`)),
		"thoughts":       deltas(`{"type":"thinking","thinking":""}`, same(`{"type":"thinking_delta","thinking":"some words "}`)),
		"signatures":     deltas(`{"type":"thinking","thinking":""}`, same(`{"type":"signature_delta","signature":"abc"}`)),
		"inputs":         deltas(`{"type":"tool_use","id":"a","name":"b","input":{}}`, same(`{"type":"input_json_delta","partial_json":"[1,"}`)),
		"citations":      deltas(`{"type":"text","text":""}`, same(`{"type":"citations_delta","citation":{"a":1}}`)),
		"unknown":        deltas(`{"type":"new"}`, same(`{"type":"new_delta","words":"some words "}`)),
		"unknown fields": deltas(`{"type":"new"}`, func(i int) string { return fmt.Sprintf(`{"type":"new_delta","f%d":1}`, i) }),
		"counts": func(n int) string {
			return manyOf(n, func(i int) string {
				return sseEvent("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{},"usage":{"output_tokens":1,"new_%d":1}}`, i))
			})
		},
		"blocks": func(n int) string {
			return manyOf(n, func(i int) string {
				return sseEvent("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"text","text":"x"}}`, i))
			})
		},
		"pings": func(n int) string {
			return manyOf(n, func(int) string { return sseEvent("ping", `{"type":"ping"}`) })
		},
		"one event": func(n int) string {
			return start(`{"type":"new","a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			growth.Check(t, 1000, func(n int) int {
				raw := streamOf(events(n))
				return growth.Bytes(func() {
					r, _ := messages.ReadResponse(raw, noSink) // most are cut off
					for _, b := range r.Blocks {
						b.Sent()
					}
				})
			})
		})
	}
}

// A response has a bound, in bytes and in blocks, and one beyond it is not asked for again.
func TestResponsesAreBounded(t *testing.T) {
	events := manyOf(messages.MaxBlocks+1, func(i int) string {
		return sseEvent("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"text","text":"x"}}`, i))
	})
	if r, err := messages.ReadResponse(streamOf(events), noSink); !errors.Is(err, messages.ErrTooMuch) || len(r.Blocks) != messages.MaxBlocks { //nolint:bodyclose // it has none
		t.Errorf("%d blocks, %v", len(r.Blocks), err)
	}
	body := &messages.BoundedBody{ReadCloser: io.NopCloser(iotest.OneByteReader(strings.NewReader("abc"))), Left: 2}
	if got, err := io.ReadAll(body); string(got) != "ab" || !errors.Is(err, messages.ErrTooMuch) {
		t.Errorf("%q, %v", got, err)
	}
	if f := messages.Classify(fmt.Errorf("reading: %w", messages.ErrTooMuch)); f.Passing {
		t.Errorf("%+v", f)
	}
	endless := roundTripper(func(*http.Request) (*http.Response, error) {
		res := streamOf("")
		res.Body = io.NopCloser(endlessLine{})
		return res, nil
	})
	_, err := collect(t, t.Context(), New(&Options{APIKey: "test", HTTPClient: &http.Client{Transport: endless}, MaxRetries: NoRetries}), "x", nil)
	if err == nil {
		t.Error("an endless response was taken")
	}
	refused := roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{}, Body: io.NopCloser(endlessLine{})}, nil
	})
	growth.AtMost(t, 12*messages.MaxResponse, []int{1}, func(int) int {
		return growth.Bytes(func() {
			_, err = collect(t, t.Context(), New(&Options{APIKey: "test", HTTPClient: &http.Client{Transport: refused}}), "x", nil)
		})
	})
	if err == nil {
		t.Error("an endless refusal was taken")
	}
}

// An endlessLine is a body without an end.
type endlessLine struct{}

func (endlessLine) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A given history costs in proportion to its size, however damaged it is, and reading it ends with the context.
func TestHistoriesGrowWithTheirSize(t *testing.T) {
	list := func(n int, f func(i int) []agent.Message) []agent.Message {
		var msgs []agent.Message
		for i := range n {
			msgs = append(msgs, f(i)...)
		}
		return msgs
	}
	id := func(i int) string { return fmt.Sprint("id", i) }
	said := func(uuid, words string) *agent.User {
		u := userSaid(text(words))
		u.UUID = uuid
		return u
	}
	failed := func(uuids ...string) *agent.Assistant {
		return &agent.Assistant{Error: "invalid_request", Supersedes: uuids, Message: agent.APIMessage{Content: agent.Content{text("refused")}}}
	}
	long := strings.Repeat("long ", 10_000)
	reference := func(i int) *agent.ToolResultBlock {
		raw := transcript.Encode(transcript.Reference(id(i)))
		return &agent.ToolResultBlock{ToolUseID: id(i), Content: agent.Content{&agent.UnknownBlock{Type: "tool_reference", Raw: raw}}}
	}
	cases := map[string]func(n int) []agent.Message{
		"turns": func(n int) []agent.Message {
			return list(n, func(i int) []agent.Message { return []agent.Message{userSaid(text("x")), answered1(id(i), text("y"))} })
		},
		"one ID": func(n int) []agent.Message {
			return list(n, func(i int) []agent.Message { return []agent.Message{userSaid(text("x")), answered1(id(i), use("a"))} })
		},
		"unanswered": func(n int) []agent.Message {
			return list(n, func(i int) []agent.Message { return []agent.Message{answered1(id(i), use(id(i)))} })
		},
		"orphans": func(n int) []agent.Message {
			return list(n, func(i int) []agent.Message { return []agent.Message{userSaid(result(id(i), "x"))} })
		},
		"answers of one ID": func(n int) []agent.Message {
			return append(list(n, func(i int) []agent.Message { return []agent.Message{answered1(id(i), use("a"))} }),
				list(n, func(int) []agent.Message { return []agent.Message{userSaid(result("a", "x"))} })...)
		},
		"twice": func(n int) []agent.Message {
			return append([]agent.Message{said("u", long)}, list(n, func(int) []agent.Message { return []agent.Message{said("u", "x")} })...)
		},
		"taken out": func(n int) []agent.Message {
			return list(n, func(i int) []agent.Message { return []agent.Message{said(id(i), "x"), failed(id(i), "u", "v")} })
		},
		"refused": func(n int) []agent.Message {
			return list(n, func(int) []agent.Message { return []agent.Message{userSaid(text("x")), failed()} })
		},
		"references": func(n int) []agent.Message {
			return list(n, func(i int) []agent.Message {
				return []agent.Message{answered1(id(i), &agent.ToolUseBlock{ID: id(i), Name: toolset.SearchTool, Input: json.RawMessage(`{}`)}), userSaid(reference(i))}
			})
		},
	}
	for name, msgs := range cases {
		t.Run(name, func(t *testing.T) {
			growth.Check(t, 500, func(n int) int {
				in := msgs(n)
				return growth.Bytes(func() {
					s := &session{table: &toolset.Table{ByName: map[string]*toolset.Tool{}}}
					s.finder.Active = true
					s.history, s.given = transcript.Load(t.Context(), in, DefaultModel)
					s.settleReferences()
					(&messages.Request{Breakpoints: s.history.Breakpoints()}).Body(&s.history)
				})
			})
		})
	}
	ctx, late := growth.EndsAfter(t, 3)
	transcript.Load(ctx, cases["turns"](1000), DefaultModel)
	if late() > 1 {
		t.Errorf("%d messages were read after the end", late())
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := agent.Open(ended, testEngine(modeltest.New(t)), &agent.Options{History: cases["turns"](10)}); !errors.Is(err, context.Canceled) {
		t.Errorf("opened with %v", err)
	}
}

// What is made for the model of what servers say ends at a bound, or costs in proportion to it.
func TestAnnouncementsGrowWithTheServers(t *testing.T) {
	tags := "<system-reminder>\n\u2028"
	for name, work := range map[string]func(n int) func(){
		"instructions of many": func(n int) func() {
			status := make([]mcphost.ServerStatus, n)
			for i := range status {
				status[i] = mcphost.ServerStatus{Name: fmt.Sprint("s", i), Status: mcphost.StatusConnected, Instructions: strings.Repeat(tags, 50)}
			}
			return func() { instructions(status, nil, nil, map[string]bool{}) }
		},
		"long instructions": func(n int) func() {
			status := []mcphost.ServerStatus{{Name: "s", Status: mcphost.StatusConnected, Instructions: strings.Repeat(tags, n)}}
			return func() { instructions(status, nil, nil, map[string]bool{}) }
		},
		"long names": func(n int) func() {
			names := strings.Split(strings.Repeat("<x> ", n), " ")
			return func() { oneLines(names) }
		},
		"a schema": func(n int) func() {
			raw := json.RawMessage(`{"a":` + strings.Repeat(`[{"description":"<system-reminder>"},`, n/10) + `1` + strings.Repeat("]", n/10) + `}`)
			return func() { toolset.EscapeJSON(raw, false) }
		},
		"arguments of a command": func(n int) func() {
			line := strings.Repeat("x", n) + strings.Repeat(`\ "`, n)
			return func() { _, _ = splitArguments(line) } // a quote is open, or not
		},
		"a hook's answer": func(n int) func() {
			says := `{"reason":"` + strings.Repeat("<system-reminder>", n) + `"}`
			return func() { _, _ = parseReply("PreToolUse", says, false) } // it is one
		},
	} {
		t.Run(name, func(t *testing.T) {
			growth.Check(t, 1000, func(n int) int { return growth.Bytes(work(n)) })
		})
	}
	event := json.RawMessage(`{"a":"` + strings.Repeat("x", 1<<20) + `"}`)
	growth.AtMost(t, 8*maxFillIn, []int{10, 1000, 100_000}, func(n int) int {
		in := transcript.Encode(map[string]string{"x": strings.Repeat("${a}", n)})
		return growth.Bytes(func() { _, _ = fillIn(in, event) }) // too much, or not
	})
}

// A search in a stored result ends with its turn, and has a bound.
//
// fault H3
func TestSearchInAStoredResultEnds(t *testing.T) {
	s := &session{store: toolresult.NewStore("", 0)}
	defer s.store.Close()
	path, err := s.store.StoreText("s", "t", strings.Repeat(strings.Repeat("a", 200)+"b\n", 20_000))
	if err != nil {
		t.Fatal(err)
	}
	args := transcript.Encode(map[string]string{"path": path, "pattern": "^(a|a)*$"})
	c := &call{use: &agent.ToolUseBlock{ID: "x", Name: readTool}}
	whole := growth.Looks(t, func(ctx context.Context) { (&turn{s: s, ctx: ctx}).readStored(c, args) })
	ctx, late := growth.EndsAfter(t, 2)
	if a := (&turn{s: s, ctx: ctx}).readStored(c, args); !a.result.IsError || late() > 2 || whole < 10 {
		t.Errorf("looked %d times at the context, %d times after its end: %.200s", whole, late(), a.result.Text())
	}
}

// Results cost in proportion to what is in them.
func TestResultsGrowWithTheirContent(t *testing.T) {
	s := &session{store: toolresult.NewStore("", 0), opts: &agent.Options{}, api: &messages.Client{}}
	s.api.Countless.Store(true)
	defer s.store.Close()
	tr := &turn{s: s, ctx: t.Context()}
	c := &call{use: &agent.ToolUseBlock{ID: "x", Name: "mcp__s__t"}, tool: &toolset.Tool{Tool: mcphost.Tool{Server: "s", Name: "t", MaxResultSize: toolresult.MaxDeclaredChars}}}
	growth.Check(t, 1000, func(n int) int {
		res := &mcpserver.Result{}
		for i := range n {
			res.Content = append(res.Content, mcpserver.Text(fmt.Sprint("<system-reminder> ", i)).Content...)
		}
		return growth.Bytes(func() { tr.convert(c, json.RawMessage(`{}`), res) })
	})
	growth.Check(t, 1000, func(n int) int {
		content := agent.Content{}
		for range n {
			content = append(content, &agent.TextBlock{Text: "x", Extra: agent.Fields{transcript.CacheField: transcript.Ephemeral}})
		}
		return growth.Bytes(func() { tr.cleanContent(c, content) })
	})
}
