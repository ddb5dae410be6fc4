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

// A Turn is what the model does when it is asked once: a [Part] on its own (one
// text, one tool call), a [*Reply] made by [Say] or [Fail], or a [Func] that
// decides when the request is there.
type Turn interface{ turn() }

// A Func is a [Turn] that is made when the request is there. It is not used up:
// it answers every request from its place in the script on, until it returns
// nil, which hands the request to the turn after it. It may be called from
// several goroutines at once, and must not change the request.
type Func func(*Request) Turn

func (Func) turn() {}

// A Part is a piece of a turn: a content block ([Text], [ToolUse], [Thinking],
// [RawBlock]) or something that happens in the stream at that point ([Hold],
// [Pause], [Break], [Cut], [Ping], [Event]). A Part is a value: the methods
// return a changed copy. A Part used as a [Turn] is a turn of that part alone.
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

// A partKind says which of its fields a part uses.
type partKind int

const (
	kindNone partKind = iota
	kindText
	kindToolUse
	kindThinking
	kindRaw
	kindStep
)

// insert is a step in the middle of a block: after that many fragments.
type insert struct {
	after int
	step  step
}

// Text is a text block.
func Text(s string) Part { return Part{kind: kindText, text: s} }

// ToolUse is a call of a tool, under an id that the model makes. Input becomes
// the call's JSON: nil is {}, a string or json.RawMessage is JSON text that is
// taken as it is, anything else is marshalled. It panics when that fails; a call
// whose input is no JSON is made with [RawToolUse].
func ToolUse(name string, input any) Part { return ToolUseID("", name, input) }

// ToolUseID is [ToolUse] under an id of the caller's choice.
func ToolUseID(id, name string, input any) Part {
	return Part{kind: kindToolUse, id: id, name: name, input: inputText(input)}
}

// RawToolUse is a call whose input arrives as these fragments of text, be they
// JSON or not: cut short by max_tokens, malformed, or nothing at all (as the API
// streams a call without arguments).
func RawToolUse(name string, fragments ...string) Part {
	p := Part{kind: kindToolUse, name: name, fragments: append([]string{}, fragments...)}
	for _, f := range fragments {
		p.input += f
	}
	return p
}

// inputText is the JSON text of a tool's input.
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

// Thinking is a thinking block. It is signed as [Signature] says.
func Thinking(s string) Part { return Part{kind: kindThinking, text: s} }

// SignedThinking is a thinking block with this signature. The empty one leaves
// the block unsigned, as a stream does that ends in the middle of a thought.
func SignedThinking(s, signature string) Part {
	return Part{kind: kindThinking, text: s, signature: &signature}
}

// RawBlock is a content block of any other kind, sent as it stands: started
// whole, without deltas. It panics when block is not a JSON object with a type.
func RawBlock(block string) Part {
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal([]byte(block), &head); err != nil || head.Type == "" {
		panic(fmt.Sprintf("modeltest: RawBlock wants a JSON object with a type, got %.200s", block))
	}
	return Part{kind: kindRaw, raw: oneLine(block)}
}

// oneLine is JSON without line breaks, as it has to be in an event.
func oneLine(text string) json.RawMessage {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		panic(fmt.Sprintf("modeltest: not JSON: %.200s", text))
	}
	return b.Bytes()
}

// Fragments sets how a text, thinking or tool input is broken into deltas. They
// are sent as they are; nothing checks that they add up to the block's text.
func (p Part) Fragments(parts ...string) Part {
	p.fragments = append([]string{}, parts...)
	return p
}

// After puts a step ([Hold], [Pause], [Break], [Cut], [Ping], [Event]) inside
// the block: after its first n deltas, or at the block's end when it has fewer.
func (p Part) After(n int, s Part) Part {
	if s.kind != kindStep {
		panic("modeltest: After takes a step such as Hold or Cut, not a content block")
	}
	p.inside = append(append([]insert{}, p.inside...), insert{n, s.step})
	return p
}

// A step is something that happens in the stream between two events.
type step struct {
	wait  func(context.Context) error // blocks the stream
	fail  *apiError                   // an error event ends it
	cut   bool                        // the connection breaks
	event string                      // an event of any kind
	data  json.RawMessage
}

// Hold stops the stream at this point until the gate is opened or the client
// has gone.
func Hold(g *Gate) Part { return Pause(g.wait) }

