package native

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/agent"
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
	o.ReplayUserMessages, o.MaxBudgetUSD, o.OutputSchema = true, 0, nil
	c, err := agent.Open(t.Context(), testEngine(model), o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s.client = c
	s.listen(c)
	for i := range 1 + s.n(4) {
		if err := c.Send(t.Context(), fmt.Sprintf("input %d", i)); err != nil {
			t.Fatal(err)
		}
		if s.n(2) == 0 {
			settle()
		}
	}
	settle()
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
				t.Logf("%s", encode(m))
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

// settle waits until everything is answered.
func settle() {
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
	settle()
	var blocks []string
	for _, m := range model.Last().Messages {
		for _, b := range m.Content {
			blocks = append(blocks, m.Role+" "+strings.Replace(string(b.Raw), string(cacheControl), "}", 1))
			if b.Text == "the last input" {
				return blocks // what follows is news of the servers
			}
		}
	}
	s.t.Errorf("seed %d: the last input is not there", s.seed)
	return blocks
}
