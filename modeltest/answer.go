package modeltest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"unicode/utf8"
)

// apiError is the error object of the Messages API.
type apiError struct {
	Type    string
	Message string
}

const statusOverloaded = 529

// statusOf returns the HTTP status of an error type.
func statusOf(typ string) int {
	switch typ {
	case "invalid_request_error":
		return http.StatusBadRequest
	case "authentication_error":
		return http.StatusUnauthorized
	case "billing_error":
		return http.StatusPaymentRequired
	case "permission_error":
		return http.StatusForbidden
	case "not_found_error":
		return http.StatusNotFound
	case "request_too_large":
		return http.StatusRequestEntityTooLarge
	case "rate_limit_error":
		return http.StatusTooManyRequests
	case "timeout_error":
		return http.StatusGatewayTimeout
	case "overloaded_error":
		return statusOverloaded
	}
	return http.StatusInternalServerError
}

// errorBody returns an error in the API's form, for a response or a stream.
func errorBody(e *apiError, requestID string) []byte {
	b := append([]byte(nil), `{"type":"error","error":{"type":`...)
	b = appendString(b, e.Type)
	b = append(b, `,"message":`...)
	b = appendString(b, e.Message)
	b = append(b, `},"request_id":`...)
	b = appendString(b, requestID)
	return append(b, '}')
}

// errCut is the error of a connection that a script breaks.
var errCut = fmt.Errorf("modeltest: the script cut the connection: %w", io.ErrUnexpectedEOF)

// answerBlock is a content block of an answer.
type answerBlock struct {
	typ       string
	text      string // text, thinking; a tool's input
	id        string
	name      string
	signature string
	raw       json.RawMessage
	part      Part
}

// answer is one turn of the model.
type answer struct {
	reply     *Reply
	id        string
	model     string
	requestID string
	stop      string
	usage     Usage
	blocks    []answerBlock // one for each part; steps have no type
}

// blocksOf returns the blocks of a reply. newID returns the IDs of tool calls.
func blocksOf(r *Reply, newID func() string) []answerBlock {
	blocks := make([]answerBlock, len(r.parts))
	for i, p := range r.parts {
		b := answerBlock{part: p, text: p.text}
		switch p.kind {
		case kindText:
			b.typ = "text"
		case kindThinking:
			b.typ, b.signature = "thinking", Signature(p.text)
			if p.signature != nil {
				b.signature = *p.signature
			}
		case kindToolUse:
			b.typ, b.name, b.id, b.text = "tool_use", p.name, p.id, p.input
			if b.id == "" {
				b.id = newID()
			}
		case kindRaw:
			b.typ, b.raw = "raw", p.raw
		}
		blocks[i] = b
	}
	return blocks
}

func stopReason(r *Reply, blocks []answerBlock) string {
	if r.stop != "" {
		return r.stop
	}
	for _, b := range blocks {
		if b.typ == "tool_use" {
			return StopToolUse
		}
	}
	return StopEndTurn
}

// outputTokens estimates an answer's tokens as a quarter of its bytes, at least one.
func outputTokens(blocks []answerBlock) int {
	n := 0
	for _, b := range blocks {
		n += len(b.text) + len(b.name) + len(b.raw)
	}
	return n/4 + 1
}

// chunk is a part of a response: bytes, and a step after them, if any.
type chunk struct {
	data []byte
	step *step
}

// events returns the answer as server-sent events.
func (a *answer) events() []chunk {
	e := &eventWriter{requestID: a.requestID}
	e.event("message_start", a.message("", "null", Usage{
		InputTokens: a.usage.InputTokens, OutputTokens: 1,
		CacheCreationInputTokens: a.usage.CacheCreationInputTokens, CacheReadInputTokens: a.usage.CacheReadInputTokens,
	}))
	e.event("ping", nil)
	index := 0
	for _, b := range a.blocks {
		if b.part.kind == kindStep {
			e.step(b.part.step)
			continue
		}
		e.block(index, b)
		index++
	}
	delta := append([]byte(nil), `,"delta":{"stop_reason":`...)
	delta = appendString(delta, a.stop)
	delta = a.stopFields(delta)
	delta = append(delta, `},"usage":`...)
	e.event("message_delta", appendUsage(delta, a.usage))
	e.event("message_stop", nil)
	return append(e.chunks, chunk{data: e.buf})
}

