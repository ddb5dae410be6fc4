package claudecode

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/internal/kit"
	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/permission"
)

// addPreToolUse registers the program's hooks on PreToolUse. The CLI runs the hooks of an event
// concurrently and uses one of the inputs that they give a call. So the program's hooks are one hook
// to it, which runs them one after the other: each gets the input that the one before it leaves. If
// hooks of settings files change the input at the same time, that is seen when the call arrives: see
// checkCall.
func (s *session) addPreToolUse(h *agent.Hooks) {
	if len(h.PreToolUse) == 0 {
		return
	}
	limit := time.Minute // for this engine's part
	var subjects []string
	for _, hook := range h.PreToolUse {
		limit += cmp.Or(hook.Timeout, agent.DefaultHookTimeout)
		subjects = append(subjects, cmp.Or(wholeName(hook.Matcher), ".*"))
	}
	// Failures of the hooks are handled here. If none of them answers, the call is blocked.
	s.hooks.add("PreToolUse", strings.Join(subjects, "|"), limit, true, func(ctx context.Context, input json.RawMessage) (any, error) {
		var in agent.PreToolUse
		if err := json.Unmarshal(input, &in); err != nil {
			return nil, fmt.Errorf("reading the input of PreToolUse: %w", err)
		}
		p := s.runPreToolUse(ctx, in)
		s.inputs.saw(in.ToolUseID, p.input)
		return p.reply(s), nil
	})
}

// A preToolUse is the combined output of the program's hooks on a call.
type preToolUse struct {
	input   json.RawMessage // as the last hook left it
	changed bool
	verdict kit.Verdict
	out     agent.HookOutput
}

// runPreToolUse runs the hooks on PreToolUse that match a call, one after the other.
func (s *session) runPreToolUse(ctx context.Context, in agent.PreToolUse) *preToolUse {
	p := new(preToolUse)
	p.input, p.verdict = kit.RunPreToolUse(ctx, s.runner, s.opts.Hooks.PreToolUse, in, func(o *agent.PreToolUseOutput, before, after json.RawMessage, changed bool) {
		p.out.SystemMessage = joinLines(p.out.SystemMessage, o.SystemMessage)
		p.out.AdditionalContext = joinLines(p.out.AdditionalContext, o.AdditionalContext)
		if o.Stop && !p.out.Stop {
			p.out.Stop, p.out.StopReason = true, o.StopReason
		}
		if changed {
			s.inputs.replace(in.ToolUseID, before, after)
			p.changed = true
		}
	})
	return p
}

// joinLines joins texts by line ends. It leaves out empty ones.
func joinLines(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "\n")
}

// reply returns the CLI's form of the output.
func (p *preToolUse) reply(s *session) *hookReply {
	r := s.reply("PreToolUse", p.out)
	r.Specific.PermissionDecision, r.Specific.PermissionReason = p.verdict.Decision, p.verdict.Reason()
	if p.out.Stop { // else the CLI makes the call
		r.Specific.PermissionDecision = permission.Deny
		r.Specific.PermissionReason = cmp.Or(r.Specific.PermissionReason, p.out.StopReason, textStopped)
	}
	if p.changed {
		r.Specific.UpdatedInput = p.input
	}
	return r
}

// textStopped answers calls after a hook has stopped the turn.
const textStopped = "The turn was stopped before this tool call was made."

// checkCall runs the program's hooks once more on a call of a server in this process whose input they
// have not seen, because a hook of a settings file has changed it at the same time. It returns the
// message for the server, or the reply to a call that is not made.
func (s *session) checkCall(ctx context.Context, server string, raw json.RawMessage) (message, reply json.RawMessage) {
	c, ok := readToolsCall(raw)
	if !ok || len(s.opts.Hooks.PreToolUse) == 0 || !s.inputs.unseen(c.id, c.input) {
		return raw, nil
	}
	p := s.runPreToolUse(ctx, agent.PreToolUse{ToolHookInput: agent.ToolHookInput{
		HookInput: s.hookInput("PreToolUse"), ToolName: toolname.Full(server, c.name), ToolUseID: c.id, ToolInput: c.input,
	}})
	s.deliver(agent.HookOutput{SystemMessage: p.out.SystemMessage})
	s.deliver(agent.HookOutput{SystemMessage: p.out.AdditionalContext})
	s.inputs.saw(c.id, p.input)
	why := ""
	switch {
	case ctx.Err() != nil: // the hooks may have been cut short
		why = "The call was given up while the program's hooks looked at it."
	case p.out.Stop:
		s.noteStop(true, p.out.StopReason)
		why = cmp.Or(p.out.StopReason, textStopped)
	case p.verdict.Decision == "" || p.verdict.Decision == permission.Allow:
		if p.changed {
			raw = withInput(raw, p.input)
		}
		return raw, nil
	default:
		why = cmp.Or(p.verdict.Reason(), "A hook of the settings changed the input of this call, and the program does not allow it so.")
	}
	reply, err := json.Marshal(struct {
		Version string              `json:"jsonrpc"`
		ID      json.RawMessage     `json:"id"`
		Result  *mcp.CallToolResult `json:"result"`
	}{"2.0", c.requestID, &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: why}}, IsError: true}})
	if err != nil {
		return nil, json.RawMessage(`null`)
	}
	return nil, reply
}
