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
	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/modeltest"
	"github.com/tenon-sdk/tenon/permission"
)

const (
	startupWait    = "CLAUDE_CODE_MCP_STARTUP_WAIT_MS"
	connectTimeout = "MCP_TIMEOUT"
)

// needed are the servers that a run with one prompt cannot do without: those that the rules of --allowedTools name,
// and offline those that the prompt calls. An offline call without a server's name may be meant for any of them.
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

// waitFor waits until each of the servers has been connected or has failed, as long as a server has to connect. The
// engine's own wait before the first turn is two seconds for servers of configuration files: too short for one that
// is started by npx and the like, and long enough for one that the run may not need.
func (v *view) waitFor(ctx context.Context, client *agent.Client, names []string, limit time.Duration) {
	if len(names) == 0 {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	stop := v.progress.follow(func() { v.showConnecting(bounded, client) })
	defer stop()
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

// waitLimit is how long a needed server is waited for: what the user says, else the limit for connecting.
func waitLimit(env map[string]string) time.Duration {
	for _, name := range []string{startupWait, connectTimeout} {
		if n, err := strconv.ParseInt(strings.TrimSpace(env[name]), 10, 64); err == nil && len(variableProblems(only(env, name))) == 0 {
			return time.Duration(n) * time.Millisecond
		}
	}
	return mcphost.DefaultConnectTimeout
}

func only(env map[string]string, name string) map[string]string {
	return map[string]string{name: env[name]}
}

// keepResults is how long the results of a run that were too large for the model are kept.
const keepResults = 7 * 24 * time.Hour

// resultsDir is the folder for such results of this run, which is made with the first of them. The answer names the
// files, so they are there after the run. Those of old runs are removed. Empty means that there is no place for them.
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
