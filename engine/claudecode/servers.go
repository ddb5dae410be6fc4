package claudecode

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/internal/kit"
	"github.com/tenon-sdk/tenon/mcpbridge"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// servers are the session's servers in this process, each behind a bridge.
type servers struct {
	opts        *agent.Options
	inputs      *toolInputs
	ch          *channel
	initialized chan struct{} // closed when the CLI has answered the first request

	ownHost *mcphost.Host // connects what the CLI cannot; nil without such servers

	mu       sync.Mutex // guards the rest
	attached map[string]*attachedServer
	hosts    map[string]*mcphost.Host // of the servers that belong to a host
}

// An attachedServer is a server in this process that the CLI knows.
type attachedServer struct {
	bridge   *mcpbridge.Bridge
	provider mcpserver.Provider
	adapter  *adapter
	greet    func() // allows the server to send messages
}

func newServers(o *agent.Options, inputs *toolInputs, ch *channel) *servers {
	return &servers{
		opts: o, inputs: inputs, ch: ch, initialized: make(chan struct{}),
		attached: map[string]*attachedServer{}, hosts: map[string]*mcphost.Host{},
	}
}

// sdkServer is the CLI's configuration of a server in this process.
type sdkServer struct {
	Type    string `json:"type,omitempty"`
	Name    string `json:"name,omitempty"`
	Timeout int64  `json:"timeout,omitempty"` // milliseconds of a call
}

// cliServer is the CLI's configuration of a server that the CLI connects.
type cliServer struct {
	Type       string            `json:"type"`
	Command    string            `json:"command,omitempty"`
	Args       []string          `json:"args,omitzero"` // the CLI fails on a command that is set later without them
	Env        map[string]string `json:"env,omitempty"` // the CLI ignores a server with null
	URL        string            `json:"url,omitempty"`
	Headers    map[string]string `json:"headers,omitempty"`
	Timeout    int64             `json:"timeout,omitempty"`
	AlwaysLoad bool              `json:"alwaysLoad,omitempty"`
}

// cliConfigs returns the configurations of the servers that the CLI connects.
func (v *servers) cliConfigs(configs map[string]mcphost.ServerConfig) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	for name, config := range configs {
		remote := func(kind string, h mcphost.HTTP) cliServer {
			return cliServer{Type: kind, URL: h.URL, Headers: h.Headers, Timeout: milliseconds(h.CallTimeout), AlwaysLoad: h.AlwaysLoad}
		}
		var c cliServer
		switch k := config.(type) {
		case mcphost.InProcessServer:
			continue
		case mcphost.Stdio:
			c = cliServer{
				Type: "stdio", Command: k.Command, Args: append([]string{}, k.Args...), Env: serverEnv(v.opts, k.Env),
				Timeout: milliseconds(k.CallTimeout), AlwaysLoad: k.AlwaysLoad,
			}
		case mcphost.HTTP:
			c = remote("http", k)
		case mcphost.SSE:
			c = remote("sse", mcphost.HTTP(k))
		}
		data, err := json.Marshal(c)
		if err != nil {
			return nil, fmt.Errorf("claude-code: server %q: %w", name, err)
		}
		out[name] = data
	}
	return out, nil
}

// noLimit is the CLI's "no limit" for a call, in milliseconds (27.8 hours).
const noLimit = 100_000_000

func milliseconds(limit time.Duration) int64 {
	if limit == mcphost.NoTimeout {
		return noLimit
	}
	return limit.Milliseconds()
}

// connect connects the servers that the CLI cannot connect as they are configured, in a host of the
// session, and returns all configurations as the CLI is to have them: those servers, and the ones of
// Options.Host, as servers in this process.
func (v *servers) connect(ctx context.Context, configs map[string]mcphost.ServerConfig) (map[string]mcphost.ServerConfig, error) {
	hosted := map[string]mcphost.ServerConfig{}
	for name, config := range configs {
		_, isStdio := config.(mcphost.Stdio)
		if needsHost(config) || v.opts.Stderr != nil && isStdio {
			hosted[name] = config
		}
	}
	switch {
	case v.ownHost != nil:
		if _, err := v.ownHost.SetServers(ctx, hosted); err != nil {
			return nil, fmt.Errorf("claude-code: %w", err)
		}
	case len(hosted) > 0:
		h, err := kit.NewHost(v.opts, hosted)
		if err != nil {
			return nil, fmt.Errorf("claude-code: %w", err)
		}
		v.ownHost = h
		h.Start(context.WithoutCancel(ctx)) // until close
	}
	all := map[string]mcphost.ServerConfig{}
	maps.Copy(all, configs)
	for name := range hosted {
		all[name] = v.hostProvider(v.ownHost, name)
	}
	if h := v.opts.Host; h != nil {
		for _, st := range h.Status() {
			if all[st.Name] == nil { // a server of the run takes precedence
				all[st.Name] = v.hostProvider(h, st.Name)
			}
		}
	}
	return all, nil
}

