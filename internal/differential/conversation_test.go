package differential

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"sync"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
	"github.com/tenon-sdk/tenon/permission"
)

// blocking are options with a tool that says that it runs, and waits for the end of its context.
func blocking(w *world) *agent.Options {
	return serving(mcpserver.Tool{}, func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
		w.running <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	})(w)
}

// released are options with a tool that says that it runs, and waits until it may go on.
func released(w *world) *agent.Options {
	return serving(mcpserver.Tool{}, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
		w.running <- struct{}{}
		<-w.release
		return mcpserver.Text("done"), nil
	})(w)
}

var conversationScripts = []script{
	{name: "two turns", turns: turns(modeltest.Text("one"), modeltest.Text("two")), run: func(w *world, e agent.Engine, o *agent.Options) {
		c := w.open(e, o)
		w.say(c, "first")
		w.say(c, "second")
	}},
	{name: "calls that run together", turns: turns(modeltest.Say(x("toolu_1", `{}`), x("toolu_2", `{}`)), modeltest.Text("done")), options: func(w *world) *agent.Options {
		var both sync.WaitGroup
		both.Add(2)
		return serving(mcpserver.Tool{ReadOnly: true}, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
			both.Done()
			both.Wait()
			return mcpserver.Text("met"), nil
		})(w)
	}},
	{name: "calls in order", turns: turns(modeltest.Say(x("toolu_1", `{"n":1}`), x("toolu_2", `{"n":2}`), x("toolu_3", `{"n":3}`)), modeltest.Text("done")), options: echoing},
	{name: "interrupt during a tool", turns: turns(x("toolu_1", `{}`), modeltest.Text("hello again")), options: blocking, run: func(w *world, e agent.Engine, o *agent.Options) {
		c := w.open(e, o)
		w.sayWhile(c, func() error { return c.Interrupt(w.Context()) })
		w.say(c, "are you there?")
	}},
	{name: "interrupt while the model speaks", turns: func() []modeltest.Turn { return []modeltest.Turn{halfway(), modeltest.Text("hello again")} }, run: func(w *world, e agent.Engine, o *agent.Options) {
		o.IncludePartialMessages = true
		c := w.open(e, o)
		if err := c.Send(w.Context(), "go"); err != nil {
			w.Fatal(err)
		}
		for m, err := range c.Response(w.Context()) {
			if err != nil {
				w.Fatal(err)
			}
			if ev, ok := m.(*agent.StreamEvent); ok {
				if ev.TextDelta() == "half" {
					if err := c.Interrupt(w.Context()); err != nil {
						w.Fatal(err)
					}
				}
				continue
			}
			w.hear(m)
		}
		w.say(c, "are you there?")
	}},
	{name: "interrupt without a turn", turns: turns(modeltest.Text("one"), modeltest.Text("two")), run: func(w *world, e agent.Engine, o *agent.Options) {
		c := w.open(e, o)
		w.say(c, "first")
		if err := c.Interrupt(w.Context()); err != nil {
			w.Fatal(err)
		}
		w.say(c, "second")
	}},
	{name: "message while a tool runs", turns: turns(x("toolu_1", `{}`), modeltest.Text("both")), options: released, run: func(w *world, e agent.Engine, o *agent.Options) {
		c := w.open(e, o)
		w.sayWhile(c, func() error {
			defer close(w.release)
			return c.Send(w.Context(), "and another thing")
		})
	}},
	{name: "another model", turns: turns(modeltest.Func(func(r *modeltest.Request) modeltest.Turn {
		if strings.HasPrefix(r.Model, "claude-haiku") {
			return modeltest.Text("two")
		}
		return modeltest.Text("one")
	})), run: func(w *world, e agent.Engine, o *agent.Options) {
		c := w.open(e, o)
		w.say(c, "first")
		if err := c.SetModel(w.Context(), "claude-haiku-4-5"); err != nil {
			w.Fatal(err)
		}
		w.say(c, "second")
		w.set("sent model", "%s", w.model.Last().Model)
	}},
	{name: "another mode", turns: turns(x("toolu_1", `{}`), modeltest.Text("one"), x("toolu_2", `{}`), modeltest.Text("two")), options: echoing, run: func(w *world, e agent.Engine, o *agent.Options) {
		c := w.open(e, o)
		w.say(c, "first")
		if err := c.SetPermissionMode(w.Context(), permission.ModePlan); err != nil {
			w.Fatal(err)
		}
		w.say(c, "second")
	}},
	{name: "server off and on", turns: turns(x("toolu_1", `{}`), modeltest.Text("off"), x("toolu_2", `{}`), modeltest.Text("on")), options: echoing, run: func(w *world, e agent.Engine, o *agent.Options) {
		c := w.open(e, o)
		for _, on := range []bool{false, true} {
			if err := c.SetMCPServerEnabled(w.Context(), "t", on); err != nil {
				w.Fatal(err)
			}
			w.say(c, "go")
			w.status(c)
		}
	}},
	{name: "reconnect", turns: turns(modeltest.Text("one"), x("toolu_1", `{}`), modeltest.Text("two")), options: echoing, run: func(w *world, e agent.Engine, o *agent.Options) {
		c := w.open(e, o)
		w.say(c, "go")
		if err := c.ReconnectMCPServer(w.Context(), "t"); err != nil {
			w.Fatal(err)
		}
		w.say(c, "go")
		w.status(c)
		w.set("unknown server", "%v %v", c.ReconnectMCPServer(w.Context(), "nobody") != nil, c.SetMCPServerEnabled(w.Context(), "nobody", true) != nil)
	}},
	{name: "other servers", turns: turns(modeltest.Text("one"), modeltest.ToolUseID("toolu_1", "mcp__u__z", `{}`), modeltest.Text("two")), options: echoing, run: func(w *world, e agent.Engine, o *agent.Options) {
		u := mcpserver.New("u", nil)
		w.tool(u, mcpserver.Tool{Name: "z"}, echo)
		o.AllowedTools = append(o.AllowedTools, "mcp__u")
		c := w.open(e, o)
		w.say(c, "go")
		res, err := c.SetMCPServers(w.Context(), map[string]mcphost.ServerConfig{"u": mcphost.InProcess(u)})
		w.set("set servers", "%q %q %d %v", res.Added, res.Removed, len(res.Errors), err)
		w.say(c, "go")
		w.status(c)
	}},
	{name: "a tool that comes later", turns: turns(x("toolu_1", `{}`), modeltest.Text("one"), modeltest.ToolUseID("toolu_2", "mcp__t__late", `{}`), modeltest.Text("two")), options: func(w *world) *agent.Options {
		s := mcpserver.New("t", nil)
		w.tool(s, mcpserver.Tool{Name: "x"}, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
			w.tool(s, mcpserver.Tool{Name: "late", Description: "Came later"}, echo)
			return mcpserver.Text("added"), nil
		})
		return &agent.Options{MCPServers: map[string]mcphost.ServerConfig{"t": mcphost.InProcess(s)}, AllowedTools: []string{"mcp__t"}}
	}, run: func(w *world, e agent.Engine, o *agent.Options) {
		c := w.open(e, o)
		w.say(c, "go")
		w.listed(c, "t", 2) // the list is fetched beside the turn
		w.say(c, "go")
	}},
}

