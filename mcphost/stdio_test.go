package mcphost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/mcphost/internal/transport"
)

// D01 D50 D11
func TestStdioLibraryServer(t *testing.T) {
	h := newHost(t, map[string]ServerConfig{"my.lib": child("library")})
	connected(t, h)
	want := []string{"mcp__my_lib__big", "mcp__my_lib__echo", "mcp__my_lib__fail", "mcp__my_lib__wait"}
	if diff := cmp.Diff(want, toolNames(h.Tools())); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	if got := text(t, h, "mcp__my_lib__echo", `{"text":"hi"}`); got != "echo: hi" {
		t.Errorf("got %q", got)
	}
	res, err := h.Call(soon(t), "mcp__my_lib__fail", nil, nil)
	if err != nil || !res.IsError || plainText(res) != "it failed" {
		t.Errorf("a tool's failure: %+v, %v", res, err)
	}
	s := status(t, h, "my.lib")
	if s.ServerInfo == nil || s.ServerInfo.Name != "library" || s.ProtocolVersion == "" || s.Instructions != "use it well" || s.PID == 0 || s.ToolCount != 4 || s.ConnectTime <= 0 {
		t.Errorf("status lacks something: %+v", s)
	}
	if tool, ok := h.Tool("mcp__my_lib__echo"); !ok || !tool.ReadOnly || tool.Server != "my.lib" || tool.Name != "echo" || !json.Valid(tool.InputSchema) {
		t.Errorf("tool: %+v", tool)
	}
}

// Pain 8 and F11: noise before, between and inside of messages; a message without jsonrpc.
func TestNoiseIsSkipped(t *testing.T) {
	h := newHost(t, map[string]ServerConfig{"n": child("noisy")})
	connected(t, h)
	for range 3 {
		if got := text(t, h, "mcp__n__echo", `{"text":"x"}`); got != `echo {"text":"x"}` {
			t.Errorf("got %q", got)
		}
	}
	s := status(t, h, "n")
	if s.Noise < 8 || len(s.NoiseHead) == 0 || s.NoiseHead[0] != "Welcome to the server!" {
		t.Errorf("noise is %d lines: %q", s.Noise, s.NoiseHead)
	}
}

// D79 D85 D108: three broken servers, each with its reason, and a good one (F15). Pains 9, 26
func TestFailuresAreTold(t *testing.T) {
	bad := child("exit3", "MY_SECRET=hunter2hunter2")
	never := child("silent")
	never.ConnectTimeout = 2 * time.Second // enough for the child to say something
	garbage := child("garbage")
	garbage.ConnectTimeout = 2 * time.Second
	h := newHost(t, map[string]ServerConfig{
		"a": bad, "b": Stdio{Command: "no-such-program-anywhere", Env: map[string]string{"PATH": "/nowhere"}},
		"never": never, "garbage": garbage, "empty": Stdio{}, "old": child("1999"),
		"initerror": child("initerror", "MY_SECRET=hunter2hunter2"),
		"good":      child("echo"),
	})
	ready(t, h)
	if got := text(t, h, "mcp__good__echo", `{}`); got != "echo {}" {
		t.Errorf("the good one: %q", got)
	}
	wants := map[string][]string{
		"a":         {`connecting to MCP server "a": the server process exited with code 3`, "stderr: missing KEY ***", "mend what its standard error says"},
		"b":         {`program "no-such-program-anywhere" not found on the PATH searched: /nowhere`, "install the program"},
		"never":     {"timed out after 2s", "stderr: thinking", "see whether it answers at all"},
		"garbage":   {"timed out after 2s", `stdout: "line 0 of a program that is no MCP server"`, "is it an MCP server"},
		"empty":     {"no command given"},
		"old":       {`unsupported protocol version: "1999-01-01"`},
		"initerror": {"no licence for ***"},
	}
	for name, want := range wants {
		s := status(t, h, name)
		if s.Status != StatusFailed {
			t.Errorf("%s is %s", name, s.Status)
		}
		for _, w := range want {
			if !strings.Contains(s.Error, w) {
				t.Errorf("%s: %q\nlacks %q", name, s.Error, w)
			}
		}
		if strings.Contains(fmt.Sprintf("%+v", s), "hunter2") {
			t.Errorf("%s: the secret is in the status", name)
		}
	}
	var ce *ConnectError
	if s := status(t, h, "a"); !errors.As(s.Err, &ce) || !ce.Exited || ce.ExitCode != 3 || ce.Phase != PhaseInitialize || ce.Elapsed <= 0 {
		t.Errorf("a: %+v", ce)
	}
	if s := status(t, h, "b"); !errors.As(s.Err, &ce) || ce.Phase != PhaseLookup {
		t.Errorf("b: %+v", ce)
	}
	if s := status(t, h, "never"); !errors.Is(s.Err, ErrTimeout) || s.Stderr != "thinking" {
		t.Errorf("never: %v, stderr %q", s.Err, s.Stderr)
	}
	_, err := h.Call(soon(t), "mcp__a__x", nil, nil)
	var call *CallError
	if !errors.As(err, &call) || !errors.As(err, &ce) || ce.ExitCode != 3 {
		t.Errorf("calling a failed server: %v", err)
	}
}

