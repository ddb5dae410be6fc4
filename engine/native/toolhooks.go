package native

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/internal/kit"
	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/mcpconfig"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/permission"
	"github.com/tenon-sdk/tenon/toolresult"
)

// namingEvents are the events whose hooks of kind mcp_tool name servers for which the first turn waits. Some
// do not occur here, but the same settings cause the same wait on both engines.
var namingEvents = []string{
	"UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch", "PermissionRequest", "PermissionDenied",
	"SubagentStart", "SubagentStop", "TaskCreated", "TaskCompleted", "Elicitation", "ElicitationResult", "WorktreeCreate", "WorktreeRemove",
}

// hookServers returns the servers that hooks of kind mcp_tool name.
func hookServers(hooks []mcpconfig.ToolHook) []string {
	var names []string
	for _, h := range hooks {
		if slices.Contains(namingEvents, h.Event) && !slices.Contains(names, h.Server) {
			names = append(names, h.Server)
		}
	}
	return names
}

// addToolHooks adds the hooks of kind mcp_tool of settings files before the program's hooks, which see what
// the former have changed. It returns problems with them.
func (s *session) addToolHooks(hooks []mcpconfig.ToolHook) []agent.MCPServerError {
	if s.opts.Hooks != nil {
		s.programHooks = *s.opts.Hooks
	}
	files := &s.fileHooks
	var problems []agent.MCPServerError
	for _, h := range hooks {
		problem := ""
		th := &toolHook{s: s, ToolHook: h}
		if err := th.prepare(); err != nil {
			problem = fmt.Sprintf("The %v is left out: %v", h, err)
		} else if !th.bind(files) {
			problem = fmt.Sprintf("The %v never runs: the event does not occur on this engine", h)
		}
		if problem != "" {
			problems = append(problems, agent.MCPServerError{Name: h.Server, Type: "invalid_config", Message: problem})
		}
	}
	s.opts.Hooks = new(agent.Hooks)
	all := reflect.ValueOf(s.opts.Hooks).Elem()
	for _, hooks := range []*agent.Hooks{files, &s.programHooks} {
		for i := range all.NumField() {
			list := all.Field(i)
			list.Set(reflect.AppendSlice(list, reflect.ValueOf(hooks).Elem().Field(i)))
		}
	}
	return problems
}

// A toolHook is a hook that calls a tool.
type toolHook struct {
	s *session
	mcpconfig.ToolHook
	covers *permission.Policy // denies the calls that "if" covers; nil without "if"
	ran    atomic.Bool
}

func (h *toolHook) prepare() error {
	if h.If == "" {
		return nil
	}
	policy, problems := permission.NewPolicy(&permission.Options{Deny: []string{h.If}})
	if len(problems) > 0 {
		return fmt.Errorf(`its "if": %s`, problems[0].Message)
	}
	h.covers = policy
	return nil
}

// bind adds the hook to those of its event. It reports false for an event that does not occur.
func (h *toolHook) bind(all *agent.Hooks) bool {
	plain := func(r *hookReply) (*agent.HookOutput, error) { return &r.out, nil }
	switch h.Event {
	case "PreToolUse":
		all.PreToolUse = append(all.PreToolUse, bindHook[agent.PreToolUse](h, (*hookReply).preToolUse))
	case "PostToolUse":
		all.PostToolUse = append(all.PostToolUse, bindHook[agent.PostToolUse](h, (*hookReply).postToolUse))
	case "PostToolUseFailure":
		all.PostToolUseFailure = append(all.PostToolUseFailure, bindHook[agent.PostToolUseFailure](h, plain))
	case "PostToolBatch":
		all.PostToolBatch = append(all.PostToolBatch, bindHook[agent.PostToolBatch](h, plain))
	case "PermissionRequest":
		all.PermissionRequest = append(all.PermissionRequest, bindHook[agent.PermissionRequest](h, (*hookReply).permissionRequest))
	case "UserPromptSubmit":
		all.UserPromptSubmit = append(all.UserPromptSubmit, bindHook[agent.UserPromptSubmit](h, func(r *hookReply) (*agent.PromptOutput, error) {
			return &agent.PromptOutput{HookOutput: r.out, Block: r.blocks(), Reason: r.Reason}, nil
		}))
	case "Stop":
		all.Stop = append(all.Stop, bindHook[agent.Stop](h, func(r *hookReply) (*agent.StopOutput, error) {
			return &agent.StopOutput{HookOutput: r.out, Block: r.blocks(), Reason: r.Reason}, nil
		}))
	case "SessionStart":
		all.SessionStart = append(all.SessionStart, bindHook[agent.SessionStart](h, plain))
	case "SessionEnd":
		all.SessionEnd = append(all.SessionEnd, bindHook[agent.SessionEnd](h, plain))
	case "Notification":
		all.Notification = append(all.Notification, bindHook[agent.Notification](h, plain))
	default:
		return false
	}
	return true
}

