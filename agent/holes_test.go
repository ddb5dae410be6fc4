package agent

import (
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a message has beside its fields is written behind them; it never stands in for one of them, nor twice.
// fault F12
func TestExtraNeverReplacesAField(t *testing.T) {
	for _, tt := range []struct {
		v    any
		want string
	}{
		{&TextBlock{Text: "a", Extra: Fields{"text": json.RawMessage(`"b"`), "type": json.RawMessage(`"c"`), "y": json.RawMessage(`2`), "x": json.RawMessage(`[1]`)}}, `{"type":"text","text":"a","x":[1],"y":2}`},
		{&TextBlock{Text: "a", Extra: Fields{"x": nil, "": json.RawMessage(`1`)}}, `{"type":"text","text":"a","":1}`},
		{&TextBlock{Text: "a"}, `{"type":"text","text":"a"}`},
		{&ThinkingBlock{Thinking: "t", Signature: "s", Extra: Fields{"signature": json.RawMessage(`"forged"`), "thinking": json.RawMessage(`""`)}}, `{"type":"thinking","thinking":"t","signature":"s"}`},
		{&ToolUseBlock{ID: "i", Name: "n", Input: json.RawMessage(`{}`), Extra: Fields{"id": json.RawMessage(`"other"`), "name": json.RawMessage(`"other"`), "input": json.RawMessage(`{"other":1}`)}}, `{"type":"tool_use","id":"i","name":"n","input":{}}`},
	} {
		got, err := json.Marshal(tt.v)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tt.want, string(got)); d != "" {
			t.Errorf("%T (-want +got):\n%s", tt.v, d)
		}
	}
	// A name with a quotation mark is a name.
	got, err := json.Marshal(&TextBlock{Extra: Fields{`a"b`: json.RawMessage(`1`)}})
	var back map[string]any
	if err != nil || json.Unmarshal(got, &back) != nil || back[`a"b`] != 1.0 {
		t.Errorf("got %s, %v", got, err)
	}
}

// The least budget for thinking is 1024, and it goes with one type only.
// fault F13
func TestLeastThinkingBudget(t *testing.T) {
	for _, tt := range []struct {
		in   Thinking
		want string
	}{
		{Thinking{Type: "enabled", BudgetTokens: 1024}, ""},
		{Thinking{Type: "enabled", BudgetTokens: 1023}, "agent: Options.Thinking.BudgetTokens is 1023: set at least 1024"},
		{Thinking{Type: "enabled"}, "agent: Options.Thinking.BudgetTokens is 0: set at least 1024"},
		{Thinking{Type: "enabled", BudgetTokens: -1}, "agent: Options.Thinking.BudgetTokens is -1: set at least 1024"},
		{Thinking{Type: "adaptive"}, ""},
		{Thinking{Type: "adaptive", BudgetTokens: 1024}, `agent: Options.Thinking.BudgetTokens is 1024: set it with Type "enabled" only`},
		{Thinking{Type: "disabled", BudgetTokens: 1}, `agent: Options.Thinking.BudgetTokens is 1: set it with Type "enabled" only`},
	} {
		_, err := (&Options{Thinking: &tt.in}).withDefaults()
		got := ""
		if err != nil {
			got = err.Error()
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.in, d)
		}
	}
}

// A run shares no slice and no map with the options that it was given, whichever field it is.
// fault F13
func TestOptionsShareNothing(t *testing.T) {
	var given Options
	fields := reflect.ValueOf(&given).Elem()
	for i := range fields.NumField() {
		switch f := fields.Field(i); f.Kind() {
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
			if f.Type().Elem().Kind() == reflect.String {
				f.Index(0).SetString("x")
			}
		case reflect.Map:
			f.Set(reflect.MakeMap(f.Type()))
		default:
		}
	}
	given.SettingSources = []SettingSource{SourceProject}
	given.OutputSchema = json.RawMessage(`{"type":"object"}`)
	given.History, given.Tools = nil, nil // messages are not to be nil, tools go to a server
	got, err := given.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	result := reflect.ValueOf(got)
	for i := range fields.NumField() {
		f, r := fields.Field(i), result.Field(i)
		if k := f.Kind(); k != reflect.Slice && k != reflect.Map || f.IsNil() || r.IsNil() {
			continue
		}
		if f.Pointer() == r.Pointer() {
			t.Errorf("%s is the caller's own", fields.Type().Field(i).Name)
		}
	}
}