// Pause runs f at this point of the stream, which waits for it. An error of f
// breaks the connection. The context ends when the client has gone; f must return
// soon after that.
func Pause(f func(context.Context) error) Part {
	return Part{kind: kindStep, step: step{wait: f}}
}

// Break ends the stream with an error event such as ("overloaded_error",
// "Overloaded"). A request without streaming gets the status that belongs to it.
func Break(typ, message string) Part {
	return Part{kind: kindStep, step: step{fail: &apiError{Type: typ, Message: message}}}
}

// Cut breaks the connection at this point.
func Cut() Part { return Part{kind: kindStep, step: step{cut: true}} }

// Ping is a ping event.
func Ping() Part { return Event("ping", `{"type": "ping"}`) }

// Event is an event of any kind with any data, one that no client knows for
// instance. Lines of data become data lines of their own. Requests without
// streaming don't see it.
func Event(name, data string) Part {
	return Part{kind: kindStep, step: step{event: name, data: json.RawMessage(data)}}
}

// A Gate holds a turn until a test lets it go, so that tests can act in the
// middle of a stream without sleeping. It may be used by any number of turns
// and goroutines.
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

// Reached is closed when the first stream has arrived at the gate: all before it
// has been sent, or read by a client without a socket.
func (g *Gate) Reached() <-chan struct{} { return g.reached }

// Open lets everything through, now and later. It may be called more than once.
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

// Stop reasons of the Messages API.
const (
	StopEndTurn       = "end_turn"
	StopToolUse       = "tool_use"
	StopMaxTokens     = "max_tokens"
	StopSequence      = "stop_sequence"
	StopRefusal       = "refusal"
	StopPauseTurn     = "pause_turn"
	StopContextWindow = "model_context_window_exceeded"
)

// Usage is what a turn is said to have cost, in tokens. A zero field is sent as
// zero.
type Usage struct {
	InputTokens              int
	OutputTokens             int
	CacheCreationInputTokens int
	CacheReadInputTokens     int
}

// A Reply is a turn of several parts, or an error. Make it with [Say] or [Fail];
// its methods change it and return it. Once it is in a script it must not be
// changed any more.
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

// Say is a turn of these parts, in this order. With no parts it is an empty
// answer, as the API gives it now and then.
func Say(parts ...Part) *Reply { return &Reply{parts: append([]Part{}, parts...)} }

// Fail is an answer that is an error: a status, one of the API's types, and a
// message.
func Fail(status int, typ, message string) *Reply {
	return &Reply{status: status, fail: &apiError{Type: typ, Message: message}}
}

// RateLimited is a 429. A retryAfter above zero becomes the header retry-after,
// in whole seconds, rounded up.
func RateLimited(retryAfter time.Duration) *Reply {
	r := Fail(http.StatusTooManyRequests, "rate_limit_error", "This request would exceed your rate limit.")
	if retryAfter > 0 {
		r.Header("retry-after", strconv.Itoa(int((retryAfter+time.Second-1)/time.Second)))
	}
	return r
}

// Overloaded is a 529.
func Overloaded() *Reply { return Fail(statusOverloaded, "overloaded_error", "Overloaded") }

// Stop sets the stop reason. Without it, it is tool_use when there is a tool
// call among the parts and end_turn when there is none.
func (r *Reply) Stop(reason string) *Reply { r.stop = reason; return r }

// StopAt sets the stop reason stop_sequence and the sequence.
func (r *Reply) StopAt(sequence string) *Reply {
	r.stop, r.stopSeq = StopSequence, sequence
	return r
}

// StopDetails sets the stop_details object that goes with a refusal, as JSON. It
// panics when it is none.
func (r *Reply) StopDetails(details string) *Reply {
	r.details = oneLine(details)
	return r
}

// Usage sets the token counts. Without it they are estimated, as the package comment says.
func (r *Reply) Usage(u Usage) *Reply { r.usage = &u; return r }

// ID sets the message's id. Without it the model makes one.
func (r *Reply) ID(id string) *Reply { r.id = id; return r }

// Model sets the model that is said to have answered. Without it, it is the one
// that was asked for.
func (r *Reply) Model(name string) *Reply { r.model = name; return r }

// Header adds a header to the response.
func (r *Reply) Header(name, value string) *Reply {
	if r.header == nil {
		r.header = http.Header{}
	}
	r.header.Add(name, value)
	return r
}
