package claudecode

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tenon-sdk/tenon/agent"
)

// ownArgs are the flags of what only the CLI knows. Like [args] it is pure and holds nothing secret.
func ownArgs(e *Options) []string {
	var a []string
	add := func(flag, value string) {
		if value != "" {
			a = append(a, "--"+flag+"="+value)
		}
	}
	on := func(is bool, flag string) {
		if is {
			a = append(a, "--"+flag)
		}
	}
	add("agent", e.Agent)
	add("project-config-root", e.ProjectConfigRoot)
	add("betas", strings.Join(e.Betas, ","))
	if e.TaskBudget > 0 {
		add("task-budget", strconv.Itoa(e.TaskBudget))
	}
	if e.NoPrompts {
		add("permission-prompts", "none")
	}
	on(e.NoPersistence, "no-session-persistence")
	on(e.Mirror != nil, "session-mirror")
	on(e.HookEvents, "include-hook-events")
	switch {
	case e.DebugFile != "":
		add("debug-file", e.DebugFile)
	case e.Debug:
		a = append(a, "--debug-to-stderr")
	}
	return a
}

// resumeArgs say which stored session goes on, or the new one's name.
func resumeArgs(o *agent.Options) []string {
	var a []string
	r := &o.Resume
	add := func(flag, value string) {
		if value != "" {
			a = append(a, "--"+flag+"="+value)
		}
	}
	add("resume", r.ID)
	if r.Latest {
		a = append(a, "--continue")
	}
	if r.Fork {
		a = append(a, "--fork-session")
	}
	add("resume-session-at", r.At)
	add("resume-drops-turn", r.DropsTurn)
	if r.ID == "" && !r.Latest || r.Fork {
		add("session-id", o.SessionID)
	}
	return a
}

// allowed are the tools that run without a question, skills that are switched on among them, but for those that
// the CLI is to ask about: see ownRules.
func allowed(e *Options, o *agent.Options) []string {
	servers := knownServers(o)
	all := slices.DeleteFunc(slices.Clone(o.AllowedTools), servers.Ambiguous)
	for _, skill := range e.Skills {
		rule := "Skill(" + skill + ")"
		if skill == "all" {
			rule = "Skill"
		}
		if !slices.Contains(all, rule) {
			all = append(all, rule)
		}
	}
	return all
}

// mergedSettings are the settings of the session: the program's, its sandbox, and the rules that no
// flag carries. Nil means none.
func mergedSettings(e *Options, o *agent.Options) (map[string]json.RawMessage, error) {
	if !hasSettings(e, o) {
		return nil, nil
	}
	all := map[string]json.RawMessage{}
	if e.Settings != nil {
		if err := json.Unmarshal(e.Settings, &all); err != nil {
			return nil, fmt.Errorf("claude-code: Settings: %w", err)
		}
	}
	if o.Settings != "" {
		own, err := ownSettings(o)
		if err != nil {
			return nil, err
		}
		for name, value := range own {
			if all[name], err = mergeObjects(all[name], value); err != nil {
				return nil, fmt.Errorf("claude-code: Settings: %w", err)
			}
		}
	}
	if e.Sandbox != nil {
		merged, err := mergeObjects(all["sandbox"], e.Sandbox)
		if err != nil {
			return nil, fmt.Errorf("claude-code: Sandbox: %w", err)
		}
		all["sandbox"] = merged
	}
	for _, list := range permissionLists(e, o) {
		permissions, err := withList(all["permissions"], list.name, list.values)
		if err != nil {
			return nil, fmt.Errorf("claude-code: Settings: %w", err)
		}
		all["permissions"] = permissions
	}
	return all, nil
}

func hasSettings(e *Options, o *agent.Options) bool {
	return e.Settings != nil || o.Settings != "" || e.Sandbox != nil || len(permissionLists(e, o)) > 0
}

// A permissionList is a member of the permissions in a settings file.
type permissionList struct {
	name   string
	values []string
}

// permissionLists are the lists that no flag carries, or that are too long for one.
func permissionLists(e *Options, o *agent.Options) []permissionList {
	var all []permissionList
	if len(o.AskTools) > 0 {
		all = append(all, permissionList{"ask", o.AskTools})
	}
	if rules := allowed(e, o); tooLong(rules) {
		all = append(all, permissionList{"allow", rules})
	}
	if dirs := directories(e, o); tooLong(dirs) {
		all = append(all, permissionList{"additionalDirectories", dirs})
	}
	return all
}

// ownSettings is the content of the program's settings file.
func ownSettings(o *agent.Options) (map[string]json.RawMessage, error) {
	text := []byte(strings.TrimSpace(o.Settings))
	if !strings.HasPrefix(string(text), "{") {
		path := o.Settings
		if !filepath.IsAbs(path) {
			path = filepath.Join(o.Dir, path)
		}
		var err error
		if text, err = os.ReadFile(path); err != nil {
			return nil, &agent.OptionError{Field: "Settings", Problem: fmt.Sprintf("cannot be read: %v", err), Remedy: "set the path of a file, or JSON"}
		}
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, &agent.OptionError{Field: "Settings", Problem: "is no JSON object", Remedy: "set the path of a file, or JSON"}
	}
	return fields, nil
}

// mergeObjects lays one JSON object over another, objects within them too.
func mergeObjects(under, over json.RawMessage) (json.RawMessage, error) {
	a, b := members(under), members(over)
	if a == nil || b == nil {
		return over, nil // what is no object replaces what is under it
	}
	for name, value := range b {
		merged, err := mergeObjects(a[name], value)
		if err != nil {
			return nil, err
		}
		a[name] = merged
	}
	return json.Marshal(a)
}