// message returns the fields of a message_start, after a comma.
func (a *answer) message(content, stop string, u Usage) []byte {
	b := append([]byte(nil), `,"message":`...)
	b = a.appendMessage(b, content, stop, u)
	return b
}

// appendMessage appends the message object. stop is JSON.
func (a *answer) appendMessage(b []byte, content, stop string, u Usage) []byte {
	b = append(b, `{"id":`...)
	b = appendString(b, a.id)
	b = append(b, `,"type":"message","role":"assistant","model":`...)
	b = appendString(b, a.model)
	b = append(b, `,"content":[`...)
	b = append(b, content...)
	b = append(b, `],"stop_reason":`...)
	b = append(b, stop...)
	if stop == "null" {
		b = append(b, `,"stop_sequence":null`...)
	} else {
		b = a.stopFields(b)
	}
	b = append(b, `,"usage":`...)
	b = appendUsage(b, u)
	return append(b, '}')
}

// stopFields appends the fields of a stop reason.
func (a *answer) stopFields(b []byte) []byte {
	b = append(b, `,"stop_sequence":`...)
	if a.reply.stopSeq == "" {
		b = append(b, "null"...)
	} else {
		b = appendString(b, a.reply.stopSeq)
	}
	if a.reply.details != nil {
		b = append(append(b, `,"stop_details":`...), a.reply.details...)
	}
	return b
}

func appendUsage(b []byte, u Usage) []byte {
	b = append(b, `{"input_tokens":`...)
	b = strconv.AppendInt(b, int64(u.InputTokens), 10)
	b = append(b, `,"cache_creation_input_tokens":`...)
	b = strconv.AppendInt(b, int64(u.CacheCreationInputTokens), 10)
	b = append(b, `,"cache_read_input_tokens":`...)
	b = strconv.AppendInt(b, int64(u.CacheReadInputTokens), 10)
	b = append(b, `,"output_tokens":`...)
	b = strconv.AppendInt(b, int64(u.OutputTokens), 10)
	return append(b, '}')
}

// eventWriter collects events in chunks that end at steps.
type eventWriter struct {
	chunks    []chunk
	buf       []byte
	requestID string
}

// event writes an event with its type and the given fields, which begin with a comma.
func (e *eventWriter) event(name string, fields []byte) {
	e.buf = append(e.buf, "event: "...)
	e.buf = append(e.buf, name...)
	e.buf = append(e.buf, "\ndata: {\"type\":\""...)
	e.buf = append(e.buf, name...)
	e.buf = append(e.buf, '"')
	e.buf = append(e.buf, fields...)
	e.buf = append(e.buf, "}\n\n"...)
}

func (e *eventWriter) step(s step) {
	switch {
	case s.event != "":
		e.buf = append(e.buf, "event: "...)
		e.buf = append(e.buf, s.event...)
		e.buf = append(e.buf, "\ndata: "...)
		e.buf = append(e.buf, bytes.ReplaceAll(s.data, []byte("\n"), []byte("\ndata: "))...)
		e.buf = append(e.buf, "\n\n"...)
		return
	case s.fail != nil:
		e.buf = append(e.buf, "event: error\ndata: "...)
		e.buf = append(e.buf, errorBody(s.fail, e.requestID)...)
		e.buf = append(e.buf, "\n\n"...)
	}
	e.chunks = append(e.chunks, chunk{e.buf, &s})
	e.buf = nil
}

// block writes the events of one content block.
func (e *eventWriter) block(index int, b answerBlock) {
	start := appendIndex(nil, index)
	start = append(start, `,"content_block":`...)
	switch b.typ {
	case "text":
		start = append(start, `{"type":"text","text":""}`...)
	case "thinking":
		start = append(start, `{"type":"thinking","thinking":"","signature":""}`...)
	case "tool_use":
		start = appendToolUse(start, b, "{}")
	case "raw":
		start = append(start, b.raw...)
	}
	e.event("content_block_start", start)
	e.deltas(index, b)
	e.event("content_block_stop", appendIndex(nil, index))
}

func appendIndex(b []byte, index int) []byte {
	return strconv.AppendInt(append(b, `,"index":`...), int64(index), 10)
}

