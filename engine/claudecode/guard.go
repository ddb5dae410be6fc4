package claudecode

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/internal/kit"
	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/permission"
)

// The CLI runs the hooks of an event at the same time, and of the inputs that they give a call one counts.
// The program's hooks on PreToolUse are one hook to it, which runs them one after the other, so that each
// sees what those before it have made of the input. What hooks of settings files make of it at the same time
// is seen when the call arrives, if its server is in this process: see recheck.

// guardsID is the callback of the program's hooks on PreToolUse.
const guardsID = "PreToolUse"

// registerGuards announces the program's hooks on PreToolUse.
func (s *session) registerGuards(all map[string][]hookMatcher) {
	hooks := s.opts.Hooks.PreToolUse
	if len(hooks) == 0 {
		return
	}
	limit := time.Minute // for what is no hook's fault
	var subjects []string
	for _, h := range hooks {
		limit += cmp.Or(h.Timeout, agent.DefaultHookTimeout)
		if h.Matcher == "" || h.Matcher == "*" {
			subjects = append(subjects, ".*")
		} else {
			subjects = append(subjects, "(?:"+h.Matcher+")")
		}
	}
	matcher := "^(?:" + strings.Join(subjects, "|") + ")$" // ours match the whole name, the CLI's a part of it
	// Each hook's failure is judged here; that none of them answers blocks the call.
	all["PreToolUse"] = append(all["PreToolUse"], hookMatcher{Matcher: &matcher, Callbacks: []string{guardsID}, Timeout: limit.Seconds(), OnFailure: "block"})
	s.hooks[guardsID] = func(ctx context.Context, input json.RawMessage) (*hookReply, error) {
		var in agent.PreToolUse
		if err := json.Unmarshal(input, &in); err != nil {
			return nil, fmt.Errorf("reading the input of PreToolUse: %w", err)
		}
		g := s.guard(ctx, in)
		s.args.guarded(in.ToolUseID, g.input)
		return g.reply(s), nil
	}
}

// A guarding is what the program's hooks say of a call.
type guarding struct {
	input    json.RawMessage // as the last hook left it
	changed  bool
	verdict  kit.Verdict
	contexts []string
	messages []string
	stopped  bool
	stop     string
}

// guard runs the program's hooks on PreToolUse that match a call, one after the other.
func (s *session) guard(ctx context.Context, in agent.PreToolUse) *guarding {
	const event = "PreToolUse"
	g := &guarding{input: in.ToolInput}
	for _, h := range s.opts.Hooks.PreToolUse {
		if !agent.MatchTool(h.Matcher, in.ToolName) {
			continue
		}
		mine := in
		mine.ToolInput = g.input
		limit := cmp.Or(h.Timeout, agent.DefaultHookTimeout)
		hookCtx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w after %v", errHookTimeout, limit))
		out, err := contained(s, "hook "+event, func() (*agent.PreToolUseOutput, error) { return h.Func(hookCtx, &mine) })
		if err != nil && hookCtx.Err() != nil {
			err = context.Cause(hookCtx)
		}
		cancel()
		switch {
		case err == nil && out != nil:
			s.takeOutput(g, in.ToolUseID, out)
		case err == nil || ctx.Err() != nil: // nothing to say, or nobody to say it to
		case h.FailClosed || errors.Is(err, errHookTimeout):
			g.verdict.Add(permission.Deny, fmt.Sprintf("%s hook error: %v", event, err))
		default:
			s.hookFailed(ctx, event, err)
		}
	}
	return g
}

// takeOutput takes what one hook says.
func (s *session) takeOutput(g *guarding, id string, o *agent.PreToolUseOutput) {
	if o.SystemMessage != "" {
		g.messages = append(g.messages, o.SystemMessage)
	}
	if o.AdditionalContext != "" {
		g.contexts = append(g.contexts, o.AdditionalContext)
	}
	if o.Stop && !g.stopped {
		g.stopped, g.stop = true, o.StopReason
	}
	after, changed := g.verdict.Take(o, g.input)
	if changed {
		s.keepReplaced(id, g.input, after)
		g.input, g.changed = after, true
	}
}

