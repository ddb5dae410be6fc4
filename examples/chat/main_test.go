package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native"
	"github.com/tenon-sdk/tenon/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// say posts a text, and returns the status and the events.
func say(t *testing.T, ctx context.Context, url, conversation, text string) (int, string) {
	t.Helper()
	body := strings.NewReader(`{"conversation": "` + conversation + `", "text": "` + text + `"}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	out, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(out)
}

// service serves conversations on a scripted model.
func service(t *testing.T, most int, turns ...modeltest.Turn) string {
	engine := native.New(&native.Options{APIKey: "test", HTTPClient: modeltest.New(t, turns...).Client()})
	chats := newConversations(engine, options(), time.Hour, most)
	srv := httptest.NewServer(handler(chats))
	t.Cleanup(func() {
		chats.Close()
		srv.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return srv.URL
}

// The program as it is started, from its first line to its end.
func TestRunsOffline(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, stdout := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, "127.0.0.1:0", time.Minute, t.TempDir(), stdout) }()
	lines := bufio.NewScanner(out)
	lines.Scan()
	if !strings.Contains(lines.Text(), "offline model") {
		t.Errorf("the first line does not say that it is offline: %s", lines.Text())
	}
	lines.Scan()
	url := strings.TrimPrefix(lines.Text(), "serving at ")
	status, events := say(t, t.Context(), url, "ada", "@mcp__clock__now {}")
	for _, want := range []string{"event: tool\ndata: \"mcp__clock__now\"\n", "event: text\ndata: \"Made offline", "event: done\n"} {
		if status != http.StatusOK || !strings.Contains(events, want) {
			t.Errorf("status %d, no %q in\n%s", status, want, events)
		}
	}
	if status, _ := say(t, t.Context(), url, "", ""); status != http.StatusBadRequest {
		t.Errorf("an empty request: status %d, want 400", status)
	}
	http.DefaultClient.CloseIdleConnections()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Two conversations do not hear each other, each remembers itself, and there is a bound on them.
func TestConversationsAreSeparate(t *testing.T) {
	count := modeltest.Func(func(r *modeltest.Request) modeltest.Turn {
		return modeltest.Text(r.FirstUserText() + " heard " + strings.Repeat("I", (len(r.Messages)+1)/2))
	})
	url := service(t, 2, count)
	for _, step := range []struct{ conversation, want string }{{"ada", "ada heard I"}, {"bob", "bob heard I"}, {"ada", "ada heard II"}} {
		var text strings.Builder
		_, events := say(t, t.Context(), url, step.conversation, step.conversation)
		for line := range strings.Lines(events) {
			if data, ok := strings.CutPrefix(line, `data: "`); ok {
				text.WriteString(strings.TrimSuffix(data, "\"\n"))
			}
		}
		if text.String() != step.want {
			t.Errorf("%s got %q, want %q", step.conversation, text.String(), step.want)
		}
	}
	if status, body := say(t, t.Context(), url, "cid", "hello"); status != http.StatusServiceUnavailable || !strings.Contains(body, errFull.Error()) {
		t.Errorf("one conversation too many: status %d, %s", status, body)
	}
}

// A listener who leaves ends the turn and not the conversation.
func TestListenerLeaves(t *testing.T) {
	gate := modeltest.NewGate()
	url := service(t, 10, modeltest.Say(modeltest.Text("one"), modeltest.Hold(gate)), modeltest.Text("two"))
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	go func() {
		defer close(left)
		say(t, ctx, url, "ada", "hello")
	}()
	<-gate.Reached()
	if _, body := say(t, t.Context(), url, "ada", "are you there?"); !strings.Contains(body, errBusy.Error()) {
		t.Errorf("a second turn at once: %s", body)
	}
	leave()
	<-left
	for {
		status, events := say(t, t.Context(), url, "ada", "and now?")
		if status == http.StatusServiceUnavailable && strings.Contains(events, errBusy.Error()) {
			continue // the turn is being interrupted
		}
		if !strings.Contains(events, "event: text\ndata: \"two\"\n") {
			t.Errorf("the next turn:\n%s", events)
		}
		return
	}
}