// Bad elements of a list cost themselves. Pains 26, 30, 32, F05.
func TestStrangeTools(t *testing.T) {
	h := newHost(t, map[string]ServerConfig{"s": child("strange")})
	connected(t, h)
	want := []string{
		"mcp__s__bad_extras", "mcp__s__dup_x", "mcp__s__dup_x" + toolname.Hash("s", "dup.x"), "mcp__s__echo", "mcp__s__loop", "mcp__s__meta", "mcp__s__no_schema", "mcp__s__null_schema",
	}
	if diff := cmp.Diff(want, toolNames(h.Tools())); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	s := status(t, h, "s")
	var reasons []string
	for _, r := range s.Rejected {
		reasons = append(reasons, r.Name+": "+r.Reason)
	}
	wantReasons := []string{
		"#2: not a JSON object", "#3: not a JSON object", "#4: not a JSON object", "#5: not a JSON object",
		"#6: it has no name", "#7: its name is not a string", "#8: its name is empty",
		"true_schema: its inputSchema is not a JSON object", "text_schema: its inputSchema is not a JSON object", "array_schema: its inputSchema is not a JSON object",
		"echo: the server lists another tool of this name before it",
	}
	slices.Sort(reasons)
	slices.Sort(wantReasons)
	if diff := cmp.Diff(wantReasons, reasons); diff != "" {
		t.Errorf("rejected (-want +got):\n%s", diff)
	}
	tool, _ := h.Tool("mcp__s__null_schema")
	if string(tool.InputSchema) != `{"type":"object"}` {
		t.Errorf("null schema became %s", tool.InputSchema)
	}
	if tool, _ = h.Tool("mcp__s__dup_x"); tool.Name != "dup_x" {
		t.Errorf("the colliding name belongs to %q", tool.Name)
	}
	if tool, _ = h.Tool("mcp__s__meta"); tool.SearchHint != "find me" || tool.MaxResultSize != 200000 || !tool.AlwaysLoad || !tool.ReadOnly || !tool.Idempotent || tool.Title != "Meta" {
		t.Errorf("meta: %+v", tool)
	}
}

