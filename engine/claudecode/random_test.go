package claudecode

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/permission"
)

var (
	rounds    = flag.Int("rounds", 1000, "rounds with a CLI that misbehaves")
	firstSeed = flag.Uint64("seed", 1, "seed of the first round")
)

func init() { children["wild"] = wildMain }

// The points of the protocol at which a wild CLI may die, fall silent or talk nonsense.
const (
	atStart = iota
	atInitialize
	afterInitialize
	atInput
	afterInit
	inAMessage
	beforeResult
	beforeIdle
	atControl
	points
)

// wild is a CLI whose faults follow from its seed.
type wild struct {
	*rand.Rand
	in      *bufio.Reader
	out     *bufio.Writer
	dies    int // the point at which it dies; points for never
	deaf    int // the point from which on it reads nothing more
	shut    int // the point at which it closes its input
	kept    []string
	servers []string
	hooks   []string
	next    int
}

func wildMain() {
	seed, err := strconv.ParseUint(os.Getenv("CLAUDECODE_TEST_SEED"), 10, 64)
	if err != nil {
		os.Exit(2)
	}
	random := rand.New(rand.NewPCG(seed, 7))
	w := &wild{Rand: random, in: bufio.NewReader(&reluctant{random, random.IntN(3), -1}), out: bufio.NewWriter(os.Stdout), dies: points, deaf: points, shut: points}
	switch w.IntN(6) {
	case 0:
		w.dies = w.IntN(points)
	case 1:
		w.deaf = w.IntN(points)
	case 2:
		w.shut = w.IntN(points)
	case 3:
		w.in.Reset(&reluctant{random, random.IntN(3), random.IntN(1 << 18)})
	}
	stubborn := w.IntN(6) == 0
	if stubborn {
		signal.Ignore(syscall.SIGTERM)
	}
	w.at(atStart)
	for {
		line, err := w.in.ReadBytes('\n')
		if err != nil {
			break
		}
		w.take(line)
	}
	w.flush()
	switch {
	case stubborn || w.IntN(6) == 0:
		if w.shut < points {
			fmt.Fprintln(os.Stderr, "deaf") // by its own doing: nobody has told it that it may go
		}
		select {} // never closes its output by itself
	case w.IntN(4) == 0:
		os.Exit(w.IntN(3))
	}
	os.Exit(0)
}

// reluctant reads stdin a byte at a time, in small pieces, or as it comes, and may die in the middle of a line.
type reluctant struct {
	*rand.Rand
	pace int
	left int // bytes until it dies; negative for never
}

func (r *reluctant) Read(p []byte) (int, error) {
	switch r.pace {
	case 0:
		p = p[:1]
	case 1:
		p = p[:r.IntN(len(p))+1]
	}
	n, err := os.Stdin.Read(p)
	if r.left >= 0 {
		if r.left -= n; r.left < 0 {
			fmt.Fprintln(os.Stderr, "dying in the middle of a line")
			os.Exit(4)
		}
	}
	return n, err
}

// at is called at a point of the protocol.
func (w *wild) at(point int) {
	if w.IntN(5) == 0 {
		w.nonsense()
	}
	if w.IntN(40) == 0 {
		w.flood()
	}
	if w.dies == point {
		if w.IntN(2) == 0 {
			w.raw(`{"type":"assistant","message":{"role":"assist`) // half a line
		}
		fmt.Fprintln(os.Stderr, "dying at point", point)
		if w.IntN(3) == 0 {
			if self, err := os.FindProcess(os.Getpid()); err == nil {
				_ = self.Kill()
			}
		}
		os.Exit(w.IntN(3))
	}
	if w.shut == point {
		os.Stdin.Close()
	}
	if w.deaf == point {
		w.flush()
		fmt.Fprintln(os.Stderr, "deaf")
		select {}
	}
}

func (w *wild) raw(text string) {
	_, _ = w.out.WriteString(text)
	w.flush()
}

func (w *wild) flush() { _ = w.out.Flush() }

// say writes a message, or keeps it back to be said out of order.
func (w *wild) say(v any) {
	data, err := json.Marshal(v)
	if err != nil {
		os.Exit(2)
	}
	w.raw(string(data) + "\n")
}

