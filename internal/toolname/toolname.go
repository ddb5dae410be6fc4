// Package toolname returns the names of MCP tools for a model: mcp__SERVER__TOOL.
//
// A full name is never split into its parts, because server and tool names may
// contain "__".
package toolname

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

const (
	// Prefix is the beginning of every full name.
	Prefix = "mcp__"
	// Separator separates the name of the server from that of the tool.
	Separator = "__"
	// DefaultLimit is the length in bytes that model providers accept everywhere:
	// 128 in definitions, 64 in tool references.
	DefaultLimit = 64
	// MaxLimit is the length of the longest name in a tool definition.
	MaxLimit = 128

	hashLen = 8 // hexadecimal digits of the hash that ends a shortened name
)

// Full returns the full name of a tool, mcp__SERVER__TOOL, with both parts
// normalized. See [Fit] for a bounded name.
func Full(server, tool string) string {
	return Prefix + Normalize(server) + Separator + Normalize(tool)
}

// Server returns mcp__SERVER, by which permission rules name a whole server.
func Server(server string) string { return Prefix + Normalize(server) }

// Normalize replaces each character outside A-Z a-z 0-9 _ - by an underscore. A
// character is a UTF-16 code unit, as in the Claude Code CLI: one beyond U+FFFF (most
// emoji) becomes two underscores. Nothing is collapsed, trimmed or lowered.
func Normalize(s string) string {
	if isNormal(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf && allowed(byte(r)):
			b.WriteByte(byte(r))
		case r > 0xFFFF:
			b.WriteString("__")
		default:
			b.WriteByte('_')
		}
	}
	return b.String()
}

// Fit returns the full name of a tool in at most limit bytes. A longer name is cut and
// ends in [Hash]. A limit of zero means [DefaultLimit]; the smallest limit is 16.
func Fit(server, tool string, limit int) string {
	if limit == 0 {
		limit = DefaultLimit
	}
	limit = max(limit, 16)
	full := Full(server, tool)
	if len(full) <= limit {
		return full
	}
	return full[:limit-hashLen-1] + Hash(server, tool)
}

// Overlap reports whether tools of two servers can have the same full name:
// mcp__a__b__c may be the tool c of the server a__b, or b__c of a.
func Overlap(a, b string) bool {
	a, b = Server(a)+Separator, Server(b)+Separator
	return strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
}

// FitHashed is Fit for a name that must differ from another's: it always ends in
// [Hash].
func FitHashed(server, tool string, limit int) string {
	if limit == 0 {
		limit = DefaultLimit
	}
	full := Full(server, tool)
	return full[:min(len(full), max(limit, 16)-hashLen-1)] + Hash(server, tool)
}

// Hash returns an underscore and eight hexadecimal digits of a hash of the raw server
// and tool names.
func Hash(server, tool string) string {
	sum := sha256.Sum256([]byte(server + "\x00" + tool))
	return "_" + hex.EncodeToString(sum[:hashLen/2])
}

func isNormal(s string) bool {
	for i := range len(s) {
		if !allowed(s[i]) {
			return false
		}
	}
	return true
}

func allowed(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}
