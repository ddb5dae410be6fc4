package toolresult

import "regexp"

// hostTags begins and ends what hosts and engines tell a model in their own name.
var hostTags = regexp.MustCompile(`(?i)<([\s\p{Z}\p{Cf}]*/?[\s\p{Z}\p{Cf}]*(?:persisted-output|system-reminder|tool_use_error|mcp_instructions|command-(?:name|args|message))\b)`)

// EscapeHostTags returns a text of a server in which nothing looks like what the
// host says: the tags that a host's own words stand in (persisted-output,
// system-reminder, tool_use_error, mcp_instructions, command-name, command-args,
// command-message) begin with "&lt;" in place of "<". All else is as it was. [Convert] does it to all that a result
// says. Use it for other texts of a server that a model reads.
func EscapeHostTags(s string) string { return hostTags.ReplaceAllString(s, "&lt;$1") }
