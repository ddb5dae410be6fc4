package claudecode

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/agent"
)

// follow keeps track of where the run is, and mends what the CLI says otherwise than package agent
// promises. It reports whether the program gets the message: what the CLI says only because we
// asked for it stays here. The caller holds s.mu.
func (s *session) follow(kind string, m agent.Message) bool {
	switch m := m.(type) {
	case *agent.SystemInit:
		s.servers.truth(m.MCPServers)
		m.MCPServerErrors = append(append(m.MCPServerErrors, s.opts.ConfigProblems...), s.servers.faults()...)
		s.idle, s.expected = false, ""
		s.turning = true
		s.told = told{SessionID: m.SessionID, CWD: m.CWD, PermissionMode: m.PermissionMode}
		s.reviewRules()
	case *agent.Assistant:
		s.followAnswer(m)
	case *agent.User:
		s.silent.heard(m)
		for _, r := range m.ToolResults() {
			if raw, ok := s.args.result(r.ToolUseID); ok {
				m.ToolUseResult = raw
			}
			s.args.done(r.ToolUseID)
			delete(s.shown, r.ToolUseID)
		}
	case *agent.Result:
		s.followResult(m)
	case *agent.System:
		return s.followState(m)
	case *agent.Unknown:
		if kind == "command_lifecycle" {
			var l struct {
				UUID  string `json:"command_uuid"`
				State string `json:"state"`
			}
			if json.Unmarshal(m.Raw, &l) == nil && (l.State == "completed" || l.State == "cancelled") {
				delete(s.waiting, l.UUID)
			}
			return false
		}
	}
	return true
}

// followAnswer counts the model's messages and puts the arguments of its calls right.
func (s *session) followAnswer(m *agent.Assistant) {
	if m.ParentToolUseID == "" {
		s.asked[m.Message.ID] = true
		s.silent.awaited = false
	}
	for _, u := range m.ToolUses() {
		switch {
		case m.ParentToolUseID != "":
			s.args.opened(u.ID)
		case u.Name == outputTool:
			s.args.gaveOutput(u.ID)
		}
		u.Input = s.args.settle(u.ID, u.Input)
	}
}

// A silence counts the model's messages of a turn of which the CLI shows none: those without anything to
// see, and one that was interrupted before there was. They are told by what the CLI says to the model
// next, whether or not the model's stream is read: in that one that was asked for again after it broke is
// two, and one that was interrupted before it began is none.
type silence struct {
	awaited bool // a message of the model is the next thing to come
	n       int
}

// rejoinders are the beginnings of what the CLI says to the model after an answer of which nothing is
// shown. It may say the same after one that is.
var rejoinders = []string{
	"[Your previous response had no visible output.", "Output token limit hit", "Your response above was ",
	"Stop hook feedback", "[structured-output-enforce]", "Your tool call was malformed", "The previous response failed ",
}

// heard is told of a message to the model.
func (c *silence) heard(m *agent.User) {
	if m.ParentToolUseID != "" {
		return
	}
	text := m.Message.Content.Text()
	rejoins := m.IsSynthetic && slices.ContainsFunc(rejoinders, func(r string) bool { return strings.HasPrefix(text, r) })
	if rejoins && c.awaited {
		c.n++
	}
	c.awaited = c.awaited || rejoins || len(m.ToolResults()) > 0
}

// ended returns how many there were in a turn. Of the last one the CLI has said nothing.
func (c *silence) ended(r *agent.Result) int {
	last := false
	switch r.TerminalReason {
	case agent.ReasonAbortedStreaming:
		last = true
	case agent.ReasonCompleted, agent.ReasonStopHookPrevented:
		// What was no question to the model at all is a success, and its count of messages to the model, which is the CLI's, is 1 at most.
		last = r.Subtype != agent.SubtypeSuccess || r.NumTurns > 1 && r.StructuredOutput == nil
	case agent.ReasonBudgetExhausted:
		last = r.StopReason != "" && r.StopReason != "tool_use" // else it was before the next question
	}
	if last && c.awaited {
		return c.n + 1
	}
	return c.n
}

// followResult makes of a result what package agent says that it is: the CLI's num_turns counts
// messages of the user, too, and its list of inputs has those that the program gave no UUID.
func (s *session) followResult(m *agent.Result) {
	if s.results++; s.results == 1 {
		close(s.answered)
	}
	s.failed = m.Err() != nil
	for _, id := range m.UserMessageUUIDs {
		delete(s.waiting, id)
	}
	m.UserMessageUUIDs = slices.DeleteFunc(m.UserMessageUUIDs, s.ids.has)
	if len(m.UserMessageUUIDs) == 0 {
		m.UserMessageUUIDs = nil
	}
	m.NumTurns = len(s.asked) + s.silent.ended(m)
	m.StructuredOutput = s.args.restoreOutput(m.StructuredOutput)
	if m.StructuredOutput != nil && sameRounded(json.RawMessage(m.Result), m.StructuredOutput) {
		m.Result = string(m.StructuredOutput)
	}
	s.judge(m)
	s.turning, s.interruptNext = false, false
	s.turnEnds()
	if len(s.waiting) > 0 {
		s.turnStarts()
	}
	s.stopped = ""
	clear(s.asked)
	s.silent = silence{awaited: true}
	s.args.turnEnded()
}

// judge makes an error of a turn that the CLI calls a success though it has no answer: one that a
// hook stopped, and one without the structured output that was asked for.
func (s *session) judge(m *agent.Result) {
	if s.judgeTime(m) {
		return
	}
	if s.stopped != "" && m.TerminalReason == agent.ReasonAbortedTools {
		m.TerminalReason, m.Errors = agent.ReasonHookStopped, []string{s.stopped} // the hook's denial interrupted the turn
		return
	}
	if m.Subtype != agent.SubtypeSuccess || m.IsError {
		return
	}
	switch {
	case s.stopped != "" && m.NumTurns == 0, m.TerminalReason == agent.ReasonHookStopped:
		m.Subtype, m.TerminalReason = agent.SubtypeErrorDuringExecution, agent.ReasonHookStopped
		m.Errors = []string{cmp.Or(s.stopped, "a hook stopped the turn")}
	case s.opts.OutputSchema != nil && m.StructuredOutput == nil:
		m.Subtype, m.TerminalReason = agent.SubtypeErrorStructuredOutput, agent.ReasonStructuredOutput
		m.Errors = []string{"the model gave no output that matches the schema"}
	default:
		return
	}
	m.IsError, m.Result = true, ""
}

// followState takes the state of the CLI, and lets through what else it says of itself.
func (s *session) followState(m *agent.System) bool {
	var state struct {
		State    string          `json:"state"`
		HostOnly bool            `json:"sdk_host_only"`
		Status   string          `json:"status"`
		Mode     json.RawMessage `json:"permissionMode"`
	}
	switch m.Subtype {
	case "session_state_changed":
		if m.Decode(&state) == nil {
			s.idle, s.expected = state.State == "idle", ""
			return !state.HostOnly
		}
	case "status":
		// It belongs to the stream that is read for the arguments.
		return s.opts.IncludePartialMessages || m.Decode(&state) != nil || state.Status != "requesting" || state.Mode != nil
	}
	return true
}
