package claudecode

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/modeltest"
	"github.com/tenon-sdk/tenon/permission"
)

// The CLI may ask about a call before it shows it. The program is asked once it is done with the message.
//
// fault D13
func TestCallIsShownBeforeTheQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, o := fake("polite")
		e.callWait = callWait
		asked := false
		o.CanUseTool = func(context.Context, *agent.ToolRequest) (*permission.PromptResult, error) {
			asked = true
			return agent.Allow(), nil
		}
		s := connected(t, e, o)
		defer s.ch.cancel(agent.ErrClosed)
		receive := func() {
			t.Helper()
			if _, err := s.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		question := func(id string) {
			t.Helper()
			if _, err := s.serve(t.Context(), "can_use_tool", json.RawMessage(`{"tool_name":"t","tool_use_id":"`+id+`","input":{}}`)); err != nil {
				t.Error(err)
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() { question("a") })
		s.line(`{"type":"system","subtype":"init"}`)
		synctest.Wait()
		receive()
		s.line(`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"a","name":"t","input":{}}]}}`)
		synctest.Wait()
		receive() // the program has the call, and is at work on it
		synctest.Wait()
		if asked {
			t.Error("the program was asked before it was done with the message")
		}
		s.line(`{"type":"system","subtype":"other"}`)
		receive()
		wg.Wait()
		if !asked {
			t.Error("the program was not asked")
		}
		// A call that is never shown is asked about all the same.
		asked = false
		question("b")
		if !asked {
			t.Error("the program was not asked about a call that is not shown")
		}
	})
}

// The same with the real CLI, many times.
//
// fault D13
func TestRealCallIsShownBeforeTheQuestion(t *testing.T) {
	const calls = 30
	var turns []modeltest.Turn
	var want []string
	for i := range calls {
		id := fmt.Sprintf("toolu_%d", i)
		turns = append(turns, modeltest.ToolUseID(id, "mcp__mine__echo", fmt.Sprintf(`{"text":"%d"}`, i)))
		want = append(want, "shown "+id, "asked "+id)
	}
	m := modeltest.New(t, append(turns, modeltest.Text("done"))...)
	var mu sync.Mutex
	var got []string
	note := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, text)
	}
	o := &agent.Options{
		MCPServers: map[string]mcphost.ServerConfig{"mine": mcphost.InProcess(echo(t))},
		CanUseTool: func(_ context.Context, r *agent.ToolRequest) (*permission.PromptResult, error) {
			note("asked " + r.ToolUseID)
			return agent.Allow(), nil
		},
	}
	for msg, err := range agent.Query(t.Context(), realCLI(t, m), "hi", o) {
		if err != nil {
			t.Fatal(err)
		}
		if a, ok := msg.(*agent.Assistant); ok {
			for _, u := range a.ToolUses() {
				note("shown " + u.ID)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