// status notes the states of the servers.
func (w *world) status(c *agent.Client) {
	w.Helper()
	all, err := c.MCPStatus(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	for _, s := range all {
		var tools []string
		for _, t := range s.Tools {
			tools = append(tools, t.FullName)
		}
		w.add("status", "%s %s %q", s.Name, s.Status, tools)
	}
}

// halfway is an answer that stops in the middle until its reader goes.
func halfway() modeltest.Turn {
	hold := modeltest.Pause(func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	return modeltest.Say(modeltest.Text("half way").Fragments("half", " way").After(1, hold))
}

// sayWhile says something, does a thing while the tool runs, and hears the answer.
func (w *world) sayWhile(c *agent.Client, do func() error) {
	w.Helper()
	if err := c.Send(w.Context(), "go"); err != nil {
		w.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		<-w.running
		done <- do()
	}()
	w.answer(c)
	if err := <-done; err != nil {
		w.Fatal(err)
	}
}

// listed waits until a server's list has n tools.
func (w *world) listed(c *agent.Client, server string, n int) {
	w.Helper()
	for {
		all, err := c.MCPStatus(w.Context())
		if err != nil {
			w.Fatal(err)
		}
		for _, s := range all {
			if s.Name == server && len(s.Tools) == n {
				return
			}
		}
		runtime.Gosched()
	}
}