// nonsense is what no CLI should say.
func (w *wild) nonsense() {
	lines := []string{
		"Warning: something happened", "{", "[]", "null", `"text"`, `{"type":7}`, `{"type":null}`, `{"type":"assistant"}`, `{"type":"assistant","message":7}`,
		`{"type":"control_response"}`, `{"type":"control_response","response":{"subtype":"success","request_id":"nobody"}}`, `{"type":"control_response","response":7}`,
		`{"type":"control_request"}`, `{"type":"control_request","request_id":"x"}`, `{"type":"control_request","request_id":"y","request":{"subtype":"make_coffee"}}`,
		`{"type":"control_request","request_id":"z","request":{"subtype":"mcp_message","server_name":"nobody","message":{}}}`,
		`{"type":"control_request","request_id":"z","request":{"subtype":"mcp_message","server_name":"mine","message":"text"}}`,
		`{"type":"control_request","request_id":"h","request":{"subtype":"hook_callback","callback_id":"nobody"}}`,
		`{"type":"control_request","request_id":"p","request":{"subtype":"can_use_tool","input":7}}`,
		`{"type":"control_cancel_request","request_id":"never"}`, `{"type":"control_cancel_request"}`, `{"type":"keep_alive"}`,
		`{"type":"system","subtype":7}`, `{"type":"system","subtype":"session_state_changed","state":7}`, `{"type":"result"}`, `{"type":"result","subtype":7}`,
		`{"type":"user","message":{"content":7}}`, `{"type":"stream_event","event":"text"}`, `{"type":"command_lifecycle","command_uuid":7}`, `{"type":"transcript_mirror","entries":7}`,
		"\xff\xfe\x00", strings.Repeat("[", 20_000), strings.Repeat("x", 1<<20),
	}
	for range w.IntN(4) + 1 {
		w.raw(lines[w.IntN(len(lines))] + "\n")
	}
}

func (w *wild) flood() {
	line := `{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"` + strings.Repeat("x", w.IntN(2000)) + `"}}}` + "\n"
	for range w.IntN(3000) {
		_, _ = w.out.WriteString(line)
	}
	w.flush()
}