// reply is the CLI's form of what the hooks say together.
func (g *guarding) reply(s *session) *hookReply {
	r := s.common("PreToolUse", agent.HookOutput{
		SystemMessage: strings.Join(g.messages, "\n"), AdditionalContext: strings.Join(g.contexts, "\n"), Stop: g.stopped, StopReason: g.stop,
	})
	decision, reason := g.verdict.Decision, g.verdict.Reason()
	if g.stopped { // the CLI would still make the call
		decision, reason = permission.Deny, cmp.Or(reason, g.stop, "The turn was stopped before this tool call was made.")
	}
	r.Specific.PermissionDecision, r.Specific.PermissionReason = decision, reason
	if g.changed {
		r.Specific.UpdatedInput = g.input
	}
	return r
}

// hookFailed tells of a hook that failed where the run goes on without it.
func (s *session) hookFailed(ctx context.Context, event string, err error) {
	s.opts.Logger.WarnContext(ctx, "claude-code: hook failed", "event", event, "error", err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warn("hook_callback_failed", "A %s hook failed, and the run goes on without it: %v", event, err)
}

// recheck runs the program's hooks once more for a call whose input is not what they saw: a hook of a
// settings file has changed it beside them. It returns the input to use, or why the call is not made.
func (s *session) recheck(ctx context.Context, id, tool string, input json.RawMessage) (json.RawMessage, string) {
	if s.opts.Hooks == nil || len(s.opts.Hooks.PreToolUse) == 0 || id == "" || !s.args.unseen(id, input) {
		return input, ""
	}
	in := agent.PreToolUse{ToolHookInput: agent.ToolHookInput{HookInput: s.hookInput("PreToolUse"), ToolName: tool, ToolUseID: id, ToolInput: input}}
	g := s.guard(ctx, in)
	for _, text := range append(g.messages, g.contexts...) {
		s.heed(agent.HookOutput{SystemMessage: text})
	}
	s.args.guarded(id, g.input)
	switch {
	case ctx.Err() != nil: // the hooks may not have said all that they would
		return nil, "The call was given up while the program's hooks looked at it."
	case g.stopped:
		s.noteBlock(true, g.stop)
		return nil, cmp.Or(g.stop, "The turn was stopped before this tool call was made.")
	case g.verdict.Decision == "" || g.verdict.Decision == permission.Allow:
		return g.input, ""
	}
	return nil, cmp.Or(g.verdict.Reason(), "A hook of the settings changed the input of this call, and the program does not allow it so.")
}

// guardCall has the program's hooks look at a call of a server in this process again, if need be. It returns
// the message to pass on, or the reply to a call that is not made.
func (s *session) guardCall(ctx context.Context, server string, raw json.RawMessage) (message, reply json.RawMessage) {
	if s.opts.Hooks == nil || len(s.opts.Hooks.PreToolUse) == 0 || !bytes.Contains(raw, []byte(`"tools/call"`)) {
		return raw, nil
	}
	id, input, ok := readCall(raw)
	if !ok {
		return raw, nil
	}
	var m struct {
		ID     json.RawMessage `json:"id"`
		Params struct {
			Name string `json:"name"`
		} `json:"params"`
	}
	if json.Unmarshal(raw, &m) != nil {
		return raw, nil
	}
	use, why := s.recheck(ctx, id, toolname.Full(server, m.Params.Name), input)
	if why == "" {
		if bytes.Equal(use, input) {
			return raw, nil
		}
		return withArguments(raw, use), nil
	}
	reply, err := json.Marshal(struct {
		Version string              `json:"jsonrpc"`
		ID      json.RawMessage     `json:"id"`
		Result  *mcp.CallToolResult `json:"result"`
	}{"2.0", m.ID, &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: why}}, IsError: true}})
	if err != nil {
		return nil, json.RawMessage(`null`)
	}
	return nil, reply
}

// guarded notes an input that the program has seen or made.
func (a *arguments) guarded(id string, input json.RawMessage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen[id] = append(a.seen[id], input)
}

// allowed is guarded for an input that the program was asked about, if its hooks saw the call.
func (a *arguments) allowed(id string, input json.RawMessage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.seen[id]) > 0 {
		a.seen[id] = append(a.seen[id], input)
	}
}

// unseen reports whether the program has seen a call before it is made, but not with this input.
func (a *arguments) unseen(id string, input json.RawMessage) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	inputs := a.seen[id]
	for _, seen := range inputs {
		if bytes.Equal(seen, input) || sameRounded(seen, input) {
			return false
		}
	}
	return len(inputs) > 0
}