// Strange results cost at most their call. Pain 36.
func TestStrangeResults(t *testing.T) {
	h := newHost(t, map[string]ServerConfig{"s": child("strange")})
	connected(t, h)
	tests := []struct{ in, want string }{
		{"unknown_block", "before\n[content block of type \"hologram\", which this host does not know: {\"type\":\"hologram\",\"data\":\"x\"}]\nafter"},
		{"number_text", "42"},
		{"null_block", "[content block of type \"\", which is malformed: null]\nok"},
		{"no_content", ""},
		{"null_content", ""},
		{"bare_object", "alone"},
		{"bare_text", "[content block of type \"\", which is malformed: \"just text\"]"},
		{"legacy", `{"a":1}`},
		{"structured", "a is 1"},
		{"error", "it went wrong"},
		{"surrogate", "a\uFFFDb"},
		{"not_utf8", "a\uFFFDb"},
	}
	for _, tt := range tests {
		if got := text(t, h, "mcp__s__echo", `{"text":"`+tt.in+`"}`); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.in, got, tt.want)
		}
	}
	if got := text(t, h, "mcp__s__echo", `{"text":"bad_image"}`); !strings.Contains(got, `type "image", which is malformed`) || !strings.Contains(got, "still here") {
		t.Errorf("bad_image: %q", got)
	}
	res, err := h.Call(soon(t), "mcp__s__echo", []byte(`{"text":"structured"}`), nil)
	if err != nil || string(res.StructuredContent) != `{"a":1}` || res.Meta["k"] != "v" || string(res.Extra["other"]) != "true" {
		t.Errorf("structured: %+v, %v", res, err)
	}
	if res, err := h.Call(soon(t), "mcp__s__echo", []byte(`{"text":"error"}`), nil); err != nil || !res.IsError {
		t.Errorf("error: %+v, %v", res, err)
	}
	for in, want := range map[string]string{
		"array": "not a JSON object", "null": "not a JSON object", "text": "not a JSON object",
		"no_result": "neither a result nor an error", "bad_json": "cannot be read",
		"rpc_error": "bad arguments", "rpc_error_text": "plain text", "closing_code": "quota",
	} {
		_, err := h.Call(soon(t), "mcp__s__echo", []byte(`{"text":"`+in+`"}`), nil)
		var ce *CallError
		if !errors.As(err, &ce) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want a CallError with %q", in, err, want)
		}
	}
	_, err = h.Call(soon(t), "mcp__s__echo", []byte(`{"text":"rpc_error"}`), nil)
	var rpc *jsonrpc.Error
	var ce *CallError
	if !errors.As(err, &rpc) || rpc.Code != -32602 || !errors.As(err, &ce) || ce.Code != -32602 {
		t.Errorf("rpc_error: %v", err)
	}
	if got := text(t, h, "mcp__s__echo", `{"text":"fine"}`); got != `echo {"text":"fine"}` {
		t.Errorf("after all that: %q", got)
	}
	if s := status(t, h, "s"); s.Status != StatusConnected {
		t.Errorf("status %s: %v", s.Status, s.Err)
	}
}

// F12: what fits arrives whole, what does not costs its call and nothing else.
func TestLargeMessages(t *testing.T) {
	small := child("huge")
	small.MaxMessageBytes = 1 << 20
	h := newHost(t, map[string]ServerConfig{"huge": child("huge"), "small": small})
	connected(t, h)
	for _, order := range []string{"first", "last"} {
		for _, n := range []int{5 << 20, 20 << 20} {
			if got := text(t, h, "mcp__huge__echo", fmt.Sprintf(`{"bytes":%d,"order":%q}`, n, order)); len(got) != n {
				t.Errorf("%d bytes, id %s: got %d", n, order, len(got))
			}
		}
	}
	for _, order := range []string{"first", "last", "middle"} {
		_, err := h.Call(soon(t), "mcp__small__echo", fmt.Appendf(nil, `{"bytes":%d,"order":%q}`, 3<<20, order), nil)
		if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "ask for less at a time, or raise") {
			t.Errorf("above the limit, id %s: %v", order, err)
		}
		if got := text(t, h, "mcp__small__echo", `{"text":"x"}`); got != `echo {"text":"x"}` {
			t.Errorf("the next call: %q", got)
		}
	}
}