func (w *wild) take(line []byte) {
	var m struct {
		Type      string `json:"type"`
		UUID      string `json:"uuid"`
		RequestID string `json:"request_id"`
		Request   struct {
			Subtype string                       `json:"subtype"`
			Servers []string                     `json:"sdkMcpServers"`
			Hooks   map[string][]json.RawMessage `json:"hooks"`
		} `json:"request"`
	}
	if json.Unmarshal(line, &m) != nil {
		fmt.Fprintln(os.Stderr, "malformed input:", string(bytes.TrimSpace(line)))
		os.Exit(3)
	}
	switch {
	case m.Type == "user":
		w.turn(m.UUID)
	case m.Type == "control_request" && m.Request.Subtype == "initialize":
		w.at(atInitialize)
		w.servers = m.Request.Servers
		if len(m.Request.Hooks) > 0 {
			w.hooks = []string{"PreToolUse-0"}
		}
		w.ask("mcp_message", object{"server_name": "mine", "message": object{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": object{"protocolVersion": "2025-11-25", "capabilities": object{}, "clientInfo": object{"name": "wild", "version": "1"}}}})
		w.ask("mcp_message", object{"server_name": "mine", "message": object{"jsonrpc": "2.0", "method": "notifications/initialized"}})
		w.answer(m.RequestID, object{"claude_code_version": "2.1.332"})
		w.at(afterInitialize)
	case m.Type == "control_request":
		w.at(atControl)
		w.answer(m.RequestID, object{})
	}
}

// answer answers a request: at once or later, once or twice, by success, by an error or not at all.
func (w *wild) answer(id string, response object) {
	var line object
	switch w.IntN(12) {
	case 0:
		line = object{"type": "control_response", "response": object{"subtype": "error", "request_id": id, "error": "not today"}}
	case 1:
		line = object{"type": "control_response", "response": object{"subtype": "success", "request_id": id, "response": "of another form"}}
	default:
		line = object{"type": "control_response", "response": object{"subtype": "success", "request_id": id, "response": response}}
	}
	data, err := json.Marshal(line)
	if err != nil {
		os.Exit(2)
	}
	w.kept = append(w.kept, string(data)+"\n")
	if w.IntN(3) == 0 {
		w.kept = append(w.kept, string(data)+"\n")
	}
	if response["claude_code_version"] != nil || w.IntN(3) > 0 {
		w.release()
	}
}

// release says what was kept back, in any order.
func (w *wild) release() {
	w.Shuffle(len(w.kept), func(i, j int) { w.kept[i], w.kept[j] = w.kept[j], w.kept[i] })
	for _, line := range w.kept {
		w.raw(line)
	}
	w.kept = nil
}

// ask sends a request and does not wait for the answer.
func (w *wild) ask(subtype string, fields object) string {
	w.next++
	id := fmt.Sprintf("wild-%d", w.next)
	fields["subtype"] = subtype
	w.say(object{"type": "control_request", "request_id": id, "request": fields})
	if w.IntN(4) == 0 {
		w.say(object{"type": "control_cancel_request", "request_id": id})
	}
	return id
}

func (w *wild) turn(uuid string) {
	w.at(atInput)
	w.say(object{"type": "system", "subtype": "init", "session_id": "s"})
	w.at(afterInit)
	for i := range w.IntN(4) {
		w.ask("can_use_tool", object{"tool_name": "mcp__mine__echo", "tool_use_id": fmt.Sprint("t", i), "input": object{}, "mcp_server": object{"name": "mine"}})
		w.ask("mcp_message", object{"server_name": "mine", "message": object{"jsonrpc": "2.0", "id": i + 1, "method": "tools/call", "params": object{"name": "echo", "arguments": object{"text": strings.Repeat("x", w.IntN(4)/3*w.IntN(1<<19)+1)}}}})
		for _, hook := range w.hooks {
			w.ask("hook_callback", object{"callback_id": hook, "input": object{"tool_name": "mcp__mine__echo"}})
		}
		w.ask("elicitation", object{"mcp_server_name": "x", "message": "?"})
	}
	w.at(inAMessage)
	w.say(object{"type": "assistant", "message": object{"id": "m", "role": "assistant", "content": []any{object{"type": "text", "text": "hi"}}}})
	w.at(beforeResult)
	w.release()
	switch w.IntN(8) {
	case 0: // a result that names no input
		w.say(object{"type": "result", "subtype": "success", "result": "done"})
		w.say(object{"type": "command_lifecycle", "command_uuid": uuid, "state": "completed"})
	case 1:
		w.say(object{"type": "result", "subtype": "error_during_execution", "is_error": true, "errors": []string{"broke"}, "user_message_uuids": []string{uuid}})
	default:
		w.say(object{"type": "result", "subtype": "success", "result": "done", "user_message_uuids": []string{uuid}})
	}
	w.at(beforeIdle)
	w.say(object{"type": "system", "subtype": "session_state_changed", "state": "idle", "sdk_host_only": true})
}

// Whatever a CLI does, a session with it ends, and leaves nothing behind. A round is repeated with
// -seed and -rounds=1.
func TestWildRounds(t *testing.T) {
	seeds := make(chan uint64)
	var wg sync.WaitGroup
	var mu sync.Mutex
	tally := map[string]int{}
	for range 8 {
		wg.Go(func() {
			for seed := range seeds {
				kind, err := wildRound(t, seed)
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
				mu.Lock()
				tally[kind]++
				mu.Unlock()
			}
		})
	}
	for i := range *rounds {
		seeds <- *firstSeed + uint64(i)
	}
	close(seeds)
	wg.Wait()
	t.Logf("%d rounds: %v", *rounds, tally)
}

// hang is how long a round may take before it counts as hanging. It takes milliseconds, mostly.
const hang = 2 * time.Minute

// wildRound is one session with a wild CLI. It returns how it ended.
func wildRound(t *testing.T, seed uint64) (kind string, err error) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 8))
	ctx, cancel := context.WithTimeoutCause(t.Context(), hang, errors.New("hanging"))
	defer cancel()
	giveUp, deaf := context.WithCancelCause(ctx)
	defer deaf(nil)
	e := New(&Options{Path: os.Args[0], ExtraArgs: []string{"-test.run=none"}, Stderr: func(line string) {
		if strings.Contains(line, "deaf") {
			deaf(errDeaf)
		}
	}})
	e.grace = 50 * time.Millisecond
	o := &agent.Options{
		Env:        map[string]string{"CLAUDECODE_TEST_CHILD": "wild", "CLAUDECODE_TEST_SEED": strconv.FormatUint(seed, 10)},
		MCPServers: map[string]mcphost.ServerConfig{"mine": mcphost.InProcess(echo(t))},
		CanUseTool: func(context.Context, *agent.ToolRequest) (*permission.PromptResult, error) { return agent.Allow(), nil },
	}
	if r.IntN(2) == 0 {
		o.Hooks = &agent.Hooks{PreToolUse: []agent.Hook[agent.PreToolUse, agent.PreToolUseOutput]{{
			Func: func(context.Context, *agent.PreToolUse) (*agent.PreToolUseOutput, error) { return nil, nil },
		}}}
	}
	c, err := agent.Open(giveUp, e, o)
	if err != nil {
		return "not opened", explained(ctx, err)
	}
	control, ok := ControlOf(c)
	if !ok {
		return "", errors.New("no control")
	}
	pid := control.s.proc.PID()
	kind, err = wildTurns(giveUp, c, r)
	if err := c.Close(); err != nil {
		return kind, fmt.Errorf("close: %w", err)
	}
	control.s.proc.AwaitExit(ctx, hang) // a busy machine may take longer than Close waits for it to end what was killed
	if !gone(pid) {
		return kind, fmt.Errorf("process %d is left", pid)
	}
	return kind, errors.Join(explained(ctx, err))
}

