package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/claudecode"
	"github.com/tenon-sdk/tenon/engine/native"
	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/modeltest"
	"github.com/tenon-sdk/tenon/permission"
)

// engine returns the engine of --engine and a function that frees it. It may change the options.
func (f *runFlags) engine(v *view, o *agent.Options) (agent.Engine, func(), error) {
	if f.engineName == engineClaude {
		return f.claudeCode(v, o)
	}
	n := native.Options{ResultsDir: v.p.resultsDir()}
	if f.offline {
		n.APIKey, n.BaseURL, n.HTTPClient = "offline", "http://model.invalid", modeltest.Offline().Client()
		n.DefaultModel, n.MaxRetries = "offline", native.NoRetries
	}
	return native.New(&n), func() {}, nil
}

// claudeCode returns the engine on the Claude Code CLI. The CLI inherits the environment of this
// process; the options have what differs from it.
func (f *runFlags) claudeCode(v *view, o *agent.Options) (agent.Engine, func(), error) {
	e := &claudecode.Options{Path: f.claudePath}
	if f.verbose {
		e.Stderr = func(line string) { v.line("[claude]", printable(line)) }
	}
	o.Env = map[string]string{}
	if !f.offline {
		return claudecode.New(e), func() {}, nil
	}
	server, err := modeltest.Offline().Serve()
	if err != nil {
		return nil, nil, err
	}
	o.Env["ANTHROPIC_BASE_URL"], o.Env["ANTHROPIC_API_KEY"] = server.URL, "offline"
	o.Env["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] = "1"
	o.Env["ENABLE_TOOL_SEARCH"] = "false" // the offline model does not search
	return claudecode.New(e), func() { _ = server.Close() }, nil
}

// needed returns the servers that a run with one prompt has to wait for: those that the rules of
// --allowedTools name, and offline those that the prompt calls. An offline call without the name of
// a server may be for any of them.
func (f *runFlags) needed(servers []string, prompt string) []string {
	rules := slices.Clone(f.allowed)
	if f.offline {
		for _, name := range modeltest.OfflineCalls(prompt) {
			if !strings.HasPrefix(name, toolname.Prefix) {
				return servers
			}
			rules = append(rules, name)
		}
	}
	named := permission.Named(servers, rules...)
	for _, s := range servers {
		if !slices.Contains(named, s) && slices.Contains(rules, toolname.Server(s)) {
			named = append(named, s)
		}
	}
	return named
}

// waitFor waits until each of the servers has been connected or has failed, at most for limit. The
// engine's own wait before the first turn, two seconds for servers of configuration files, is too
// short for one that npx starts.
func (v *view) waitFor(ctx context.Context, client *agent.Client, names []string, limit time.Duration) {
	if len(names) == 0 {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer v.progress.follow(func() { v.showConnecting(bounded, client) })()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		status, err := client.MCPStatus(bounded)
		if err != nil || !slices.ContainsFunc(status, func(s mcphost.ServerStatus) bool {
			return s.Status == mcphost.StatusPending && slices.Contains(names, s.Name)
		}) {
			return
		}
		select {
		case <-tick.C:
		case <-bounded.Done():
			return
		}
	}
}

// waitLimit returns the longest wait for a needed server: by the environment, or the limit for
// connecting.
func waitLimit(env map[string]string) time.Duration {
	for _, name := range []string{"CLAUDE_CODE_MCP_STARTUP_WAIT_MS", "MCP_TIMEOUT"} {
		n, err := strconv.ParseInt(strings.TrimSpace(env[name]), 10, 64)
		if err == nil && len(variableProblems(map[string]string{name: env[name]})) == 0 {
			return time.Duration(n) * time.Millisecond
		}
	}
	return mcphost.DefaultConnectTimeout
}

// keepResults is how long the results that were too large for the model are kept.
const keepResults = 7 * 24 * time.Hour

// resultsDir returns the folder for such results of this run, or "" if there is no place for it. The
// answer names the files, so they outlive the run; those of old runs are removed.
func (p *process) resultsDir() string {
	cache := p.cacheDir()
	if cache == "" {
		return ""
	}
	all := filepath.Join(cache, "tenon", "results")
	old, _ := os.ReadDir(all) // not there before the first
	for _, dir := range old {
		info, err := dir.Info()
		if err == nil && dir.IsDir() && uuid.Validate(dir.Name()) == nil && time.Since(info.ModTime()) > keepResults {
			_ = os.RemoveAll(filepath.Join(all, dir.Name())) // the next run tries again
		}
	}
	return filepath.Join(all, uuid.NewString())
}