// F21: ids as strings, out of order, doubled, unknown; the server's own requests.
func TestStrangeIDs(t *testing.T) {
	lines := newLines()
	h := newHost(t, map[string]ServerConfig{"i": child("ids")}, func(o *Options) { o.Roots, o.OnStderr = []string{"/some/dir"}, lines.add })
	connected(t, h)
	for range 2 {
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				want := fmt.Sprintf(`{"n":%d}`, i)
				res, err := h.Call(soon(t), "mcp__i__hold", []byte(want), nil)
				if err != nil || plainText(res) != want {
					t.Errorf("call %d: %v, %v", i, res, err)
				}
			})
		}
		wg.Wait()
	}
	if err := h.Ping(soon(t), "i"); err != nil {
		t.Errorf("a server that does not know ping is alive: %v", err)
	}
	for _, want := range []string{`reply to "srv-1": {}`, `reply to 77: {"roots":[{"uri":"file:///some/dir"}]}`, `reply to "srv-2": {"code":-32601`} {
		lines.wait(t, want)
	}
	s := status(t, h, "i")
	if s.Status != StatusConnected {
		t.Errorf("status %s: %v", s.Status, s.Err)
	}
}

// Pain 33 and F09.
func TestListChangedBurst(t *testing.T) {
	h := newHost(t, map[string]ServerConfig{"b": child("burst")})
	connected(t, h)
	events := h.Watch(t.Context())
	running := make(chan error, 1)
	go func() {
		res, err := h.Call(soon(t), "mcp__b__change", nil, nil)
		if err == nil && plainText(res) != "changed" {
			err = fmt.Errorf("got %q", plainText(res))
		}
		running <- err
	}()
	for ev := range events {
		if _, ok := h.Tool("mcp__b__added"); ok && ev.Tools {
			break
		}
	}
	if _, ok := h.Tool("mcp__b__removed"); ok {
		t.Error("the removed tool is there")
	}
	if _, err := h.Call(soon(t), "mcp__b__removed", nil, nil); !errors.Is(err, ErrUnknownTool) {
		t.Errorf("calling the removed tool: %v", err)
	}
	got := text(t, h, "mcp__b__lists", `{}`)
	if got != "2" && got != "3" {
		t.Errorf("tools/list was asked %s times", got)
	}
	if err := <-running; err != nil {
		t.Errorf("the call that ran meanwhile: %v", err)
	}
}

// F22: cancellation reaches the server, and only where it may.
func TestCancel(t *testing.T) {
	lines := newLines()
	h := newHost(t, map[string]ServerConfig{"c": child("cancelled")}, func(o *Options) { o.OnStderr = lines.add })
	connected(t, h)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := h.Call(ctx, "mcp__c__hold", nil, nil)
		done <- err
	}()
	id := strings.TrimPrefix(lines.wait(t, "holding "), "holding ")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	got := lines.wait(t, "cancelled ")
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
		Reason    string          `json:"reason"`
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(got, "cancelled ")), &p); err != nil || string(p.RequestID) != id || p.Reason != "context canceled" {
		t.Errorf("the server was told %s, want id %s", got, id)
	}
	if got := text(t, h, "mcp__c__echo", `{}`); got != "echo {}" {
		t.Errorf("the next call: %q", got)
	}
}

