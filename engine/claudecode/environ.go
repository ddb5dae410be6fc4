package claudecode

import (
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/tenon-sdk/tenon/agent"
)

// nesting are variables that tell a CLI that it runs inside another CLI.
var nesting = []string{"CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_SSE_PORT", "NODE_OPTIONS", "DEBUG"}

// environ returns the environment of this process, overridden by over and without the variables of a
// CLI that may have started this program.
func environ(over map[string]string) []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		_, replaced := over[name]
		return replaced || slices.Contains(nesting, name)
	})
	for _, name := range slices.Sorted(maps.Keys(over)) {
		env = append(env, name+"="+over[name])
	}
	return env
}

// maxToolUse is the CLI's variable for the number of concurrent calls. The CLI's default is 10.
const maxToolUse = "CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY"

// childEnv returns the CLI's environment. Options override variables.
func childEnv(e *Options, o *agent.Options) []string {
	over := map[string]string{}
	maps.Copy(over, o.Env)
	if o.ToolSearch != "" {
		over["ENABLE_TOOL_SEARCH"] = string(o.ToolSearch)
	}
	if o.MaxToolConcurrency != agent.DefaultMaxToolConcurrency {
		over[maxToolUse] = strconv.Itoa(o.MaxToolConcurrency)
	}
	if o.MaxTokens > 0 {
		over["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] = strconv.Itoa(o.MaxTokens)
	}
	env := environ(over)
	setDefault := func(name, value string) {
		if variable(env, name) == "" && !slices.Contains(env, name+"=") {
			env = append(env, name+"="+value)
		}
	}
	setDefault("CLAUDE_CODE_ENTRYPOINT", "sdk-go")
	// The CLI sends the state "idle", which is the end of all work, only on request.
	setDefault("CLAUDE_CODE_SDK_READS_SESSION_STATE", "1")
	// Servers do not inherit the CLI's environment: serverEnv gives them all but the model's credentials.
	setDefault("CLAUDE_CODE_MCP_ALLOWLIST_ENV", "1")
	setDefault(maxToolUse, strconv.Itoa(agent.DefaultMaxToolConcurrency))
	if e.FileCheckpoints {
		setDefault("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "true")
	}
	if e.QuestionPreview != "" {
		setDefault("CLAUDE_CODE_QUESTION_PREVIEW_FORMAT", e.QuestionPreview)
	}
	return env
}

// variable returns the value of a variable, of which the last entry applies, or "".
func variable(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if n, value, _ := strings.Cut(kv, "="); sameVariable(n, name) {
			return value
		}
	}
	return ""
}

func sameVariable(a, b string) bool {
	return a == b || runtime.GOOS == "windows" && strings.EqualFold(a, b)
}
