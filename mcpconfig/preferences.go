package mcpconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sdk/tenon/permission"
)

// Settings are what Claude Code's settings files say about a run, beside its servers. The zero value says nothing.
type Settings struct {
	// Allow, Deny and Ask are permission rules.
	Allow, Deny, Ask []string
	// Mode is the permission mode. Empty means none given.
	Mode permission.Mode
	// Directories are further directories that servers are told about.
	Directories []string
	// Env are variables for the run.
	Env map[string]string
	// Model is a model's ID or alias. Empty means none given.
	Model string
	// Hooks are the hooks of kind mcp_tool, in the order of their files.
	Hooks []ToolHook
}

// A ToolHook is a hook that calls a tool of a configured server.
type ToolHook struct {
	// Event is the event's name, such as "PreToolUse"; Matcher is what it has to be about.
	Event, Matcher string
	// Server and Tool name the tool, by the server's key and the tool's own name.
	Server, Tool string
	// Input are the arguments, a JSON object. Strings in it hold references such as
	// ${tool_input.path} to the event's input. Nil means {}.
	Input json.RawMessage
	// If is a permission rule: the hook runs only for calls that it covers. Empty covers all.
	If string
	// Timeout is how long the call may take. Zero leaves it to the engine.
	Timeout time.Duration
	// Block says that a failure of the hook blocks what the event guards.
	Block bool
	// Once says that the hook runs once in a session.
	Once bool
	// File and Line are where it stands.
	File string
	Line int
}

// SettingsOptions say which settings files are read. The zero value, like a nil pointer, means the
// current directory, all sources and the process environment.
type SettingsOptions struct {
	// Dir is the session's directory. Empty means the current one.
	Dir string
	// SettingSources are as in [LoadOptions].
	SettingSources []Scope
	// Settings is one more file, above all others: a path, or its JSON. Empty means none.
	Settings string
	// LookupEnv finds the files. Nil means os.LookupEnv.
	LookupEnv func(name string) (string, bool)
}

// inPlaceSettings is the name of settings that were given in place.
const inPlaceSettings = "--settings"

// scopeSettings is the scope of a file that the caller names.
const scopeSettings Scope = "settings"

// LoadSettings reads settings.json in ~/.claude (or $CLAUDE_CONFIG_DIR), .claude/settings.json and
// .claude/settings.local.json in the directory, and o.Settings. Lists are joined in this order; of
// single values the later file's counts. What is faulty is left out and reported, and so is what
// only Claude Code itself can do, such as hooks that run a command. Project files, which come with
// a checkout, cannot choose the mode bypassPermissions nor say where requests to the model go or
// how they are signed. The settings are never nil.
func LoadSettings(o *SettingsOptions) (*Settings, []Problem) {
	l := &settingsLoader{s: &Settings{Env: map[string]string{}}}
	if o != nil {
		l.opts = *o
	}
	if l.opts.LookupEnv == nil {
		l.opts.LookupEnv = os.LookupEnv
	}
	dir, err := filepath.Abs(l.opts.Dir)
	if err != nil {
		return l.s, []Problem{{Level: LevelFile, File: l.opts.Dir, Message: fmt.Sprintf("the directory cannot be found: %v", err)}}
	}
	if user := settingsDir(l.opts.LookupEnv); user != "" {
		l.file(ScopeUser, filepath.Join(user, "settings.json"))
	}
	l.file(ScopeProject, filepath.Join(dir, ".claude", "settings.json"))
	l.file(ScopeLocal, filepath.Join(dir, ".claude", "settings.local.json"))
	l.named(dir)
	if l.noHooks && len(l.s.Hooks) > 0 {
		l.problems = append(l.problems, Problem{Level: LevelNote, Message: fmt.Sprintf("disableAllHooks is set: %d hooks are not run", len(l.s.Hooks))})
		l.s.Hooks = nil
	}
	return l.s, l.problems
}

// A settingsLoader collects what the files say, the lowest first.
type settingsLoader struct {
	opts     SettingsOptions
	s        *Settings
	noHooks  bool
	problems []Problem

	doc   *document // the file at hand
	scope Scope
}

func (l *settingsLoader) file(scope Scope, path string) {
	if l.opts.SettingSources != nil && !slices.Contains(l.opts.SettingSources, scope) {
		return
	}
	data, err := readFile(path, false)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		l.problems = append(l.problems, unreadable(path, err))
	default:
		l.read(scope, path, data)
	}
}