// bindHook returns a typed hook that calls the tool with its input and decodes its output.
func bindHook[In, Out any](h *toolHook, output func(*hookReply) (*Out, error)) agent.Hook[In, Out] {
	return agent.Hook[In, Out]{
		Matcher: h.Matcher, Timeout: h.Timeout, FailClosed: h.Block,
		Func: func(ctx context.Context, in *In) (*Out, error) {
			var out *Out
			reply, err := h.call(ctx, transcript.Encode(in))
			if err == nil && reply != nil {
				out, err = output(reply)
			}
			if err != nil {
				return nil, fmt.Errorf("%v: %w", h.ToolHook, err)
			}
			return out, nil
		},
	}
}

// call calls the tool with an event. It returns nil if there is no output.
func (h *toolHook) call(ctx context.Context, event json.RawMessage) (*hookReply, error) {
	if !h.wants(event) || h.Once && h.ran.Swap(true) {
		return nil, nil
	}
	args := json.RawMessage("{}")
	if h.Input != nil {
		var err error
		if args, err = fillIn(h.Input, event); err != nil {
			return nil, err
		}
	}
	host, err := h.s.findHost(h.Server)
	if err != nil {
		return nil, err
	}
	res, err := host.CallServer(ctx, h.Server, h.Tool, args, &mcphost.CallOptions{})
	if err != nil {
		return nil, err
	}
	text := strings.TrimSpace(strings.ToValidUTF8(res.Text(), "\uFFFD"))
	if text == "" && len(res.StructuredContent) > 0 {
		text = string(res.StructuredContent)
	}
	if res.IsError {
		return nil, errors.New(clip.Text(text, 500))
	}
	return parseReply(h.Event, text, h.Block)
}

// wants reports whether the hook's "if" covers the call that an event is about.
func (h *toolHook) wants(event json.RawMessage) bool {
	if h.covers == nil {
		return true
	}
	var about struct {
		ToolName string `json:"tool_name"`
	}
	_ = json.Unmarshal(event, &about)
	r, _ := h.s.requestOf(about.ToolName)
	return about.ToolName == "" || h.covers.WithServers(h.s.knownServers()).Hidden(r)
}

// A hookReply is the answer of a hook's tool in the form of Claude Code's hooks.
type hookReply struct {
	kit.HookReply
	out agent.HookOutput
}

// replyFields are the members of the output of hooks.
var replyFields = []string{"continue", "suppressOutput", "stopReason", "systemMessage", "decision", "hookSpecificOutput", "terminalSequence"}

// parseReply reads an answer. Text that is not an object is context for the model on UserPromptSubmit and
// SessionStart. On other events it is ignored, or an error if strict is set.
func parseReply(event, text string, strict bool) (*hookReply, error) {
	if text == "" {
		return nil, nil
	}
	var fields map[string]json.RawMessage
	isObject := json.Unmarshal([]byte(text), &fields) == nil && fields != nil
	known := slices.ContainsFunc(replyFields, func(name string) bool { _, ok := fields[name]; return ok })
	switch {
	case !isObject && (event == "UserPromptSubmit" || event == "SessionStart"):
		return &hookReply{out: agent.HookOutput{AdditionalContext: toolresult.EscapeHostTags(text)}}, nil
	case strict && !known && (!isObject || len(fields) > 0):
		return nil, fmt.Errorf("the tool's answer is no output of a hook: %s", clip.Text(text, 200))
	case !isObject:
		return nil, nil
	}
	r := new(hookReply)
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return nil, fmt.Errorf("the tool's answer is no output of a hook: %w", err)
	}
	if name := r.Specific.Event; name != "" && name != event {
		return nil, fmt.Errorf("the tool's answer is for %q", clip.Text(name, 50))
	}
	r.fence()
	r.out = agent.HookOutput{SystemMessage: r.SystemMessage, AdditionalContext: r.Specific.AdditionalContext}
	if r.Continue != nil && !*r.Continue {
		r.out.Stop, r.out.StopReason = true, r.StopReason
	}
	return r, nil
}