// hostProvider returns a server of a host as a server in this process. The host keeps the limits.
func (v *servers) hostProvider(h *mcphost.Host, name string) mcphost.InProcessServer {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.hosts[name] = h
	p := &hostServer{host: h, name: name, sessionID: v.opts.SessionID}
	if a := v.attached[name]; a != nil {
		if old, ok := a.provider.(*hostServer); ok && old.host == h {
			p = old
		}
	}
	return mcphost.InProcessServer{Provider: p, Common: mcphost.Common{CallTimeout: mcphost.NoTimeout}}
}

// hostOf returns the host that a server belongs to, or nil.
func (v *servers) hostOf(name string) *mcphost.Host {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.hosts[name]
}

// wait waits for the servers as a first turn does.
func (v *servers) wait(ctx context.Context) error {
	return kit.WaitFirstTurn(ctx, v.ownHost, v.opts, mcphost.WaitInput{
		ToolSearchOff: v.opts.ToolSearch == agent.ToolSearchOff, BaseURL: v.opts.Env["ANTHROPIC_BASE_URL"],
	})
}

// attach opens a bridge for each server in this process that has none. It returns the names and the
// configurations of these servers.
func (v *servers) attach(configs map[string]mcphost.ServerConfig) ([]string, map[string]sdkServer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := map[string]sdkServer{}
	for name, config := range configs {
		c, ok := config.(mcphost.InProcessServer)
		if !ok {
			continue
		}
		if old := v.attached[name]; old == nil || old.provider != c.Provider {
			if old != nil {
				_ = old.bridge.Close()
			}
			v.attached[name] = v.bridge(name, c)
		}
		all[name] = sdkServer{Timeout: noLimit} // the bridge keeps the limit
	}
	return slices.Sorted(maps.Keys(all)), all
}

func (v *servers) bridge(name string, c mcphost.InProcessServer) *attachedServer {
	greeted := make(chan struct{})
	o := &mcpbridge.Options{
		ToolTimeout: c.CallTimeout, SessionID: v.opts.SessionID, LookupEnv: kit.Lookup(v.opts.Env), Logger: v.opts.Logger,
		Send: func(ctx context.Context, raw json.RawMessage) error { return v.send(ctx, name, greeted, raw) },
	}
	if own, ok := c.Provider.(*mcpserver.Server); ok {
		o.Scheduling, o.Middleware = own.Dispatch()
	}
	p, ofHost := c.Provider.(*hostServer)
	a := &adapter{
		Provider: c.Provider, name: name, inputs: v.inputs, log: v.opts.Logger, siblings: func() []string { return kit.ServerNames(v.opts) },
		onElicit: kit.Elicit(v.opts), alwaysLoad: c.AlwaysLoad, logged: ofHost && p.host == v.ownHost,
	}
	return &attachedServer{
		provider: c.Provider, adapter: a, bridge: mcpbridge.New(a, o), greet: sync.OnceFunc(func() { close(greeted) }),
	}
}

// mcpMessage is the body of an mcp_message request, in both directions.
type mcpMessage struct {
	Server  string          `json:"server_name"`
	Message json.RawMessage `json:"message"`
}

// send sends a message of a server to the CLI, once the CLI has answered the first request or has sent
// the server a message.
func (v *servers) send(ctx context.Context, server string, greeted <-chan struct{}, raw json.RawMessage) error {
	select {
	case <-v.initialized:
	case <-greeted:
	case <-v.ch.ctx.Done():
		return context.Cause(v.ch.ctx) // the CLI's end, which ends no context of the caller
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return v.ch.request(ctx, "mcp_message", mcpMessage{Server: server, Message: raw}, nil)
}

// find returns the server in this process with a name, or nil.
func (v *servers) find(name string) *attachedServer {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.attached[name]
}

// listWait is how long the start of the CLI waits for the tools of servers in this process.
const listWait = 50 * time.Millisecond

// takeNumbers reports whether a tool of a server in this process may take numbers. A server that
// does not list its tools within listWait, or is not connected, may have such tools.
func (v *servers) takeNumbers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	for _, name := range v.names() {
		a := v.find(name)
		if p, ok := a.provider.(*hostServer); ok && p.status().Status != mcphost.StatusConnected {
			return true
		}
		if _, err := a.bridge.Handle(ctx, json.RawMessage(`{"jsonrpc":"2.0","id":"tools","method":"tools/list"}`)); err != nil || a.adapter.takesNumbers() {
			return true
		}
	}
	return false
}

