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
	// Trusted are the contents of the files of a checkout that are trusted, as standard JSON objects, the lowest first: for
	// an engine that knows more keys than these fields.
	Trusted []json.RawMessage
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
	// TrustFile is as in [LoadOptions].
	TrustFile func(file string, contents []byte) bool
}

// inPlaceSettings is the name of settings that were given in place.
const inPlaceSettings = "--settings"

// scopeSettings is the scope of a file that the caller names.
const scopeSettings Scope = "settings"

// LoadSettings reads settings.json in ~/.claude (or $CLAUDE_CONFIG_DIR), .claude/settings.json and
// .claude/settings.local.json in the folders of the repository that contains the directory, the root first, and
// o.Settings. Where the files of a repository count, and which are refused, is as for [Load]. Lists are joined in this
// order; of single values the later file's counts. What is faulty is left out and reported, and so is what only Claude
// Code itself can do, such as hooks that run a command. The settings are never nil.
//
// Of a file of a checkout that is not trusted count rules that deny or ask, and the modes plan and dontAsk, unless one
// of them is set already. All else is withheld and reported with [LevelUntrusted].
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
	} else if l.on(ScopeUser) {
		l.problems = append(l.problems, ownFilesLost(l.opts.LookupEnv)...)
	}
	l.checkout = openCheckout(dir)
	l.checkout.user = userSettings(l.opts.LookupEnv)
	for _, path := range slices.Backward(l.checkout.files(".claude", "settings.json")) {
		l.file(ScopeProject, path)
	}
	for _, path := range slices.Backward(l.checkout.files(".claude", "settings.local.json")) {
		l.file(ScopeLocal, path)
	}
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
	checkout checkout
	noHooks  bool
	problems []Problem

	doc        *document // the file at hand
	untrusted  bool
	ofCheckout bool
}

// on reports whether a source is to be read.
func (l *settingsLoader) on(s Scope) bool {
	return l.opts.SettingSources == nil || slices.Contains(l.opts.SettingSources, s)
}

func (l *settingsLoader) file(scope Scope, path string) {
	if !l.on(scope) {
		return
	}
	var data []byte
	var err error
	if scope == ScopeUser {
		data, err = readFile(path, maxBytes, false)
	} else {
		data, err = l.checkout.read(path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		l.problems = append(l.problems, unreadable(path, err))
	default:
		l.untrusted = scope != ScopeUser && (l.opts.TrustFile == nil || !l.opts.TrustFile(path, data))
		l.read(scope, path, data)
	}
}

// named reads the file that the caller names, or the JSON given in its place.
func (l *settingsLoader) named(dir string) {
	l.untrusted = false
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
	data, err := readFile(path, maxBytes, true)
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
	l.doc = doc
	before := len(l.problems)
	l.ofCheckout = scope == ScopeProject || scope == ScopeLocal
	if l.ofCheckout && !l.untrusted {
		l.s.Trusted = append(l.s.Trusted, doc.top().raw())
	}
	for _, dup := range doubled {
		l.note(dup.key, "stands twice; the last one counts and this one is ignored")
	}
	for _, m := range members {
		l.member(m)
	}
	l.problems = append(l.problems[:before], fewest(l.problems[before:], name)...)
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
	if l.untrusted && slices.Contains([]string{"env", "hooks", "model", "disableAllHooks"}, m.name) {
		l.withhold(m.value)
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
	case "apiKeyHelper", "sandbox", "allowManagedHooksOnly", "allowManagedMcpServersOnly", "allowManagedPermissionRulesOnly", "allowedMcpServers", "deniedMcpServers":
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
		if l.untrusted && (m.name == "allow" || m.name == "additionalDirectories") && !m.value.isNull() {
			l.withhold(m.value)
			continue
		}
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
		default:
			l.note(m.key, "does nothing here: only Claude Code itself has it")
		}
	}
}

func (l *settingsLoader) mode(n node) {
	text, _ := n.text()
	mode, err := permission.ParseMode(text)
	switch {
	case err != nil || text == "":
		l.note(n, "is no permission mode and is left out")
	case l.untrusted && (!narrow(mode) || narrow(l.s.Mode) && mode != l.s.Mode):
		l.withhold(n)
	default:
		l.s.Mode = mode
	}
}

// narrow reports whether a mode is one that a file may choose without trust. Neither of the two is narrower than the
// other in every respect.
func narrow(mode permission.Mode) bool {
	return mode == permission.ModePlan || mode == permission.ModeDontAsk
}

// withhold reports what has no effect for lack of trust.
func (l *settingsLoader) withhold(n node) {
	p := l.doc.at(n, LevelUntrusted)
	p.Message = "has no effect without trust: " + n.size()
	l.problems = append(l.problems, p)
}

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

// homeVariables say where the user's own files are, which are trusted as such.
var homeVariables = []string{"HOME", "USERPROFILE", "CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "APPDATA"}

func (l *settingsLoader) env(n node) {
	members, _, ok := n.object()
	if !ok {
		l.note(n, "is %s and is left out, want an object of strings", n.kind())
		return
	}
	for _, m := range members {
		if l.ofCheckout && slices.Contains(homeVariables, strings.ToUpper(m.name)) {
			l.note(m.value, "is left out: a project's file does not say where the user's own files are, with trust either")
			continue
		}
		value, ok := m.value.text()
		switch kind := m.value.v.Value.Kind(); {
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
