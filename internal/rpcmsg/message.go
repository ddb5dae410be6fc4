// Package rpcmsg parses and writes JSON-RPC messages. It parses in one pass, keeps the
// bytes of ids and params, and reports errors as JSON-RPC errors. Unlike the official
// library it accepts ids of any form and messages without jsonrpc.
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

// The bounds of a message keep its cost in proportion to its bytes.
const (
	// MaxID is the length of the longest id in bytes.
	MaxID = 4096
	// MaxBatch is the largest number of messages in a batch.
	MaxBatch = 1000
	// MaxParams is the largest number of members of params, including duplicates.
	MaxParams = 1000
)

// ErrBatch reports a batch of more than MaxBatch messages.
var ErrBatch error = InvalidRequest(fmt.Sprintf("a batch of more than %d messages", MaxBatch))

// A member is a member of params.
type member struct {
	key   []byte
	value json.RawMessage
}

// Null is the id of a reply to a message without a usable id.
var Null = json.RawMessage("null")

// A Message is a JSON-RPC message. Its slices point into the parsed text.
type Message struct {
	ID     json.RawMessage // nil when absent; "null" is an id
	Method string
	Params json.RawMessage // nil when absent or null
	Result json.RawMessage
	Error  json.RawMessage

	// Fault is the error of a malformed message, nil if it is well-formed.
	Fault *jsonrpc.Error

	hasMethod     bool
	tooManyParams bool      // params have more members than fields
	fields        []member  // the members of Params
	room          [6]member // backs fields of most messages
}

// Reply reports whether m is the reply to a request.
func (m *Message) Reply() bool { return !m.hasMethod && (m.Result != nil || m.Error != nil) }

// Notification reports whether m has a method and no id. It has no reply, even if it
// is malformed.
func (m *Message) Notification() bool { return m.hasMethod && m.ID == nil && m.Method != "" }

// Param returns the value of a member of params, nil if it is absent or null. The last
// of several members with one name applies. Names are case-sensitive.
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

// TextParam returns the string under key in params, "" if it is absent.
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

// DecodeParam unmarshals the member of params under key, if present, into v.
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

// InvalidParams returns the error -32602.
func InvalidParams(what string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "invalid params: " + what}
}

// InvalidRequest returns the error -32600.
func InvalidRequest(what string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "invalid request: " + what}
}

// ParseError returns the JSON-RPC error for an error of [Parse]: -32700, or -32600 for
// a batch that is too large.
func ParseError(err error) *jsonrpc.Error {
	if coded := (*jsonrpc.Error)(nil); errors.As(err, &coded) {
		return coded
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: err.Error()}
}

// MethodNotFound returns the error -32601, with the beginning of a long method.
func MethodNotFound(method string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method not found: %.200q", method)}
}

// Parse parses one message or, with batch set, the messages of a batch. It fails if raw
// is not JSON, nests too deeply, or is a batch of more than MaxBatch messages.
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

// message reads one message inside of nested arrays.
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
	m.tooManyParams = false
	err := s.Object(nested, func(key []byte, value json.RawMessage) {
		if len(m.fields) == MaxParams {
			m.tooManyParams = true
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
		m.Method, _ = jsonscan.Text(value) // check reports a value that is not a string
	case "params": // not an object: check reports it
		m.fields, m.Params, m.tooManyParams = m.fields[:0], nil, false
		if !isNull(value) {
			m.Params = value
		}
	case "result":
		m.Result = value
	case "error":
		m.Error = value
	}
}

// check sets the Fault of a message that is a JSON object.
func (m *Message) check() {
	switch {
	case m.ID != nil && !isID(m.ID):
		m.ID = Null // as JSON-RPC requires
		m.Fault = InvalidRequest("id must be a string, a number or null")
	case len(m.ID) > MaxID:
		m.Fault = InvalidRequest(fmt.Sprintf("id has %d bytes, more than the limit of %d", len(m.ID), MaxID))
		m.ID = Null // too long for a reply
	case m.Reply():
	case !m.hasMethod:
		m.Fault = InvalidRequest("method is missing")
	case m.Method == "":
		m.Fault = InvalidRequest("method must be a string that is not empty")
	case m.Params != nil && m.Params[0] != '{':
		m.Fault = InvalidParams("params must be an object")
	case m.tooManyParams:
		m.Fault = InvalidParams(fmt.Sprintf("params have more than %d members", MaxParams))
	}
}

func isID(raw json.RawMessage) bool {
	return raw[0] == '"' || raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' || isNull(raw)
}

// Busy returns the error for a request beyond the limit of those served at a time.
func Busy(limit int) *jsonrpc.Error {
	return &jsonrpc.Error{Code: CodeBusy, Message: fmt.Sprintf("too many requests at once: the limit is %d; send this one again when others have been answered", limit)}
}

// CodeBusy is the code of [Busy], which other JSON-RPC servers use for exceeded limits.
const CodeBusy = -32005

// IDKey returns a map key for an id. Ids with the same text have the same key, however
// they are escaped; strings and numbers never do.
func IDKey(raw json.RawMessage) string {
	if s, ok := jsonscan.Text(raw); ok {
		return `"` + s
	}
	return string(raw)
}

// OversizedID returns the id of a message of which only the beginning and the end are
// known. It reports false unless it is certain: the id is before params, or it is the
// last member of the message.
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

// idAtEnd matches an id, perhaps jsonrpc, and the brace that closes the message. A
// further brace would mean that the id belongs to a value inside.
var idAtEnd = regexp.MustCompile(`[,{]\s*"id"\s*:\s*("[^"\\]*"|-?[0-9][0-9.eE+-]*)\s*(?:,\s*"jsonrpc"\s*:\s*"[^"\\]*"\s*)?}\s*$`)

func headID(head []byte) (json.RawMessage, bool) {
	s := scanner{jsonscan.Scanner{Data: head}}
	if s.Peek() != '{' {
		return nil, false
	}
	var id json.RawMessage
	_ = s.Container('}', func() error { // fails at the end of head
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

// checkText reports text that is not UTF-8.
func checkText(raw []byte) error {
	if !utf8.Valid(raw) {
		return errors.New("invalid JSON: not UTF-8")
	}
	return nil
}
