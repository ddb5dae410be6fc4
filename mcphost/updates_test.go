package mcphost

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpserver"
)

// changingServer has a resource that a tool changes.
func changingServer(t *testing.T) *mcpserver.Server {
	t.Helper()
	s := mcpserver.New("changing", nil)
	read := func(context.Context) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "a://b", Text: "new"}}}, nil
	}
	if err := s.AddResource(&mcp.Resource{URI: "a://b", Name: "b"}, read); err != nil {
		t.Fatal(err)
	}
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "change"}, func(context.Context, struct{}) (string, error) {
		s.NotifyResourceUpdated("a://b")
		return "changed", nil
	})
	return s
}

const (
	changeTool     = `[{"name":"change","inputSchema":{"type":"object"}}]`
	changedMessage = `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a://b"}}`
	changedResult  = `{"content":[{"type":"text","text":"changed"}]}`
	newContents    = `{"contents":[{"uri":"a://b","text":"new"}]}`
	withResources  = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{"subscribe":true}},"serverInfo":{"name":"raw","version":"1"}}`
)

func init() {
	// changing is changingServer in a process of its own. It tells of the change before it answers the call.
	children["changing"] = func() {
		rawChild(changeTool, func(s *rawServer, m rawMsg) bool {
			switch m.Method {
			case "initialize":
				s.reply(m.ID, withResources)
			case "resources/subscribe":
				s.reply(m.ID, "{}")
			case "resources/read":
				s.reply(m.ID, newContents)
			case "tools/call":
				s.line("%s", changedMessage)
				s.reply(m.ID, changedResult)
			default:
				return false
			}
			return true
		})
	}
}

// changingHTTP is changing over HTTP: the change comes on the stream that answers the call.
func changingHTTP() http.Handler {
	return &rawHTTP{
		tools: changeTool,
		before: func(w http.ResponseWriter, _ *http.Request, m rawMsg) bool {
			switch m.Method {
			case "initialize":
				w.Header().Set(headerSession, "1")
				answer(w, m.ID, withResources)
			case "tools/list":
				answer(w, m.ID, `{"tools":`+changeTool+`}`)
			case "resources/subscribe":
				answer(w, m.ID, "{}")
			case "resources/read":
				answer(w, m.ID, newContents)
			case "tools/call":
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprintf(w, "data: %s\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", changedMessage, m.ID, changedResult)
			case "notifications/initialized":
				w.WriteHeader(http.StatusAccepted)
			default:
				return false
			}
			return true
		},
	}
}

// OnResourceUpdated may use the host it hears from, over every transport.
// fault B9
func TestCallbacksUseTheHost(t *testing.T) {
	heard := make(chan string, 10)
	var h *Host
	h = newHost(t, map[string]ServerConfig{
		"stdio": child("changing"), "http": HTTP{URL: serve(t, changingHTTP()).URL}, "local": InProcess(changingServer(t)),
	}, func(o *Options) {
		o.OnResourceUpdated = func(server, uri string) {
			res, err := h.ReadResource(context.Background(), server, uri)
			if err != nil {
				heard <- err.Error()
				return
			}
			heard <- server + ": " + res.Contents[0].Text
		}
	})
	connected(t, h)
	for _, name := range []string{"stdio", "http", "local"} {
		if err := h.Subscribe(soon(t), name, "a://b"); err != nil {
			t.Fatal(err)
		}
		if got := text(t, h, "mcp__"+name+"__change", "{}"); got != "changed" {
			t.Errorf("got %s", got)
		}
		if got := <-heard; got != name+": new" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A callback that is slow, or panics, holds up neither its server nor another, and what it has not heard yet is bounded.
// fault B9
// fault G3
func TestSlowAndPanickingCallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log syncBuffer
		var heard []string
		gate := make(chan struct{})
		p := &fakeProvider{call: func(context.Context, mcpserver.Call) (*mcpserver.Result, error) { return mcpserver.Text("ok"), nil }}
		q := &fakeProvider{call: p.call}
		h := newHost(t, map[string]ServerConfig{"p": InProcess(p), "q": InProcess(q)}, func(o *Options) {
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
			o.OnResourceUpdated = func(server, uri string) {
				if server == "q" {
					heard = append(heard, "q "+uri)
					panic("oh no")
				}
				<-gate
				heard = append(heard, uri)
			}
		})
		ready(t, h)
		say := func(p *fakeProvider, uri string) {
			p.notify(t.Context(), mcpserver.Notification{Method: mcpserver.MethodResourceUpdated, Params: &mcp.ResourceUpdatedNotificationParams{URI: uri}})
		}
		say(p, "first")
		synctest.Wait()
		for i := range maxUpdates + 10 {
			say(p, fmt.Sprint(i))
			say(p, fmt.Sprint(i)) // twice
		}
		say(q, "x")
		synctest.Wait()
		say(q, "y")
		synctest.Wait()
		if diff := cmp.Diff([]string{"q x", "q y"}, heard); diff != "" {
			t.Errorf("of the other server (-want +got):\n%s", diff)
		}
		for _, server := range []string{"p", "q"} {
			if _, err := h.CallServer(t.Context(), server, "t", nil, nil); err != nil {
				t.Errorf("%s meanwhile: %v", server, err)
			}
		}
		heard = nil
		close(gate)
		synctest.Wait()
		if len(heard) != maxUpdates+1 || heard[0] != "first" || heard[1] != "10" || heard[maxUpdates] != fmt.Sprint(maxUpdates+9) {
			t.Errorf("heard %d: %.3q ...", len(heard), heard)
		}
		if n := strings.Count(log.String(), `msg="changes of resources are dropped`); n != 1 {
			t.Errorf("%d records of dropped changes", n)
		}
		if n := strings.Count(log.String(), `msg="panic in a function of the program" server=q function=OnResourceUpdated panic="oh no" stack="goroutine`); n != 2 {
			t.Errorf("%d records of panics: %s", n, log.String())
		}
		h.Close()
	})
}

