package claudecode

import (
	"bytes"
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
		s.idle = false
		s.told = told{SessionID: m.SessionID, CWD: m.CWD, PermissionMode: m.PermissionMode}
	case *agent.Assistant:
		s.followAnswer(m)
	case *agent.User:
		s.silent.heard(m)
		for _, r := range m.ToolResults() {
			if raw, ok := s.args.result(r.ToolUseID); ok {
				m.ToolUseResult = raw
			}
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
		u.Input = s.args.settle(u.ID, u.Input)
	}
}

// followStream counts a message of the model that begins.
func (s *session) followStream(line []byte) {
	if !bytes.Contains(line, []byte("message_start")) {
		return
	}
	if m := readStreamEvent(line); m.parent == "" && m.message != "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked[m.message] = true
	}
}

// A silence counts the model's messages of a turn of which the CLI shows none but in the stream: those
// without anything to see, and one that was interrupted before there was.
type silence struct {
	inStream bool // they are in the stream, and counted there
	awaited  bool // a message of the model is the next thing to come
	n        int
}

// silentAnswer begins what the CLI says to the model after the first such message of a turn.
const silentAnswer = "[Your previous response had no visible output."

// heard is told of a message to the model.
func (c *silence) heard(m *agent.User) {
	if c.inStream || m.ParentToolUseID != "" {
		return
	}
	silent := strings.HasPrefix(m.Message.Content.Text(), silentAnswer)
	if silent {
		c.n++
	}
	c.awaited = c.awaited || silent || len(m.ToolResults()) > 0
}

// ended returns how many there were in a turn. Of a turn that was all silent the CLI has said so once.
func (c *silence) ended(r *agent.Result, stopped bool) int {
	last := false
	switch {
	case c.inStream || !c.awaited || stopped:
	case r.TerminalReason == agent.ReasonAbortedStreaming:
		last = true
	case r.Subtype == agent.SubtypeSuccess && r.TerminalReason == agent.ReasonCompleted:
		last = r.NumTurns > 1 && r.StructuredOutput == nil // the former is the CLI's count of messages to the model
	}
	if last {
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
	m.UserMessageUUIDs = slices.DeleteFunc(m.UserMessageUUIDs, func(id string) bool { return s.ours[id] })
	if len(m.UserMessageUUIDs) == 0 {
		m.UserMessageUUIDs = nil
	}
	m.NumTurns = len(s.asked) + s.silent.ended(m, s.stopped != "")
	m.StructuredOutput = s.args.restoreOutput(m.StructuredOutput)
	if m.StructuredOutput != nil && sameRounded(json.RawMessage(m.Result), m.StructuredOutput) {
		m.Result = string(m.StructuredOutput)
	}
	s.judge(m)
	s.stopped = ""
	clear(s.asked)
	s.silent = silence{awaited: true, inStream: s.streams}
	s.args.turnEnded()
}

// judge makes an error of a turn that the CLI calls a success though it has no answer: one that a
// hook stopped, and one without the structured output that was asked for.
func (s *session) judge(m *agent.Result) {
	if s.stopped != "" && m.TerminalReason == agent.ReasonAbortedTools {
		m.TerminalReason, m.Errors = agent.ReasonHookStopped, []string{s.stopped} // the hook's denial interrupted the turn
		return
	}
	if m.Subtype != agent.SubtypeSuccess || m.IsError {
		return
	}
	switch {
	case s.stopped != "" && len(s.asked) == 0, m.TerminalReason == agent.ReasonHookStopped:
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
			s.idle = state.State == "idle"
			return !state.HostOnly
		}
	case "status":
		// It belongs to the stream that is read for the arguments.
		return s.opts.IncludePartialMessages || m.Decode(&state) != nil || state.Status != "requesting" || state.Mode != nil
	}
	return true
}