// The last result decides: an earlier error is forgotten, and a later one is the run's. All messages arrive, in their order.
// fault F21
func TestQueryYieldsAllResults(t *testing.T) {
	failed := &Result{Subtype: SubtypeErrorDuringExecution, IsError: true, Errors: []string{"broken"}}
	for name, tt := range map[string]struct {
		messages []Message
		fails    bool
	}{
		"error, then success": {[]Message{failed, success("fine")}, false},
		"success, then error": {[]Message{success("fine"), failed}, true},
		"success":             {[]Message{&SystemInit{}, success("fine")}, false},
	} {
		e := &script{messages: tt.messages, end: io.EOF}
		var got []Message
		var last error
		for m, err := range Query(t.Context(), e, "x", nil) {
			if m != nil {
				got = append(got, m)
			}
			last = err
		}
		if len(got) != len(tt.messages) {
			t.Fatalf("%s: %d messages, want %d", name, len(got), len(tt.messages))
		}
		for i, m := range tt.messages {
			if got[i] != m {
				t.Errorf("%s: message %d is %+v, want %+v", name, i, got[i], m)
			}
		}
		var re *ResultError
		if tt.fails != errors.As(last, &re) || tt.fails && (re.Result != failed || !strings.Contains(last.Error(), "broken")) || !tt.fails && last != nil {
			t.Errorf("%s: ended with %v", name, last)
		}
		if !e.sessions[0].isClosed() {
			t.Errorf("%s: the session is open", name)
		}
	}
}

