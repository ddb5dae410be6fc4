package native

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
)

// A response is a message of the model's while it arrives.
type response struct {
	id, model    string
	asked        string // the model, as the session calls it
	requestID    string
	blocks       []*block
	stop         string
	stopSequence string
	stopDetails  json.RawMessage
	usage        agent.Usage
	ended        bool // message_stop has been seen
}

// A block is a content block while it arrives. Known kinds are put together from their deltas;
// every other keeps what its start said and what its deltas add.
type block struct {
	kind  string
	done  bool
	start json.RawMessage
	// What the deltas brought.
	text      bytes.Buffer // of a text or thinking block
	signature bytes.Buffer
	input     bytes.Buffer // of a tool call, JSON text
	citations []json.RawMessage
	other     map[string]*gathered
	// Of a tool call.
	id, name string
	made     agent.Block // what message has made; nil while the block is not whole
}

// An event is an event of the stream, as far as it concerns us.
type event struct {
	Type    string          `json:"type"`
	Index   int             `json:"index"`
	Message json.RawMessage `json:"message"`
	Block   json.RawMessage `json:"content_block"`
	Delta   json.RawMessage `json:"delta"`
	Usage   json.RawMessage `json:"usage"`
}

type delta struct {
	Type         string          `json:"type"`
	Text         string          `json:"text"`
	Thinking     string          `json:"thinking"`
	Signature    string          `json:"signature"`
	PartialJSON  string          `json:"partial_json"`
	Citation     json.RawMessage `json:"citation"`
	StopReason   *string         `json:"stop_reason"`
	StopSequence *string         `json:"stop_sequence"`
	StopDetails  json.RawMessage `json:"stop_details"`
}

const (
	// maxResponse bounds a response of the model's server, in bytes: the longest answers, with thousands of events
	// around them, have half of it.
	maxResponse = 64 << 20
	// maxBlocks bounds the content blocks of a response, and maxUsageFields the counts that nobody knows.
	maxBlocks      = 10_000
	maxUsageFields = 100
)

// errTooMuch reports a response beyond these bounds. The next one would be no other.
var errTooMuch = errors.New("the response of the model's server is too large")

// A boundedBody is a body that ends with an error when it has too many bytes.
type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("%w: it has more than %d MiB", errTooMuch, maxResponse>>20)
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// bounded is a middleware of the official client that bounds every response.
func bounded(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	res, err := next(req)
	if res != nil && res.Body != nil {
		res.Body = &boundedBody{res.Body, maxResponse}
	}
	return res, err
}

// A sink hears about a response while it arrives: each block when it is whole, and each event after what it completed.
// The bytes of an event are not the sink's to keep.
type sink struct {
	block func(r *response, b *block)
	event func(r *response, raw []byte)
}

// readResponse reads a response until its end. On an error it returns what has arrived.
func readResponse(raw *http.Response, s sink) (*response, error) {
	r := &response{requestID: raw.Header.Get("request-id")}
	if mediaType, _, _ := mime.ParseMediaType(raw.Header.Get("Content-Type")); mediaType == "application/json" {
		return r, r.readWhole(raw.Body, s)
	}
	events := ssestream.NewDecoder(raw)
	stream := ssestream.NewStream[event](events, nil)
	defer stream.Close()
	for stream.Next() {
		finished, err := r.add(stream.Current())
		if err != nil {
			return r, err
		}
		if finished != nil {
			s.block(r, finished)
		}
		s.event(r, bytes.TrimSpace(events.Event().Data))
	}
	if err := stream.Err(); err != nil {
		if wrong := new(json.UnmarshalTypeError); errors.As(err, &wrong) {
			err = fmt.Errorf("decoding event of the stream: %w", err)
		}
		return r, err
	}
	if !r.ended && r.stop == "" {
		return r, fmt.Errorf("the stream ended in the middle of a response: %w", io.ErrUnexpectedEOF)
	}
	for _, b := range r.blocks { // whose end a server has left out
		if !b.done {
			b.done = true
			s.block(r, b)
		}
	}
	return r, nil
}

// readWhole reads a response that was not streamed although that was asked for.
func (r *response) readWhole(body io.ReadCloser, s sink) error {
	defer body.Close()
	data, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	var m struct {
		Content []json.RawMessage `json:"content"`
		delta
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("decoding response: %w", err)
	}
	if _, err := r.add(event{Type: "message_start", Message: data}); err != nil {
		return err
	}
	r.finish(m.delta)
	for i, raw := range m.Content {
		if _, err := r.add(event{Type: "content_block_start", Index: i, Block: raw}); err != nil {
			return err
		}
		r.blocks[i].done = true
		s.block(r, r.blocks[i])
	}
	r.ended = true
	return nil
}

