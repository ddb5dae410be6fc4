package claudecode

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/claudecode/event"
)

// An Initialization is the CLI's answer to the first request of a session.
type Initialization struct {
	// Commands are the slash commands and skills.
	Commands []event.Command `json:"commands"`
	// Agents are the subagents.
	Agents []AgentInfo `json:"agents"`
	// Models are the models that [agent.Client.SetModel] takes.
	Models  []ModelInfo `json:"models"`
	Account Account     `json:"account"`
	// OutputStyle is the current style, OutputStyles are the available ones.
	OutputStyle  string   `json:"output_style"`
	OutputStyles []string `json:"available_output_styles"`
	// Version is the version of the CLI, PID the ID of its process.
	Version        string   `json:"claude_code_version"`
	PID            int      `json:"pid"`
	PermissionMode string   `json:"current_permission_mode"`
	Capabilities   []string `json:"capabilities"`
	// HooksApplied, PluginsApplied and MCPServersApplied report whether the CLI accepted what it was
	// given. They are nil if the CLI did not say.
	HooksApplied      *bool `json:"hooks_applied"`
	PluginsApplied    *bool `json:"plugins_applied"`
	MCPServersApplied *bool `json:"mcp_servers_applied"`
	// Raw is the whole answer.
	Raw json.RawMessage `json:"-"`
}

// An AgentInfo is a subagent that the model can call.
type AgentInfo struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Model       string `json:"model,omitempty"`
}

// A ModelInfo is a model that the session can use.
type ModelInfo struct {
	Value           string   `json:"value"`
	ResolvedModel   string   `json:"resolvedModel,omitempty"`
	DisplayName     string   `json:"displayName"`
	Description     string   `json:"description"`
	SupportsEffort  bool     `json:"supportsEffort,omitempty"`
	EffortLevels    []string `json:"supportedEffortLevels,omitempty"`
	AdaptiveThought bool     `json:"supportsAdaptiveThinking,omitempty"`
	FastMode        bool     `json:"supportsFastMode,omitempty"`
	AutoMode        bool     `json:"supportsAutoMode,omitempty"`
}

// An Account is the account that the CLI uses. Unknown fields are empty.
type Account struct {
	Email            string `json:"email,omitempty"`
	Organization     string `json:"organization,omitempty"`
	SubscriptionType string `json:"subscriptionType,omitempty"`
	TokenSource      string `json:"tokenSource,omitempty"`
	APIKeySource     string `json:"apiKeySource,omitempty"`
	// APIProvider is "firstParty", "bedrock", "vertex", "foundry" or another.
	APIProvider string `json:"apiProvider,omitempty"`
}

// UnmarshalJSON decodes the answer. A member in an unexpected form is left out and stays in Raw, so
// that it does not end the session.
func (i *Initialization) UnmarshalJSON(data []byte) error {
	type plain Initialization
	err := json.Unmarshal(data, (*plain)(i))
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !ok {
		return err
	}
	i.Raw = slices.Clone(data)
	return nil
}

// warnOfRejected logs what the CLI did not accept.
func (s *session) warnOfRejected(ctx context.Context) {
	for _, what := range []struct {
		name     string
		accepted *bool
	}{{"hooks", s.init.HooksApplied}, {"plugins", s.init.PluginsApplied}, {"servers", s.init.MCPServersApplied}} {
		if what.accepted != nil && !*what.accepted {
			s.opts.Logger.WarnContext(ctx, "claude-code: the CLI did not accept everything that it was given", "what", what.name)
		}
	}
}

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
		r.Snapshot = new(bool)
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
