package mcphost

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sdk/tenon/permission"
)

// WaitInput is what the wait for the first turn depends on besides the host's options and servers.
type WaitInput struct {
	// Named are the rules for allowed tools. They name a server by the full name of one of its
	// tools, or by mcp__SERVER__*.
	Named []string
	// HookServers are the servers of mcp_tool hooks.
	HookServers []string
	// PermissionPromptTool is the full name of the permission prompt tool, if any.
	PermissionPromptTool string
	// ToolSearchOff reports that tools are not deferred, because the model does not support tool
	// search or ToolSearch is excluded. ENABLE_TOOL_SEARCH applies too.
	ToolSearchOff bool
	// ToolSearchSet reports that ENABLE_TOOL_SEARCH is ignored.
	ToolSearchSet bool
	// BaseURL is the URL of the model's API. Empty means ANTHROPIC_BASE_URL.
	BaseURL string
}

const (
	// shortWait is the first turn's wait for servers of settings files, and the shortest for a
	// named server.
	shortWait = 2 * time.Second
	// defaultBatch limits the wait at the start.
	defaultBatch = 5 * time.Second
	// settleSlack is added to a wait as long as the limit for connecting.
	settleSlack = 100 * time.Millisecond
)

// A waitServer is what the wait for a server depends on.
type waitServer struct {
	name       string
	inProcess  bool
	inOptions  bool // given in code, not in a settings file or by a plugin
	cached     bool // its tools are known, it connects on first use
	alwaysLoad bool
	disabled   bool
	timeout    time.Duration // of one attempt to connect
}

// waitRules is what all waits depend on.
type waitRules struct {
	startup   *time.Duration // CLAUDE_CODE_MCP_STARTUP_WAIT_MS; nil when unset
	blocking  bool           // MCP_CONNECTION_NONBLOCKING=0
	batch     time.Duration  // MCP_CONNECT_TIMEOUT_MS
	gateway   bool           // the model's API is elsewhere, and ENABLE_TOOL_SEARCH is unset
	searchOff bool
	named     []string // rules of the allowed tools
	hooks     []string // servers that hooks name
	prompts   []string // the permission prompt tool, if there is one
}

// A serverWait is how long to wait for a server to leave pending, at the start and before the first
// turn.
type serverWait struct{ start, turn time.Duration }

// planWaits returns how long the first turn waits for each server. Servers that are still pending
// afterwards go on connecting.
func planWaits(servers []waitServer, r waitRules) map[string]serverWait {
	optionsConnect := slices.ContainsFunc(servers, func(s waitServer) bool {
		return s.inOptions && !s.inProcess && !s.cached && !s.disabled
	})
	keys := make([]string, len(servers))
	for i, s := range servers {
		keys[i] = s.name
	}
	named := append(permission.Named(keys, r.named...), r.hooks...)
	prompting := permission.Named(keys, r.prompts...)
	plan := make(map[string]serverWait, len(servers))
	for _, s := range servers {
		prompts, isNamed := slices.Contains(prompting, s.name), slices.Contains(named, s.name)
		if s.cached && !prompts || s.disabled {
			continue // its tools are there, or will never be
		}
		var w serverWait
		if r.blocking || s.alwaysLoad {
			w.start = r.batch
		}
		switch {
		case prompts, s.inProcess:
			w.turn = s.timeout
		case s.inOptions:
			w.turn = s.timeout
			if r.startup != nil {
				w.turn = *r.startup
			}
		default:
			w.turn = settingsWait(s, r, optionsConnect, isNamed)
		}
		if r.startup != nil && isNamed {
			w.turn = max(w.turn, shortWait)
		}
		if w != (serverWait{}) {
			plan[s.name] = w
		}
	}
	return plan
}

// settingsWait returns the first turn's wait for a server of a settings file or plugin.
func settingsWait(s waitServer, r waitRules, optionsConnect, isNamed bool) time.Duration {
	switch {
	case r.startup != nil:
		return *r.startup
	case optionsConnect:
		return s.timeout
	case r.gateway, r.searchOff, s.alwaysLoad, isNamed:
		return shortWait
	}
	return 0
}

// waitRules returns the rules of the options, the environment and the input.
func (o *Options) waitRules(in WaitInput) waitRules {
	r := waitRules{startup: o.Wait.StartupWait, batch: defaultBatch}
	if v, ok := o.lookupEnv(envStartupWait); ok && r.startup == nil {
		r.startup = parseMillis(v)
	}
	if v, _ := o.lookupEnv(envNonblocking); isOff(v) {
		r.blocking = true
	}
	if o.Wait.Blocking != nil {
		r.blocking = *o.Wait.Blocking
	}
	r.batch = o.envMillis(envBatchTimeout, defaultBatch)
	if o.Wait.BatchTimeout != nil {
		r.batch = *o.Wait.BatchTimeout
	}
	search, set := o.lookupEnv(envToolSearch)
	set = set && search != ""
	if in.ToolSearchSet {
		search, set = "", true
	}
	r.searchOff = in.ToolSearchOff || searchIsOff(search)
	base := in.BaseURL
	if base == "" {
		base, _ = o.lookupEnv("ANTHROPIC_BASE_URL") // empty when unset
	}
	r.gateway = !set && isGateway(base)
	r.named, r.hooks = in.Named, in.HookServers
	if in.PermissionPromptTool != "" {
		r.prompts = []string{in.PermissionPromptTool}
	}
	return r
}