// F22: initialize is never cancelled.
func TestInitializeIsNotCancelled(t *testing.T) {
	lines := newLines()
	c := child("cancelled", "HOLD=initialize")
	c.ConnectTimeout = 300 * time.Millisecond
	h := newHost(t, map[string]ServerConfig{"c": c}, func(o *Options) { o.OnStderr = lines.add })
	ready(t, h)
	if s := status(t, h, "c"); s.Status != StatusFailed || !errors.Is(s.Err, ErrTimeout) {
		t.Errorf("status %s: %v", s.Status, s.Err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if got := lines.all(); slices.ContainsFunc(got, func(l string) bool { return strings.Contains(l, "cancelled") }) {
		t.Errorf("the server was told %q", got)
	}
}

// D92: the limits of calls, and what resets them (F23). Pains 22, 24
func TestCallLimits(t *testing.T) {
	steady := child("progress", "PERIOD=50ms", "TIMES=20")
	steady.IdleTimeout = 500 * time.Millisecond
	mute := child("progress", "TIMES=0")
	mute.IdleTimeout, mute.CallTimeout = 300*time.Millisecond, NoTimeout
	endless := child("progress", "PERIOD=20ms", "TIMES=1000000")
	endless.IdleTimeout, endless.CallTimeout = time.Second, 500*time.Millisecond
	byTool := child("progress", "TIMES=0")
	byTool.ToolTimeouts = map[string]time.Duration{"echo": 250 * time.Millisecond}
	h := newHost(t, map[string]ServerConfig{
		"steady": steady, "mute": mute, "endless": endless, "tool": byTool, "env": child("progress", "TIMES=0"),
	}, func(o *Options) { o.Env = map[string]string{"MCP_TOOL_TIMEOUT": "350"} })
	connected(t, h)
	var got []Progress
	res, err := h.Call(soon(t), "mcp__steady__echo", nil, &CallOptions{Timeout: NoTimeout, OnProgress: func(p Progress) { got = append(got, p) }})
	if err != nil || !strings.HasPrefix(plainText(res), "token ") || plainText(res) == "token " {
		t.Errorf("progress resets the idle limit: %v, %v", res, err)
	}
	if len(got) != 20 || got[19] != (Progress{20, 20, "step"}) {
		t.Errorf("progress: %v", got)
	}
	for name, want := range map[string]string{
		"mute": "no progress for 300ms", "endless": "timed out after 500ms", "tool": "timed out after 250ms", "env": "timed out after 350ms",
	} {
		_, err := h.Call(soon(t), "mcp__"+name+"__echo", nil, nil)
		var ce *CallError
		if !errors.Is(err, ErrTimeout) || !errors.As(err, &ce) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
		if s := status(t, h, name); s.Status != StatusConnected {
			t.Errorf("%s is %s after a time-out", name, s.Status)
		}
	}
	if s := status(t, h, "endless"); s.CallTimeout != 500*time.Millisecond || s.IdleTimeout != time.Second || s.ConnectTimeout != 30*time.Second {
		t.Errorf("limits in force: %+v", s)
	}
}

// A flood of noise, logs and requests holds nobody up. Pain 7, 8.
func TestFlood(t *testing.T) {
	h := newHost(t, map[string]ServerConfig{"f": child("flood")})
	connected(t, h)
	for range 3 {
		if got := text(t, h, "mcp__f__echo", `{}`); got != "echo {}" {
			t.Errorf("got %q", got)
		}
	}
}

// kill -9 in mid-call: the call is told, the server comes back by itself.
// Pains 12, 13.
func TestKillInMidCall(t *testing.T) {
	lines := newLines()
	starts := filepath.Join(t.TempDir(), "starts")
	h := newHost(t, map[string]ServerConfig{"k": child("crash", "STARTS="+starts), "other": child("echo")}, func(o *Options) { o.OnStderr = lines.add })
	connected(t, h)
	done := make(chan error, 1)
	go func() {
		_, err := h.Call(soon(t), "mcp__k__hang", nil, nil)
		done <- err
	}()
	lines.wait(t, "hanging")
	kill(t, status(t, h, "k").PID)
	err := <-done
	var ce *CallError
	if !errors.Is(err, ErrConnectionLost) || !errors.As(err, &ce) || !ce.Sent || !strings.Contains(err.Error(), "killed by signal: killed") {
		t.Errorf("the call in flight: %v", err)
	}
	if got := text(t, h, "mcp__k__echo", `{}`); got != "echo {}" {
		t.Errorf("the next call: %q", got)
	}
	if got := text(t, h, "mcp__other__echo", `{}`); got != "echo {}" {
		t.Errorf("the other server: %q", got)
	}
	if b, err := os.ReadFile(starts); err != nil || strings.Count(string(b), "\n") != 2 {
		t.Errorf("starts: %q, %v", b, err)
	}
}

// A call is made again only if that is safe.
func TestCrashAndReplay(t *testing.T) {
	starts := filepath.Join(t.TempDir(), "starts")
	h := newHost(t, map[string]ServerConfig{"k": child("crash", "STARTS="+starts, "MY_TOKEN=sesame-sesame")})
	connected(t, h)
	count := func() int {
		b, err := os.ReadFile(starts)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(b), "\n")
	}
	// Idempotent: made again on the new process, which answers.
	if got := text(t, h, "mcp__k__crash_once", `{}`); got != "crash_once {}" {
		t.Errorf("got %q", got)
	}
	if n := count(); n != 2 {
		t.Errorf("%d starts, want 2", n)
	}
	// Not said to be safe: not made again.
	_, err := h.Call(soon(t), "mcp__k__crash", nil, nil)
	if !errors.Is(err, ErrConnectionLost) || strings.Contains(err.Error(), "sesame") {
		t.Errorf("got %v", err)
	}
	if got := text(t, h, "mcp__k__echo", `{}`); got != "echo {}" {
		t.Errorf("the next call: %q", got)
	}
	if n := count(); n != 3 {
		t.Errorf("%d starts, want 3", n)
	}
	// Read-only, but crashing every time: twice, and no more.
	if _, err := h.Call(soon(t), "mcp__k__crash_read", nil, nil); !errors.Is(err, ErrConnectionLost) {
		t.Errorf("got %v", err)
	}
	ready(t, h)
	if got := text(t, h, "mcp__k__echo", `{}`); got != "echo {}" {
		t.Errorf("the next call: %q", got)
	}
	if n := count(); n != 5 {
		t.Errorf("%d starts, want 5", n)
	}
}

// Servers that do not know the probe of the new era, each in its own bad way.
// Pain 40e.
func TestProbeHarmsNobody(t *testing.T) {
	deaf := child("probedeaf")
	deaf.ConnectTimeout = 3 * time.Second // the probe gets a third of it
	h := newHost(t, map[string]ServerConfig{"rage": child("proberage"), "deaf": deaf, "old": child("old")})
	connected(t, h)
	for _, s := range h.Status() {
		if got := text(t, h, "mcp__"+s.Name+"__echo", `{}`); got != "echo {}" {
			t.Errorf("%s: %q", s.Name, got)
		}
	}
	if s := status(t, h, "old"); s.ProtocolVersion != "2024-11-05" {
		t.Errorf("old speaks %s", s.ProtocolVersion)
	}
}

// A slow server of the stateless era answers the probe after it was given up,
// and takes the initialize that followed for a duplicate: the late answer counts.
func TestLateProbe(t *testing.T) {
	slow := child("slowlibrary")
	slow.ConnectTimeout = 6 * time.Second // the probe gets a third of it
	h := newHost(t, map[string]ServerConfig{"slow": slow})
	connected(t, h)
	if s := status(t, h, "slow"); s.ProtocolVersion < transport.V20260728 || s.ServerInfo == nil || s.ServerInfo.Name != "library" || s.Instructions != "use it well" {
		t.Errorf("status: %+v", s)
	}
	if got := text(t, h, "mcp__slow__echo", `{"text":"x"}`); got != "echo: x" {
		t.Errorf("got %q", got)
	}
	checkFeatures(t, h, "slow")
}

// Pain 33.
func TestPages(t *testing.T) {
	h := newHost(t, map[string]ServerConfig{"end": child("pages", "MODE=end"), "loop": child("pages", "MODE=loop"), "endless": child("pages", "MODE=endless")})
	connected(t, h)
	for name, want := range map[string]struct {
		tools   int
		problem string
	}{"end": {7, ""}, "loop": {7, "same cursor twice"}, "endless": {3 * maxPages, "more than 1000 pages"}} {
		s := status(t, h, name)
		if s.ToolCount != want.tools || !strings.Contains(s.Error, want.problem) || (s.Error == "") != (want.problem == "") {
			t.Errorf("%s: %d tools, %q", name, s.ToolCount, s.Error)
		}
	}
}

// A server whose list cannot be had is connected, without tools and with the reason.
func TestBadList(t *testing.T) {
	h := newHost(t, map[string]ServerConfig{"b": child("badlist")})
	ready(t, h)
	if s := status(t, h, "b"); s.Status != StatusConnected || s.ToolCount != 0 || !strings.Contains(s.Error, "no array of tools") {
		t.Errorf("%s, %d tools: %q", s.Status, s.ToolCount, s.Error)
	}
}

// Pains 5, 6: children that do not want to end.
func TestCloseEndsEverything(t *testing.T) {
	h := newHost(t, map[string]ServerConfig{
		"deaf": child("deaf"), "wrapper": child("wrapper"), "starting": child("silent"), "flood": child("flood"),
		"sh": Stdio{Command: "sh", Args: []string{"-c", `"$0" & wait`, os.Args[0]}, Env: child("deaf").Env},
	})
	connected(t, h, "deaf", "wrapper", "flood")
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() { _ = h.Close() })
	}
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("Close does not return")
	}
	if left := childProcesses(); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	if _, err := h.Call(t.Context(), "mcp__deaf__echo", nil, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("a call after Close: %v", err)
	}
	if err := h.Ready(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("Ready after Close: %v", err)
	}
}

