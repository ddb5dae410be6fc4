// Package rpcmsg takes JSON-RPC messages apart in one pass and without loss: ids
// stay byte for byte, params stay raw, and what is wrong with a message is said in
// the terms of JSON-RPC. It is what the bridge and the stdio face read with; both
// accept more than the official library does (ids of any form, a missing jsonrpc).
package rpcmsg

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/tenon-sdk/tenon/internal/jsonscan"
)

// The bounds on a message. They are far beyond what any client sends, and keep
// what one message costs in proportion to its bytes.
const (
	// MaxID is the longest id in bytes, as it is written. It is kept and sent back.
	MaxID = 4096
	// MaxBatch is the most messages in one batch.
	MaxBatch = 1000
	// MaxParams is the most members that params may have, those of one name counted each.
	MaxParams = 1000
)

// ErrBatch reports a batch of more than MaxBatch messages.
var ErrBatch error = InvalidRequest(fmt.Sprintf("a batch of more than %d messages", MaxBatch))

// A member is one member of params, its value still raw.
type member struct {
	key   []byte
	value json.RawMessage
}

// Null is the id of a reply to a message whose id could not be read.
var Null = json.RawMessage("null")

// A Message is one JSON-RPC message. Its slices point into what was parsed.
type Message struct {
	ID     json.RawMessage // nil when absent; "null" is an id
	Method string
	Params json.RawMessage // nil when absent or null
	Result json.RawMessage
	Error  json.RawMessage

	// Fault says what is wrong with a message that is JSON, nil if nothing is.
	// Reply is the answer to it; a message without an id may still be owed none.
	Fault *jsonrpc.Error

	hasMethod bool
	crowded   bool      // params have more members than fields
	fields    []member  // the members of Params
	room      [6]member // where fields begins, so that most messages allocate nothing for it
}

// Reply reports whether m answers a request, well or badly. Nothing is owed to it.
func (m *Message) Reply() bool { return !m.hasMethod && (m.Result != nil || m.Error != nil) }

// Notification reports whether m has a method and no id: it gets no reply,
// whatever is wrong with it.
func (m *Message) Notification() bool { return m.hasMethod && m.ID == nil && m.Method != "" }

// Param is the raw value of a member of params, nil when absent or null. Of two
// with one name the last counts, as in encoding/json; case counts as well.
func (m *Message) Param(key string) json.RawMessage {
	for i := len(m.fields) - 1; i >= 0; i-- {
		if string(m.fields[i].key) == key {
			if isNull(m.fields[i].value) {
				return nil
			}
			return m.fields[i].value
		}
	}
	return nil
}

// TextParam is the string under key in params, "" when absent.
func (m *Message) TextParam(key string) (string, *jsonrpc.Error) {
	raw := m.Param(key)
	if raw == nil {
		return "", nil
	}
	s, ok := jsonscan.Text(raw)
	if !ok {
		return "", InvalidParams("params." + key + " must be a string")
	}
	return s, nil
}

// DecodeParam unmarshals the member of params under key into v, if it is there.
func (m *Message) DecodeParam(key string, v any) *jsonrpc.Error {
	raw := m.Param(key)
	if raw == nil {
		return nil
	}
	err := json.Unmarshal(raw, v)
	if mismatch := new(json.UnmarshalTypeError); errors.As(err, &mismatch) {
		if mismatch.Field != "" {
			key += "." + mismatch.Field
		}
		return InvalidParams("params." + key + " must not be of the type " + mismatch.Value)
	}
	if err != nil {
		return InvalidParams("params." + key + ": " + err.Error())
	}
	return nil
}

// InvalidParams is the error -32602 with what is wrong with the params.
func InvalidParams(what string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "invalid params: " + what}
}

// InvalidRequest is the error -32600 with what is wrong with the message.
func InvalidRequest(what string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "invalid request: " + what}
}

// ParseError is the error for an error of [Parse]: -32700, or -32600 for a batch
// that is too large.
func ParseError(err error) *jsonrpc.Error {
	if coded := (*jsonrpc.Error)(nil); errors.As(err, &coded) {
		return coded
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: err.Error()}
}

// MethodNotFound is the error -32601. It repeats the beginning of a long method.
func MethodNotFound(method string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method not found: %.200q", method)}
}

// Parse reads one message or, with batch set, the messages of a batch. An error
// means that raw is no JSON, nests too deeply, or is a batch of more than MaxBatch.
func Parse(raw []byte) (msgs []*Message, batch bool, err error) {
	if err := checkText(raw); err != nil {
		return nil, false, err
	}
	s := scanner{jsonscan.Scanner{Data: raw}}
	if batch = s.Peek() == '['; batch {
		err = s.batch(&msgs)
	} else {
		m := new(Message)
		msgs = []*Message{m}
		err = s.message(0, m)
	}
	if err == nil {
		if s.Space(); s.Pos < len(raw) {
			err = jsonscan.ErrSyntax
		}
	}
	if err != nil {
		return nil, batch, err
	}
	return msgs, batch, nil
}

// A scanner reads messages.
type scanner struct{ jsonscan.Scanner }

func (s *scanner) batch(msgs *[]*Message) error {
	return s.Container(']', func() error {
		if len(*msgs) == MaxBatch {
			return ErrBatch
		}
		m := new(Message)
		*msgs = append(*msgs, m)
		return s.message(1, m)
	})
}

