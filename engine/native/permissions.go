package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/internal/kit"
	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/permission"
)

// errDenied is the cause of a turn's end by a denial that interrupts.
var errDenied = errors.New("native: a denial ended the turn")

// permit decides whether a call may run. It returns the arguments, or the answer to a call that may not.
func (t *turn) permit(c *call, args json.RawMessage) (json.RawMessage, *answer) {
	args, hooks := t.preToolUse(c, args, t.s.opts.Hooks.PreToolUse)
	r := c.tool.Request()
	r.Hook, r.HookReason = hooks.Decision, hooks.Reason()
	d := t.s.permissions().Decide(r)
	if c.tool.Own {
		d = t.decideOwn(c, args, r)
	}
	switch d.Behavior {
	case permission.Allow:
		return args, nil
	case permission.Ask:
		return t.ask(c, args, d)
	}
	return nil, t.deny(c, args, d, d.Message, true)
}

// deny answers a call that may not run and records it. Automatic denials are reported by a message.
func (t *turn) deny(c *call, args json.RawMessage, d permission.Decision, text string, automatic bool) *answer {
	if transcript.IsBlank(text) {
		text = fmt.Sprintf("Permission to use %s has been denied.", c.use.Name)
	}
	t.mu.Lock()
	t.denials = append(t.denials, agent.PermissionDenial{ToolName: c.use.Name, ToolUseID: c.use.ID, ToolInput: args})
	t.mu.Unlock()
	if automatic {
		t.s.note("permission_denied", struct {
			ToolName  string `json:"tool_name"`
			ToolUseID string `json:"tool_use_id"`
			Type      string `json:"decision_reason_type,omitempty"`
			Reason    string `json:"decision_reason,omitempty"`
			Message   string `json:"message"`
		}{c.use.Name, c.use.ID, string(d.Reason), d.Rule, text})
	}
	return errorAnswer(c, text)
}

// ask asks the hooks, the program or its prompt tool about a call.
func (t *turn) ask(c *call, args json.RawMessage, d permission.Decision) (json.RawMessage, *answer) {
	v, args, err := t.permissionRequest(c, args)
	if v == nil && err == nil && !t.stopped.Load() {
		v, err = t.question(c, args, d)
	}
	if t.ctx.Err() != nil || t.stopped.Load() {
		return nil, t.unmade(c)
	}
	if err == nil && v != nil {
		t.s.update(v.UpdatedPermissions)
		switch {
		case v.Behavior == permission.Deny:
			a := t.deny(c, args, d, v.Message, false)
			if v.Interrupt {
				t.cancel(errDenied)
			}
			return nil, a
		case v.Behavior != permission.Allow:
			err = fmt.Errorf("unknown behavior %q", v.Behavior)
		case v.UpdatedInput == nil:
			return args, nil
		case !kit.IsObject(v.UpdatedInput):
			err = errors.New("the changed input is not a JSON object")
		default:
			return v.UpdatedInput, nil
		}
	}
	text := d.Message
	if err != nil {
		text = fmt.Sprintf("Tool permission request failed: %v. %s was not run.", err, c.use.Name)
	}
	return nil, t.deny(c, args, d, text, true)
}

// question asks the program or its prompt tool. Nil without an error means that there is nobody to ask.
func (t *turn) question(c *call, args json.RawMessage, d permission.Decision) (*permission.PromptResult, error) {
	o := t.s.opts
	if o.CanUseTool != nil || t.s.table.Prompt != nil {
		var hooks sync.WaitGroup
		hooks.Go(func() { t.notify(c) }) // the question does not wait for them
		defer hooks.Wait()
	}
	switch {
	case o.CanUseTool != nil:
		source := "" // of the engine's own tools
		if h := c.tool.Host; h != nil {
			if st, ok := h.ServerStatus(c.tool.Server); ok {
				source = toolset.SourceOf(st)
			}
		}
		r := &agent.ToolRequest{
			ToolName: c.use.Name, Server: c.tool.Server, Tool: c.tool.Name, Source: source,
			Title: c.tool.Title, Annotations: c.tool.Annotations, ReadOnly: c.tool.ReadOnly, ToolUseID: c.use.ID, Input: args, Reason: d.Message,
			Suggestions: t.s.permissions().Suggest(c.tool.Request()),
		}
		v, err := kit.GuardDetached(t.ctx, o.Logger, "CanUseTool", func() (*permission.PromptResult, error) { return o.CanUseTool(t.ctx, r) })
		if err == nil && v == nil {
			err = errors.New("the callback gave no verdict")
		}
		return v, err
	case t.s.table.Prompt != nil:
		return t.promptTool(c, args)
	}
	return nil, nil
}