// searchIsOff evaluates ENABLE_TOOL_SEARCH.
func searchIsOff(v string) bool { return isOff(v) || v == "auto:100" }

// isGateway reports whether a base URL has another host than the API.
func isGateway(base string) bool {
	if base == "" {
		return false
	}
	u, err := url.Parse(base)
	return err != nil || !strings.EqualFold(u.Hostname(), "api.anthropic.com")
}

// WaitFirstTurn waits as long as the first turn of a run should: until each server that the rules
// name has left pending or its time is over. Servers that are still pending then go on connecting.
//
//   - In-process servers, and the server of the permission prompt tool: the
//     limit for connecting.
//   - Other servers given in code: the limit for connecting, or
//     CLAUDE_CODE_MCP_STARTUP_WAIT_MS.
//   - Servers whose tools are in the discovery cache: not at all.
//   - Servers of settings files: CLAUDE_CODE_MCP_STARTUP_WAIT_MS; else the limit
//     for connecting, if a server given in code connects over stdio, HTTP or SSE;
//     else 2 s behind a gateway or without tool search; else 2 s for those that
//     are named or always loaded.
//   - A named server gets 2 s at least.
//   - Before all that the start waits for servers that are always loaded, and
//     with MCP_CONNECTION_NONBLOCKING=0 for all, up to MCP_CONNECT_TIMEOUT_MS (5 s).
//   - A required server is waited for up to its limit for connecting.
//
// The error is a *[NotReadyError] if a required server is not connected then, ctx's error or
// [ErrClosed].
func (h *Host) WaitFirstTurn(ctx context.Context, in WaitInput) error {
	conns, err := h.named(nil)
	if err != nil {
		return err
	}
	servers := make([]waitServer, 0, len(conns))
	for _, c := range conns {
		servers = append(servers, c.forWait())
	}
	plan := planWaits(servers, h.opts.waitRules(in))
	for i, s := range servers {
		if conns[i].cfg.common().Required && !s.disabled {
			w := plan[s.name]
			w.turn = max(w.turn, s.timeout)
			plan[s.name] = w
		}
	}
	if err := awaitPlan(ctx, conns, plan, func(w serverWait) time.Duration { return w.start }); err != nil {
		return err
	}
	if err := awaitPlan(ctx, conns, plan, func(w serverWait) time.Duration { return w.turn }); err != nil {
		return err
	}
	if isClosed(h.done) {
		return ErrClosed
	}
	return h.checkRequired(conns)
}

func (c *conn) forWait() waitServer {
	common := c.cfg.common()
	c.mu.Lock()
	defer c.mu.Unlock()
	return waitServer{
		name:       c.name,
		inProcess:  c.cfg.transport() == TransportSDK,
		inOptions:  common.Source == "" || common.Source == "sdk",
		cached:     c.state.phase == phaseLazy,
		alwaysLoad: common.AlwaysLoad,
		disabled:   c.state.phase == phaseDisabled,
		timeout:    c.dialer.limits.connect,
	}
}

// awaitPlan waits for all servers, each for its own time.
func awaitPlan(ctx context.Context, conns []*conn, plan map[string]serverWait, of func(serverWait) time.Duration) error {
	began := time.Now()
	for _, c := range conns { // one after the other: the time counts from the beginning for all
		wait := of(plan[c.name])
		left := wait - time.Since(began)
		if left <= 0 {
			continue
		}
		if wait >= c.dialer.limits.connect {
			left += settleSlack // so that an attempt that ends just then is told of as failed
		}
		waitCtx, cancel := context.WithTimeout(ctx, left)
		err := c.connectNow(waitCtx)
		cancel()
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// connectNow waits until the server has left pending. It connects a server that would connect on
// first use.
func (c *conn) connectNow(ctx context.Context) error {
	c.mu.Lock()
	if c.state.phase == phaseLazy {
		c.wantUse()
	}
	c.mu.Unlock()
	return c.await(ctx, func() bool { return c.rec.settled || c.state.phase == phaseClosed })
}

// checkRequired reports required servers that cannot be used. One that connects on first use can.
func (h *Host) checkRequired(conns []*conn) error {
	cat := h.current()
	var missing []ServerStatus
	for _, c := range conns {
		if !c.cfg.common().Required {
			continue
		}
		c.mu.Lock()
		ok := c.state.phase == phaseReady || c.state.phase == phaseLazy
		c.mu.Unlock()
		if !ok {
			missing = append(missing, c.status(cat))
		}
	}
	if len(missing) > 0 {
		return &NotReadyError{Servers: missing}
	}
	return nil
}
