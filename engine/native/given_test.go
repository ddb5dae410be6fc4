package native

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/messages"
	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/modeltest"
)

// What a program has kept of a conversation, given back, makes the model read exactly what it would
// have read next, whatever has happened in it.
func TestHistory(t *testing.T) {
	runs := uint64(100)
	if *randomRuns > 0 {
		runs = uint64(*randomRuns)
	}
	for seed := uint64(1); seed <= runs && !t.Failed(); seed++ {
		synctest.Test(t, func(t *testing.T) { goOn(t, seed) })
	}
}

func goOn(t *testing.T, seed uint64) {
	s := newScene(t, seed)
	model := modeltest.New(nil, modeltest.Func(s.turn))
	o := s.options()
	o.ReplayUserMessages, o.MaxBudgetUSD, o.OutputSchema = s.n(3) > 0, 0, nil
	if !o.ReplayUserMessages { // the program adds its inputs by itself
		o.Hooks, s.quiet = nil, true
	}
	c, err := agent.Open(t.Context(), testEngine(model), o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s.client.Store(c)
	s.listen(c)
	for i := range 1 + s.n(4) {
		input := fmt.Sprintf("input %d", i)
		if !o.ReplayUserMessages {
			settled()
			s.record = append(s.record, said(input))
		}
		if err := c.Send(t.Context(), input); err != nil {
			t.Fatal(err)
		}
		if s.n(2) == 0 {
			settled()
		}
	}
	settled()
	s.calm = true
	record := s.stored(s.record)
	want := s.probe(c, model)

	o.History = record
	fresh := modeltest.New(nil, modeltest.Func(s.turn))
	again, err := agent.Open(t.Context(), testEngine(fresh), o)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	s.listen(again)
	got := s.probe(again, fresh)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("seed %d: the model reads something else:\n%s", seed, diff)
		for _, m := range record {
			if _, ok := m.(*agent.StreamEvent); !ok {
				t.Logf("%s", transcript.Encode(m))
			}
		}
	}
	for _, v := range fresh.Violations() {
		t.Errorf("seed %d: %s", seed, v.Message)
	}
}

// listen records what there is to hear until the client is closed.
func (s *scene) listen(c *agent.Client) {
	go func() {
		for m, err := range c.Messages(s.t.Context()) {
			if err != nil {
				return
			}
			s.record = append(s.record, m)
		}
	}()
}

// settled waits until everything is answered.
func settled() {
	time.Sleep(time.Hour) // fake time
	synctest.Wait()
}

// probe says one thing more and returns the blocks that the model is sent, up to that.
func (s *scene) probe(c *agent.Client, model *modeltest.Model) []string {
	if err := c.SetModel(s.t.Context(), "claude-sonnet-5-5"); err != nil {
		s.t.Fatal(err)
	}
	if err := c.Send(s.t.Context(), "the last input"); err != nil {
		s.t.Fatal(err)
	}
	settled()
	var blocks []string
	for _, m := range model.Last().Messages {
		for _, b := range m.Content {
			blocks = append(blocks, m.Role+" "+strings.Replace(string(b.Raw), `,"cache_control":`+string(transcript.Ephemeral), "", 1))
			if b.Text == "the last input" {
				return blocks // what follows is news of the servers
			}
		}
	}
	s.t.Errorf("seed %d: the last input is not there", s.seed)
	return blocks
}

// Whatever a program hands back, the request is one that the API takes.
func FuzzHistory(f *testing.F) {
	for _, seed := range [][]agent.Message{
		{said("hi"), answered1("msg_1", thought("hm"), text("a"), use("toolu_1")), userSaid(result("toolu_1", "r")), answered1("msg_2", text("so"))},
		{userSaid(pixel(), raw("document", `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"x"}}`)), answered1("msg_1", raw("server_tool_use", search), raw("web_search_tool_result", searchResult))},
		{answered1("", use("a"), use("a")), userSaid(&agent.ToolResultBlock{ToolUseID: "a", IsError: true, Content: agent.Content{pixel(), raw("tool_reference", `{"type":"tool_reference","tool_name":"t"}`)}})},
		{&agent.User{UUID: "u", Message: said("x").Message}, &agent.Assistant{Error: "invalid_request", Supersedes: []string{"u"}, Message: answered1("x", text("no")).Message}},
	} {
		var lines []string
		for _, m := range seed {
			lines = append(lines, string(transcript.Encode(m)))
		}
		f.Add(strings.Join(lines, "\n"))
	}
	f.Fuzz(func(t *testing.T, lines string) {
		var msgs []agent.Message
		for line := range strings.Lines(lines) {
			if m, err := agent.DecodeMessage([]byte(line)); err == nil {
				msgs = append(msgs, m)
			}
		}
		s := &session{table: &toolset.Table{}, opts: &agent.Options{Logger: slog.New(slog.DiscardHandler)}}
		s.history, s.given = transcript.Load(t.Context(), msgs, DefaultModel)
		s.settleReferences()
		s.history.AddUser(transcript.TextPart("next"))
		body := (&messages.Request{Model: DefaultModel, MaxTokens: 100}).Body(&s.history)
		model := modeltest.New(nil, modeltest.Text("well"))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://model.test/v1/messages", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"X-Api-Key": {"k"}, "Anthropic-Version": {"2023-06-01"}, "Content-Type": {"application/json"}}
		res, err := model.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		for _, v := range model.Violations() {
			if !strings.Contains(v.Message, "signature") { // only the API can tell
				t.Errorf("%s\n%s", v.Message, body)
			}
		}
	})
}
