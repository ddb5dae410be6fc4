package mcpconfig

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sdk/tenon/permission"
)

// Settings are the parts of Claude Code's settings files that concern a session, except its servers.
type Settings struct {
	// Allow, Deny and Ask are permission rules.
	Allow, Deny, Ask []string
	// Mode is the permission mode, or "".
	Mode permission.Mode
	// Directories are additional directories for the roots of servers.
	Directories []string
	// Env are environment variables for the session.
	Env map[string]string
	// Model is the ID or alias of a model, or "".
	Model string
	// Hooks are the hooks of type mcp_tool, in the order of their files.
	Hooks []ToolHook
	// Trusted are the trusted files of the checkout as standard JSON objects, those of lower precedence
	// first.
	Trusted []json.RawMessage
}

// A ToolHook is a hook that calls a tool of a configured server.
type ToolHook struct {
	// Event is the name of the event, such as "PreToolUse". Matcher selects its subjects.
	Event, Matcher string
	// Server is the server's key, and Tool the tool's name on the server.
	Server, Tool string
	// Input are the arguments, a JSON object. Its strings have references such as ${tool_input.path} to the
	// event's input. Nil means {}.
	Input json.RawMessage
	// If is a permission rule that the call must match. Empty matches all calls.
	If string
	// Timeout bounds the call. Zero leaves it to the engine.
	Timeout time.Duration
	// Block makes a failure of the hook block the event's action.
	Block bool
	// Once limits the hook to one run in a session.
	Once bool
	// File and Line are the place of the hook.
	File string
	Line int
}

// SettingsOptions configures [LoadSettings]. The zero value, like a nil pointer, means the current
// directory, all sources and the process environment.
type SettingsOptions struct {
	// Dir is the session's directory. Empty means the current one.
	Dir string
	// SettingSources are the same as in [LoadOptions].
	SettingSources []Scope
	// Settings is a further file with the highest precedence: a path, or its JSON. Empty means none.
	Settings string
	// LookupEnv finds the files. Nil means [os.LookupEnv].
	LookupEnv func(name string) (string, bool)
	// TrustFile is the same as in [LoadOptions].
	TrustFile func(file string, contents []byte) bool
}

// settingsFlag is the file name in problems of JSON in [SettingsOptions.Settings].
const settingsFlag = "--settings"

// scopeSettings is the scope of [SettingsOptions.Settings].
const scopeSettings Scope = "settings"

// LoadSettings reads settings.json in ~/.claude (or $CLAUDE_CONFIG_DIR), .claude/settings.json and
// .claude/settings.local.json in the folders of the repository, the root first, and o.Settings. Which files
// are read and which are refused is the same as for [Load]. Lists are joined in this order, and later single
// values replace earlier ones. Faulty parts, and parts that only Claude Code supports, are left out and
// reported. The returned settings are never nil.
//
// Without trust, a file of a checkout gives rules that deny or ask, and the modes plan and dontAsk unless
// one of the two is already set. Its other parts have no effect and are reported with [LevelUntrusted].
func LoadSettings(o *SettingsOptions) (*Settings, []Problem) {
	l := &settingsLoader{s: &Settings{Env: map[string]string{}}}
	var opts SettingsOptions
	if o != nil {
		opts = *o
	}
	l.sourceReader = sourceReader{dir: opts.Dir, scopes: opts.SettingSources, lookupEnv: opts.LookupEnv, trustFile: opts.TrustFile}
	if !l.open() {
		return l.s, l.problems
	}
	if l.reads(ScopeUser) && userDir(l.lookupEnv, ".claude") == "" {
		l.reportLostHome()
	}
	for _, s := range l.settingsFiles() {
		if data, trusted, ok := l.read(s.scope, s.path); ok {
			l.merge(s.scope, s.path, data, trusted)
		}
	}
	if strings.TrimSpace(opts.Settings) != "" {
		data, path, err := l.named(opts.Settings)
		if err != nil {
			p := unreadable(path, err)
			p.Named = true
			l.report(p)
		} else {
			l.merge(scopeSettings, cmp.Or(path, settingsFlag), data, true)
		}
	}
	if l.noHooks && len(l.s.Hooks) > 0 {
		l.report(Problem{Level: LevelNote, Message: fmt.Sprintf("disableAllHooks is set: %d hooks are not run", len(l.s.Hooks))})
		l.s.Hooks = nil
	}
	return l.s, l.problems
}

