package rpcmsg

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// ResultReply returns the reply to a successful request. It repeats the bytes of id; a
// nil id is written as null.
func ResultReply(id, result json.RawMessage) json.RawMessage {
	return reply(id, "result", result)
}

// ErrorReply returns the reply to a failed request.
func ErrorReply(id json.RawMessage, e *jsonrpc.Error) json.RawMessage {
	body, err := json.Marshal(e)
	if err != nil { // e.Data is not JSON
		body, _ = json.Marshal(&jsonrpc.Error{Code: e.Code, Message: e.Message}) // a number and a text always encode
	}
	return reply(id, "error", body)
}

func reply(id json.RawMessage, key string, body json.RawMessage) json.RawMessage {
	if id == nil {
		id = Null
	}
	const frame = `{"jsonrpc":"2.0","id":,"result":}`
	b := make([]byte, 0, len(frame)+len(id)+len(body)+1) // and one for a newline
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	b = append(b, `,"`...)
	b = append(b, key...)
	b = append(b, `":`...)
	b = append(b, body...)
	return append(b, '}')
}
