package claudecode

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/claudecode/event"
	"github.com/tenon-sdk/tenon/engine/internal/kit"
	"github.com/tenon-sdk/tenon/internal/subproc"
	"github.com/tenon-sdk/tenon/permission"
)

// A ProcessError is the error of a CLI that could not be started, or exited without a result.
type ProcessError struct {
	Path string
	Exit string // "exit status 1", "signal: killed"; empty if it never ran
	// Stderr is the end of the CLI's standard error.
	Stderr string
	Err    error
}

// Error returns the exit status and the end of the standard error.
func (e *ProcessError) Error() string {
	s := "claude-code: the CLI " + e.Path
	if e.Exit != "" {
		s += " ended: " + e.Exit
	} else if e.Err != nil {
		s += " could not be started: " + e.Err.Error()
	}
	return strings.TrimSpace(s + "\n" + strings.TrimSpace(e.Stderr))
}

// Unwrap returns the cause.
func (e *ProcessError) Unwrap() error { return e.Err }

// A session is one CLI process.
type session struct {
	engine  *Engine
	opts    *agent.Options
	path    string
	proc    *subproc.Proc
	ch      *channel
	servers *servers
	hooks   hookSet
	runner  *kit.HookRunner
	init    Initialization // constant once the session has started
	inputs  *toolInputs
	inbox   *inbox
	ids     *inputIDs

	answered  chan struct{} // closed by the first result
	closing   chan struct{} // closed when the CLI's stdin is to be closed
	endStdin  sync.Once
	readers   sync.WaitGroup // the goroutine that reads, which ends all others
	closeOnce sync.Once

	mu       sync.Mutex // guards the rest
	reported reported
	turn     turnState
	review   ruleReview
	notices  []string // context of hooks on Notification for the model
	started  bool     // the hooks on SessionStart have run
	used     bool     // an input was sent
	ended    bool     // no input will follow
	closed   bool
}

// reported is what the CLI reported last about the session.
type reported struct{ SessionID, CWD, PermissionMode string }

func newSession(e *Engine, o *agent.Options) *session {
	o.Hooks = cmp.Or(o.Hooks, new(agent.Hooks))
	s := &session{
		engine: e, opts: o, inputs: newToolInputs(), inbox: newInbox(), ids: newInputIDs(),
		hooks:    hookSet{matchers: map[string][]hookMatcher{}, funcs: map[string]hookFunc{}},
		answered: make(chan struct{}), closing: make(chan struct{}),
		reported: reported{SessionID: o.SessionID, CWD: o.Dir, PermissionMode: string(o.PermissionMode)},
		turn:     newTurnState(), review: ruleReview{reported: map[string]bool{}},
	}
	s.runner = &kit.HookRunner{Logger: o.Logger, Failed: s.hookFailed}
	return s
}

// hookFailed reports the error of a hook that this engine runs.
func (s *session) hookFailed(event string, err error) {
	s.opts.Logger.Warn("claude-code: hook failed", "event", event, "error", err)
	if event == "PreToolUse" {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.warn("hook_callback_failed", "A %s hook failed, and the run goes on without it: %v", event, err)
	}
}

// isClosed reports whether Close was called.
func (s *session) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// control sends a control request unless the session is closed.
func (s *session) control(ctx context.Context, subtype string, fields, result any) error {
	if s.isClosed() {
		return agent.ErrClosed
	}
	return s.ch.request(ctx, subtype, fields, result)
}

// alive reports whether the CLI may still answer.
func (s *session) alive() bool { return s.ch.ctx.Err() == nil }

// Receive returns the next message.
func (s *session) Receive(ctx context.Context) (agent.Message, error) { return s.inbox.receive(ctx) }

// SetModel changes the model. Empty means the CLI's default.
func (s *session) SetModel(ctx context.Context, model string) error {
	return s.control(ctx, "set_model", map[string]any{"model": orNull(model)}, nil)
}

