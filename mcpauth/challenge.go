package mcpauth

import (
	"cmp"
	"iter"
	"net/http"
	"slices"
	"strings"
)

// A challenge is the Bearer challenge of a 401 or 403.
type challenge struct {
	metadataURL string
	scopes      []string
	err         string // such as "insufficient_scope"
	unasked     int    // the HTTP status of a response other than 401 and 403, or 0
}

// maxChallengeBytes limits what is read of all WWW-Authenticate headers. Usual ones have a few hundred
// bytes.
const maxChallengeBytes = 64 << 10

// readChallenge reads what it can of the headers and passes over the rest. Of several values of a
// parameter the first counts. Values with one of the secrets are left out, so that a token that a
// server repeats gets into no message or request.
func readChallenge(h http.Header, secrets ...string) challenge {
	var c challenge
	left := maxChallengeBytes
	for _, line := range h.Values("WWW-Authenticate") {
		line = line[:min(len(line), left)]
		left -= len(line)
		bearer := false
		for item := range listItems(line) {
			scheme, param := splitItem(item)
			if scheme != "" {
				bearer = strings.EqualFold(scheme, "Bearer")
			}
			name, value, ok := splitParam(param)
			if !bearer || !ok || holdsAny(value, secrets) {
				continue
			}
			switch strings.ToLower(name) {
			case "resource_metadata":
				c.metadataURL = cmp.Or(c.metadataURL, value)
			case "error":
				c.err = cmp.Or(c.err, value)
			case "scope":
				if c.scopes == nil {
					c.scopes = strings.Fields(value)
				}
			}
		}
	}
	return c
}

// listItems yields the items of a list (RFC 9110 section 5.6.1), split at commas outside of quoted
// strings.
func listItems(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start, quoted := 0, false
		last := byte(0) // the last byte that is no space
		for i := 0; i < len(s); i++ {
			switch {
			case quoted && s[i] == '\\':
				i++
			case quoted:
				quoted = s[i] != '"'
			case s[i] == '"':
				quoted = last == '=' // another quote is a mistake of the server
			case s[i] == ',':
				if item := strings.Trim(s[start:i], " \t"); item != "" && !yield(item) {
					return
				}
				start = i + 1
			}
			if i < len(s) && s[i] != ' ' && s[i] != '\t' {
				last = s[i]
			}
		}
		if item := strings.Trim(s[start:], " \t"); item != "" {
			yield(item)
		}
	}
}

// splitItem splits an item into the scheme of a challenge and a parameter, each of which may be
// missing (RFC 9110 section 11.6.1).
func splitItem(item string) (scheme, param string) {
	word := item[:tokenLen(item)]
	after := item[len(word):]
	rest := strings.TrimLeft(after, " \t")
	if word == "" || after != "" && len(rest) == len(after) || strings.HasPrefix(rest, "=") {
		return "", item
	}
	return word, rest
}

// splitParam splits name=value, where the value is a token or a quoted string or, as some servers
// send, an unquoted URL.
func splitParam(param string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(param, "=")
	name, value = strings.TrimRight(name, " \t"), strings.TrimLeft(value, " \t")
	if !ok || name == "" || tokenLen(name) != len(name) {
		return "", "", false
	}
	quoted, isQuoted := strings.CutPrefix(value, `"`)
	if !isQuoted {
		return name, value, true
	}
	var b strings.Builder
	for i := 0; i < len(quoted); i++ {
		switch {
		case quoted[i] == '"':
			return name, b.String(), true
		case quoted[i] == '\\' && i+1 < len(quoted):
			i++
		}
		b.WriteByte(quoted[i])
	}
	return "", "", false // the quoted string does not end
}

// tokenLen returns the length of the token at the beginning of s (RFC 9110 section 5.6.2).
func tokenLen(s string) int {
	n := strings.IndexFunc(s, func(r rune) bool {
		alnum := '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		return !alnum && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
	if n < 0 {
		return len(s)
	}
	return n
}

func holdsAny(s string, secrets []string) bool {
	return slices.ContainsFunc(secrets, func(secret string) bool { return secret != "" && strings.Contains(s, secret) })
}
