package modeltest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// A Turn is an answer of the model: a [Part] (one text, one tool call), a [*Reply] of [Say] or
// [Fail], or a [Func] that chooses the answer for the request.
type Turn interface{ turn() }

// A Func is a [Turn] that depends on the request. It answers all requests from its place in the
// script on, until it returns nil, which leaves the request to the next turn. It may be called
// concurrently, and must not change the request.
type Func func(*Request) Turn

func (Func) turn() {}

// A Part is a part of a turn: a content block ([Text], [ToolUse], [Thinking], [RawBlock]) or a step
// at that point of the stream ([Hold], [Pause], [Break], [Cut], [Ping], [Event]). Its methods
// return a changed copy. A Part used as a [Turn] is a turn of that part only.
type Part struct {
	kind      partKind
	text      string          // text, thinking
	id        string          // tool_use; "" = made by the model
	name      string          // tool_use; the event of Event
	input     string          // tool_use: the JSON text as it is streamed
	signature *string         // thinking; nil = made by the model
	raw       json.RawMessage // RawBlock, Event
	fragments []string        // nil = natural ones
	inside    []insert
	step      step
}

func (Part) turn() {}

// A partKind is the kind of a part.
type partKind int

const (
	kindNone partKind = iota
	kindText
	kindToolUse
	kindThinking
	kindRaw
	kindStep
)

// insert is a step inside a block, after the given number of fragments.
type insert struct {
	after int
	step  step
}

// Text returns a text block.
func Text(s string) Part { return Part{kind: kindText, text: s} }

// ToolUse returns a tool call with a generated ID. A nil input is {}, a string or json.RawMessage
// is JSON, and other values are marshaled. ToolUse panics if that fails. See [RawToolUse] for
// invalid JSON.
func ToolUse(name string, input any) Part { return ToolUseID("", name, input) }

// ToolUseID is [ToolUse] with the given ID.
func ToolUseID(id, name string, input any) Part {
	return Part{kind: kindToolUse, id: id, name: name, input: inputText(input)}
}

// RawToolUse returns a tool call whose input consists of the given fragments, which need not be
// JSON: cut by max_tokens, malformed, or empty, as the API sends a call without arguments.
func RawToolUse(name string, fragments ...string) Part {
	p := Part{kind: kindToolUse, name: name, fragments: append([]string{}, fragments...)}
	for _, f := range fragments {
		p.input += f
	}
	return p
}

// inputText returns the JSON of a tool's input.
func inputText(input any) string {
	var text string
	switch in := input.(type) {
	case nil:
		return "{}"
	case string:
		text = in
	case json.RawMessage:
		text = string(in)
	default:
		b, err := json.Marshal(in)
		if err != nil {
			panic(fmt.Sprintf("modeltest: tool input: %v", err))
		}
		return string(b)
	}
	if !json.Valid([]byte(text)) {
		panic(fmt.Sprintf("modeltest: tool input is not JSON (RawToolUse takes any text): %.200s", text))
	}
	return text
}

// Thinking returns a thinking block with the signature of [Signature].
func Thinking(s string) Part { return Part{kind: kindThinking, text: s} }

// SignedThinking returns a thinking block with the given signature. An empty one means none, as in
// a stream that ends inside a thinking block.
func SignedThinking(s, signature string) Part {
	return Part{kind: kindThinking, text: s, signature: &signature}
}

// RawBlock returns a content block of another type. It is sent whole, without deltas. RawBlock
// panics if block is not a JSON object with a type.
func RawBlock(block string) Part {
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal([]byte(block), &head); err != nil || head.Type == "" {
		panic(fmt.Sprintf("modeltest: RawBlock wants a JSON object with a type, got %.200s", block))
	}
	return Part{kind: kindRaw, raw: oneLine(block)}
}

// oneLine returns JSON without line breaks, as an event requires.
func oneLine(text string) json.RawMessage {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		panic(fmt.Sprintf("modeltest: not JSON: %.200s", text))
	}
	return b.Bytes()
}

// Fragments sets the deltas of a text, thinking block or input. They are not compared with the
// block's text.
func (p Part) Fragments(parts ...string) Part {
	p.fragments = append([]string{}, parts...)
	return p
}

// After inserts a step ([Hold], [Pause], [Break], [Cut], [Ping], [Event]) after the block's first n
// deltas, or at its end if it has fewer.
func (p Part) After(n int, s Part) Part {
	if s.kind != kindStep {
		panic("modeltest: After takes a step such as Hold or Cut, not a content block")
	}
	p.inside = append(append([]insert{}, p.inside...), insert{n, s.step})
	return p
}

// A step happens in the stream between two events.
type step struct {
	wait  func(context.Context) error // blocks the stream
	fail  *apiError                   // an error event ends it
	cut   bool                        // the connection breaks
	event string                      // an event of any kind
	data  json.RawMessage
}

