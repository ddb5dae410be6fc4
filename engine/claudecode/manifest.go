package claudecode

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sdk/tenon/mcphost"
)

const (
	// manifestLimit is how long all servers in this process together have to say what they are. It is
	// the TypeScript SDK's limit; the CLI needs longer than that to start.
	manifestLimit = 250 * time.Millisecond
	// manifestsOff is the variable that has the CLI shake hands itself, the TypeScript SDK's.
	manifestsOff = "CLAUDE_AGENT_SDK_DISABLE_MCP_MANIFESTS"
	// manifestVersion is the protocol version that the CLI's client asks for; it takes no other here.
	manifestVersion = "2025-11-25"
	// manifestParked is what the CLI says of a manifest that it uses.
	manifestParked = "parked"
)

// A manifest is what a server in this process answers to a handshake. The CLI takes it from initialize
// and shakes hands with the server no more: its first connection costs no message. What connects later
// (a server that was switched off and on, or added) is asked anew.
type manifest struct {
	Initialize json.RawMessage `json:"initializeResult"`
	// Tools is left out if the CLI has to ask: the list comes in pages, or has changed.
	Tools json.RawMessage `json:"toolsListResult,omitempty"`
}

// clientInfo is what the CLI says of itself in a handshake.
type clientInfo struct {
	Name        string `json:"name"`
	Title       string `json:"title"`
	Version     string `json:"version"`
	Description string `json:"description"`
	WebsiteURL  string `json:"websiteUrl"`
}

// handshake is a request to initialize as the CLI's client makes it. The version is not known
// before the CLI has said hello.
func handshake(version string) any {
	return struct {
		Version      string     `json:"protocolVersion"`
		Capabilities struct{}   `json:"capabilities"`
		Client       clientInfo `json:"clientInfo"`
	}{Version: manifestVersion, Client: clientInfo{
		Name: "claude-code", Title: "Claude Code", Version: version,
		Description: "Anthropic's agentic coding tool", WebsiteURL: "https://claude.com/claude-code",
	}}
}

// wantsManifests reports whether the CLI is to be sent manifests: unless the variable says otherwise,
// in the options or in the environment of this process.
func (s *session) wantsManifests() bool {
	value, _ := s.lookupEnv(manifestsOff) // empty when unset
	return !slices.Contains([]string{"1", "true", "yes", "on"}, strings.ToLower(strings.TrimSpace(value)))
}

// captured is what came of asking one server.
type captured struct {
	name     string
	manifest manifest
	err      error
}

// An inquiry asks servers in this process, all at once, what they would answer to the CLI. It is for
// one goroutine.
type inquiry struct {
	v       *servers
	asked   map[string]*attached
	answers chan captured
	over    chan struct{} // closed at the end: who has not got far by then stops
	got     map[string]captured
}

func (v *servers) inquire(asked map[string]*attached) *inquiry {
	q := &inquiry{v: v, asked: map[string]*attached{}, answers: make(chan captured), over: make(chan struct{}), got: map[string]captured{}}
	q.ask(asked)
	return q
}

// ask asks servers that were not asked before.
func (q *inquiry) ask(servers map[string]*attached) {
	ch := q.v.s.ch
	for name, a := range servers {
		if q.asked[name] == a {
			continue
		}
		q.asked[name] = a
		ch.wg.Go(func() {
			// Not under a caller's context: a session that opens late stays open, for the CLI is going to need it.
			m, err := a.capture(ch.ctx, q.over)
			select {
			case q.answers <- captured{name, m, err}:
			case <-q.over:
			case <-ch.ctx.Done():
			}
		})
	}
}

// await waits for the answers, no longer than limit. It returns the names of those who owe theirs.
func (q *inquiry) await(ctx context.Context, limit time.Duration) []string {
	late := time.NewTimer(limit)
	defer late.Stop()
	for len(q.got) < len(q.asked) {
		select {
		case c := <-q.answers:
			q.got[c.name] = c
		case <-late.C:
			return q.owing()
		case <-ctx.Done():
			return q.owing()
		}
	}
	return nil
}

func (q *inquiry) owing() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(q.asked)) {
		if _, ok := q.got[name]; !ok {
			names = append(names, name)
		}
	}
	return names
}