// orNull returns a text, or nil if it is empty.
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// SetPermissionMode changes the permission mode.
func (s *session) SetPermissionMode(ctx context.Context, mode permission.Mode) error {
	if _, err := permission.ParseMode(string(mode)); err != nil {
		return fmt.Errorf("claude-code: %w", err)
	}
	return s.control(ctx, "set_permission_mode", map[string]permission.Mode{"mode": mode}, nil)
}

// ContextUsage returns the CLI's count of the context. The CLI has the API count each category.
func (s *session) ContextUsage(ctx context.Context) (*agent.ContextUsage, error) {
	u := new(agent.ContextUsage)
	if err := s.control(ctx, "get_context_usage", nil, u); err != nil {
		return nil, err
	}
	return u, nil
}

// warn gives the program a warning as a message. The caller holds s.mu.
func (s *session) warn(tag, format string, args ...any) {
	s.inform("warning", tag, fmt.Sprintf(format, args...))
}

// inform gives the program a text as a message, unless it is empty. The caller holds s.mu.
func (s *session) inform(level, tag, text string) {
	if text == "" {
		return
	}
	s.putSystem("informational", event.Informational{Content: text, Level: level, Tag: tag}, len(text))
}

// putSystem gives the program a system message. The caller holds s.mu.
func (s *session) putSystem(subtype string, fields any, size int) {
	if m, err := agent.NewSystem(subtype, s.reported.SessionID, uuid.NewString(), fields); err == nil {
		s.inbox.put(m, size)
	}
}

// logInvalid logs a line that cannot be decoded.
func (s *session) logInvalid(line []byte) {
	s.opts.Logger.Debug("claude-code: a line that is no message", "line", fmt.Sprintf("%.200q", line))
}

// mirror passes entries of transcripts on to Options.Mirror.
func (s *session) mirror(path string, entries []json.RawMessage) {
	f := s.engine.opts.Mirror
	if f == nil {
		return
	}
	if _, err := kit.Guard(s.opts.Logger, "Mirror", func() (any, error) { f(path, entries); return nil, nil }); err != nil {
		s.opts.Logger.Warn("claude-code: Mirror failed", "path", path, "error", err)
	}
}

// exited waits for the CLI's end after its output has ended, and ends what waits for it.
func (s *session) exited() {
	select {
	case <-s.proc.Exited():
	case <-time.After(s.engine.grace):
	}
	s.proc.AwaitExit(s.ch.ctx, s.engine.grace)
	exit := "its output ended"
	select {
	case <-s.proc.Exited():
		exit = s.proc.Exit().String()
	default:
	}
	var end error = &ProcessError{Path: s.path, Exit: exit, Stderr: s.proc.Stderr()}
	s.ch.cancel(end)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended && s.turn.allAnswered() {
		end = io.EOF
	}
	s.inbox.finish(end)
}

// Close ends the process: it closes the CLI's stdin, then asks the CLI to terminate, then kills it.
// Before that it ends the contexts of callbacks and servers of the program. If one of them does not
// return within 10 s, Close leaves it behind and returns an error.
func (s *session) Close() error {
	var err error
	s.closeOnce.Do(func() {
		s.mu.Lock()
		s.closed = true
		s.turn.stopClock()
		s.mu.Unlock()
		s.inbox.close()
		if s.ch == nil {
			return
		}
		s.ch.cancel(agent.ErrClosed)
		s.endStdin.Do(func() { close(s.closing) })
		if s.proc != nil {
			if err := s.proc.Close(); err != nil {
				s.opts.Logger.Warn("claude-code: closing the CLI", "error", err)
			}
		}
		ended := within(s.engine.patience, func() {
			s.servers.close()
			s.ch.end(agent.ErrClosed)
			s.readers.Wait()
		})
		if !ended {
			err = fmt.Errorf("claude-code: a callback or a server of the program did not return within %v after its context had ended", s.engine.patience)
			return
		}
		s.runSessionEnd()
	})
	return err
}

// within calls f and reports whether it returned within limit. If not, f continues.
func within(limit time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return true
	case <-time.After(limit):
		return false
	}
}
