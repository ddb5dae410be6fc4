package claudecode

import (
	"context"
	"encoding/json"

	"github.com/tenon-sdk/tenon/agent"
)

// An Initialization is what the CLI said of itself when the session began.
type Initialization struct {
	// Commands are the slash commands and skills.
	Commands []Command `json:"commands"`
	// Agents are the subagents.
	Agents []AgentInfo `json:"agents"`
	// Models are the models that [agent.Client.SetModel] takes.
	Models  []ModelInfo `json:"models"`
	Account Account     `json:"account"`
	// OutputStyle is the style in force, OutputStyles are those that there are.
	OutputStyle  string   `json:"output_style"`
	OutputStyles []string `json:"available_output_styles"`
	// Version is the CLI's, PID its process.
	Version        string   `json:"claude_code_version"`
	PID            int      `json:"pid"`
	PermissionMode string   `json:"current_permission_mode"`
	Capabilities   []string `json:"capabilities"`
	// HooksApplied, PluginsApplied and MCPServersApplied report whether the CLI took what it was
	// given; nil if it did not say.
	HooksApplied      *bool `json:"hooks_applied"`
	PluginsApplied    *bool `json:"plugins_applied"`
	MCPServersApplied *bool `json:"mcp_servers_applied"`
	// MCPManifests says what became of what the CLI was told of each server in this process: "parked"
	// is used in place of a handshake, anything else is a reason why the CLI shakes hands itself. It
	// is nil if it was told nothing or knows nothing of that.
	MCPManifests map[string]string `json:"sdk_mcp_manifests_parked"`
	// Raw is all of it.
	Raw json.RawMessage `json:"-"`
}

// A Command is a slash command or a skill.
type Command struct {
	Name         string   `json:"name"` // without the slash
	Description  string   `json:"description"`
	ArgumentHint string   `json:"argumentHint"`
	Aliases      []string `json:"aliases,omitempty"`
	// Builtin is set for the CLI's own.
	Builtin bool `json:"builtin,omitempty"`
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

// An Account is who the CLI is logged in as; what is not known is empty.
type Account struct {
	Email            string `json:"email,omitempty"`
	Organization     string `json:"organization,omitempty"`
	SubscriptionType string `json:"subscriptionType,omitempty"`
	TokenSource      string `json:"tokenSource,omitempty"`
	APIKeySource     string `json:"apiKeySource,omitempty"`
	// APIProvider is "firstParty", "bedrock", "vertex", "foundry" or another.
	APIProvider string `json:"apiProvider,omitempty"`
}

// UnmarshalJSON reads the answer to initialize. A member that has another form than it should is
// left out, and stays in Raw: what a CLI says of itself ends no session.
func (i *Initialization) UnmarshalJSON(data []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	i.Raw = append(json.RawMessage(nil), data...)
	for name, into := range map[string]any{
		"commands": &i.Commands, "agents": &i.Agents, "models": &i.Models, "account": &i.Account,
		"output_style": &i.OutputStyle, "available_output_styles": &i.OutputStyles,
		"claude_code_version": &i.Version, "pid": &i.PID, "current_permission_mode": &i.PermissionMode,
		"capabilities": &i.Capabilities, "hooks_applied": &i.HooksApplied,
		"plugins_applied": &i.PluginsApplied, "mcp_servers_applied": &i.MCPServersApplied,
		"sdk_mcp_manifests_parked": &i.MCPManifests,
	} {
		if value, ok := all[name]; ok {
			_ = json.Unmarshal(value, into)
		}
	}
	return nil
}

// A Control is what a session on the CLI offers beyond [agent.Client]. Its methods are safe for
// concurrent use; what the CLI refuses is a [*ControlError], and after Close each returns
// [agent.ErrClosed]. Each waits for the CLI's answer; ctx bounds the wait.
type Control struct{ s *session }

// ControlOf returns the control of a client whose session runs on the CLI; false for any other.
func ControlOf(c *agent.Client) (*Control, bool) {
	s, ok := c.Session().(*session)
	if !ok {
		return nil, false
	}
	return &Control{s}, true
}

// Initialization returns what the CLI said of itself when the session began. It must not be modified.
func (c *Control) Initialization() *Initialization { return &c.s.welcome }

// warnOfLost logs what the CLI says that it did not take.
func (s *session) warnOfLost(ctx context.Context) {
	for _, what := range []struct {
		name  string
		taken *bool
	}{{"hooks", s.welcome.HooksApplied}, {"plugins", s.welcome.PluginsApplied}, {"servers", s.welcome.MCPServersApplied}} {
		if what.taken != nil && !*what.taken {
			s.opts.Logger.WarnContext(ctx, "claude-code: the CLI did not take all that it was given", "what", what.name)
		}
	}
}