// members are those of a JSON object; nil for anything else.
func members(data json.RawMessage) map[string]json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(data, &all) != nil {
		return nil
	}
	return all
}

// withList adds values to a list in a settings file's permissions.
func withList(permissions json.RawMessage, name string, values []string) (json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	if permissions != nil {
		if err := json.Unmarshal(permissions, &all); err != nil {
			return nil, fmt.Errorf("permissions: %w", err)
		}
	}
	var list []string
	if all[name] != nil {
		if err := json.Unmarshal(all[name], &list); err != nil {
			return nil, fmt.Errorf("permissions.%s: %w", name, err)
		}
	}
	known := map[string]bool{}
	for _, v := range list {
		known[v] = true
	}
	for _, v := range values {
		if !known[v] {
			known[v] = true
			list = append(list, v)
		}
	}
	data, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	all[name] = data
	return json.Marshal(all)
}

// ownEnv are the variables of what only the CLI knows.
func ownEnv(e *Options) map[string]string {
	env := map[string]string{}
	if e.FileCheckpoints {
		env["CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING"] = "true"
	}
	if e.QuestionPreview != "" {
		env["CLAUDE_CODE_QUESTION_PREVIEW_FORMAT"] = e.QuestionPreview
	}
	return env
}

// ownHello are the members of initialize for what only the CLI knows.
type ownHello struct {
	AppendSystemPrompt string                     `json:"appendSystemPrompt,omitempty"`
	ExcludeDynamic     bool                       `json:"excludeDynamicSections,omitempty"`
	Snapshot           *bool                      `json:"systemPromptSnapshot,omitempty"`
	PlanInstructions   string                     `json:"planModeInstructions,omitempty"`
	ToolAliases        map[string]string          `json:"toolAliases,omitempty"`
	Agents             map[string]AgentDefinition `json:"agents,omitempty"`
	Title              string                     `json:"title,omitempty"`
	Skills             []string                   `json:"skills,omitempty"`
	PromptSuggestions  bool                       `json:"promptSuggestions,omitempty"`
	AgentSummaries     bool                       `json:"agentProgressSummaries,omitempty"`
	SubagentText       bool                       `json:"forwardSubagentText,omitempty"`
	DialogKinds        []string                   `json:"supportedDialogKinds,omitempty"`
	TaskStops          bool                       `json:"perTaskStopAffordance,omitempty"`
	Plugins            []wirePlugin               `json:"plugins,omitempty"`
	Settings           map[string]json.RawMessage `json:"settings,omitzero"`
	ManagedSettings    json.RawMessage            `json:"managedSettings,omitempty"`
	DisallowedTools    []string                   `json:"disallowedTools,omitempty"`
}

type wirePlugin struct {
	Type    string `json:"type"`
	Path    string `json:"path"`
	SkipMCP bool   `json:"skipMcpDiscovery,omitempty"`
}

func wirePlugins(plugins []Plugin) []wirePlugin {
	var all []wirePlugin
	for _, p := range plugins {
		all = append(all, wirePlugin{Type: "local", Path: p.Path, SkipMCP: p.SkipMCP})
	}
	return all
}

func newOwnHello(e *Options, o *agent.Options) (ownHello, error) {
	settings, err := mergedSettings(e, o)
	if err != nil {
		return ownHello{}, err
	}
	h := ownHello{
		PlanInstructions: e.PlanInstructions, ToolAliases: e.ToolAliases, Agents: e.Agents, Title: e.Title,
		PromptSuggestions: e.PromptSuggestions, AgentSummaries: e.SubagentSummaries, SubagentText: e.SubagentText,
		DialogKinds: e.DialogKinds, TaskStops: e.TaskStops, Plugins: wirePlugins(e.Plugins),
		Settings: settings, ManagedSettings: e.ManagedSettings, DisallowedTools: o.DisallowedTools,
	}
	if !slices.Contains(e.Skills, "all") {
		h.Skills = e.Skills
	}
	if e.Preset != nil {
		h.AppendSystemPrompt, h.ExcludeDynamic = o.AppendSystemPrompt, e.Preset.ExcludeDynamicSections
	}
	if e.FreshPrompt {
		no := false
		h.Snapshot = &no
	}
	return h, nil
}

// systemPrompt is the program's prompt in the blocks that the CLI takes: what can be cached across
// sessions, the mark, and the rest. Nil means the CLI's own.
func systemPrompt(e *Options, o *agent.Options) []string {
	if e.Preset != nil {
		return nil
	}
	whole := strings.Trim(o.SystemPrompt+"\n\n"+o.AppendSystemPrompt, "\n")
	static, dynamic, ok := strings.Cut(whole, PromptBoundary)
	if !ok {
		return []string{whole}
	}
	return []string{strings.TrimSpace(static), PromptBoundary, strings.TrimSpace(dynamic)}
}

// earlyFields names what initialize carries that the CLI has to read before anything else.
func earlyFields(e *Options, o *agent.Options) []string {
	var a []string
	var fields []string
	if hasSettings(e, o) {
		fields = append(fields, "settings")
	}
	if len(o.DisallowedTools) > 0 {
		fields = append(fields, "disallowedTools")
	}
	if len(fields) > 0 {
		a = append(a, "--initialize-fields="+strings.Join(fields, ","))
	}
	if e.ManagedSettings != nil {
		a = append(a, "--managed-settings-in-initialize")
	}
	return a
}

// command is what is run: the CLI itself, or the launcher with it.
func (o *Options) command(path string, args []string) (name string, words []string) {
	if len(o.Launcher) == 0 {
		return path, args
	}
	words = append(slices.Clone(o.Launcher[1:]), path)
	return o.Launcher[0], append(words, args...)
}