// A panic in a callback costs that request or report, and the log has the stack.
// fault G3
func TestPanickingCallbacks(t *testing.T) {
	var log syncBuffer
	h := newHost(t, map[string]ServerConfig{"calc": InProcess(calculator(nil)), "lib": InMemory(askingServer())}, func(o *Options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		o.Elicit = func(context.Context, string, *mcp.ElicitParams) (*mcp.ElicitResult, error) { panic("elicit") }
		o.Sample = func(context.Context, string, *mcp.CreateMessageWithToolsParams) (*mcp.CreateMessageWithToolsResult, error) {
			panic("sample")
		}
	})
	connected(t, h)
	if res, err := h.CallServer(soon(t), "calc", "ask", nil, nil); err != nil || !res.IsError {
		t.Errorf("a question: %+v, %v", res, err)
	}
	if res, err := h.CallServer(soon(t), "lib", "think", nil, nil); err == nil && !res.IsError {
		t.Errorf("a request for an answer: %+v", res)
	}
	steps := 0
	_, err := h.CallServer(soon(t), "calc", "steps", nil, &CallOptions{OnProgress: func(Progress) { steps++; panic("progress") }})
	if err != nil || steps != 1 {
		t.Errorf("progress: %v, heard %d times", err, steps)
	}
	for _, what := range []string{"Elicit panic=elicit", "Sample panic=sample", "OnProgress panic=progress"} {
		if n := strings.Count(log.String(), "function="+what+` stack="goroutine`); n != 1 {
			t.Errorf("%d records of %s in %s", n, what, log.String())
		}
	}
	if _, err := h.CallServer(soon(t), "calc", "add", []byte(`{"a":1,"b":2}`), nil); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// A SetServers that waits behind another ends with its context, and has changed nothing then.
// fault B12
func TestSetServersHeedsItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, nil)
		never := &fakeProvider{open: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		first := make(chan error, 1)
		go func() {
			_, err := h.SetServers(t.Context(), map[string]ServerConfig{"never": InProcess(never)})
			first <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := h.SetServers(ctx, map[string]ServerConfig{})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if _, ok := h.ServerStatus("never"); !ok {
			t.Error("the servers were changed")
		}
		if err := <-first; err != nil {
			t.Error(err)
		}
		h.Close()
	})
}

// Watchers hear that a server was removed or replaced, and nothing of a host that was closed.
// fault G7
func TestSetServersIsWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ok := func() ServerConfig { return InProcess(&fakeProvider{}) }
		kept := ok()
		h := newHost(t, map[string]ServerConfig{"gone": ok(), "other": ok(), "kept": kept})
		ready(t, h)
		synctest.Wait() // for the events of the first connections
		events := h.Watch(t.Context())
		set := func(want map[string]ServerConfig) {
			t.Helper()
			if _, err := h.SetServers(t.Context(), want); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		next := func() (got []Event) {
			for {
				synctest.Wait()
				select {
				case ev := <-events:
					ev.Time = time.Time{}
					got = append(got, ev)
				default:
					return got
				}
			}
		}
		// Events of one server that the receiver is too slow for come as one.
		all := map[string]Event{}
		stop := make(chan struct{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				select {
				case ev := <-events:
					ev.Time = time.Time{}
					old := all[ev.Server]
					ev.Tools, ev.Resources, ev.Prompts, ev.Replaced = ev.Tools || old.Tools, ev.Resources || old.Resources, ev.Prompts || old.Prompts, ev.Replaced || old.Replaced
					all[ev.Server] = ev
				case <-stop:
					return
				}
			}
		}()
		set(map[string]ServerConfig{"other": ok(), "kept": kept})
		close(stop)
		<-done
		want := map[string]Event{
			"gone":  {Server: "gone", Removed: true, Tools: true, Resources: true, Prompts: true, Err: ErrRemoved},
			"other": {Server: "other", Status: StatusConnected, Replaced: true, Tools: true, Resources: true, Prompts: true},
		}
		same := cmp.Comparer(func(a, b error) bool { return errors.Is(a, b) })
		if diff := cmp.Diff(want, all, same); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		// A slow receiver gets the latest of each server, with what still holds.
		set(map[string]ServerConfig{"kept": kept})
		set(map[string]ServerConfig{"kept": kept, "other": ok()})
		got := next()
		for i, ev := range got[:len(got)-1] {
			if !ev.Removed { // perhaps taken by the channel before the next came
				t.Errorf("event %d: %+v", i, ev)
			}
		}
		last := got[len(got)-1]
		if last.Status != StatusConnected || last.Removed || last.Err != nil || len(got) == 1 && !last.Replaced {
			t.Errorf("the latest: %+v", last)
		}
		h.Close()
	})
}
