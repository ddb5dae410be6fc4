package mcphost

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	"github.com/tenon-sdk/tenon/mcphost/internal/transport"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// maxSafeInteger is the largest integer that every JSON reader keeps exact.
const maxSafeInteger = 1<<53 - 1

// paramHeaders are the headers into which the arguments of a call are mirrored,
// as the tool's schema asks for with x-mcp-header. An argument that is absent,
// null, or no string, boolean or safe integer has none.
func paramHeaders(params []mcpserver.HeaderParam, args json.RawMessage) map[string]string {
	if len(params) == 0 {
		return nil
	}
	headers := map[string]string{}
	for _, p := range params {
		if v, ok := primitive(argument(args, p.Path)); ok {
			headers["Mcp-Param-"+p.Name] = transport.HeaderValue(v)
		}
	}
	return headers
}

// argument finds a value by its path; nil if it is not there.
func argument(args json.RawMessage, path []string) json.RawMessage {
	for _, name := range path {
		var object map[string]json.RawMessage
		if json.Unmarshal(args, &object) != nil {
			return nil
		}
		args = object[name]
	}
	return args
}

func primitive(raw json.RawMessage) (string, bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "", false
	}
	switch raw[0] {
	case '"':
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err == nil
	case 't', 'f':
		return string(raw), true
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		f, err := strconv.ParseFloat(string(raw), 64)
		if err != nil || f != math.Trunc(f) || math.Abs(f) > maxSafeInteger {
			return "", false
		}
		return strconv.FormatInt(int64(f), 10), true
	}
	return "", false
}
