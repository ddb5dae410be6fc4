//go:build unix

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tenon-sdk/tenon/internal/peers"
	"github.com/tenon-sdk/tenon/modeltest"
)

// patience is how long a test waits for something that has to happen. It is no measurement.
const patience = 60 * time.Second

// Beside the usual commands the scripts have these:
//
//	exits STATUS PROGRAM ARGS...  run a program and want this exit status
//	start PROGRAM ARGS...         run a program in the background; its outputs go to the files out and err
//	event REGEXP                  wait for a line that a server says; $EVENT is then its first group
//	output REGEXP                 wait until the program in the background has written a match to standard output
//	signal SIGNAL                 send a signal to the program in the background
//	kill9 PID                     kill a process
//	finish STATUS                 wait for the program in the background and want this exit status
//	nobody                        wait until every server has ended; one that has not ended in time is a failure;
//	                              what they said last goes to the file said
//
// What doctor.txtar shows, each cause with its own advice, is D85.
func TestScripts(t *testing.T) { runScripts(t, "testdata/script", setupScript) }

// The same on the Claude Code CLI, with the model on loopback.
func TestClaudeScripts(t *testing.T) {
	path := peers.ClaudePath(t)
	runScripts(t, "testdata/claude", func(env *testscript.Env) error {
		if err := setupScript(env); err != nil {
			return err
		}
		l := peers.NewLoopback(t)
		for name, value := range peers.ClaudeEnv(t, l.Serve(t, modeltest.NewModel(&modeltest.Options{Script: scriptedModel}))) {
			env.Setenv(name, value)
		}
		env.Setenv("ENABLE_TOOL_SEARCH", "false")
		env.Setenv("CLAUDE", l.Executable(t, path))
		env.Setenv("CLAUDE_OFFLINE", path) // its model is in the network of the machine
		return nil
	})
}

func runScripts(t *testing.T, dir string, setup func(*testscript.Env) error) {
	t.Helper()
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setup,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":  cmdExits,
			"start":  cmdStart,
			"event":  cmdEvent,
			"output": cmdOutput,
			"signal": cmdSignal,
			"kill9":  cmdKill9,
			"finish": cmdFinish,
			"nobody": cmdNobody,
		},
	})
}

type scriptKey struct{}

// scriptState is what the commands of one script share.
type scriptState struct {
	events *os.File
	lines  *bufio.Reader
	cmd    *exec.Cmd
	out    *growing
	files  []*os.File
}

// A growing is the standard output of a program in the background. It goes to a file, too.
type growing struct {
	file *os.File

	mu   sync.Mutex // guards the rest
	text []byte
	more chan struct{} // closed and replaced at each write
}

func (g *growing) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.text = append(g.text, b...)
	close(g.more)
	g.more = make(chan struct{})
	return g.file.Write(b)
}

// find looks for a match in what is there now; more is closed when there is more.
func (g *growing) find(re *regexp.Regexp) (found bool, more <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return re.Match(g.text), g.more
}

func setupScript(env *testscript.Env) error {
	st := &scriptState{}
	env.Values[scriptKey{}] = st
	fifo := filepath.Join(env.WorkDir, ".events")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		return err
	}
	// Not only for reading: the open would wait for a server, and the read end before there is one.
	f, err := os.OpenFile(fifo, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	st.events, st.lines = f, bufio.NewReader(f)
	env.Defer(func() { _ = st.events.Close() })
	env.Setenv("EVENTS", fifo)
	env.Setenv("HOME", env.WorkDir)
	env.Setenv("TENON_TRUST_PROJECT", "1") // but for the scripts about trust
	env.Setenv("TERM", "xterm")
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "CLAUDE_CONFIG_DIR", "NO_COLOR"} {
		env.Setenv(name, "")
	}
	return serveForScript(env)
}

// serveForScript starts the servers that the scripts find in variables.
func serveForScript(env *testscript.Env) error {
	serve := func(name, path string, h http.Handler) {
		s := httptest.NewServer(h)
		env.Setenv(name, s.URL+path)
		env.Defer(func() {
			s.CloseClientConnections()
			s.Close()
		})
	}
	get := func(*http.Request) *mcp.Server { return calcServer(&events{}) }
	serve("HTTP_URL", "/mcp", mcp.NewStreamableHTTPHandler(get, nil))
	serve("SSE_URL", "/sse", mcp.NewSSEHandler(get, nil))
	env.Setenv("TLS_URL", strings.Replace(env.Getenv("HTTP_URL"), "http:", "https:", 1))
	serve("DENIED_URL", "/mcp", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "who are you", http.StatusUnauthorized)
	}))
	serve("HTML_URL", "/mcp", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintln(w, "<html><body>It works!</body></html>")
	}))
	serve("SILENT_URL", "/mcp", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	model := modeltest.NewModel(&modeltest.Options{Script: scriptedModel})
	serve("MODEL_URL", "", model)
	return nil
}

