package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/modeltest"
)

// A view shows a run: the answer on standard output by its printer, the progress on the terminal, and what
// went wrong on standard error.
type view struct {
	p        *process
	progress *progress
	report   *reporter
	stderr   *stderrView
	printer  printer
	verbose  bool
	offline  bool // no model decides which calls are made: each that fails is a failure of the run

	turn    atomic.Bool       // a turn has begun and has no result yet; for any goroutine
	started bool              // the init message has come
	names   map[string]string // of the tool calls under way, by id
	failed  []failedCall
	made    int           // tool calls
	asked   atomic.Int64  // calls that the prompts spell out, offline; for any goroutine
	result  *agent.Result // the last
}

// A failedCall is a tool call that came to an error. It is told of at the end, when it is known which of them
// were not allowed to run and need other words.
type failedCall struct{ id, line string }

// message shows one message. An error is that of standard output.
func (v *view) message(m agent.Message) (err error) {
	switch m := m.(type) {
	case *agent.SystemInit:
		v.turn.Store(true)
		v.init(m)
	case *agent.System:
		v.system(m)
	case *agent.Assistant:
		v.assistant(m)
	case *agent.User:
		v.user(m)
	case *agent.Result:
		v.turn.Store(false)
		v.result = m
	}
	v.progress.above(func() { err = v.printer.print(m) })
	return err
}

func (v *view) init(m *agent.SystemInit) {
	if !v.started {
		v.started = true
		for _, e := range m.MCPServerErrors {
			if e.Type == "tool_left_out" && e.Name != "" {
				v.complain("server %q: %s", e.Name, e.Message)
				continue
			}
			v.complain("%s", e.Message)
		}
		for _, s := range m.MCPServers {
			v.note("server %q: %s", s.Name, s.Status)
		}
		v.note("model %s, %s", m.Model, count(len(m.Tools), "tool"))
	}
	v.progress.change(func() { v.progress.begun, v.progress.activity = true, "waiting for the model" })
}

// warnedAttempt is the number of failed requests after which a run without a progress line warns that it may take a
// while. If no answer came at all, the first failed request warns.
const warnedAttempt = 3

func (v *view) system(m *agent.System) {
	var news struct {
		Content string `json:"content"` // of informational
		Level   string `json:"level"`
		Attempt int    `json:"attempt"` // of api_retry
		Max     int    `json:"max_retries"`
		DelayMS int64  `json:"retry_delay_ms"`
		Status  *int   `json:"error_status"`
		Error   string `json:"error"`
		Message string `json:"error_message"`
	}
	if err := json.Unmarshal(m.Raw, &news); err != nil {
		return // not as we know it: it is for those who read the stream
	}
	switch {
	case m.Subtype == "informational" && news.Level == "warning":
		v.complain("%s", news.Content)
	case m.Subtype == "informational":
		v.note("%s", news.Content)
	case m.Subtype == "api_retry":
		cause := clipText(cmp.Or(news.Message, news.Error), 200)
		v.progress.set("waiting for the model: try %d of %d after: %s", news.Attempt, news.Max, cause)
		v.note("request to the model failed (%s), try %d of %d in %d ms", cause, news.Attempt, news.Max, news.DelayMS)
		told := warnedAttempt
		if news.Status == nil {
			told = 1
		}
		if news.Attempt == told && v.progress == nil && !v.verbose {
			v.complain("the model cannot be asked (%s); it is tried up to %d times (--verbose shows each)", cause, news.Max)
		}
	}
}

func (v *view) assistant(m *agent.Assistant) {
	for _, use := range m.ToolUses() {
		if v.names == nil {
			v.names = map[string]string{}
		}
		v.names[use.ID] = use.Name
		v.made++
		v.progress.toolStarted(use.ID, use.Name)
		v.note("%s %s", use.Name, clipText(string(use.Input), 400))
	}
}

func (v *view) user(m *agent.User) {
	for _, res := range m.ToolResults() {
		name := v.names[res.ToolUseID]
		delete(v.names, res.ToolUseID)
		v.progress.toolEnded(res.ToolUseID)
		text := clipText(res.Content.Text(), 400)
		if res.IsError {
			// The tags are for the model.
			text = strings.TrimSuffix(strings.TrimPrefix(text, "<tool_use_error>"), "</tool_use_error>")
			v.failed = append(v.failed, failedCall{res.ToolUseID, name + ": " + text})
		} else {
			v.note("%s returned %s", name, text)
		}
	}
	v.progress.set("waiting for the model")
}

// complain writes a line about something that went wrong, once. With stream-json it stands in the messages.
func (v *view) complain(format string, args ...any) {
	if v.printer.streams() && !v.verbose {
		return
	}
	v.report.warn(oneLine(fmt.Sprintf(format, args...)))
}