// A settingsLoader merges the settings files, those of lower precedence first.
type settingsLoader struct {
	sourceReader
	s       *Settings
	noHooks bool

	// The current file.
	doc        *document
	untrusted  bool
	ofCheckout bool
}

// merge adds the settings of a file.
func (l *settingsLoader) merge(scope Scope, name string, data []byte, trusted bool) {
	refuse := func(p Problem, want string) {
		p.Want, p.Named = want, scope == scopeSettings
		l.report(p)
	}
	doc, problem := open(data, name)
	if problem != nil {
		refuse(*problem, `JSON like {"permissions": {"allow": ["mcp__stock"]}}`)
		return
	}
	members, doubled, ok := doc.top().object()
	if !ok {
		refuse(doc.problem(doc.top(), LevelFile, "is %s", doc.top().kind()), "an object")
		return
	}
	l.doc, l.untrusted = doc, !trusted
	l.ofCheckout = scope == ScopeProject || scope == ScopeLocal
	if l.ofCheckout && trusted {
		l.s.Trusted = append(l.s.Trusted, doc.top().raw())
	}
	before := len(l.problems)
	for _, m := range doubled {
		l.note(m.key, repeated)
	}
	for _, m := range members {
		l.member(m)
	}
	l.problems = append(l.problems[:before], mostSevere(l.problems[before:], name)...)
}

func (l *settingsLoader) note(n node, format string, args ...any) {
	l.report(l.doc.problem(n, LevelNote, format, args...))
}

// notA notes a value of a wrong type.
func (l *settingsLoader) notA(n node, want string) {
	l.note(n, "is %s and is left out, want %s", n.kind(), want)
}

// withhold reports a part that has no effect without trust.
func (l *settingsLoader) withhold(n node) {
	l.report(l.doc.problem(n, LevelUntrusted, "has no effect without trust: %s", n.size()))
}

// members returns the members of an object, or notes that it is none.
func (l *settingsLoader) members(n node, want string) []member {
	members, _, ok := n.object()
	if !ok {
		l.notA(n, want)
	}
	return members
}

// text sets *s to a string, or notes that it is none.
func (l *settingsLoader) text(n node, s *string) {
	text, ok := n.text()
	if !ok {
		l.notA(n, "a string")
		return
	}
	*s = text
}

const foreignSetting = "does nothing here: only Claude Code itself has it"

// member merges a key of a file. Other keys concern Claude Code itself, such as its terminal.
func (l *settingsLoader) member(m member) {
	if m.value.isNull() {
		return
	}
	if l.untrusted && slices.Contains([]string{"env", "hooks", "model", "disableAllHooks"}, m.name) {
		l.withhold(m.value)
		return
	}
	switch m.name {
	case "permissions":
		for _, m := range l.members(m.value, "an object") {
			l.permission(m)
		}
	case "env":
		l.env(m.value)
	case "hooks":
		l.hooks(m.value)
	case "model":
		l.text(m.value, &l.s.Model)
	case "disableAllHooks":
		off, ok := m.value.boolean()
		if !ok {
			l.notA(m.value, "true or false")
			return
		}
		l.noHooks = off
	case "apiKeyHelper", "sandbox", "allowManagedHooksOnly", "allowManagedMcpServersOnly", "allowManagedPermissionRulesOnly", "allowedMcpServers", "deniedMcpServers":
		l.note(m.key, foreignSetting)
	}
}

// permission merges a key of permissions.
func (l *settingsLoader) permission(m member) {
	lists := map[string]*[]string{"allow": &l.s.Allow, "deny": &l.s.Deny, "ask": &l.s.Ask, "additionalDirectories": &l.s.Directories}
	list := lists[m.name]
	switch {
	case m.name == "defaultMode":
		l.mode(m.value)
	case list == nil:
		l.note(m.key, foreignSetting)
	case m.value.isNull():
	case l.untrusted && (m.name == "allow" || m.name == "additionalDirectories"):
		l.withhold(m.value)
	default:
		*list = append(*list, l.texts(m.value)...)
	}
}

func (l *settingsLoader) mode(n node) {
	text, _ := n.text()
	mode, err := permission.ParseMode(text)
	switch {
	case err != nil || text == "":
		l.note(n, "is not a permission mode and is left out")
	case l.untrusted && (!narrow(mode) || narrow(l.s.Mode) && mode != l.s.Mode):
		l.withhold(n)
	default:
		l.s.Mode = mode
	}
}

