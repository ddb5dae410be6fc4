package claudecode

import (
	"encoding/json"
	"strconv"

	"github.com/tenon-sdk/tenon/internal/jsonscan"
)

// A streamEvent is what is read of an event of the model's stream. What a member of another type
// would say is left empty: the program gets the event as it came, if it wants it.
type streamEvent struct {
	parent string // the call whose subagent speaks
	kind   string
	index  int
	call   string // the ID of a call that begins
	input  string // a piece of a call's arguments
}

// readStreamEvent reads a line of the model's stream. There is one for every few words of the
// model, so nothing is read twice.
func readStreamEvent(line []byte) (e streamEvent) {
	each(line, func(name []byte, value json.RawMessage) {
		switch string(name) {
		case "parent_tool_use_id":
			readText(value, &e.parent)
		case "event":
			each(value, e.member)
		}
	})
	return e
}

func (e *streamEvent) member(name []byte, value json.RawMessage) {
	switch string(name) {
	case "type":
		readText(value, &e.kind)
	case "index":
		if i, err := strconv.Atoi(string(value)); err == nil {
			e.index = i
		}
	case "content_block":
		var kind, id string
		each(value, func(name []byte, value json.RawMessage) {
			switch string(name) {
			case "type":
				readText(value, &kind)
			case "id":
				readText(value, &id)
			}
		})
		if kind == "tool_use" {
			e.call = id
		}
	case "delta":
		each(value, func(name []byte, value json.RawMessage) {
			if string(name) == "partial_json" {
				readText(value, &e.input)
			}
		})
	}
}

// readCall reads of a JSON-RPC message the ID of the call that it is, and its arguments. It reports
// false for any other message.
func readCall(raw json.RawMessage) (id string, arguments json.RawMessage, ok bool) {
	var method string
	each(raw, func(name []byte, value json.RawMessage) {
		switch string(name) {
		case "method":
			readText(value, &method)
		case "params":
			each(value, func(name []byte, value json.RawMessage) {
				switch string(name) {
				case "arguments":
					arguments = value
				case "_meta":
					each(value, func(name []byte, value json.RawMessage) {
						if string(name) == toolUseIDKey {
							readText(value, &id)
						}
					})
				}
			})
		}
	})
	return id, arguments, method == "tools/call" && id != ""
}

// each calls f with the members of an object; with none of any other value.
func each(object json.RawMessage, f func(name []byte, value json.RawMessage)) {
	_ = jsonscan.Object(object, f) // what is no object has no members
}

// readText reads a string, and leaves v as it is for any other value.
func readText(value json.RawMessage, v *string) {
	if text, ok := jsonscan.Text(value); ok {
		*v = text
	}
}