func appendToolUse(b []byte, block answerBlock, input string) []byte {
	b = append(b, `{"type":"tool_use","id":`...)
	b = appendString(b, block.id)
	b = append(b, `,"name":`...)
	b = appendString(b, block.name)
	b = append(b, `,"input":`...)
	b = append(b, input...)
	return append(b, '}')
}

// deltas writes the deltas of a block and the steps between them.
func (e *eventWriter) deltas(index int, b answerBlock) {
	typ, field := "text_delta", "text"
	switch b.typ {
	case "thinking":
		typ, field = "thinking_delta", "thinking"
	case "tool_use":
		typ, field = "input_json_delta", "partial_json"
	}
	fragments := b.part.fragments
	if fragments == nil {
		fragments = naturalFragments(b)
	}
	inside := b.part.inside
	for n := 0; ; n++ {
		for _, in := range inside {
			if in.after == n || n == len(fragments) && in.after > n {
				e.step(in.step)
			}
		}
		if n == len(fragments) {
			break
		}
		e.delta(index, typ, field, fragments[n])
	}
	if b.typ == "thinking" && b.signature != "" {
		e.delta(index, "signature_delta", "signature", b.signature)
	}
}

func (e *eventWriter) delta(index int, typ, field, text string) {
	d := appendIndex(nil, index)
	d = append(d, `,"delta":{"type":"`...)
	d = append(d, typ...)
	d = append(d, `","`...)
	d = append(d, field...)
	d = append(d, `":`...)
	d = appendString(d, text)
	e.event("content_block_delta", append(d, '}'))
}

// naturalFragments splits a block as the API would: text between words, the input of a tool
// anywhere, with an empty fragment first. Long ones have longer fragments.
func naturalFragments(b answerBlock) []string {
	switch b.typ {
	case "raw":
		return nil
	case "tool_use":
		return append([]string{""}, split(b.text, max(12, len(b.text)/200), false)...)
	}
	return split(b.text, max(24, len(b.text)/200), true)
}

// split splits s into parts of about size bytes, never inside a character.
func split(s string, size int, words bool) []string {
	var pieces []string
	for len(s) > size {
		cut := size
		if words {
			for i := size; i > size/2; i-- {
				if s[i] == ' ' {
					cut = i
					break
				}
			}
		}
		for cut < len(s) && !utf8.RuneStart(s[cut]) {
			cut++
		}
		pieces, s = append(pieces, s[:cut]), s[cut:]
	}
	if s != "" {
		pieces = append(pieces, s)
	}
	return pieces
}

// whole returns the answer to a request without streaming, after all steps of the script.
func (a *answer) whole(ctx context.Context) ([]byte, *apiError, error) {
	var content []byte
	for _, b := range a.blocks {
		if b.part.kind == kindStep {
			if failed, err := takeStep(ctx, b.part.step); failed != nil || err != nil {
				return nil, failed, err
			}
			continue
		}
		for _, in := range b.part.inside {
			if failed, err := takeStep(ctx, in.step); failed != nil || err != nil {
				return nil, failed, err
			}
		}
		if len(content) > 0 {
			content = append(content, ',')
		}
		content = appendBlock(content, b)
	}
	return a.appendMessage(nil, string(content), string(appendString(nil, a.stop)), a.usage), nil, nil
}

func takeStep(ctx context.Context, s step) (*apiError, error) {
	switch {
	case s.fail != nil:
		return s.fail, nil
	case s.cut:
		return nil, errCut
	case s.wait != nil:
		return nil, s.wait(ctx)
	}
	return nil, nil
}

// appendBlock appends a complete content block.
func appendBlock(b []byte, block answerBlock) []byte {
	switch block.typ {
	case "text":
		b = appendString(append(b, `{"type":"text","text":`...), block.text)
	case "thinking":
		b = appendString(append(b, `{"type":"thinking","thinking":`...), block.text)
		b = appendString(append(b, `,"signature":`...), block.signature)
	case "tool_use":
		input := block.text
		if !isObject(input) {
			input = "{}" // see RawToolUse
		}
		return appendToolUse(b, block, input)
	case "raw":
		return append(b, block.raw...)
	}
	return append(b, '}')
}

func isObject(text string) bool {
	var v map[string]json.RawMessage
	return json.Unmarshal([]byte(text), &v) == nil && v != nil
}