// add takes one event in. It returns the block that the event completes, if it does.
func (r *response) add(e event) (*block, error) {
	switch e.Type {
	case "message_start":
		var m struct {
			ID    string          `json:"id"`
			Model string          `json:"model"`
			Usage json.RawMessage `json:"usage"`
		}
		if err := json.Unmarshal(e.Message, &m); err != nil {
			return nil, fmt.Errorf("decoding start of response: %w", err)
		}
		r.id, r.model = m.ID, m.Model
		return nil, r.addUsage(m.Usage)
	case "content_block_start":
		if len(r.blocks) >= maxBlocks {
			return nil, fmt.Errorf("%w: it has more than %d content blocks", errTooMuch, maxBlocks)
		}
		if e.Index != len(r.blocks) {
			return nil, fmt.Errorf("the stream starts content block %d, want %d", e.Index, len(r.blocks))
		}
		b, err := newBlock(e.Block)
		r.blocks = append(r.blocks, b)
		return nil, err
	case "content_block_delta":
		b, err := r.at(e.Index)
		if err != nil {
			return nil, err
		}
		return nil, b.add(e.Delta)
	case "content_block_stop":
		b, err := r.at(e.Index)
		if err != nil || b.done {
			return nil, err
		}
		b.done = true
		return b, nil
	case "message_delta":
		var d delta
		if len(e.Delta) > 0 {
			if err := json.Unmarshal(e.Delta, &d); err != nil {
				return nil, fmt.Errorf("decoding end of response: %w", err)
			}
		}
		r.finish(d)
		return nil, r.addUsage(e.Usage)
	case "message_stop":
		r.ended = true
	}
	return nil, nil
}

func (r *response) finish(d delta) {
	if d.StopReason != nil {
		r.stop = *d.StopReason
	}
	if d.StopSequence != nil {
		r.stopSequence = *d.StopSequence
	}
	if len(d.StopDetails) > 0 && string(d.StopDetails) != "null" {
		r.stopDetails = d.StopDetails
	}
}

// addUsage takes counts in. Each is a total so far: a new one replaces the old, an absent one leaves it.
func (r *response) addUsage(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	extra := r.usage.Extra
	if err := json.Unmarshal(raw, &r.usage); err != nil {
		return fmt.Errorf("decoding usage: %w", err)
	}
	for k, v := range extra { // the messages that are out have this map
		if _, ok := r.usage.Extra[k]; !ok && len(r.usage.Extra) < maxUsageFields {
			if r.usage.Extra == nil {
				r.usage.Extra = agent.Fields{}
			}
			r.usage.Extra[k] = v
		}
	}
	return nil
}

func (r *response) at(i int) (*block, error) {
	if i < 0 || i >= len(r.blocks) {
		return nil, fmt.Errorf("the stream speaks of content block %d, there are %d", i, len(r.blocks))
	}
	return r.blocks[i], nil
}

func newBlock(start json.RawMessage) (*block, error) {
	var head struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		Thinking string `json:"thinking"`
		Sign     string `json:"signature"`
		ID       string `json:"id"`
		Name     string `json:"name"`
	}
	b := &block{start: start}
	if err := json.Unmarshal(start, &head); err != nil {
		return b, fmt.Errorf("decoding content block: %w", err)
	}
	b.kind, b.id, b.name = head.Type, head.ID, head.Name
	b.text.WriteString(head.Text + head.Thinking)
	b.signature.WriteString(head.Sign)
	return b, nil
}

func (b *block) add(raw json.RawMessage) error {
	var d delta
	if err := json.Unmarshal(raw, &d); err != nil {
		return fmt.Errorf("decoding delta: %w", err)
	}
	switch d.Type {
	case "text_delta":
		b.text.WriteString(d.Text)
	case "thinking_delta":
		b.text.WriteString(d.Thinking)
	case "signature_delta":
		b.signature.WriteString(d.Signature)
	case "input_json_delta":
		b.input.WriteString(d.PartialJSON)
	case "citations_delta":
		b.citations = append(b.citations, d.Citation)
	default:
		return b.addOther(raw)
	}
	return nil
}

// addOther takes in a delta of a kind that we do not know: strings go on, everything else replaces.
func (b *block) addOther(raw json.RawMessage) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return fmt.Errorf("decoding delta: %w", err)
	}
	delete(fields, "type")
	if b.other == nil {
		b.other = map[string]*gathered{}
	}
	for name, v := range fields {
		var more string
		g := b.other[name]
		switch isText := json.Unmarshal(v, &more) == nil && string(v) != "null"; {
		case !isText:
			b.other[name] = &gathered{value: v}
		case g == nil || g.value != nil:
			b.other[name] = &gathered{}
			fallthrough
		default:
			b.other[name].text.WriteString(more)
		}
	}
	return nil
}

// gathered is a field that deltas brought.
type gathered struct {
	text  strings.Builder // of strings that go on
	value json.RawMessage // of all else; nil for a string
}

func (g *gathered) json() json.RawMessage {
	if g.value != nil {
		return g.value
	}
	return transcript.Encode(g.text.String())
}