var errDeaf = errors.New("the CLI is deaf")

// explained passes the errors that a program should see from a CLI that misbehaves.
func explained(ctx context.Context, err error) error {
	var pe *ProcessError
	var ce *ControlError
	var form *json.UnmarshalTypeError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil, errors.Is(err, errDeaf), errors.Is(err, io.EOF), errors.Is(err, agent.ErrClosed), errors.Is(err, agent.ErrNoResult), errors.Is(err, syscall.EPIPE):
		return nil
	case errors.As(err, &pe) && !strings.Contains(pe.Stderr, "malformed input"), errors.As(err, &ce), errors.As(err, &form):
		return nil
	}
	return fmt.Errorf("unexplained: %w", err)
}

// wildTurns talks to a CLI from several goroutines at once.
func wildTurns(ctx context.Context, c *agent.Client, r *rand.Rand) (kind string, err error) {
	var wg sync.WaitGroup
	defer wg.Wait()
	inputs := r.IntN(3) + 1
	for range inputs {
		if err := c.Send(ctx, "hi"+strings.Repeat("!", r.IntN(4)/3*r.IntN(1<<19))); err != nil {
			return "not sent", err
		}
	}
	errs := make(chan error, 4)
	for _, do := range []func() error{
		func() error { return c.Interrupt(ctx) },
		func() error { return c.SetModel(ctx, "m") },
		func() error { _, err := c.MCPStatus(ctx); return err },
	} {
		if r.IntN(3) == 0 {
			// What the CLI never answers is given up when the session closes.
			wg.Go(func() { errs <- do() })
		}
	}
	if r.IntN(8) == 0 {
		wg.Go(func() { errs <- c.Close() })
	}
	if r.IntN(2) == 0 {
		if err := c.EndInput(); err != nil {
			defer func() { _ = c.Close() }()
			return "closed", err
		}
	}
	defer func() {
		if closing := c.Close(); err == nil {
			err = closing
		}
	}()
	kind = "broken off"
	for m, merr := range c.Messages(ctx) {
		if merr != nil {
			return "ended by an error", merr
		}
		if _, ok := m.(*agent.Result); ok {
			kind = "answered"
			if r.IntN(2) == 0 {
				return kind, nil
			}
			if inputs--; inputs <= 0 {
				return kind, nil
			}
		}
	}
	return kind, nil
}
