package claudecode

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/agent"
)

// An initRequest is the body of the initialize request, the first request of a session.
type initRequest struct {
	Hooks              map[string][]hookMatcher   `json:"hooks,omitempty"`
	SDKServers         []string                   `json:"sdkMcpServers,omitempty"`
	SDKConfigs         map[string]sdkServer       `json:"sdkMcpServerConfigs,omitempty"`
	MCPServers         map[string]json.RawMessage `json:"mcpServers,omitempty"`
	SystemPrompt       []string                   `json:"systemPrompt,omitempty"`
	JSONSchema         json.RawMessage            `json:"jsonSchema,omitempty"`
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
	Plugins            []pluginFolder             `json:"plugins,omitempty"`
	Settings           settingsObject             `json:"settings,omitzero"`
	ManagedSettings    json.RawMessage            `json:"managedSettings,omitempty"`
	DisallowedTools    []string                   `json:"disallowedTools,omitempty"`
}

// A pluginFolder is the CLI's form of a Plugin.
type pluginFolder struct {
	Type    string `json:"type"`
	Path    string `json:"path"`
	SkipMCP bool   `json:"skipMcpDiscovery,omitempty"`
}

func pluginFolders(plugins []Plugin) []pluginFolder {
	var all []pluginFolder
	for _, p := range plugins {
		all = append(all, pluginFolder{Type: "local", Path: p.Path, SkipMCP: p.SkipMCP})
	}
	return all
}

// newInitRequest returns the request for the options, without hooks and servers.
func newInitRequest(e *Options, o *agent.Options) (*initRequest, error) {
	settings, err := sessionSettings(e, o)
	if err != nil {
		return nil, err
	}
	r := &initRequest{
		SystemPrompt: systemPrompt(e, o), JSONSchema: o.OutputSchema,
		PlanInstructions: e.PlanInstructions, ToolAliases: e.ToolAliases, Agents: e.Agents, Title: e.Title,
		PromptSuggestions: e.PromptSuggestions, AgentSummaries: e.SubagentSummaries, SubagentText: e.SubagentText,
		DialogKinds: e.DialogKinds, TaskStops: e.TaskStops, Plugins: pluginFolders(e.Plugins),
		Settings: settings, ManagedSettings: e.ManagedSettings, DisallowedTools: o.DisallowedTools,
	}
	if !slices.Contains(e.Skills, "all") {
		r.Skills = e.Skills
	}
	if e.Preset != nil {
		r.AppendSystemPrompt, r.ExcludeDynamic = o.AppendSystemPrompt, e.Preset.ExcludeDynamicSections
	}
	if e.FreshPrompt {
		no := false
		r.Snapshot = &no
	}
	return r, nil
}

// systemPrompt returns the program's prompt in the CLI's form: the part that can be cached across
// sessions, the boundary, and the rest. Nil means the CLI's own prompt.
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