// The words of the protocol are those that the Claude Code CLI writes, and programs compare.
func TestWordsOfTheProtocol(t *testing.T) {
	for got, want := range map[string]string{
		SubtypeSuccess: "success", SubtypeErrorDuringExecution: "error_during_execution", SubtypeErrorMaxTurns: "error_max_turns",
		SubtypeErrorMaxBudget: "error_max_budget_usd", SubtypeErrorTurnTimeout: "error_turn_timeout", SubtypeErrorStructuredOutput: "error_max_structured_output_retries",

		ReasonCompleted: "completed", ReasonMaxTurns: "max_turns", ReasonBudgetExhausted: "budget_exhausted", ReasonTurnTimeout: "turn_timeout",
		ReasonAPIError: "api_error", ReasonModelError: "model_error", ReasonPromptTooLong: "prompt_too_long", ReasonAbortedTools: "aborted_tools",
		ReasonAbortedStreaming: "aborted_streaming", ReasonHookStopped: "hook_stopped", ReasonStopHookPrevented: "stop_hook_prevented",
		ReasonMalformedToolUse: "malformed_tool_use_exhausted", ReasonStructuredOutput: "structured_output_retry_exhausted", ReasonTurnSetupFailed: "turn_setup_failed",

		ContextSystemPrompt: "system_prompt", ContextSystemTools: "system_tools", ContextMCPTools: "mcp_tools", ContextMCPToolsDeferred: "mcp_tools_deferred",
		ContextMessages: "messages", ContextFree: "free_space",

		RepairUnanswered: "unanswered_call", RepairOrphan: "orphaned_result", RepairDuplicate: "duplicate", RepairMoved: "moved_result", RepairRenamed: "renamed",
		RepairEmpty: "empty", RepairThought: "thought", RepairBeginning: "beginning", RepairMalformed: "malformed", RepairMedia: "media",
		RepairReference: "tool_reference", RepairRefused: "refused",

		string(SourceUser): "user", string(SourceProject): "project", string(SourceLocal): "local",
		string(ToolSearchOn): "true", string(ToolSearchOff): "false", string(ToolSearchAuto): "auto",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The texts of errors, with each part that may be missing.
func TestTextsOfErrors(t *testing.T) {
	for want, err := range map[string]error{
		"agent: request failed: overloaded":                                                         &ResultError{&Result{Subtype: SubtypeSuccess, IsError: true, Result: "overloaded"}},
		"agent: request failed with status 529: overloaded":                                         &ResultError{&Result{Subtype: SubtypeSuccess, IsError: true, Result: "overloaded", APIErrorStatus: 529}},
		"agent: error_max_turns: after 3 turns":                                                     &ResultError{&Result{Subtype: SubtypeErrorMaxTurns, IsError: true, Errors: []string{"after 3 turns"}}},
		"agent: error_during_execution":                                                             &ResultError{&Result{Subtype: SubtypeErrorDuringExecution, IsError: true}},
		"agent: Options.MaxTurns is -1: set 0 or more":                                              &OptionError{"MaxTurns", "is -1", "set 0 or more"},
		`agent: engine "e" cannot honour Options.A: leave it unset or use another engine`:           &UnsupportedError{Engine: "e", Fields: []string{"A"}},
		`agent: engine "e" cannot honour Options.A, Options.B: go home`:                             &UnsupportedError{Engine: "e", Fields: []string{"A", "B"}, Remedy: "go home"},
		"agent: the input is empty: give it a text that is more than white space, or another block": ErrEmptyInput,
		"agent: session is closed":                                                                  ErrClosed,
		"agent: turn limit reached":                                                                 ErrMaxTurns,
		"agent: budget used up":                                                                     ErrMaxBudget,
		"agent: turn ran out of time":                                                               ErrTurnTimeout,
		"agent: too many inputs are waiting":                                                        ErrTooManyInputs,
		"agent: turn interrupted":                                                                   ErrInterrupted,
		"agent: the run ended without a result":                                                     ErrNoResult,
	} {
		if d := cmp.Diff(want, err.Error()); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}

// The permission prompt tool is one of an MCP server, by its full name.
func TestPermissionPromptToolIsAFullName(t *testing.T) {
	for name, ok := range map[string]bool{"": true, "mcp__s__ask": true, "ask": false, "s__ask": false, "xmcp__s__ask": false} {
		_, err := (&Options{PermissionPromptTool: name}).withDefaults()
		if (err == nil) != ok {
			t.Errorf("%q: got %v, want it taken: %v", name, err, ok)
		}
	}
}

// The errors of options say what was given.
func TestOptionErrorsSayWhatWasGiven(t *testing.T) {
	for want, thinking := range map[string]Thinking{
		`agent: Options.Thinking.Type is "loud": set "adaptive", "enabled", "between_tools" or "disabled"`: {Type: "loud"},
		`agent: Options.Thinking.Display is "loud": set "summarized", "omitted", "updates" or nothing`:     {Type: "adaptive", Display: "loud"},
		`agent: Options.Thinking.BudgetTokens is 7: set it with Type "enabled" only`:                       {Type: "adaptive", BudgetTokens: 7},
		`agent: Options.Thinking.BudgetTokens is 1023: set at least 1024`:                                  {Type: "enabled", BudgetTokens: 1023},
	} {
		if _, err := (&Options{Thinking: &thinking}).withDefaults(); err == nil || err.Error() != want {
			t.Errorf("%+v: %v, want %s", thinking, err, want)
		}
	}
}

// "result" is there on a success, empty or not, and where a failure has one.
func TestResultIsWrittenWhereThereIsOne(t *testing.T) {
	for _, tt := range []struct {
		r      Result
		result string // as JSON; empty: absent
		errors string
	}{
		{Result{Subtype: SubtypeSuccess}, `""`, ""},
		{Result{Subtype: SubtypeSuccess, Result: "x"}, `"x"`, ""},
		{Result{Subtype: SubtypeErrorMaxTurns}, "", "[]"},
		{Result{Subtype: SubtypeErrorMaxTurns, Result: "x", Errors: []string{"e"}}, `"x"`, `["e"]`},
	} {
		raw, err := json.Marshal(&tt.r)
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ Result, Errors json.RawMessage }
		if err := json.Unmarshal(raw, &got); err != nil || string(got.Result) != tt.result || string(got.Errors) != tt.errors {
			t.Errorf("%+v is written with result %s and errors %s, want %s and %s", tt.r, got.Result, got.Errors, tt.result, tt.errors)
		}
	}
}
