package peers

import (
	"os"
	"path/filepath"
	"testing"
)

// fakeKey has the form of an API key and is none.
const fakeKey = "sk-ant-api03-not-a-key"

// ClaudePath returns the path of the Claude Code CLI.
func ClaudePath(t testing.TB) string {
	t.Helper()
	return file(t, "@anthropic-ai/claude-code-linux-x64/claude")
}

// ClaudeCode is the Claude Code CLI in the environment of [ClaudeEnv], with an
// empty working directory of its own.
func ClaudeCode(t testing.TB, baseURL string, args ...string) Command {
	t.Helper()
	return Command{Path: ClaudePath(t), Args: args, Env: ClaudeEnv(t, baseURL), Dir: t.TempDir()}
}

// ClaudeEnv returns the variables that keep a Claude Code CLI to itself: a
// home directory of its own, a key that opens nothing, the model's API at
// baseURL, everything that reports, updates or downloads turned off, and
// proxies that refuse whatever asks for another host. Variables of the machine
// that would let it log in some other way are set to nothing.
//
// The proxies are a request to the program; [NewLoopback] is a wall.
func ClaudeEnv(t testing.TB, baseURL string) map[string]string {
	t.Helper()
	home := t.TempDir()
	for _, dir := range []string{".claude", "tmp"} {
		if err := os.Mkdir(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatalf("peers: %v", err)
		}
	}
	const nowhere = "http://127.0.0.1:9"
	const local = "127.0.0.1,localhost,::1"
	return map[string]string{
		"HOME":              home,
		"TMPDIR":            filepath.Join(home, "tmp"),
		"XDG_CONFIG_HOME":   filepath.Join(home, ".config"),
		"XDG_CACHE_HOME":    filepath.Join(home, ".cache"),
		"XDG_DATA_HOME":     filepath.Join(home, ".local", "share"),
		"CLAUDE_CONFIG_DIR": filepath.Join(home, ".claude"),
		"GIT_CONFIG_GLOBAL": os.DevNull,
		"GIT_CONFIG_SYSTEM": os.DevNull,

		"ANTHROPIC_BASE_URL":      baseURL,
		"ANTHROPIC_API_KEY":       fakeKey,
		"ANTHROPIC_AUTH_TOKEN":    "",
		"CLAUDE_CODE_OAUTH_TOKEN": "",
		"CLAUDE_CODE_USE_BEDROCK": "",
		"CLAUDE_CODE_USE_VERTEX":  "",
		"CLAUDE_CODE_USE_FOUNDRY": "",
		"CLAUDECODE":              "",
		"CLAUDE_CODE_ENTRYPOINT":  "",
		"NODE_OPTIONS":            "",

		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
		"DISABLE_AUTOUPDATER":                      "1",
		"DISABLE_BUG_COMMAND":                      "1",
		"DISABLE_ERROR_REPORTING":                  "1",
		"DISABLE_TELEMETRY":                        "1",
		"BUN_ENABLE_CRASH_REPORTING":               "0",
		// It refuses bypassPermissions as root unless it is told that this is
		// a sandbox.
		"IS_SANDBOX": "1",

		"HTTP_PROXY": nowhere, "HTTPS_PROXY": nowhere, "ALL_PROXY": nowhere, "NO_PROXY": local,
		"http_proxy": nowhere, "https_proxy": nowhere, "all_proxy": nowhere, "no_proxy": local,
	}
}