// narrow reports whether a file may choose the mode without trust.
func narrow(mode permission.Mode) bool {
	return mode == permission.ModePlan || mode == permission.ModeDontAsk
}

// texts returns the strings of a list, without its other elements.
func (l *settingsLoader) texts(n node) []string {
	list, ok := n.list()
	if !ok {
		l.notA(n, "a list of strings")
	}
	var out []string
	for _, e := range list {
		if text, ok := e.text(); ok {
			out = append(out, text)
		} else {
			l.notA(e, "a string")
		}
	}
	return out
}

// homeVariables locate the user's own files, which are trusted.
var homeVariables = []string{"HOME", "USERPROFILE", "CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "APPDATA"}

func (l *settingsLoader) env(n node) {
	for _, m := range l.members(n, "an object of strings") {
		value, ok := m.value.text()
		switch kind := m.value.v.Value.Kind(); {
		case l.ofCheckout && slices.Contains(homeVariables, strings.ToUpper(m.name)):
			l.note(m.value, "is left out: a project's file cannot change where the user's own files are, even with trust")
		case ok:
			l.s.Env[m.name] = value
		case kind == '0' || kind == 't' || kind == 'f':
			l.s.Env[m.name] = string(m.value.raw())
		default:
			l.notA(m.value, "a string")
		}
	}
}

// hooks merges {"EVENT": [{"matcher": "…", "hooks": [{"type": "mcp_tool", …}]}]}.
func (l *settingsLoader) hooks(n node) {
	for _, event := range l.members(n, "an object of events") {
		groups, ok := event.value.list()
		if !ok {
			l.notA(event.value, `a list of {"matcher": …, "hooks": […]}`)
		}
		for _, group := range groups {
			l.hookGroup(event.name, group)
		}
	}
}

func (l *settingsLoader) hookGroup(event string, group node) {
	hooks, ok := group.get("hooks").list()
	if !ok {
		l.note(group, "has no list \"hooks\" and is left out")
		return
	}
	matcher := group.get("matcher")
	text, isText := matcher.text()
	if !isText && !matcher.isNull() {
		l.note(matcher, "is %s, want a string: these hooks are left out", matcher.kind())
		return
	}
	if _, err := regexp.Compile(text); err != nil && text != "*" {
		l.note(matcher, "is not a regular expression: these hooks are left out")
		return
	}
	for _, n := range hooks {
		l.hook(n, ToolHook{Event: event, Matcher: text})
	}
}

// hook adds a hook to h, which has its event and matcher.
func (l *settingsLoader) hook(n node, h ToolHook) {
	kind, _ := n.get("type").text()
	input, timeout, failure := n.get("input"), n.get("timeout"), n.get("onFailure")
	_, _, isObject := input.object()
	h.Server, _ = n.get("server").text()
	h.Tool, _ = n.get("tool").text()
	switch {
	case kind != "mcp_tool":
		l.note(n, "is left out: hooks of type %q are run by Claude Code itself only; mcp_tool is run here", kind)
		return
	case h.Server == "" || h.Tool == "":
		l.note(n, "is left out: a hook of type mcp_tool needs \"server\" and \"tool\"")
		return
	case isObject:
		h.Input = input.raw()
	case !input.isNull():
		l.note(input, "is %s, want an object: this hook is left out", input.kind())
		return
	}
	h.File = l.doc.file
	h.Line, _ = l.doc.position(n.v.StartOffset)
	h.If, _ = n.get("if").text()
	h.Once, _ = n.get("once").boolean()
	action, _ := failure.text()
	h.Block = failure.exists() && action != "continue" // an unknown value blocks, to be safe
	if seconds, ok := timeout.number(); ok && seconds > 0 && seconds <= 1e6 {
		h.Timeout = time.Duration(seconds * float64(time.Second))
	} else if timeout.exists() {
		l.note(timeout, "is not a number of seconds above 0: the default holds")
	}
	l.s.Hooks = append(l.s.Hooks, h)
}

// String returns the hook and its place.
func (h ToolHook) String() string {
	s := fmt.Sprintf("%s hook that calls %q of MCP server %q", h.Event, h.Tool, h.Server)
	if h.File != "" {
		s += fmt.Sprintf(" (%s:%d)", h.File, h.Line)
	}
	return s
}
