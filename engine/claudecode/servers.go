package claudecode

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/internal/jsonscan"
	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/mcpbridge"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// servers are the session's servers in this process, each behind a bridge.
type servers struct {
	s *session

	configs map[string]mcphost.ServerConfig // those that the CLI is told of at the start, set before it
	ownHost *mcphost.Host                   // connects what the CLI cannot; nil without such servers
	early   *inquiry                        // what was asked before the CLI was started

	mu       sync.Mutex // guards the rest
	attached map[string]*attached
	hosts    map[string]*mcphost.Host // whose the servers in this process are, for those of a host
}

// An attached server lives in this process and is announced to the CLI.
type attached struct {
	bridge   *mcpbridge.Bridge
	provider mcpserver.Provider
	guest    *guest
	out      *outlet
}

func newServers(s *session) *servers {
	return &servers{s: s, attached: map[string]*attached{}, hosts: map[string]*mcphost.Host{}}
}

// sdkServer is what the CLI is told about a server in this process.
type sdkServer struct {
	Type    string `json:"type,omitempty"`
	Name    string `json:"name,omitempty"`
	Timeout int64  `json:"timeout,omitempty"` // milliseconds of a call
}

// cliServer is the CLI's form of a server of its own.
type cliServer struct {
	Type       string            `json:"type"`
	Command    string            `json:"command,omitempty"`
	Args       []string          `json:"args,omitzero"` // the CLI fails on a command that is set later without them
	Env        map[string]string `json:"env,omitempty"` // null would lose the server, absent does not
	URL        string            `json:"url,omitempty"`
	Headers    map[string]string `json:"headers,omitempty"`
	Timeout    int64             `json:"timeout,omitempty"`
	AlwaysLoad bool              `json:"alwaysLoad,omitempty"`
}