// message reads one message, which nested arrays enclose.
func (s *scanner) message(nested int, m *Message) error {
	if s.Peek() != '{' {
		m.Fault = InvalidRequest("a message must be a JSON object")
		return s.Skip(nested)
	}
	m.fields = m.room[:0]
	err := s.Container('}', func() error {
		key, err := s.Key()
		if err != nil {
			return err
		}
		if string(key) == "params" && s.Peek() == '{' {
			return s.params(nested+1, m)
		}
		value, err := s.Value(nested + 1)
		if err == nil {
			m.set(key, value)
		}
		return err
	})
	if err == nil {
		m.check()
	}
	return err
}

func (s *scanner) params(nested int, m *Message) error {
	start := s.Pos
	m.fields = m.fields[:0]
	m.crowded = false
	err := s.Object(nested, func(key []byte, value json.RawMessage) {
		if len(m.fields) == MaxParams {
			m.crowded = true
			return
		}
		m.fields = append(m.fields, member{key, value})
	})
	m.Params = s.Data[start:s.Pos:s.Pos]
	return err
}

func (m *Message) set(key []byte, value json.RawMessage) {
	switch string(key) {
	case "id":
		m.ID = value
	case "method":
		m.hasMethod = true
		m.Method, _ = jsonscan.Text(value) // check reports what is not a string, or is ""
	case "params": // not an object: check reports it
		m.fields, m.Params, m.crowded = m.fields[:0], nil, false
		if !isNull(value) {
			m.Params = value
		}
	case "result":
		m.Result = value
	case "error":
		m.Error = value
	}
}

// check finds what is wrong with a message that is a JSON object.
func (m *Message) check() {
	switch {
	case m.ID != nil && !isID(m.ID):
		m.ID = Null // what JSON-RPC asks for where the id cannot be used
		m.Fault = InvalidRequest("id must be a string, a number or null")
	case len(m.ID) > MaxID:
		m.Fault = InvalidRequest(fmt.Sprintf("id has %d bytes, more than the limit of %d", len(m.ID), MaxID))
		m.ID = Null // it is too long to be sent back
	case m.Reply():
	case !m.hasMethod:
		m.Fault = InvalidRequest("method is missing")
	case m.Method == "":
		m.Fault = InvalidRequest("method must be a string that is not empty")
	case m.Params != nil && m.Params[0] != '{':
		m.Fault = InvalidParams("params must be an object")
	case m.crowded:
		m.Fault = InvalidParams(fmt.Sprintf("params have more than %d members", MaxParams))
	}
}

func isID(raw json.RawMessage) bool {
	return raw[0] == '"' || raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' || isNull(raw)
}

// Busy is the error for a request beyond the limit of those that may run at a
// time. Its code, in the range that JSON-RPC leaves to servers, is that of other
// JSON-RPC servers for a limit that is exceeded.
func Busy(limit int) *jsonrpc.Error {
	return &jsonrpc.Error{Code: CodeBusy, Message: fmt.Sprintf("too many requests at once: the limit is %d; send this one again when others have been answered", limit)}
}

// CodeBusy is the code of [Busy].
const CodeBusy = -32005

// SameID reports whether two ids are one: the same bytes, or strings with the
// same text however they are escaped.
func SameID(a, b json.RawMessage) bool {
	return IDKey(a) == IDKey(b)
}

// IDKey is a map key for an id. Strings and numbers never share one.
func IDKey(raw json.RawMessage) string {
	if s, ok := jsonscan.Text(raw); ok {
		return `"` + s
	}
	return string(raw)
}

// OversizedID finds the id of a message that was too long to be kept, from its
// beginning and its end. It reports false where it cannot be sure: it takes an id
// at the front only before params, and one at the end only as the last member
// of the message itself.
func OversizedID(head, tail []byte) (json.RawMessage, bool) {
	if id, ok := headID(head); ok {
		return id, true
	}
	match := idAtEnd.FindSubmatch(tail)
	if match == nil || !utf8.Valid(match[1]) {
		return nil, false
	}
	return json.RawMessage(match[1]), true
}

// idAtEnd is an id, a jsonrpc perhaps, and the brace that closes the message: one
// more brace would mean that the id belongs to something inside.
var idAtEnd = regexp.MustCompile(`[,{]\s*"id"\s*:\s*("[^"\\]*"|-?[0-9][0-9.eE+-]*)\s*(?:,\s*"jsonrpc"\s*:\s*"[^"\\]*"\s*)?}\s*$`)

func headID(head []byte) (json.RawMessage, bool) {
	s := scanner{jsonscan.Scanner{Data: head}}
	if s.Peek() != '{' {
		return nil, false
	}
	var id json.RawMessage
	_ = s.Container('}', func() error { // ends with an error where the head does
		key, err := s.Key()
		if err != nil {
			return err
		}
		value, err := s.Value(1)
		if err == nil && string(key) == "id" && s.Pos < len(head) && isID(value) {
			id = value
		}
		return err
	})
	return id, id != nil && checkText(id) == nil
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

// checkText reports text that is not UTF-8, which no JSON is.
func checkText(raw []byte) error {
	if !utf8.Valid(raw) {
		return errors.New("invalid JSON: not UTF-8")
	}
	return nil
}
