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
	// MaxDepth is the number of levels that a message may nest, as in the official library.
	MaxDepth = 1000
)

var errDepth = fmt.Errorf("JSON nests deeper than %d levels", MaxDepth)

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
			if jsonscan.IsNull(m.fields[i].value) {
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
	d := jsonscan.NewDecoder(raw)
	if batch = d.Kind() == '['; batch {
		err = d.Array(func() error {
			if len(msgs) == MaxBatch {
				return ErrBatch
			}
			m, err := decode(d)
			msgs = append(msgs, m)
			return err
		})
	} else {
		msgs = make([]*Message, 1)
		msgs[0], err = decode(d)
	}
	if err == nil {
		err = d.End()
	}
	switch {
	case err != nil:
		return nil, batch, err
	case jsonscan.Deeper(raw, MaxDepth):
		return nil, batch, errDepth
	}
	return msgs, batch, nil
}

// decode reads one message.
func decode(d *jsonscan.Decoder) (*Message, error) {
	m := new(Message)
	if d.Kind() != '{' {
		m.Fault = InvalidRequest("a message must be a JSON object")
		_, err := d.Value()
		return m, err
	}
	m.fields = m.room[:0]
	err := d.Object(func(key []byte) error {
		value, err := d.Value()
		if err == nil {
			err = m.set(key, value)
		}
		return err
	})
	if err == nil {
		m.check()
	}
	return m, err
}

func (m *Message) set(key []byte, value json.RawMessage) error {
	switch string(key) {
	case "id":
		m.ID = value
	case "method":
		m.hasMethod = true
		m.Method, _ = jsonscan.Text(value) // check reports a value that is not a string
	case "params":
		m.fields, m.Params, m.tooManyParams = m.fields[:0], nil, false
		if jsonscan.IsNull(value) {
			return nil
		}
		m.Params = value
		if value[0] != '{' {
			return nil // check reports it
		}
		return jsonscan.Object(value, func(key []byte, value json.RawMessage) {
			if m.tooManyParams = len(m.fields) == MaxParams; !m.tooManyParams {
				m.fields = append(m.fields, member{key, value})
			}
		})
	case "result":
		m.Result = value
	case "error":
		m.Error = value
	}
	return nil
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
	return raw[0] == '"' || raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' || jsonscan.IsNull(raw)
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
	d := jsonscan.NewDecoder(head)
	var id json.RawMessage
	_ = d.Object(func(key []byte) error { // fails at the end of head
		value, err := d.Value()
		if err == nil && string(key) == "id" && d.Offset() < len(head) && isID(value) {
			id = value
		}
		return err
	})
	return id, id != nil && checkText(id) == nil
}

// checkText reports text that is not UTF-8.
func checkText(raw []byte) error {
	if !utf8.Valid(raw) {
		return errors.New("invalid JSON: not UTF-8")
	}
	return nil
}