// A cancelled Start leaves nothing behind, and Close works without Start.
func TestCancelledStart(t *testing.T) {
	h, err := New(&Options{Servers: map[string]ServerConfig{"s": child("silent")}, CloseGrace: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	h.Start(ctx)
	cancel()
	ready(t, h)
	if s := status(t, h, "s"); s.Status != StatusFailed {
		t.Errorf("status %s", s.Status)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	idle, err := New(&Options{Servers: map[string]ServerConfig{"s": child("silent")}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := idle.Call(t.Context(), "x", nil, nil); !errors.Is(err, errNotStarted) {
		t.Errorf("a call before Start: %v", err)
	}
	if err := idle.Close(); err != nil {
		t.Error(err)
	}
}

// D58 D99 D100: a server runs in the session's directory, in which its relative arguments are found, and sees the
// parent's variables with the entry's on top, or the entry's alone; a bare command is found on PATH. Pain 10
func TestChildEnvironment(t *testing.T) {
	t.Setenv("MCPHOST_TEST_PARENTS", "from-the-parent")
	t.Setenv("MCPHOST_TEST_CLASH", "parent's")
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"session", "own", "bin"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, dir, "notes"), []byte(dir), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(os.Args[0], filepath.Join(root, "bin", "mcphost-test-server")); err != nil {
		t.Fatal(err)
	}
	session := child("where", "OWN=1", "MCPHOST_TEST_CLASH=entry's")
	session.Args = []string{"notes"}
	own := session
	own.Dir = filepath.Join(root, "own")
	clean := session
	clean.CleanEnv = true
	bare := child("where", "OWN=2", "PATH="+filepath.Join(root, "bin"))
	bare.Command, bare.Args = "mcphost-test-server", []string{"notes"}
	h := newHost(t, map[string]ServerConfig{"session": session, "own": own, "clean": clean, "bare": bare},
		func(o *Options) { o.Dir = filepath.Join(root, "session") })
	connected(t, h)
	for name, want := range map[string]string{
		"session": "dir=" + root + "/session file=session own=1 parent=from-the-parent clash=entry's home=true",
		"own":     "dir=" + root + "/own file=own own=1 parent=from-the-parent clash=entry's home=true",
		"clean":   "dir=" + root + "/session file=session own=1 parent= clash=entry's home=false",
		"bare":    "dir=" + root + "/session file=session own=2 parent=from-the-parent clash=parent's home=true",
	} {
		if got := text(t, h, "mcp__"+name+"__echo", `{}`); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}

// lines gathers the stderr of children.
type lines struct {
	mu   sync.Mutex
	got  []string
	more chan struct{}
}

func newLines() *lines { return &lines{more: make(chan struct{}, 1000)} }

func (l *lines) add(_, line string) {
	l.mu.Lock()
	l.got = append(l.got, line)
	l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.got)
}

// wait waits for a line that begins with prefix.
func (l *lines) wait(t *testing.T, prefix string) string {
	t.Helper()
	for {
		for _, line := range l.all() {
			if strings.HasPrefix(line, prefix) {
				return line
			}
		}
		select {
		case <-l.more:
		case <-time.After(20 * time.Second):
			t.Fatalf("no line %q among %q", prefix, l.all())
		}
	}
}
