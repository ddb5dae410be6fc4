package native

import (
	"cmp"
	"context"
	"slices"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/messages"
	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
)

// tokensOf estimates the tokens of JSON or text by its bytes.
func tokensOf(bytes int) int64 { return int64(bytes+3) / 4 }

// noteContext records the parts of the next request for ContextUsage.
func (s *session) noteContext(r *messages.Request) {
	sent := s.definitions.Sent
	loaded := func(tl *toolset.Tool) bool { return slices.Contains(sent, tl) }
	s.mu.Lock()
	defer s.mu.Unlock()
	s.context = &contextState{model: r.Model, table: s.table, loaded: loaded, system: len(r.System), messages: s.history.Size()}
}

// noteCounted records the API's count of the latest request.
func (s *session) noteCounted(u agent.Usage) {
	total := u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens + u.OutputTokens
	if total == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	state := *s.context
	state.counted = total
	s.context = &state
}

// ContextUsage returns the parts of the latest request, or of the first one if there was none.
func (s *session) ContextUsage(ctx context.Context) (*agent.ContextUsage, error) {
	if s.life.Err() != nil {
		return nil, agent.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	state := s.context
	s.mu.Unlock()
	if state == nil {
		state = s.firstContext(ctx)
	}
	return state.usage(s.output.tools()), nil
}

// firstContext returns the parts of the first request as it would be now.
func (s *session) firstContext(ctx context.Context) *contextState {
	t := toolset.NewTable(ctx, s.hosts(), toolset.TableOptions{Policy: s.permissions(), Servers: s.knownServers(), PromptTool: s.opts.PermissionPromptTool})
	search := !s.searchOff() && s.finder.Mode.Searches(t.DeferrableSize(), s.wantedModel())
	return &contextState{
		model: s.wantedModel(), table: t, loaded: func(tl *toolset.Tool) bool { return !search || !tl.Deferrable() },
		system: len(messages.EncodeBlocks(messages.SystemBlocks(s.opts.SystemPrompt, s.opts.AppendSystemPrompt), false)), messages: s.given.Size,
	}
}

// usage returns the usage by category. The part of the API's count that exceeds the estimates of the rest
// is the conversation.
func (c *contextState) usage(own []toolset.APITool) *agent.ContextUsage {
	u := &agent.ContextUsage{Model: c.model}
	var mcpTokens, deferred, ownTokens int64
	for _, t := range c.table.Tools {
		n, loaded := tokensOf(len(transcript.Encode(t.Definition()))), c.loaded(t)
		switch {
		case t.Own:
			ownTokens += n
			continue
		case loaded:
			mcpTokens += n
		default:
			deferred += n
		}
		u.MCPTools = append(u.MCPTools, agent.ContextTool{Name: t.Model.Name, ServerName: t.Server, Tokens: n, IsLoaded: loaded})
	}
	slices.SortStableFunc(u.MCPTools, func(a, b agent.ContextTool) int { return cmp.Compare(a.ServerName, b.ServerName) })
	for _, t := range own {
		ownTokens += tokensOf(len(transcript.Encode(t)))
	}
	system, conversation := tokensOf(c.system), tokensOf(c.messages)
	u.TotalTokens = system + ownTokens + mcpTokens + conversation
	if c.counted > 0 {
		u.TotalTokens = c.counted
		conversation = max(0, c.counted-system-ownTokens-mcpTokens)
	}
	u.Categories = []agent.ContextCategory{
		{ID: agent.ContextSystemPrompt, Name: "System prompt", Tokens: system, Kind: "used"},
		{ID: agent.ContextSystemTools, Name: "System tools", Tokens: ownTokens, Kind: "used"},
		{ID: agent.ContextMCPTools, Name: "MCP tools", Tokens: mcpTokens, Kind: "used"},
		{ID: agent.ContextMessages, Name: "Messages", Tokens: conversation, Kind: "used"},
	}
	if deferred > 0 {
		u.Categories = append(u.Categories, agent.ContextCategory{
			ID: agent.ContextMCPToolsDeferred, Name: "MCP tools (deferred)", Tokens: deferred, Kind: "deferred",
		})
	}
	if spec, ok := messages.SpecOf(c.model); ok {
		u.MaxTokens = spec.ContextWindow
		u.Percentage = float64(u.TotalTokens) * 100 / float64(u.MaxTokens)
		u.Categories = append(u.Categories, agent.ContextCategory{
			ID: agent.ContextFree, Name: "Free space", Tokens: max(0, u.MaxTokens-u.TotalTokens), Kind: "free",
		})
	}
	return u
}
