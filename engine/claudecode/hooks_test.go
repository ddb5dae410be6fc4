package claudecode

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sdk/tenon/agent"
)

func init() { children["asker"] = askerMain }

// askerMain is a CLI that, in each turn, sends the request in its environment and answers with what
// it got, and with the input as it came.
func askerMain() {
	f := newFakeCLI()
	var request object
	if json.Unmarshal([]byte(os.Getenv("CLAUDECODE_TEST_ASK")), &request) != nil {
		os.Exit(2)
	}
	for f.in.Scan() {
		line := f.in.Text()
		var m struct {
			Type      string          `json:"type"`
			RequestID string          `json:"request_id"`
			Request   json.RawMessage `json:"request"`
			UUID      string          `json:"uuid"`
		}
		if json.Unmarshal([]byte(line), &m) != nil {
			os.Exit(2)
		}
		switch m.Type {
		case "control_request":
			f.control(m.RequestID, m.Request)
		case "user":
			text := string(f.ask(request)) + "\n" + line
			say(object{"type": "system", "subtype": "init", "session_id": "s"})
			say(object{"type": "result", "subtype": "success", "result": text, "user_message_uuids": []string{m.UUID}})
			say(object{"type": "system", "subtype": "session_state_changed", "state": "idle", "sdk_host_only": true})
		}
	}
}

// asked returns what a CLI that sends the request gets for an answer, and the input that it was sent.
func asked(t *testing.T, request string, change func(*Options)) (answer, input string) {
	t.Helper()
	e, o := fake("polite")
	change(&e.opts)
	o.Env["CLAUDECODE_TEST_CHILD"], o.Env["CLAUDECODE_TEST_ASK"] = "asker", request
	msgs, err := ask(t, e, o)
	if err != nil {
		t.Fatal(err)
	}
	r, ok := msgs[len(msgs)-1].(*agent.Result)
	if !ok {
		t.Fatalf("the last message is %T", msgs[len(msgs)-1])
	}
	answer, input, _ = strings.Cut(r.Result, "\n")
	return answer, input
}

// A dialog is shown by the program; what it does not answer counts as cancelled.
func TestDialogs(t *testing.T) {
	const request = `{"subtype":"request_user_dialog","dialog_kind":"pick","payload":{"of":["a","b"]},"tool_use_id":"t1"}`
	var got Dialog
	tests := []struct {
		name string
		show DialogFunc
		want string
	}{
		{"answered", func(_ context.Context, d *Dialog) (json.RawMessage, error) {
			got = *d
			return json.RawMessage(`"b"`), nil
		}, `{"behavior":"completed","result":"b"}`},
		{"not answered", func(context.Context, *Dialog) (json.RawMessage, error) { return nil, nil }, `{"behavior":"cancelled"}`},
		{"failed", func(context.Context, *Dialog) (json.RawMessage, error) { return nil, errors.New("no screen") }, `{"behavior":"cancelled"}`},
		{"panicked", func(context.Context, *Dialog) (json.RawMessage, error) { panic("no screen") }, `{"behavior":"cancelled"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			answer, _ := asked(t, request, func(o *Options) { o.OnDialog, o.DialogKinds = tt.show, []string{"pick"} })
			if answer != tt.want {
				t.Errorf("got %s, want %s", answer, tt.want)
			}
		})
	}
	if got.Kind != "pick" || string(got.Payload) != `{"of":["a","b"]}` || got.ToolUseID != "t1" {
		t.Errorf("asked about %+v", got)
	}
}

// A hook on any event gets the CLI's input and answers in the CLI's JSON; one that fails is an error
// to the CLI, which knows from the registration what follows.
func TestEventHooks(t *testing.T) {
	const request = `{"subtype":"hook_callback","callback_id":"PreCompact-0","input":{"trigger":"auto"}}`
	tests := []struct {
		name string
		hook func(context.Context, json.RawMessage) (json.RawMessage, error)
		want string
	}{
		{"says", func(_ context.Context, in json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"systemMessage":` + string(in[len(`{"trigger":`):]) + ``), nil
		}, `{"systemMessage":"auto"}`},
		{"says nothing", func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, nil }, `{}`},
		{"says nonsense", func(context.Context, json.RawMessage) (json.RawMessage, error) { return json.RawMessage(`{`), nil }, `{"error":"the hook's output is not JSON"}`},
		{"fails", func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, errors.New("broken") }, `{"error":"broken"}`},
		{"panics", func(context.Context, json.RawMessage) (json.RawMessage, error) { panic("secret") }, `{"error":"hook PreCompact panicked"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			answer, _ := asked(t, request, func(o *Options) { o.EventHooks = []EventHook{{Event: "PreCompact", Func: tt.hook}} })
			if answer != tt.want {
				t.Errorf("got %s, want %s", answer, tt.want)
			}
		})
	}
}

// What the program says is sent as it is, if it wants that.
func TestVerbatimPrompts(t *testing.T) {
	for _, on := range []bool{false, true} {
		_, input := asked(t, `{"subtype":"unknown"}`, func(o *Options) { o.VerbatimPrompts = on })
		if strings.Contains(input, `"client_composed":true`) != on {
			t.Errorf("VerbatimPrompts %t: %s", on, input)
		}
	}
}

func TestOwnVariables(t *testing.T) {
	env := childEnv(&Options{FileCheckpoints: true, QuestionPreview: "html"}, &agent.Options{})
	for _, want := range []string{"CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING=true", "CLAUDE_CODE_QUESTION_PREVIEW_FORMAT=html"} {
		if !slices.Contains(env, want) {
			t.Errorf("no %s in the environment", want)
		}
	}
}

// A callback that does not heed its context is left behind: Close says so and returns.
func TestCloseLeavesStuckCallbacks(t *testing.T) {
	called, release := make(chan struct{}), make(chan struct{})
	returned := make(chan struct{})
	e, o := fake("polite")
	e.patience = 20 * time.Millisecond
	e.opts.OnDialog, e.opts.DialogKinds = func(context.Context, *Dialog) (json.RawMessage, error) {
		defer close(returned)
		close(called)
		<-release
		return nil, nil
	}, []string{"pick"}
	o.Env["CLAUDECODE_TEST_CHILD"] = "asker"
	o.Env["CLAUDECODE_TEST_ASK"] = `{"subtype":"request_user_dialog","dialog_kind":"pick","payload":{},"tool_use_id":"t1"}`
	c, err := agent.Open(t.Context(), e, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Send(t.Context(), "hello"); err != nil {
		t.Fatal(err)
	}
	<-called
	if err := c.Close(); err == nil || !strings.Contains(err.Error(), "did not return within 20ms") {
		t.Errorf("Close: %v", err)
	}
	close(release) // and the leak gate sees that nothing is left
	<-returned
}