// named reads the file that the caller names, or the JSON given in its place.
func (l *settingsLoader) named(dir string) {
	text := bytes.TrimSpace([]byte(l.opts.Settings))
	if len(text) == 0 {
		return
	}
	path := l.opts.Settings
	if rest, ok := cutHome(path); ok {
		path = filepath.Join(homeDir(l.opts.LookupEnv), rest)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	if isDocument(text, path) {
		l.read(scopeSettings, inPlaceSettings, text)
		return
	}
	data, err := readFile(path, true)
	if err != nil {
		p := unreadable(path, err)
		p.Named = true
		l.problems = append(l.problems, p)
		return
	}
	l.read(scopeSettings, path, data)
}

// read takes in one file.
func (l *settingsLoader) read(scope Scope, name string, data []byte) {
	doc, problem := open(data, name)
	if problem != nil {
		problem.Want, problem.Named = `JSON like {"permissions": {"allow": ["mcp__stock"]}}`, scope == scopeSettings
		l.problems = append(l.problems, *problem)
		return
	}
	members, doubled, ok := doc.top().object()
	if !ok {
		p := doc.at(doc.top(), LevelFile)
		p.Message, p.Want, p.Named = "is "+doc.top().kind(), "an object", scope == scopeSettings
		l.problems = append(l.problems, p)
		return
	}
	l.doc, l.scope = doc, scope
	for _, dup := range doubled {
		l.note(dup.key, "stands twice; the last one counts and this one is ignored")
	}
	for _, m := range members {
		l.member(m)
	}
}

func (l *settingsLoader) note(n node, format string, args ...any) {
	p := l.doc.at(n, LevelNote)
	p.Message = fmt.Sprintf(format, args...)
	l.problems = append(l.problems, p)
}

// member takes in one key of a file. Keys about Claude Code itself, its terminal say, mean nothing here.
func (l *settingsLoader) member(m member) {
	if m.value.isNull() {
		return
	}
	switch m.name {
	case "permissions":
		l.permissions(m.value)
	case "env":
		l.env(m.value)
	case "hooks":
		l.hooks(m.value)
	case "model":
		if model, ok := m.value.text(); ok {
			l.s.Model = model
			return
		}
		l.note(m.value, "is %s and is left out, want a string", m.value.kind())
	case "disableAllHooks":
		off, ok := m.value.boolean()
		if !ok {
			l.note(m.value, "is %s and is left out, want true or false", m.value.kind())
			return
		}
		l.noHooks = off
	case "apiKeyHelper", "sandbox":
		l.note(m.key, "does nothing here: only Claude Code itself has it")
	}
}

func (l *settingsLoader) permissions(n node) {
	members, _, ok := n.object()
	if !ok {
		l.note(n, "is %s and is left out, want an object", n.kind())
		return
	}
	for _, m := range members {
		switch m.name {
		case "allow":
			l.s.Allow = append(l.s.Allow, l.texts(m.value)...)
		case "deny":
			l.s.Deny = append(l.s.Deny, l.texts(m.value)...)
		case "ask":
			l.s.Ask = append(l.s.Ask, l.texts(m.value)...)
		case "additionalDirectories":
			l.s.Directories = append(l.s.Directories, l.texts(m.value)...)
		case "defaultMode":
			l.mode(m.value)
		}
	}
}

func (l *settingsLoader) mode(n node) {
	text, _ := n.text()
	mode, err := permission.ParseMode(text)
	switch {
	case err != nil || text == "":
		l.note(n, "is no permission mode and is left out")
	case mode == permission.ModeBypassPermissions && l.checkout():
		l.note(n, "is left out: a project's file cannot choose bypassPermissions")
	default:
		l.s.Mode = mode
	}
}

// checkout reports whether the file at hand comes with a project, and so from whoever wrote that.
func (l *settingsLoader) checkout() bool { return l.scope == ScopeProject || l.scope == ScopeLocal }

// texts are the strings of a list. What is none is left out.
func (l *settingsLoader) texts(n node) []string {
	if n.isNull() {
		return nil
	}
	list, ok := n.list()
	if !ok {
		l.note(n, "is %s and is left out, want a list of strings", n.kind())
		return nil
	}
	var out []string
	for _, e := range list {
		text, ok := e.text()
		if !ok {
			l.note(e, "is %s and is left out, want a string", e.kind())
			continue
		}
		out = append(out, text)
	}
	return out
}

// guarded are variables that say where requests go and how they are signed.
var guarded = regexp.MustCompile(`(?i)^(ANTHROPIC_|CLAUDE_CODE_(USE|OAUTH|API)|AWS_|GOOGLE_|VERTEX_|(HTTP|HTTPS|ALL|NO)_PROXY$|SSL_|NODE_)`)

func (l *settingsLoader) env(n node) {
	members, _, ok := n.object()
	if !ok {
		l.note(n, "is %s and is left out, want an object of strings", n.kind())
		return
	}
	for _, m := range members {
		value, ok := m.value.text()
		switch kind := m.value.v.Value.Kind(); {
		case l.checkout() && guarded.MatchString(m.name) && m.name != "ANTHROPIC_MODEL":
			l.note(m.key, "is left out: a project's file cannot say where requests go or how they are signed")
			continue
		case !ok && (kind == '0' || kind == 't' || kind == 'f'):
			value = string(m.value.raw())
		case !ok:
			l.note(m.value, "is %s and is left out, want a string", m.value.kind())
			continue
		}
		l.s.Env[m.name] = value
	}
}

// hooks takes in {"EVENT": [{"matcher": "…", "hooks": [{"type": "mcp_tool", …}]}]}.
func (l *settingsLoader) hooks(n node) {
	events, _, ok := n.object()
	if !ok {
		l.note(n, "is %s and is left out, want an object of events", n.kind())
		return
	}
	for _, event := range events {
		groups, ok := event.value.list()
		if !ok {
			l.note(event.value, "is %s and is left out, want a list of {\"matcher\": …, \"hooks\": […]}", event.value.kind())
			continue
		}
		for _, group := range groups {
			l.hookGroup(event.name, group)
		}
	}
}

func (l *settingsLoader) hookGroup(event string, group node) {
	at, _ := group.get("hooks")
	var hooks []node
	ok := at.v.Value != nil
	if ok {
		hooks, ok = at.list()
	}
	if !ok {
		l.note(group, "has no list \"hooks\" and is left out")
		return
	}
	matcher, hasMatcher := group.get("matcher")
	text, isText := matcher.textOrNone()
	if hasMatcher && !isText && !matcher.isNull() {
		l.note(matcher, "is %s, want a string: these hooks are left out", matcher.kind())
		return
	}
	if _, err := regexp.Compile(text); err != nil && text != "*" {
		l.note(matcher, "is no regular expression: these hooks are left out")
		return
	}
	for _, n := range hooks {
		if h, ok := l.hook(n); ok {
			h.Event, h.Matcher = event, text
			l.s.Hooks = append(l.s.Hooks, h)
		}
	}
}

// hook takes in one hook.
func (l *settingsLoader) hook(n node) (ToolHook, bool) {
	kind, _ := field(n, "type").textOrNone()
	if kind != "mcp_tool" {
		l.note(n, "is left out: hooks of type %q are run by Claude Code itself only; mcp_tool is run here", kind)
		return ToolHook{}, false
	}
	line, _ := l.doc.position(n.offset())
	h := ToolHook{File: l.doc.file, Line: line}
	h.Server, _ = field(n, "server").textOrNone()
	h.Tool, _ = field(n, "tool").textOrNone()
	if h.Server == "" || h.Tool == "" {
		l.note(n, "is left out: a hook of type mcp_tool needs \"server\" and \"tool\"")
		return ToolHook{}, false
	}
	h.If, _ = field(n, "if").textOrNone()
	if on := field(n, "once"); on.v.Value != nil {
		h.Once, _ = on.boolean()
	}
	if failure := field(n, "onFailure"); failure.v.Value != nil {
		text, _ := failure.text()
		h.Block = text != "continue" // whatever else it says, it meant something
	}
	if at := field(n, "input"); at.v.Value != nil && !at.isNull() {
		if _, _, isObject := at.object(); !isObject {
			l.note(at, "is %s, want an object: this hook is left out", at.kind())
			return ToolHook{}, false
		}
		h.Input = at.raw()
	}
	if at := field(n, "timeout"); at.v.Value != nil {
		seconds, ok := at.number()
		if !ok || seconds <= 0 || seconds > 1e6 {
			l.note(at, "is no number of seconds above 0: the default holds")
		} else {
			h.Timeout = time.Duration(seconds * float64(time.Second))
		}
	}
	return h, true
}

// field is a member that may be absent: then it has no value.
func field(n node, name string) node {
	at, _ := n.get(name)
	return at
}

// String names the hook and its place, for messages.
func (h ToolHook) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s hook that calls %q of MCP server %q", h.Event, h.Tool, h.Server)
	if h.File != "" {
		fmt.Fprintf(&b, " (%s:%d)", h.File, h.Line)
	}
	return b.String()
}
