package mcphost

import (
	"bytes"
	"encoding/json"
)

// The functions here take JSON apart without copying it. They rely on its being
// valid, which a wire has checked of all that it hands out: results may be tens
// of megabytes, and each pass of encoding/json over them copies and checks all.

// eachMember calls f with the members of a JSON object in order. It reports
// false if raw is no object.
func eachMember(raw json.RawMessage, f func(key string, value json.RawMessage)) bool {
	i := skipSpace(raw, 0)
	if i >= len(raw) || raw[i] != '{' {
		return false
	}
	for i++; ; i++ {
		i = skipSpace(raw, i)
		if i >= len(raw) || raw[i] == '}' {
			return true
		}
		end := skipValue(raw, i)
		key := textOf(raw[i:end])
		i = skipSpace(raw, skipSpace(raw, end)+1) // over the colon
		end = skipValue(raw, i)
		f(key, raw[min(i, end):end:end])
		i = skipSpace(raw, end)
		if i >= len(raw) || raw[i] != ',' {
			return true
		}
	}
}

// eachElement calls f with the elements of a JSON array in order. It reports
// false if raw is no array.
func eachElement(raw json.RawMessage, f func(value json.RawMessage)) bool {
	i := skipSpace(raw, 0)
	if i >= len(raw) || raw[i] != '[' {
		return false
	}
	for i++; ; i++ {
		i = skipSpace(raw, i)
		if i >= len(raw) || raw[i] == ']' {
			return true
		}
		end := skipValue(raw, i)
		f(raw[i:end:end])
		i = skipSpace(raw, end)
		if i >= len(raw) || raw[i] != ',' {
			return true
		}
	}
}

// listed hands at most maxListed elements of an array in a list's result to f, of which before were listed already. It returns
// the count so far, with those that there was no room for.
func listed(raw json.RawMessage, before int, f func(i int, element json.RawMessage)) (n int, array bool) {
	n = before
	array = eachElement(raw, func(e json.RawMessage) {
		if n++; n <= maxListed {
			f(n-before, e)
		}
	})
	return n, array
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

// skipValue returns where the value that begins at i ends.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return len(b)
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		depth := 0
		for i < len(b) {
			switch b[i] {
			case '"':
				i = skipString(b, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
			i++
			if depth == 0 {
				return i
			}
		}
		return len(b)
	}
	for i < len(b) && !bytes.ContainsRune([]byte(",]} \t\r\n"), rune(b[i])) {
		i++
	}
	return i
}

// skipString returns where the string that begins at i ends.
func skipString(b []byte, i int) int {
	for i++; i < len(b); {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			break
		}
		i += n
		slashes := 0
		for b[i-1-slashes] == '\\' {
			slashes++
		}
		i++
		if slashes%2 == 0 {
			return i
		}
	}
	return len(b)
}

// textOf is the text of a JSON string, or the JSON of anything else.
func textOf(raw json.RawMessage) string {
	if len(raw) < 2 || raw[0] != '"' {
		return string(raw)
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return string(raw)
	}
	return s
}