// note writes a line for those who asked for more.
func (v *view) note(format string, args ...any) {
	if !v.verbose {
		return
	}
	line := oneLine(fmt.Sprintf(format, args...))
	v.progress.above(func() { fmt.Fprintf(v.p.err, "tenon: %s\n", line) })
}

// showConnecting shows which servers are being connected, until the first turn begins.
func (v *view) showConnecting(ctx context.Context, client *agent.Client) {
	status, err := client.MCPStatus(ctx)
	if err != nil {
		return
	}
	v.progress.change(func() {
		if !v.progress.begun {
			v.progress.activity = connecting(status)
		}
	})
}

// finish reports what is left to report when the run has ended, and how it ended.
func (v *view) finish(ctx context.Context, client *agent.Client) error {
	if status, err := client.MCPStatus(ctx); err == nil {
		for _, s := range status {
			switch s.Status {
			case mcphost.StatusConnected, mcphost.StatusDisabled:
			case mcphost.StatusPending:
				v.complain("server %q was still connecting when the run ended", s.Name)
			default:
				v.complain("%s", serverLine(s))
			}
		}
	}
	v.reportCalls()
	if v.result == nil {
		return agent.ErrNoResult
	}
	r := v.result
	if missing := int(v.asked.Load()) - v.made; missing > 0 && !r.IsError {
		v.complain("%s of the prompt was not made; the answer tells why", count(missing, "call"))
	}
	v.note("%s in %s, %d tokens in, %d out, about $%.4f", count(r.NumTurns, "turn"), seconds(time.Duration(r.DurationMS)*time.Millisecond), r.Usage.InputTokens, r.Usage.OutputTokens, r.TotalCostUSD)
	if err := runError(r); err != nil || !v.offline {
		return err
	}
	if len(v.failed) > 0 || len(r.PermissionDenials) > 0 || int(v.asked.Load()) > v.made {
		return errReported
	}
	return nil
}

// expect counts the calls that a prompt spells out for the offline model. A call that fails, is not allowed or not made
// is then a failure of the run: no model was there to decide otherwise.
func (v *view) expect(prompt string) {
	if v.offline {
		v.asked.Add(int64(len(modeltest.OfflineCalls(prompt))))
	}
}

// reportCalls tells of the calls that came to nothing, each once.
func (v *view) reportCalls() {
	denied := map[string]bool{}
	if v.result != nil {
		for _, d := range v.result.PermissionDenials {
			denied[d.ToolUseID] = true
			v.complain("%s was not allowed to run; to allow it: --allowedTools %s", d.ToolName, d.ToolName)
		}
	}
	for _, f := range v.failed {
		if !denied[f.id] {
			v.complain("%s", f.line)
		}
	}
}

// runError is why a run failed, in the words of the command line; nil if it did not.
func runError(r *agent.Result) error {
	err := r.Err()
	switch {
	case errors.Is(err, agent.ErrMaxTurns):
		return fmt.Errorf("stopped after %s; raise --max-turns for more", count(r.NumTurns, "turn"))
	case errors.Is(err, agent.ErrMaxBudget):
		return fmt.Errorf("stopped at an estimated $%.4f; raise --max-budget-usd for more", r.TotalCostUSD)
	}
	return err
}

// A printer writes a run to standard output.
type printer interface {
	print(m agent.Message) error
	streams() bool // whether every message is written
}

func newPrinter(format string, p *process) printer {
	switch format {
	case "json":
		return &resultPrinter{p.out}
	case "stream-json":
		return &streamPrinter{p.out}
	}
	return &textPrinter{p.out}
}

// textPrinter prints the answer.
type textPrinter struct{ w io.Writer }

func (t *textPrinter) streams() bool { return false }

func (t *textPrinter) print(m agent.Message) error {
	r, ok := m.(*agent.Result)
	if !ok || r.IsError {
		return nil
	}
	text := r.Result
	if len(r.StructuredOutput) > 0 {
		text = string(r.StructuredOutput)
	}
	_, err := io.WriteString(t.w, endLine(safeFor(t.w, text)))
	return err
}

// resultPrinter prints the result message.
type resultPrinter struct{ w io.Writer }

func (j *resultPrinter) streams() bool { return false }

func (j *resultPrinter) print(m agent.Message) error {
	if _, ok := m.(*agent.Result); !ok {
		return nil
	}
	return writeLine(j.w, m)
}

// streamPrinter prints every message on a line of its own, as it comes.
type streamPrinter struct{ w io.Writer }

func (s *streamPrinter) streams() bool               { return true }
func (s *streamPrinter) print(m agent.Message) error { return writeLine(s.w, m) }