// promptTool asks the MCP tool that Options.PermissionPromptTool names.
func (t *turn) promptTool(c *call, args json.RawMessage) (*permission.PromptResult, error) {
	p := t.s.table.Prompt
	question := transcript.Encode(map[string]any{"tool_name": c.use.Name, "input": args, "tool_use_id": c.use.ID})
	res, err := p.Host.CallServer(t.ctx, p.Server, p.Name, question, &mcphost.CallOptions{ToolUseID: c.use.ID, Session: t.s.opts.SessionID})
	if err != nil {
		return nil, err
	}
	if res.IsError {
		return nil, fmt.Errorf("the permission prompt tool failed: %s", clip.Text(strings.ToValidUTF8(res.Text(), "\uFFFD"), 500))
	}
	v, err := permission.ParsePromptResult([]byte(res.Text()))
	return &v, err
}

// update applies the permission updates of a verdict and reports faulty ones.
func (s *session) update(updates []permission.Update) {
	if len(updates) == 0 {
		return
	}
	s.mu.Lock()
	var problems []permission.Problem
	mode := s.policy.Mode()
	s.policy, problems = s.policy.Apply(updates...)
	if s.policy.Mode() == permission.ModeAuto {
		if policy, err := s.policy.WithMode(mode); err == nil {
			s.policy = policy
		}
		problems = append(problems, permission.Problem{Rule: string(permission.ModeAuto), Message: noClassifier})
	}
	s.mu.Unlock()
	for _, p := range problems {
		s.warn("permission_update", "A permission update was left out: %s", p)
	}
}

// A boundPolicy is a policy with the servers of the run, and what it was made from.
type boundPolicy struct {
	*permission.Policy
	from     *permission.Policy
	servers  *permission.Servers
	hosts    []*mcphost.Host
	revision []uint64
}

// permissions returns the current policy for the current servers.
func (s *session) permissions() *permission.Policy { return s.rules().Policy }

// knownServers returns the servers that rules may name.
func (s *session) knownServers() *permission.Servers { return s.rules().servers }

func (s *session) rules() boundPolicy {
	hosts := s.hosts()
	revision := make([]uint64, len(hosts))
	for i, h := range hosts {
		revision[i] = h.Revision() // before the servers: it may be too old, and not too new
	}
	s.mu.Lock()
	policy, bound := s.policy, s.bound
	s.mu.Unlock()
	if bound.servers != nil && bound.from == policy && slices.Equal(bound.hosts, hosts) && slices.Equal(bound.revision, revision) {
		return bound
	}
	var list []permission.Server
	for _, st := range s.servers() {
		list = append(list, kit.RuleServer(st))
	}
	servers := permission.NewServers(list...)
	bound = boundPolicy{policy.WithServers(servers), policy, servers, hosts, revision}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bound = bound
	return bound
}

// requestOf returns a call of a tool, by its full name, for the rules. It reports false if no server has the tool.
func (s *session) requestOf(name string) (permission.Request, bool) {
	for _, h := range s.hosts() {
		if mt, ok := h.Tool(name); ok {
			return (&toolset.Tool{Tool: mt}).Request(), true
		}
	}
	return permission.Request{Tool: name}, false
}

// reviewRules warns once of each rule that can only be a mistake, as far as the connected servers show.
func (s *session) reviewRules(ctx context.Context) {
	policy := s.permissions()
	if policy == s.reviewed {
		return
	}
	r := kit.Review(s.serverStatus())
	for _, own := range []string{toolset.SearchTool, readTool, listResourcesTool, readResourceTool, outputTool} {
		r.Tools = append(r.Tools, permission.Request{Tool: own})
	}
	problems := policy.Review(ctx, r.Tools, r.Unlisted...)
	if ctx.Err() != nil || s.permissions() != policy {
		return // the servers have changed: the next request reviews again
	}
	s.reviewed = policy
	for _, p := range problems {
		of := string(p.Behavior) + " " + p.Rule
		if p.Behavior == "" { // of a tool's policy, which the message names
			of += p.Message
		}
		if !s.misspelt[of] {
			s.misspelt[of] = true
			s.warn("permission_rule", "Permission rule: %s", p)
		}
	}
}