// scriptedModel is the model behind $MODEL_URL: it does what the first word of the prompt says.
func scriptedModel(prompt string) []modeltest.Turn {
	verb, rest, _ := strings.Cut(prompt, " ")
	switch verb {
	case "tool": // tool NAME JSON: a call, then the end
		name, input, _ := strings.Cut(rest, " ")
		return []modeltest.Turn{modeltest.ToolUse(name, input), modeltest.Text("the tool has answered")}
	case "loop":
		var turns []modeltest.Turn
		for range 50 {
			turns = append(turns, modeltest.ToolUse("mcp__calc__add", `{"a":1,"b":1}`))
		}
		return turns
	case "twice": // two answers
		return []modeltest.Turn{modeltest.Text("the first answer"), modeltest.Text("the second answer")}
	case "once": // an answer, then a refusal
		return []modeltest.Turn{modeltest.Text("the only answer"), modeltest.Fail(http.StatusUnauthorized, "authentication_error", "invalid x-api-key")}
	case "refuse":
		return []modeltest.Turn{modeltest.Fail(http.StatusUnauthorized, "authentication_error", "invalid x-api-key")}
	}
	return []modeltest.Turn{modeltest.Text("you said: " + prompt)}
}

func state(ts *testscript.TestScript) *scriptState { return ts.Value(scriptKey{}).(*scriptState) }

func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS PROGRAM ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

func cmdStart(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: start PROGRAM ARGS...")
	}
	st := state(ts)
	path, err := execPath(args[0], ts.Getenv("PATH"))
	ts.Check(err)
	st.cmd = exec.Command(path, args[1:]...)
	st.cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{
		"PATH", "HOME", "EVENTS", "TERM", "HTTP_URL", "SSE_URL", "SILENT_URL", "MODEL_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL",
		"MCP_TIMEOUT", "MCP_TOOL_TIMEOUT", "TENON_TRUST_PROJECT",
	} {
		if v := ts.Getenv(name); v != "" {
			st.cmd.Env = append(st.cmd.Env, name+"="+v)
		}
	}
	out, err := os.Create(ts.MkAbs("out"))
	ts.Check(err)
	errs, err := os.Create(ts.MkAbs("err"))
	ts.Check(err)
	st.out = &growing{file: out, more: make(chan struct{})}
	st.cmd.Stdout, st.cmd.Stderr, st.files = st.out, errs, []*os.File{out, errs}
	ts.Check(st.cmd.Start())
	ts.Defer(func() { _ = st.cmd.Process.Kill() })
}

// execPath finds a program on the script's PATH, which is not the test's.
func execPath(name, path string) (string, error) {
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("no program %q on the PATH", name)
}

func cmdEvent(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: event REGEXP")
	}
	st, re := state(ts), regexp.MustCompile(args[0])
	ts.Check(st.events.SetReadDeadline(time.Now().Add(patience)))
	for {
		line, err := st.lines.ReadString('\n')
		if err != nil {
			ts.Fatalf("no server said %q: %v", args[0], err)
		}
		ts.Logf("[event] %s", strings.TrimSpace(line))
		if m := re.FindStringSubmatch(line); m != nil {
			ts.Setenv("EVENT", strings.Join(m[1:], " "))
			return
		}
	}
}

func cmdOutput(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: output REGEXP")
	}
	st, re := state(ts), regexp.MustCompile("(?m)"+args[0])
	timeout := time.After(patience)
	for {
		found, more := st.out.find(re)
		if found {
			return
		}
		select {
		case <-more:
		case <-timeout:
			ts.Fatalf("the program has not written %q but\n%s", args[0], ts.ReadFile("out"))
		}
	}
}

func cmdSignal(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP}
	if neg || len(args) != 1 || signals[args[0]] == 0 {
		ts.Fatalf("usage: signal INT|TERM|HUP")
	}
	ts.Check(state(ts).cmd.Process.Signal(signals[args[0]]))
}

func cmdKill9(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: kill9 PID")
	}
	pid, err := strconv.Atoi(args[0])
	ts.Check(err)
	ts.Check(syscall.Kill(pid, syscall.SIGKILL))
}

func cmdFinish(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: finish STATUS")
	}
	st := state(ts)
	watchdog := time.AfterFunc(patience, func() { _ = st.cmd.Process.Signal(syscall.SIGQUIT) }) // it prints its goroutines
	err := st.cmd.Wait()
	watchdog.Stop()
	for _, f := range st.files {
		_ = f.Close()
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		ts.Fatalf("%v", err)
	}
	if got := strconv.Itoa(st.cmd.ProcessState.ExitCode()); got != args[0] {
		ts.Fatalf("exit status %s, want %s\n%s%s", got, args[0], ts.ReadFile("out"), ts.ReadFile("err"))
	}
}

func cmdNobody(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: nobody")
	}
	st := state(ts)
	// The FIFO ends for a reader when its last writer is gone. This test is one as long as it has it open.
	reader, err := os.OpenFile(ts.Getenv("EVENTS"), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	ts.Check(err)
	ts.Check(st.events.Close())
	defer func() {
		again, err := os.OpenFile(ts.Getenv("EVENTS"), os.O_RDWR|syscall.O_NONBLOCK, 0)
		ts.Check(err)
		st.events, st.lines = again, bufio.NewReader(again)
		ts.Check(reader.Close())
	}()
	ts.Check(reader.SetReadDeadline(time.Now().Add(patience)))
	rest, err := io.ReadAll(reader)
	ts.Logf("[events] %s", rest)
	ts.Check(os.WriteFile(ts.MkAbs("said"), rest, 0o600))
	if err != nil {
		ts.Fatalf("a server has not ended: %v", err)
	}
}
