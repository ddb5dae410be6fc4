package claudecode

import (
	"bytes"
	"encoding/json"
)

// lineType returns the member "type" of a line, without looking at more of it than it has to: most
// lines are pieces of the model's stream, which are not read any further. The member may stand
// anywhere. It reports false for what is no object with such a member. What follows the member is
// not checked; whoever reads the line does that.
func lineType(line []byte) (string, bool) {
	line = bytes.TrimLeft(line, " \t\r")
	if len(line) == 0 || line[0] != '{' {
		return "", false
	}
	depth := 1
	for i := 1; i < len(line); i++ {
		switch line[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return "", false
			}
		case '"':
			end := stringEnd(line, i)
			if end < 0 {
				return "", false
			}
			if depth == 1 && string(line[i:end]) == `"type"` {
				if value, ok := memberValue(line[end:]); ok {
					return value, true
				}
			}
			i = end - 1
		}
	}
	return "", false
}

// stringEnd returns the place after the string that begins at i; -1 if it does not end.
func stringEnd(line []byte, i int) int {
	for j := i + 1; j < len(line); j++ {
		switch line[j] {
		case '\\':
			j++
		case '"':
			return j + 1
		}
	}
	return -1
}

// memberValue reads a colon and a string. It reports false for any other value, and for a string
// in a key's place that is none.
func memberValue(rest []byte) (string, bool) {
	rest = bytes.TrimLeft(rest, " \t\r")
	if len(rest) == 0 || rest[0] != ':' {
		return "", false
	}
	rest = bytes.TrimLeft(rest[1:], " \t\r")
	if len(rest) == 0 || rest[0] != '"' {
		return "", false
	}
	end := stringEnd(rest, 0)
	if end < 0 {
		return "", false
	}
	if name := rest[1 : end-1]; len(name) > 0 && plain(name) {
		return string(name), true
	}
	var value string
	if err := json.Unmarshal(rest[:end], &value); err != nil || value == "" {
		return "", false
	}
	return value, true
}

// plain reports whether a string's text means itself: no escapes, and nothing that JSON forbids.
func plain(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c >= 0x7f || c == '\\' {
			return false
		}
	}
	return true
}