// external are the servers that the CLI connects itself.
func (v *servers) external(configs map[string]mcphost.ServerConfig) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	for name, config := range configs {
		var c cliServer
		remote := func(kind string, h mcphost.HTTP) cliServer {
			return cliServer{Type: kind, URL: h.URL, Headers: h.Headers, Timeout: callLimit(h.CallTimeout), AlwaysLoad: h.AlwaysLoad}
		}
		switch k := config.(type) {
		case mcphost.InProcessServer:
			continue
		case mcphost.Stdio:
			c = cliServer{Type: "stdio", Command: k.Command, Args: k.Args, Env: v.s.serverEnv(k.Env), Timeout: callLimit(k.CallTimeout), AlwaysLoad: k.AlwaysLoad}
			if c.Args == nil {
				c.Args = []string{}
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

// noLimit is the CLI's own "no limit" for a call, in milliseconds (27.8 hours).
const noLimit = 100_000_000

func callLimit(d time.Duration) int64 {
	if d == mcphost.NoTimeout {
		return noLimit
	}
	return d.Milliseconds()
}

// attach opens a bridge for each server in this process that has none.
func (v *servers) attach(configs map[string]mcphost.ServerConfig) ([]string, map[string]sdkServer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	told := map[string]sdkServer{}
	for name, config := range configs {
		c, ok := config.(mcphost.InProcessServer)
		if !ok {
			continue
		}
		if old := v.attached[name]; old == nil || old.provider != c.Provider {
			if old != nil {
				_ = old.bridge.Close()
			}
			out := newOutlet(v.s, name)
			o := &mcpbridge.Options{
				ToolTimeout: c.CallTimeout, SessionID: v.s.opts.SessionID, LookupEnv: v.s.lookupEnv, Logger: v.s.opts.Logger, Send: out.send,
			}
			if own, ok := c.Provider.(*mcpserver.Server); ok {
				o.Scheduling, o.Middleware = own.Dispatch() // a bridge's pair replaces the server's
			}
			g := &guest{Provider: c.Provider, name: name, s: v.s, alwaysLoad: c.AlwaysLoad}
			v.attached[name] = &attached{provider: c.Provider, guest: g, out: out, bridge: mcpbridge.New(g, o)}
		}
		// The bridge keeps the limit; the CLI's own must not come before it.
		told[name] = sdkServer{Timeout: noLimit}
	}
	return slices.Sorted(maps.Keys(told)), told
}

// mcpMessage is a control request either way: a JSON-RPC message for, or of, a server.
type mcpMessage struct {
	Server  string          `json:"server_name"`
	Message json.RawMessage `json:"message"`
}

func readMCPMessage(request json.RawMessage) (q mcpMessage, err error) {
	var wrong error
	err = jsonscan.Object(request, func(name []byte, value json.RawMessage) {
		switch string(name) {
		case "server_name":
			wrong = unmarshalText(value, &q.Server)
		case "message":
			q.Message = value
		}
	})
	return q, errors.Join(err, wrong)
}

// message hands a JSON-RPC message to the server's bridge. What has no reply is
// acknowledged all the same, or the CLI takes the server for dead.
func (v *servers) message(ctx context.Context, request json.RawMessage) (any, error) {
	q, err := readMCPMessage(request)
	if err != nil {
		return nil, fmt.Errorf("reading mcp_message: %w", err)
	}
	v.mu.Lock()
	a := v.attached[q.Server]
	v.mu.Unlock()
	if a == nil {
		return nil, fmt.Errorf("no server in this process is called %.60q", q.Server)
	}
	a.out.open()
	message, denied := v.s.guardCall(ctx, q.Server, v.s.args.inMessage(q.Message))
	if denied != nil {
		return mcpResponse(denied), nil
	}
	reply, err := a.bridge.Handle(ctx, message)
	if err != nil {
		return nil, err
	}
	if reply == nil {
		reply = json.RawMessage(`{"jsonrpc":"2.0","result":{},"id":0}`)
	}
	return mcpResponse(reply), nil
}

// mcpResponse is a server's reply as the CLI wants it.
type mcpResponse json.RawMessage

// MarshalJSON returns the reply in its envelope, on one line. It does not fail.
func (r mcpResponse) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.Grow(len(r) + 32)
	b.WriteString(`{"mcp_response":`)
	if bytes.IndexByte(r, '\n') < 0 {
		b.Write(r)
	} else if json.Compact(&b, r) != nil { // line endings between values; in texts they are escaped
		b.WriteString("null") // no reply of a bridge is no JSON
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// has reports whether a server in this process has the name.
func (v *servers) has(server string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.attached[server] != nil
}

// tool finds a tool of a server in this process by its full name.
func (v *servers) tool(server, full string) (offer, bool) {
	v.mu.Lock()
	a := v.attached[server]
	v.mu.Unlock()
	if a == nil {
		return offer{}, false
	}
	return a.guest.find(full)
}

// own returns the name that a tool has on its server.
func (v *servers) own(server, alias string) string {
	v.mu.Lock()
	a := v.attached[server]
	v.mu.Unlock()
	if a == nil {
		return alias
	}
	return a.guest.own(alias)
}

// faults are the tools of all servers in this process that were left out, in the order of the names.
func (v *servers) faults() []agent.MCPServerError {
	v.mu.Lock()
	defer v.mu.Unlock()
	var all []agent.MCPServerError
	for _, name := range slices.Sorted(maps.Keys(v.attached)) {
		all = append(all, v.attached[name].guest.faults()...)
	}
	return all
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

// MCPStatus asks the CLI.
func (s *session) MCPStatus(ctx context.Context) ([]mcphost.ServerStatus, error) {
	var r struct {
		Servers []struct {
			Name      string              `json:"name"`
			Status    mcphost.Status      `json:"status"`
			Error     string              `json:"error"`
			Transport string              `json:"transport"`
			Scope     string              `json:"scope"`
			Source    string              `json:"source"`
			Info      *mcp.Implementation `json:"serverInfo"`
			Tools     []struct {
				Name        string `json:"name"`
				Annotations struct {
					ReadOnly bool `json:"readOnly"`
				} `json:"annotations"`
			} `json:"tools"`
		} `json:"mcpServers"`
	}
	if err := s.control(ctx, "mcp_status", nil, &r); err != nil {
		return nil, err
	}
	var out []mcphost.ServerStatus
	for _, row := range r.Servers {
		st := mcphost.ServerStatus{
			Name: row.Name, Status: row.Status, Error: row.Error, Transport: row.Transport,
			Scope: row.Scope, Source: row.Source, ServerInfo: row.Info, ToolCount: len(row.Tools),
		}
		if row.Error != "" {
			st.Err = errors.New(row.Error)
		}
		for _, t := range row.Tools {
			full := toolname.Full(row.Name, t.Name)
			t.Name = s.servers.own(row.Name, t.Name)
			st.Tools = append(st.Tools, mcphost.Tool{FullName: full, LongName: full, Server: row.Name, Name: t.Name, ReadOnly: t.Annotations.ReadOnly})
		}
		slices.SortFunc(st.Tools, func(a, b mcphost.Tool) int { return cmp.Compare(a.FullName, b.FullName) })
		out = append(out, s.servers.sharedStatus(st))
	}
	slices.SortFunc(out, func(a, b mcphost.ServerStatus) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// ReconnectMCPServer has the CLI connect a server anew. For one in this
// process, which the CLI refuses to reconnect, it is switched off and on.
func (s *session) ReconnectMCPServer(ctx context.Context, name string) error {
	if h := s.servers.hostOf(name); h != nil {
		return h.Reconnect(ctx, name)
	}
	s.servers.mu.Lock()
	ours := s.servers.attached[name] != nil
	s.servers.mu.Unlock()
	if !ours {
		return s.control(ctx, "mcp_reconnect", map[string]string{"serverName": name}, nil)
	}
	if err := s.SetMCPServerEnabled(ctx, name, false); err != nil {
		return err
	}
	return s.SetMCPServerEnabled(ctx, name, true)
}

// SetMCPServerEnabled has the CLI switch a server off or on.
func (s *session) SetMCPServerEnabled(ctx context.Context, name string, on bool) error {
	if h := s.servers.hostOf(name); h != nil && h == s.servers.ownHost {
		if err := h.SetEnabled(ctx, name, on); err != nil {
			return err
		}
	}
	return s.control(ctx, "mcp_toggle", struct {
		Server  string `json:"serverName"`
		Enabled bool   `json:"enabled"`
	}{name, on}, nil)
}

// SetMCPServers replaces the servers that the session was opened with.
func (s *session) SetMCPServers(ctx context.Context, configs map[string]mcphost.ServerConfig) (mcphost.SetResult, error) {
	configs, err := s.servers.byHost(ctx, configs)
	if err != nil {
		return mcphost.SetResult{}, err
	}
	all, err := s.servers.external(configs)
	if err != nil {
		return mcphost.SetResult{}, err
	}
	configs = s.servers.withShared(configs)
	_, ours := s.servers.attach(configs)
	for name, c := range ours {
		c.Type, c.Name = "sdk", name
		if all[name], err = json.Marshal(c); err != nil {
			return mcphost.SetResult{}, fmt.Errorf("claude-code: server %q: %w", name, err)
		}
	}
	var r struct {
		Added   []string          `json:"added"`
		Removed []string          `json:"removed"`
		Errors  map[string]string `json:"errors"`
	}
	if err := s.control(ctx, "mcp_set_servers", map[string]any{"servers": all}, &r); err != nil {
		return mcphost.SetResult{}, err
	}
	s.servers.drop(r.Removed, configs)
	out := mcphost.SetResult{Added: r.Added, Removed: r.Removed}
	for name, text := range r.Errors {
		if out.Errors == nil {
			out.Errors = map[string]error{}
		}
		out.Errors[name] = errors.New(text)
	}
	return out, nil
}

// drop closes the bridges of servers that are gone.
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
