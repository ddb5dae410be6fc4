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

// A view shows a run: the answer on standard output, the progress on the terminal, and what went
// wrong on standard error.
type view struct {
	*reporter
	format  string // of standard output
	verbose bool
	offline bool // no model decides on calls: each that fails is a failure of the run

	turn    atomic.Bool       // a turn has begun and has no result yet; for any goroutine
	started bool              // the init message has come
	names   map[string]string // of the tool calls under way, by id
	failed  []failedCall
	made    int           // tool calls
	asked   atomic.Int64  // calls that the prompts spell out, offline; for any goroutine
	result  *agent.Result // the last
}

// A failedCall is a tool call that came to an error. It is reported at the end, because a call that
// was not allowed to run is reported in other words.
type failedCall struct{ id, line string }

// message shows a message. An error is that of standard output.
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
	v.progress.above(func() { err = v.print(m) })
	return err
}

// print writes what the output format has of a message.
func (v *view) print(m agent.Message) error {
	r, isResult := m.(*agent.Result)
	switch {
	case v.format == "stream-json", v.format == "json" && isResult:
		return writeLine(v.p.out, m)
	case v.format == "json" || !isResult || r.IsError:
		return nil
	}
	_, err := io.WriteString(v.p.out, endLine(safeFor(v.p.out, cmp.Or(string(r.StructuredOutput), r.Result))))
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

// warnedAttempt is the failed request after which a run without a progress line warns that it may
// take a while. If no answer came at all, the first one warns.
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
		return // of an unknown form; readers of the stream get it
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
		warned := warnedAttempt
		if news.Status == nil {
			warned = 1
		}
		if news.Attempt == warned && v.progress == nil && !v.verbose {
			v.complain("the model cannot be asked (%s); it is tried up to %d times (--verbose shows each)", cause, news.Max)
		}
	}
}

func (v *view) assistant(m *agent.Assistant) {
	for _, use := range m.ToolUses() {
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

// complain writes a line about a fault, once. With stream-json the messages have it.
func (v *view) complain(format string, args ...any) {
	if v.verbose || v.format != "stream-json" {
		v.warn(oneLine(fmt.Sprintf(format, args...)))
	}
}

// note writes a line with --verbose.
func (v *view) note(format string, args ...any) {
	if v.verbose {
		v.line("tenon:", oneLine(fmt.Sprintf(format, args...)))
	}
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

// finish reports what is left to report when the run has ended, and returns how it ended.
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
	r := v.result
	if r == nil {
		return agent.ErrNoResult
	}
	missing := int(v.asked.Load()) - v.made
	if missing > 0 && !r.IsError {
		v.complain("%s of the prompt was not made; the answer tells why", count(missing, "call"))
	}
	v.note("%s in %s, %d tokens in, %d out, about $%.4f",
		count(r.NumTurns, "turn"), seconds(time.Duration(r.DurationMS)*time.Millisecond), r.Usage.InputTokens, r.Usage.OutputTokens, r.TotalCostUSD)
	err := r.Err()
	switch {
	case errors.Is(err, agent.ErrMaxTurns):
		return fmt.Errorf("stopped after %s; raise --max-turns for more", count(r.NumTurns, "turn"))
	case errors.Is(err, agent.ErrMaxBudget):
		return fmt.Errorf("stopped at an estimated $%.4f; raise --max-budget-usd for more", r.TotalCostUSD)
	case err == nil && v.offline && (len(v.failed) > 0 || len(r.PermissionDenials) > 0 || missing > 0):
		return errReported
	}
	return err
}

// expect counts the calls that a prompt spells out for the offline model.
func (v *view) expect(prompt string) {
	if v.offline {
		v.asked.Add(int64(len(modeltest.OfflineCalls(prompt))))
	}
}

// reportCalls reports the calls that failed or were not allowed, each once.
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
