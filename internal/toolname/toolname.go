// Package toolname makes the names under which a model sees the tools of MCP
// servers: mcp__SERVER__TOOL.
//
// Names are made here and looked up in tables elsewhere: a full name is never
// split back into its parts, because server and tool names may hold "__"
// themselves.
package toolname

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

const (
	// Prefix begins every full name.
	Prefix = "mcp__"
	// Separator stands between the server's part and the tool's.
	Separator = "__"
	// DefaultLimit is the length, in bytes, that model providers accept
	// everywhere: definitions may have 128, tool references 64.
	DefaultLimit = 64
	// MaxLimit is the longest name that a tool definition may have.
	MaxLimit = 128

	hashLen = 8 // hexadecimal digits of the hash that ends a shortened name
)

// Full returns the full name of a tool, mcp__SERVER__TOOL, with both parts
// normalised. It is as long as its parts make it; see [Fit].
func Full(server, tool string) string {
	return Prefix + Normalize(server) + Separator + Normalize(tool)
}

// Server returns mcp__SERVER, the form in which permission rules name a whole
// server.
func Server(server string) string { return Prefix + Normalize(server) }

// Normalize replaces each character outside A-Z a-z 0-9 _ - by one underscore.
// A character is a UTF-16 code unit, as it is for the Claude Code CLI, so that
// one name means the same tool on every engine: a character beyond U+FFFF (most
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

// Fit returns the full name of a tool in at most limit bytes. A name that is
// longer is cut and ends in an underscore and eight hexadecimal digits of a
// hash of the raw server and tool names, so it is the same after every restart
// and two long names that share their beginning stay apart. A limit of zero
// means [DefaultLimit]; the smallest limit is 16.
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

// Overlap reports whether tools of two servers can have one name: their parts of it are the same, or one begins with
// the other and a separator. mcp__a__b__c may be the tool c of the server a__b, or b__c of a.
func Overlap(a, b string) bool {
	a, b = Server(a)+Separator, Server(b)+Separator
	return strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
}

// FitHashed is Fit for a tool whose name has to be made unlike another's: it ends in
// the hash however short it is.
func FitHashed(server, tool string, limit int) string {
	if limit == 0 {
		limit = DefaultLimit
	}
	full := Full(server, tool)
	return full[:min(len(full), max(limit, 16)-hashLen-1)] + Hash(server, tool)
}

// Hash returns the end of a name that was cut or had to be made unlike another's:
// an underscore and eight hexadecimal digits of a hash of the raw server and tool
// names.
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