// A conversation that nobody uses is closed, and its id begins a new one.
func TestIdleConversationsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := modeltest.New(t, modeltest.Text("hello"))
		engine := native.New(&native.Options{APIKey: "test", HTTPClient: model.Client()})
		chats := newConversations(engine, &agent.Options{SettingSources: []agent.SettingSource{}}, time.Minute, 10)
		defer chats.Close()
		c, err := chats.take(t.Context(), "ada")
		if err != nil {
			t.Fatal(err)
		}
		c.turn(t.Context(), "hello", func(string, any) {})
		chats.put(c)
		time.Sleep(30 * time.Second)
		if again, err := chats.take(t.Context(), "ada"); err != nil || again != c {
			t.Errorf("after half of the time: another conversation, %v", err)
		}
		chats.put(c)
		time.Sleep(61 * time.Second)
		synctest.Wait()
		if len(chats.open) != 0 {
			t.Errorf("%d conversations are open, want none", len(chats.open))
		}
		if err := c.client.Send(t.Context(), "still there?"); err == nil {
			t.Error("its client is not closed")
		}
	})
}

// A conversation goes on after the service was started anew, with all that was said in it, and with what is
// left of a line that was cut.
func TestKeptConversationGoesOn(t *testing.T) {
	dir := t.TempDir()
	model := modeltest.New(t, modeltest.ToolUse("mcp__clock__now", `{}`), modeltest.Text("noon"), modeltest.Text("still noon"), modeltest.Text("one"))
	start := func() (url string, stop func()) {
		chats := newConversations(native.New(&native.Options{APIKey: "test", HTTPClient: model.Client()}), options(), time.Hour, 10)
		chats.kept = store{dir: dir}
		srv := httptest.NewServer(handler(chats))
		return srv.URL, func() {
			chats.Close()
			srv.Close()
			http.DefaultClient.CloseIdleConnections()
		}
	}
	url, stop := start()
	say(t, t.Context(), url, "ada", "what time is it?")
	stop()
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("kept in %q, %v", files, err)
	}
	url, stop = start()
	defer stop()
	if _, events := say(t, t.Context(), url, "ada", "and now?"); !strings.Contains(events, "still noon") || strings.Contains(events, "event: warning") {
		t.Errorf("the second answer:\n%s", events)
	}
	if got := model.Last(); len(got.Messages) != 5 || got.FirstUserText() != "what time is it?" || len(got.ToolUses()) != 1 {
		t.Errorf("the model was sent %s", got.Body)
	}
	say(t, t.Context(), url, "bob", "hello")
	if got := model.Last(); len(got.Messages) != 1 {
		t.Errorf("bob goes on with a conversation that is not his: %s", got.Body)
	}
}

// A file that was cut anywhere is still a conversation.
func TestKeptConversationThatWasCut(t *testing.T) {
	s := store{dir: t.TempDir()}
	use := &agent.Assistant{Message: agent.APIMessage{ID: "msg_1", Role: "assistant", Content: agent.Content{&agent.ToolUseBlock{ID: "toolu_1", Name: "mcp__clock__now"}}}}
	for _, m := range []agent.Message{&agent.User{Message: agent.UserMessage{Content: agent.TextContent("what time is it?")}}, use, &agent.Result{}} {
		if err := s.keep("ada", m); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.OpenFile(s.path("ada"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"type":"user","message":{"role":"us`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	history, err := s.load("ada")
	if err != nil || len(history) != 2 {
		t.Fatalf("%d messages, %v", len(history), err)
	}
	model := modeltest.New(t, modeltest.Text("noon"))
	o := options()
	o.History = history
	engine := native.New(&native.Options{APIKey: "test", HTTPClient: model.Client()})
	for _, err := range agent.Query(t.Context(), engine, "well?", o) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := model.Last().ToolResults(); len(got) != 1 || !got[0].IsError {
		t.Errorf("the call without a result was answered %+v", got)
	}
}