// fence escapes the host's tags in the texts for the model.
func (r *hookReply) fence() {
	for _, text := range []*string{&r.Reason, &r.StopReason, &r.Specific.AdditionalContext, &r.Specific.PermissionReason} {
		*text = toolresult.EscapeHostTags(*text)
	}
	r.Specific.UpdatedOutput = toolset.EscapeJSON(r.Specific.UpdatedOutput, true)
	r.Specific.UpdatedMCPOutput = toolset.EscapeJSON(r.Specific.UpdatedMCPOutput, true)
}

func (r *hookReply) blocks() bool { return r.Decision == "block" }

func (r *hookReply) preToolUse() (*agent.PreToolUseOutput, error) {
	out := &agent.PreToolUseOutput{
		HookOutput: r.out, Decision: r.Specific.PermissionDecision, Reason: r.Specific.PermissionReason, UpdatedInput: r.Specific.UpdatedInput,
	}
	switch out.Decision {
	case "": // the older form
		older := map[string]permission.Behavior{"block": permission.Deny, "approve": permission.Allow}
		if d := older[r.Decision]; d != "" {
			out.Decision, out.Reason = d, r.Reason
		}
	case "defer":
		out.Decision = ""
	case permission.Allow, permission.Deny, permission.Ask:
	default:
		return nil, fmt.Errorf("the tool's answer has the permissionDecision %q", clip.Text(string(out.Decision), 50))
	}
	return out, nil
}

func (r *hookReply) postToolUse() (*agent.PostToolUseOutput, error) {
	out := &agent.PostToolUseOutput{HookOutput: r.out}
	if r.blocks() {
		out.Feedback = r.Reason
	}
	for _, raw := range []json.RawMessage{r.Specific.UpdatedMCPOutput, r.Specific.UpdatedOutput} { // the latter takes precedence
		if raw != nil {
			out.UpdatedOutput = outputContent(raw)
		}
	}
	return out, nil
}

// outputContent returns a changed output as content: blocks, a string as text, or other JSON as text.
func outputContent(raw json.RawMessage) agent.Content {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return agent.TextContent(text)
	}
	var wrapped struct {
		Content json.RawMessage `json:"content"`
	}
	blocks := raw
	if json.Unmarshal(raw, &wrapped) == nil && len(wrapped.Content) > 0 {
		blocks = wrapped.Content
	}
	var content agent.Content
	if json.Unmarshal(blocks, &content) == nil && len(content) > 0 {
		return content
	}
	return agent.TextContent(string(raw))
}

func (r *hookReply) permissionRequest() (*agent.PermissionRequestOutput, error) {
	out := &agent.PermissionRequestOutput{HookOutput: r.out}
	if r.Specific.Decision == nil {
		return out, nil
	}
	v, err := permission.ParsePromptResult(r.Specific.Decision)
	out.Verdict = &v
	return out, err
}

// reference matches ${path.to.value} in a string of a hook's input.
var reference = regexp.MustCompile(`\$\{([A-Za-z0-9_.\-]+)\}`)

// fillIn replaces the references in the strings of input by the values at their paths in event: a string as
// it is, other values as JSON, and absent values by nothing.
func fillIn(input, event json.RawMessage) (json.RawMessage, error) {
	var v any
	if json.Unmarshal(input, &v) != nil {
		return input, nil //nolint:nilerr // the tool refuses it
	}
	if n := bytes.Count(input, []byte("${")); n > 1 && n*len(event) > maxFillIn {
		return nil, fmt.Errorf("its input has %d references to an event of %d bytes, which is too much", n, len(event))
	}
	d := json.NewDecoder(bytes.NewReader(event))
	d.UseNumber()
	var about any
	_ = d.Decode(&about) // made by Encode
	var walk func(v any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case string:
			return reference.ReplaceAllStringFunc(v, func(ref string) string { return at(about, ref[2:len(ref)-1]) })
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		case map[string]any:
			for name := range v {
				v[name] = walk(v[name])
			}
		}
		return v
	}
	return transcript.Encode(walk(v)), nil
}

// maxFillIn bounds the size of the event times the number of references to it, in bytes.
const maxFillIn = 64 << 20

// at returns the text of the value at a path in decoded JSON.
func at(value any, path string) string {
	for name := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(v) {
				return ""
			}
			value = v[i]
		default:
			return ""
		}
	}
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	return string(transcript.Encode(value))
}
