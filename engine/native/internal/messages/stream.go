package messages

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

// A Response is a message of the model while it arrives.
type Response struct {
	ID, Model   string
	Asked       string // the session's name of the model
	RequestID   string
	Blocks      []*Block
	Stop        string
	StopDetails json.RawMessage
	Usage       agent.Usage
	ended       bool // message_stop has been seen
}

// A Block is a content block while it arrives.
type Block struct {
	Kind      string
	Done      bool
	ID, name  string // of a tool call
	start     json.RawMessage
	text      bytes.Buffer // of a text or thinking block
	signature bytes.Buffer
	Input     bytes.Buffer // JSON of a tool call
	citations []json.RawMessage
	other     map[string]*gathered // the fields of unknown deltas
}

// An event is an event of the stream.
type event struct {
	Type    string          `json:"type"`
	Index   int             `json:"index"`
	Message json.RawMessage `json:"message"`
	Block   json.RawMessage `json:"content_block"`
	Delta   json.RawMessage `json:"delta"`
	Usage   json.RawMessage `json:"usage"`
}

type delta struct {
	Type        string          `json:"type"`
	Text        string          `json:"text"`
	Thinking    string          `json:"thinking"`
	Signature   string          `json:"signature"`
	PartialJSON string          `json:"partial_json"`
	Citation    json.RawMessage `json:"citation"`
	StopReason  *string         `json:"stop_reason"`
	StopDetails json.RawMessage `json:"stop_details"`
}

const (
	// MaxResponse bounds a response, in bytes. The longest answers with their events have half of it.
	MaxResponse = 64 << 20
	// MaxBlocks bounds the content blocks of a response, and maxUsageFields the unknown fields of its usage.
	MaxBlocks      = 10_000
	maxUsageFields = 100
)

// ErrTooMuch reports a response that exceeds these limits. A retry does not help.
var ErrTooMuch = errors.New("the response of the model's server is too large")

// A BoundedBody is a body that fails after Left bytes.
type BoundedBody struct {
	io.ReadCloser
	Left int64
}

func (b *BoundedBody) Read(p []byte) (int, error) {
	if b.Left <= 0 {
		return 0, fmt.Errorf("%w: it has more than %d MiB", ErrTooMuch, MaxResponse>>20)
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.Left)])
	b.Left -= int64(n)
	return n, err
}

// bounded is a middleware of the official client that bounds every response.
func bounded(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	res, err := next(req)
	if res != nil && res.Body != nil {
		res.Body = &BoundedBody{res.Body, MaxResponse}
	}
	return res, err
}

// A Sink receives a response while it arrives: each block when it is complete, and each event after the block
// that it completes. It must not keep the bytes of an event.
type Sink struct {
	Block func(r *Response, b *Block)
	Event func(r *Response, raw []byte)
}

// ReadResponse reads a response. On an error it returns what has arrived.
func ReadResponse(raw *http.Response, s Sink) (*Response, error) {
	r := &Response{RequestID: raw.Header.Get("request-id")}
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
			s.Block(r, finished)
		}
		s.Event(r, bytes.TrimSpace(events.Event().Data))
	}
	if err := stream.Err(); err != nil {
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			err = fmt.Errorf("decoding event of the stream: %w", err)
		}
		return r, err
	}
	if !r.ended && r.Stop == "" {
		return r, fmt.Errorf("the stream ended in the middle of a response: %w", io.ErrUnexpectedEOF)
	}
	for _, b := range r.Blocks { // some servers do not send the ends
		if !b.Done {
			b.Done = true
			s.Block(r, b)
		}
	}
	return r, nil
}

// readWhole reads a response that is not a stream.
func (r *Response) readWhole(body io.ReadCloser, s Sink) error {
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
		r.Blocks[i].Done = true
		s.Block(r, r.Blocks[i])
	}
	r.ended = true
	return nil
}

// add adds an event. It returns the block that the event completes, if any.
func (r *Response) add(e event) (*Block, error) {
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
		r.ID, r.Model = m.ID, m.Model
		return nil, r.addUsage(m.Usage)
	case "content_block_start":
		if len(r.Blocks) >= MaxBlocks {
			return nil, fmt.Errorf("%w: it has more than %d content blocks", ErrTooMuch, MaxBlocks)
		}
		if e.Index != len(r.Blocks) {
			return nil, fmt.Errorf("the stream starts content block %d, want %d", e.Index, len(r.Blocks))
		}
		b, err := NewBlock(e.Block)
		r.Blocks = append(r.Blocks, b)
		return nil, err
	case "content_block_delta":
		b, err := r.at(e.Index)
		if err != nil {
			return nil, err
		}
		return nil, b.Add(e.Delta)
	case "content_block_stop":
		b, err := r.at(e.Index)
		if err != nil || b.Done {
			return nil, err
		}
		b.Done = true
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

// finish applies the end of a response.
func (r *Response) finish(d delta) {
	if d.StopReason != nil {
		r.Stop = *d.StopReason
	}
	if len(d.StopDetails) > 0 && string(d.StopDetails) != "null" {
		r.StopDetails = d.StopDetails
	}
}

// addUsage updates the usage. Counts are totals; absent ones stay as they are.
func (r *Response) addUsage(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	extra := r.Usage.Extra
	if err := json.Unmarshal(raw, &r.Usage); err != nil {
		return fmt.Errorf("decoding usage: %w", err)
	}
	for k, v := range extra { // emitted messages have the old map
		if _, ok := r.Usage.Extra[k]; !ok && len(r.Usage.Extra) < maxUsageFields {
			if r.Usage.Extra == nil {
				r.Usage.Extra = agent.Fields{}
			}
			r.Usage.Extra[k] = v
		}
	}
	return nil
}

func (r *Response) at(i int) (*Block, error) {
	if i < 0 || i >= len(r.Blocks) {
		return nil, fmt.Errorf("the stream speaks of content block %d, there are %d", i, len(r.Blocks))
	}
	return r.Blocks[i], nil
}

// NewBlock returns the block that a content_block_start event begins.
func NewBlock(start json.RawMessage) (*Block, error) {
	var head struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		Thinking string `json:"thinking"`
		Sign     string `json:"signature"`
		ID       string `json:"id"`
		Name     string `json:"name"`
	}
	b := &Block{start: start}
	if err := json.Unmarshal(start, &head); err != nil {
		return b, fmt.Errorf("decoding content block: %w", err)
	}
	b.Kind, b.ID, b.name = head.Type, head.ID, head.Name
	b.text.WriteString(head.Text + head.Thinking)
	b.signature.WriteString(head.Sign)
	return b, nil
}

// Add adds a delta.
func (b *Block) Add(raw json.RawMessage) error {
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
		b.Input.WriteString(d.PartialJSON)
	case "citations_delta":
		b.citations = append(b.citations, d.Citation)
	default:
		return b.addOther(raw)
	}
	return nil
}

// addOther adds a delta of an unknown kind: strings are appended, other values replace earlier ones.
func (b *Block) addOther(raw json.RawMessage) error {
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
		isText := json.Unmarshal(v, &more) == nil && string(v) != "null"
		if g := b.other[name]; g == nil || !isText || g.value != nil {
			b.other[name] = new(gathered)
		}
		if isText {
			b.other[name].text.WriteString(more)
		} else {
			b.other[name].value = v
		}
	}
	return nil
}

// gathered is a field of unknown deltas.
type gathered struct {
	text  strings.Builder
	value json.RawMessage // nil for a string
}

func (g *gathered) json() json.RawMessage {
	if g.value != nil {
		return g.value
	}
	return transcript.Encode(g.text.String())
}
