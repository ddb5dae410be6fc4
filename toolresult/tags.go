package toolresult

import "regexp"

// hostTags matches the tags around the texts of hosts and engines.
var hostTags = regexp.MustCompile(`(?i)<([\s\p{Z}\p{Cf}]*/?[\s\p{Z}\p{Cf}]*(?:persisted-output|system-reminder|tool_use_error|mcp_instructions|command-(?:name|args|message))\b)`)

// EscapeHostTags escapes in a server's text the tags that hosts put around their own (persisted-output,
// system-reminder, tool_use_error, mcp_instructions, command-name, command-args, command-message):
// they begin with "&lt;" in place of "<". [Convert] does so with all texts of a result. Use it for other
// texts of a server that a model reads.
func EscapeHostTags(s string) string { return hostTags.ReplaceAllString(s, "&lt;$1") }
