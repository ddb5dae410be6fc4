package mcphost

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A probe is the request server/discover with which a connection begins. Some
// servers answer nothing before initialize, so after a while it counts as
// answered with no, and the library sends initialize.
//
// A server that is merely slow answers both then, and one of the stateless era
// refuses the second: the library's takes initialize after server/discover for a
// duplicate. So a late yes answers the initialize that is waiting, as if the
// probe had been in time. w.mu guards a probe.
type probe struct {
	id     int64 // 0: there was none
	params json.RawMessage
	timer  *time.Timer
	late   *lateProbe // set when the answer came after all
}

// A lateProbe is what a late answer told.
type lateProbe struct {
	version      string
	capabilities *mcp.ServerCapabilities
}

// listenID is the id of the request that the library does not make in this
// case; its own count up from 1.
const listenID = 1 << 40

// askID is what the ids of requests count up from that the library has no part in.
const askID = 1 << 41

// begin starts the clock of a probe. w.mu is held.
func (w *wire) beginProbe(out *outgoing) {
	w.probe = probe{id: out.id, params: out.params}
	if w.probing > 0 {
		w.probe.timer = time.AfterFunc(w.probing, func() {
			w.fail(out.id, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "server/discover was not answered"})
		})
	}
}

// lateAnswer takes the reply to a probe that was given up. It answers the
// initialize that is waiting, if it can.
func (w *wire) lateAnswer(id int64, result json.RawMessage) {
	w.mu.Lock()
	asked := w.probe.id == id && result != nil && w.probe.late == nil
	var initialize int64
	for pid, p := range w.pending {
		if p.method == methodInitialize {
			initialize = pid
		}
	}
	w.mu.Unlock()
	if !asked || initialize == 0 {
		return
	}
	late, answer := initializeFrom(result)
	if late == nil || w.take(initialize) == nil {
		return
	}
	w.mu.Lock()
	w.probe.late = late
	w.mu.Unlock()
	w.push(response(initialize, answer, nil))
}

// initializeFrom turns the result of server/discover into that of initialize;
// nil if the two sides share no version of the stateless era.
func initializeFrom(discover json.RawMessage) (*lateProbe, json.RawMessage) {
	var d mcp.DiscoverResult
	if unmarshal(discover, &d) != nil {
		return nil, nil
	}
	i := slices.IndexFunc(mcp.SupportedProtocolVersions(), func(v string) bool {
		return v >= statelessSince && slices.Contains(d.SupportedVersions, v)
	})
	if i < 0 {
		return nil, nil
	}
	late := &lateProbe{version: mcp.SupportedProtocolVersions()[i], capabilities: d.Capabilities}
	answer, err := json.Marshal(map[string]any{
		"protocolVersion": late.version, "capabilities": d.Capabilities, "instructions": d.Instructions,
		"serverInfo": d.Meta[mcp.MetaKeyServerInfo],
	})
	if err != nil {
		return nil, nil
	}
	return late, answer
}

// answeredLate returns what a late answer told; nil if there was none.
func (w *wire) answeredLate() *lateProbe {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.probe.late
}

// listenLate asks for the notices of changes, as the library does after a probe
// that is answered in time.
func (w *wire) listenLate(ctx context.Context, late *lateProbe) {
	want := mcp.NotificationSubscriptions{}
	if c := late.capabilities; c != nil {
		want.ToolsListChanged = c.Tools != nil && c.Tools.ListChanged
		want.PromptsListChanged = c.Prompts != nil && c.Prompts.ListChanged
		want.ResourcesListChanged = c.Resources != nil && c.Resources.ListChanged
	}
	var asked struct {
		Meta json.RawMessage `json:"_meta"`
	}
	w.mu.Lock()
	params := w.probe.params
	w.mu.Unlock()
	if !want.ToolsListChanged && !want.PromptsListChanged && !want.ResourcesListChanged || json.Unmarshal(params, &asked) != nil {
		return
	}
	listen, err := json.Marshal(map[string]any{"_meta": asked.Meta, "notifications": want})
	if err != nil {
		return
	}
	id, _ := jsonrpc.MakeID(float64(listenID)) // a float64 always makes an id
	w.report("asking for notices of changes", w.Write(ctx, &jsonrpc.Request{ID: id, Method: methodListen, Params: listen}))
}