// names returns the names of the servers in this process.
func (v *servers) names() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Collect(maps.Keys(v.attached))
}

// problems returns the tools of all servers in this process that are left out, in the order of the names.
func (v *servers) problems() []agent.MCPServerError {
	v.mu.Lock()
	defer v.mu.Unlock()
	var all []agent.MCPServerError
	for _, name := range slices.Sorted(maps.Keys(v.attached)) {
		all = append(all, v.attached[name].adapter.list().left...)
	}
	return all
}

// correct replaces the CLI's status of a host's servers, which are connected to the CLI in any case, by
// the host's, and the sources of servers that this process has read from files.
func (v *servers) correct(rows []agent.MCPServer) {
	for i := range rows {
		if source := commonOf(v.opts.MCPServers[rows[i].Name]).Source; source != "" {
			rows[i].Source = source
		}
		if st, ok := v.hostStatus(rows[i].Name, rows[i].Status); ok {
			rows[i].Status = string(st.Status)
		}
	}
}

// hostStatus returns the host's status of a server that is connected to the CLI. It reports false for
// all other servers.
func (v *servers) hostStatus(name, status string) (mcphost.ServerStatus, bool) {
	h := v.hostOf(name)
	if h == nil || status != string(mcphost.StatusConnected) {
		return mcphost.ServerStatus{}, false
	}
	return h.ServerStatus(name)
}

// drop closes the bridges of servers that were removed.
func (v *servers) drop(names []string, keep map[string]mcphost.ServerConfig) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, name := range names {
		if a := v.attached[name]; a != nil && keep[name] == nil {
			_ = a.bridge.Close()
			delete(v.attached, name)
			delete(v.hosts, name)
		}
	}
}

func (v *servers) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, a := range v.attached {
		_ = a.bridge.Close()
	}
	if v.ownHost != nil {
		_ = v.ownHost.Close()
	}
}

// commonOf returns the part that all kinds of configurations have.
func commonOf(config mcphost.ServerConfig) (c mcphost.Common) {
	if config != nil {
		c, _ = reflect.ValueOf(config).FieldByName("Common").Interface().(mcphost.Common)
	}
	return c
}

// needsHost reports whether the CLI cannot connect a server as it is configured: the configuration has
// a field that the CLI's form lacks, or a text in which the CLI would expand a reference. References in
// files are expanded before, and those in a program's options are meant literally.
func needsHost(config mcphost.ServerConfig) bool {
	c := commonOf(config)
	if c.ConnectTimeout != 0 || c.IdleTimeout != 0 || len(c.ToolTimeouts) > 0 || c.Required || c.MaxMessageBytes != 0 || c.Roots != nil {
		return true
	}
	remote := func(h mcphost.HTTP) bool {
		return h.HTTPClient != nil || h.HeadersFunc != nil || h.Auth != nil || hasReference(h.URL) || hasReference(slices.Collect(maps.Values(h.Headers))...)
	}
	switch c := config.(type) {
	case mcphost.Stdio:
		return c.CleanEnv || c.Dir != "" || hasReference(c.Command) || hasReference(c.Args...) || hasReference(slices.Collect(maps.Values(c.Env))...)
	case mcphost.HTTP:
		return remote(c)
	case mcphost.SSE:
		return remote(mcphost.HTTP(c))
	case mcphost.InProcessServer:
		return false
	}
	return true
}

// hasReference reports whether the CLI would expand a reference to a variable in one of the texts.
func hasReference(texts ...string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, "${") })
}

// serverEnv returns the environment of a server that the CLI starts: that of this process without the
// credentials of the model, and the variables of its configuration, which may include them.
func serverEnv(o *agent.Options, config map[string]string) map[string]string {
	env := map[string]string{}
	for _, kv := range os.Environ() {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || name == "" || slices.Contains(nesting, name) || mcphost.IsModelCredential(name, kit.Lookup(o.Env)) {
			continue
		}
		if hasReference(value) { // the CLI expands it, so the value has to come from the CLI's own environment
			if _, other := o.Env[name]; other || strings.ContainsAny(name, ":}") {
				continue
			}
			value = "${" + name + "}"
		}
		env[name] = value
	}
	maps.Copy(env, config)
	return env
}
