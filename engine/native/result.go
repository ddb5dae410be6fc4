package native

import (
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
)

// fail returns the result of a turn that ended with an error.
func (t *turn) fail(reason, message string) *agent.Result {
	return t.result(agent.SubtypeErrorDuringExecution, reason, message)
}

// result returns the turn's result. message is empty unless it is an error.
func (t *turn) result(subtype, reason, message string) *agent.Result {
	s := t.s
	for _, c := range t.orphans { // the program knows these calls, and the model does not
		t.report(errorAnswer(c, textBrokeOff))
	}
	t.orphans = nil
	r := &agent.Result{
		Subtype: subtype, IsError: subtype != agent.SubtypeSuccess, TerminalReason: reason,
		DurationMS: time.Since(t.began).Milliseconds(), DurationAPIMS: t.apiTime.Milliseconds(), NumTurns: t.asked,
		TotalCostUSD: s.cost, Usage: t.usage, ModelUsage: maps.Clone(s.totals),
		ResultIndex: s.results, QueuedTurnCount: s.queued(), UserMessageUUIDs: t.uuids,
		SessionID: s.opts.SessionID, UUID: uuid.NewString(),
	}
	s.results++
	t.mu.Lock()
	r.PermissionDenials = t.denials
	t.mu.Unlock()
	if t.last != nil {
		r.StopReason = agent.NullString(t.last.Stop)
		if subtype == agent.SubtypeSuccess {
			r.Result = t.last.Text()
		}
	}
	if message != "" {
		r.Errors = []string{message}
	}
	if missing := s.unpriced(); len(missing) > 0 {
		r.Extra = agent.Fields{"unpriced_models": transcript.Encode(missing)}
	}
	return r
}

// unpriced returns the models without a known price that were used. The cost does not include them.
func (s *session) unpriced() []string {
	var models []string
	for m, u := range s.totals {
		if _, ok := s.engine.priceOf(m); !ok && u.CostUSD == 0 {
			models = append(models, m)
		}
	}
	slices.Sort(models)
	return models
}

// initMessage is the message that opens a turn.
func (s *session) initMessage() *agent.SystemInit {
	status := s.serverStatus()
	s.mu.Lock()
	model, mode := s.wantModel, s.policy.Mode()
	s.mu.Unlock()
	m := &agent.SystemInit{
		CWD: s.opts.Dir, SessionID: s.opts.SessionID, Tools: s.table.Names(), MCPServers: toolset.ServerRows(status),
		SlashCommands: s.commandNames(s.life, ""), Model: model, PermissionMode: string(mode), APIKeySource: s.api.KeySource, UUID: uuid.NewString(),
	}
	if s.output != nil {
		m.Tools = append(m.Tools, s.output.model.Name)
	}
	m.MCPServerErrors = append(m.MCPServerErrors, s.opts.ConfigProblems...)
	m.MCPServerErrors = append(m.MCPServerErrors, toolset.RejectedTools(status)...)
	return m
}
