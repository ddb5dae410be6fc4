package transport

import (
	"encoding/base64"
	"strings"
)

const (
	base64Prefix = "=?base64?"
	base64Suffix = "?="
)

// HeaderValue encodes a text for a header: plain ASCII without spaces around it stays as it is, any
// other text becomes marked base64.
func HeaderValue(s string) string {
	plain := strings.TrimSpace(s) == s && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
	if plain && !(strings.HasPrefix(s, base64Prefix) && strings.HasSuffix(s, base64Suffix)) {
		return s
	}
	return base64Prefix + base64.StdEncoding.EncodeToString([]byte(s)) + base64Suffix
}
