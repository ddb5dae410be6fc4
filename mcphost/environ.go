package mcphost

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/toolresult"
)

// The environment variables that a host reads, beside ANTHROPIC_BASE_URL.
const (
	envConnectTimeout = "MCP_TIMEOUT"
	envCallTimeout    = "MCP_TOOL_TIMEOUT"
	envAgentTimeout   = "CLAUDE_AGENT_TOOL_TIMEOUT" // read by servers in this process
	envBatchTimeout   = "MCP_CONNECT_TIMEOUT_MS"
	envStartupWait    = "CLAUDE_CODE_MCP_STARTUP_WAIT_MS"
	envNonblocking    = "MCP_CONNECTION_NONBLOCKING"
	envOutputTokens   = "MAX_MCP_OUTPUT_TOKENS"
	envToolSearch     = "ENABLE_TOOL_SEARCH"
	envDiscoveryCache = "MCP_DISCOVERY_CACHE"
)

// longestMillis is the largest number of milliseconds that is taken: a year.
const longestMillis = int64(365 * 24 * time.Hour / time.Millisecond)

// An EnvProblem is an environment variable with a value that cannot be used: the default is used in its place.
type EnvProblem struct {
	// Name is the variable's, Value what it is set to, in 40 characters at most.
	Name, Value string
	// Want says what it takes, with an example.
	Want string
}

// String is the problem in one line, with the remedy.
func (p EnvProblem) String() string {
	return fmt.Sprintf("environment variable %s is %q, want %s; its default is used", p.Name, p.Value, p.Want)
}

// An envRule is what a variable takes.
type envRule struct {
	name, want string
	ok         func(value string) bool
}

var envRules = []envRule{
	{envConnectTimeout, "a whole number of milliseconds above 0, such as 30000", positiveMillis},
	{envCallTimeout, "a whole number of milliseconds above 0, such as 600000", positiveMillis},
	{envAgentTimeout, "a number of seconds, such as 60", isSeconds},
	{envBatchTimeout, "a whole number of milliseconds above 0, such as 5000", positiveMillis},
	{envStartupWait, "a whole number of milliseconds, such as 2000", func(v string) bool { return parseMillis(v) != nil }},
	{envNonblocking, "0 (the start waits for all servers) or 1", isSwitch},
	{envOutputTokens, "a whole number of tokens above 0, such as 25000", func(v string) bool { return toolresult.ParseTokens(v) > 0 }},
	{envToolSearch, "true, false, auto or auto:PERCENT", isSearchMode},
	{envDiscoveryCache, "1 (on) or 0 (off)", func(v string) bool { return v == "1" || v == "0" || strings.EqualFold(v, "false") }},
}

// EnvProblems says which of the environment variables that this package and servers in this process
// read have values that cannot be used, in a fixed order. An empty one is not set. A nil lookup means the
// process's environment. A host also logs them, once.
func EnvProblems(lookup func(name string) (string, bool)) []EnvProblem {
	if lookup == nil {
		lookup = os.LookupEnv
	}
	var problems []EnvProblem
	for _, r := range envRules {
		if v, _ := lookup(r.name); v != "" && !r.ok(v) { // no more than empty when it is not set
			problems = append(problems, EnvProblem{Name: r.name, Value: clip.Text(v, 40), Want: r.want})
		}
	}
	return problems
}

// parseMillis reads a number of milliseconds, zero included; nil if it is none.
func parseMillis(v string) *time.Duration {
	n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
	if err != nil || n < 0 || n > longestMillis {
		return nil
	}
	d := time.Duration(n) * time.Millisecond
	return &d
}

func positiveMillis(v string) bool {
	d := parseMillis(v)
	return d != nil && *d > 0
}

// isSeconds says what mcpserver takes.
func isSeconds(v string) bool {
	_, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
	return err == nil && !strings.ContainsAny(strings.ToLower(v), "xp_in")
}

func isSwitch(v string) bool { return isOff(v) || v == "1" || strings.EqualFold(v, "true") }

func isSearchMode(v string) bool {
	v = strings.ToLower(strings.TrimSpace(v))
	percent, auto := strings.CutPrefix(v, "auto:")
	if auto {
		n, err := strconv.Atoi(percent)
		return err == nil && n >= 0
	}
	return v == "auto" || isSwitch(v)
}

func isOff(v string) bool { return v == "0" || strings.EqualFold(v, "false") }