// Hold returns a step that waits until the gate is opened or the client disconnects.
func Hold(g *Gate) Part { return Pause(g.wait) }

// Pause returns a step that runs f. An error of f breaks the connection. The context ends when the
// client disconnects; f must return soon after that.
func Pause(f func(context.Context) error) Part {
	return Part{kind: kindStep, step: step{wait: f}}
}

// Break returns a step that ends the stream with an error event such as ("overloaded_error",
// "Overloaded"). The response to a request without streaming has the status of that type.
func Break(typ, message string) Part {
	return Part{kind: kindStep, step: step{fail: &apiError{Type: typ, Message: message}}}
}

// Cut returns a step that breaks the connection.
func Cut() Part { return Part{kind: kindStep, step: step{cut: true}} }

// Ping returns a ping event.
func Ping() Part { return Event("ping", `{"type": "ping"}`) }

// Event returns an event of any type with any data. Lines of data become data lines. It has no
// effect without streaming.
func Event(name, data string) Part {
	return Part{kind: kindStep, step: step{event: name, data: json.RawMessage(data)}}
}

// A Gate holds streams until a test opens it, so that the test can act in the middle of a stream
// without sleeping. Any number of turns and goroutines may share it.
type Gate struct {
	reached chan struct{}
	open    chan struct{}
	arrive  sync.Once
	release sync.Once
}

// NewGate returns a closed gate.
func NewGate() *Gate {
	return &Gate{reached: make(chan struct{}), open: make(chan struct{})}
}

// Reached returns a channel that is closed when the first stream has arrived at the gate and
// everything before was sent, or read by a client without a network.
func (g *Gate) Reached() <-chan struct{} { return g.reached }

// Open opens the gate for good. It may be called more than once.
func (g *Gate) Open() { g.release.Do(func() { close(g.open) }) }

func (g *Gate) wait(ctx context.Context) error {
	g.arrive.Do(func() { close(g.reached) })
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// The stop reasons of the Messages API.
const (
	StopEndTurn       = "end_turn"
	StopToolUse       = "tool_use"
	StopMaxTokens     = "max_tokens"
	StopSequence      = "stop_sequence"
	StopRefusal       = "refusal"
	StopPauseTurn     = "pause_turn"
	StopContextWindow = "model_context_window_exceeded"
)

// Usage is the token counts of a turn.
type Usage struct {
	InputTokens              int
	OutputTokens             int
	CacheCreationInputTokens int
	CacheReadInputTokens     int
}

// A Reply is a turn of several parts, or an error. Make it with [Say] or [Fail]. Its methods change
// and return it. It must not be changed once it is in a script.
type Reply struct {
	parts   []Part
	id      string
	model   string
	stop    string
	stopSeq string
	details json.RawMessage
	usage   *Usage
	header  http.Header
	status  int // of an error
	fail    *apiError
}

func (*Reply) turn() {}

// Say returns a turn of the given parts. Without parts it is an empty answer, as the API sometimes
// sends.
func Say(parts ...Part) *Reply { return &Reply{parts: append([]Part{}, parts...)} }

// Fail returns an error response with a status, one of the API's error types, and a message.
func Fail(status int, typ, message string) *Reply {
	return &Reply{status: status, fail: &apiError{Type: typ, Message: message}}
}

// RateLimited returns a 429. A positive retryAfter becomes the header retry-after in seconds,
// rounded up.
func RateLimited(retryAfter time.Duration) *Reply {
	r := Fail(http.StatusTooManyRequests, "rate_limit_error", "This request would exceed your rate limit.")
	if retryAfter > 0 {
		r.Header("retry-after", strconv.Itoa(int((retryAfter+time.Second-1)/time.Second)))
	}
	return r
}

// Overloaded returns a 529.
func Overloaded() *Reply { return Fail(statusOverloaded, "overloaded_error", "Overloaded") }

// Stop sets the stop reason. The default is tool_use with a tool call and end_turn without.
func (r *Reply) Stop(reason string) *Reply { r.stop = reason; return r }

// StopAt sets the stop reason stop_sequence and the sequence.
func (r *Reply) StopAt(sequence string) *Reply {
	r.stop, r.stopSeq = StopSequence, sequence
	return r
}

// StopDetails sets the stop_details object of a refusal, as JSON. It panics if that is invalid.
func (r *Reply) StopDetails(details string) *Reply {
	r.details = oneLine(details)
	return r
}

// Usage sets the token counts. The default is an estimate; see the package comment.
func (r *Reply) Usage(u Usage) *Reply { r.usage = &u; return r }

// ID sets the message's ID. The default is generated.
func (r *Reply) ID(id string) *Reply { r.id = id; return r }

// Model sets the model in the response. The default is the requested one.
func (r *Reply) Model(name string) *Reply { r.model = name; return r }

// Header adds a header to the response.
func (r *Reply) Header(name, value string) *Reply {
	if r.header == nil {
		r.header = http.Header{}
	}
	r.header.Add(name, value)
	return r
}