// manifests are what the servers in this process say that they would answer to the CLI. Whoever
// is late, fails, or is not connected yet has no manifest, and the CLI shakes hands itself: it is told
// what is wrong, if anything is.
func (v *servers) manifests(ctx context.Context) map[string]manifest {
	q := v.early
	if q == nil {
		q = v.inquire(nil)
	}
	defer close(q.over)
	q.ask(v.askable()) // who is connected by now
	if late := q.await(ctx, manifestLimit); ctx.Err() != nil {
		return nil
	} else if len(late) > 0 {
		v.s.opts.Logger.DebugContext(ctx, "claude-code: servers in this process are slow to answer; the CLI asks them itself", "servers", late)
	}
	out := map[string]manifest{}
	for name, c := range q.got {
		if c.err != nil {
			v.s.opts.Logger.WarnContext(ctx, "claude-code: a server in this process did not answer as it should; the CLI asks it itself", "server", name, "error", c.err)
		} else if m, ok := q.asked[name].still(c.manifest); ok {
			out[name] = m
		}
	}
	return out
}

// askable are the servers that can be asked before the CLI is there: not those that are to be off, nor
// those of a host that are not connected yet and of whom nothing but a name is known.
func (v *servers) askable() map[string]*attached {
	out := map[string]*attached{}
	if !v.s.wantsManifests() {
		return out
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for name, a := range v.attached {
		if !isDisabled(v.s.opts.MCPServers[name]) && a.known() {
			out[name] = a
		}
	}
	return out
}

// known reports whether what the server says of itself is its own word.
func (a *attached) known() bool {
	hs, ok := a.provider.(*hostServer)
	return !ok || hs.status().Status == mcphost.StatusConnected
}

// still returns a manifest without what no longer holds; false if nothing does.
func (a *attached) still(m manifest) (manifest, bool) {
	if !a.out.toolsChanged() {
		return m, a.known()
	}
	m.Tools = nil
	_, ofHost := a.provider.(*hostServer) // which counts as a change of the list that the server came or went
	return m, !ofHost
}

// capture asks a server what it would answer to the CLI. The list comes first, since that is what may
// take its time: a late handshake would undo the CLI's own.
func (a *attached) capture(ctx context.Context, over <-chan struct{}) (manifest, error) {
	tools, err := a.ask(ctx, "tools/list", nil)
	if err != nil {
		return manifest{}, err
	}
	select {
	case <-over:
		return manifest{}, nil
	default:
	}
	hello, err := a.ask(ctx, "initialize", handshake(""))
	if err != nil {
		return manifest{}, err
	}
	return manifest{hello, wholeList(tools)}, nil
}

// ask has the bridge answer a request of ours in place of the CLI's.
func (a *attached) ask(ctx context.Context, method string, params any) (json.RawMessage, error) {
	request, err := json.Marshal(struct {
		Version string `json:"jsonrpc"`
		ID      string `json:"id"`
		Method  string `json:"method"`
		Params  any    `json:"params,omitempty"`
	}{"2.0", "tenon-manifest-" + method, method, params})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	reply, err := a.bridge.Handle(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	var r struct {
		Result json.RawMessage `json:"result"`
		Error  struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	switch err := json.Unmarshal(reply, &r); {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", method, err)
	case len(r.Result) == 0:
		return nil, fmt.Errorf("%s: %s", method, r.Error.Message)
	}
	return r.Result, nil
}

// wholeList returns a list of tools, nil if it is only the first page.
func wholeList(list json.RawMessage) json.RawMessage {
	var page struct {
		Next json.RawMessage `json:"nextCursor"`
	}
	if json.Unmarshal(list, &page) != nil || page.Next != nil {
		return nil
	}
	return list
}

// met runs when the CLI knows the servers. Those whose manifest it uses will see no handshake of its own.
func (v *servers) met(ctx context.Context, hello *Initialization) {
	v.mu.Lock()
	all := maps.Clone(v.attached)
	v.mu.Unlock()
	for name, status := range hello.MCPManifests {
		switch a := all[name]; {
		case a == nil: // the CLI's mistake
		case status != manifestParked:
			v.s.opts.Logger.DebugContext(ctx, "claude-code: the CLI shakes hands with a server itself", "server", name, "reason", status)
		case hello.Version != "":
			if _, err := a.ask(ctx, "initialize", handshake(hello.Version)); err != nil {
				v.s.opts.Logger.WarnContext(ctx, "claude-code: a server in this process was not told the CLI's version", "server", name, "error", err)
			}
		}
	}
	for _, a := range all {
		a.out.open()
	}
}
