//go:build unix

package subproc

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tenon-sdk/tenon/internal/skip"
)

const childVar = "SUBPROC_TEST_CHILD"

// children are the programs that this test binary plays when it is started as a child.
var children = map[string]func(){
	"echo":    func() { _, _ = io.Copy(os.Stdout, os.Stdin) },
	"deaf":    func() { deaf(); fmt.Println("ready"); select {} },
	"flood":   func() { deaf(); flood(os.Stdout) },
	"stderr":  func() { floodStderr(); fmt.Println("ready"); _, _ = io.Copy(io.Discard, os.Stdin) },
	"exit3":   func() { fmt.Fprintln(os.Stderr, "missing KEY"); os.Exit(3) },
	"suicide": func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} },
	"polite":  func() { _, _ = io.Copy(io.Discard, os.Stdin); fmt.Println("bye") },
	// A wrapper such as npx: the real program is a child of it and has its pipes.
	"wrapper": func() { wrap("deaf", true) },
	// A wrapper that ends at once and leaves the real program behind.
	"leaver": func() { wrap("deaf", false) },
	// A host that starts a child and then waits to be killed.
	"host": host,
	"env":  func() { fmt.Println(os.Getenv("GREETING")); wd, _ := os.Getwd(); fmt.Println(wd) },
}

func TestMain(m *testing.M) {
	if child := children[os.Getenv(childVar)]; child != nil {
		child()
		return
	}
	goleak.VerifyTestMain(m)
}

func deaf() { signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP) }

func flood(w io.Writer) {
	line := append(bytes.Repeat([]byte("x"), 1000), '\n')
	for {
		if _, err := w.Write(line); err != nil {
			select {}
		}
	}
}

func floodStderr() {
	for i := range 5000 {
		fmt.Fprintf(os.Stderr, "log line %d %s\n", i, strings.Repeat("x", 100))
	}
}

func wrap(child string, wait bool) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVar+"="+child)
	cmd.Stdout, cmd.Stderr, cmd.Stdin = os.Stdout, os.Stderr, os.Stdin
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	fmt.Println(cmd.Process.Pid)
	if wait {
		_ = cmd.Wait()
	}
}

func host() {
	p, err := Start(context.Background(), options("deaf"))
	if err != nil {
		panic(err)
	}
	fmt.Println(p.PID())
	select {}
}

func options(child string) Options {
	return Options{
		Command: os.Args[0],
		Env:     append(os.Environ(), childVar+"="+child),
		Grace:   200 * time.Millisecond,
	}
}

func start(t *testing.T, o Options) *Proc {
	t.Helper()
	p, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// alive reports whether a process is there and has not ended.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) == nil && !isDir("/proc/self")
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	return fields[0][0] != 'Z'
}

func isDir(path string) bool { info, err := os.Stat(path); return err == nil && info.IsDir() }

// waitDead waits until a process that was told to end has ended.
func waitDead(t *testing.T, pid int) {
	t.Helper()
	deadline := time.After(5 * time.Second)
	for alive(pid) {
		select {
		case <-deadline:
			t.Fatalf("process %d lives on", pid)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func readLine(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	line, err := r.ReadString('\n')
	if err != nil {
		t.Fatalf("reading a line: %v", err)
	}
	return strings.TrimSpace(line)
}

func TestEcho(t *testing.T) {
	o := options("echo")
	o.Grace = 10 * time.Second // a race-built child takes a second to exit
	p := start(t, o)
	if _, err := io.WriteString(p.Stdin, "hello\n"); err != nil {
		t.Fatal(err)
	}
	if got := readLine(t, bufio.NewReader(p.Stdout)); got != "hello" {
		t.Errorf("got %q", got)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	<-p.Exited()
	if got := p.Exit(); got != (Exit{}) {
		t.Errorf("exit %v, want code 0", got)
	}
	waitDead(t, p.PID())
}

// D58 D99: env and directory reach the child.
func TestEnvAndDir(t *testing.T) {
	o := options("env")
	o.Env = append(o.Env, "GREETING=hi")
	o.Dir = t.TempDir()
	p := start(t, o)
	r := bufio.NewReader(p.Stdout)
	greeting, dir := readLine(t, r), readLine(t, r)
	want, err := filepath.EvalSymlinks(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if greeting != "hi" || dir != want {
		t.Errorf("child has greeting %q in %q, want hi in %q", greeting, dir, want)
	}
}

// Pain 6: Close is bounded whatever the child does.
func TestCloseIsBounded(t *testing.T) {
	for _, child := range []string{"polite", "deaf", "flood", "wrapper", "leaver", "exit3", "stderr"} {
		t.Run(child, func(t *testing.T) {
			p := start(t, options(child))
			done := make(chan error)
			var wg sync.WaitGroup
			for range 3 { // concurrently and repeatedly
				wg.Go(func() { done <- p.Close() })
			}
			for range 3 {
				select {
				case err := <-done:
					if err != nil {
						t.Error(err)
					}
				case <-time.After(10 * time.Second):
					t.Fatal("Close does not return")
				}
			}
			wg.Wait()
			waitDead(t, p.PID())
		})
	}
}

// Pain 5: what a wrapper started goes, too.
func TestWrapperLeavesNoOrphan(t *testing.T) {
	for _, child := range []string{"wrapper", "leaver"} {
		t.Run(child, func(t *testing.T) {
			p := start(t, options(child))
			r := bufio.NewReader(p.Stdout)
			pid, err := strconv.Atoi(readLine(t, r))
			if err != nil {
				t.Fatal(err)
			}
			if child == "wrapper" {
				if got := readLine(t, r); got != "ready" || !alive(pid) {
					t.Fatalf("got %q", got)
				}
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			waitDead(t, pid)
		})
	}
}

// Pain 5: `sh -c 'server & wait'`.
func TestShellWrapperLeavesNoOrphan(t *testing.T) {
	o := options("deaf")
	o.Args = []string{"-c", `"$0" & echo $!; wait`, o.Command}
	o.Command = "sh"
	p := start(t, o)
	r := bufio.NewReader(p.Stdout)
	pid, err := strconv.Atoi(readLine(t, r))
	if err != nil {
		t.Fatal(err)
	}
	if got := readLine(t, r); got != "ready" || !alive(pid) {
		t.Fatalf("got %q", got)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	waitDead(t, pid)
}

// A child that is killed from outside takes its group with it, unasked.
func TestDeathOfTheChildEndsItsGroup(t *testing.T) {
	p := start(t, options("wrapper"))
	r := bufio.NewReader(p.Stdout)
	pid, err := strconv.Atoi(readLine(t, r))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-p.Exited()
	if got := p.Exit(); got.Signal != "killed" || got.Code != -1 {
		t.Errorf("exit %+v", got)
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Errorf("stdout did not end: %v", err)
	}
	waitDead(t, pid)
}

// kill -9 of this process leaves no children, deaf ones included.
func TestDeathOfTheHostEndsTheChild(t *testing.T) {
	if !isDir("/proc/self") {
		skip.For(t, skip.Platform, "only Linux ties a child to its parent")
	}
	p := start(t, options("host"))
	pid, err := strconv.Atoi(readLine(t, bufio.NewReader(p.Stdout)))
	if err != nil {
		t.Fatal(err)
	}
	// Not a member of the host's group: only the tie can end it.
	if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitDead(t, pid)
}

// Pain 7: a full stderr pipe does not stop the child; the end of it is kept.
func TestStderrIsDrained(t *testing.T) {
	var mu sync.Mutex
	var got []string
	o := options("stderr")
	o.StderrLimit = 1000
	o.OnStderr = func(l string) { mu.Lock(); defer mu.Unlock(); got = append(got, l) }
	p := start(t, o)
	if got := readLine(t, bufio.NewReader(p.Stdout)); got != "ready" {
		t.Fatalf("got %q", got)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	tail := p.Stderr()
	if !strings.HasPrefix(tail, "log line ") || !strings.Contains(tail, "log line 4999 ") || len(tail) > 1000 {
		t.Errorf("tail is %q", tail)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(got) == 0 || !strings.HasPrefix(got[0], "log line 0 ") {
		t.Errorf("callback got %d lines", len(got))
	}
	all := 0 // what the callback got, and what it was told was dropped
	for _, l := range got {
		n := 1
		if strings.HasPrefix(l, "(") {
			if _, err := fmt.Sscanf(l, "(%d lines are left out here", &n); err != nil {
				t.Fatal(err)
			}
		}
		all += n
	}
	if all != 5000 {
		t.Errorf("the callback was told of %d lines, want 5000", all)
	}
}

// A callback that never returns stops neither the child nor Close.
func TestBlockedStderrCallback(t *testing.T) {
	o := options("stderr")
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	o.OnStderr = func(string) { <-release }
	p := start(t, o)
	if got := readLine(t, bufio.NewReader(p.Stdout)); got != "ready" {
		t.Fatalf("got %q", got)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(p.Stderr(), "log line 4999 ") {
		t.Error("the tail lacks the last line")
	}
}

// D85 D108: the reason is there once the child has ended.
func TestExitAndStderr(t *testing.T) {
	p := start(t, options("exit3"))
	if !p.AwaitExit(t.Context(), 5*time.Second) {
		t.Fatal("child does not end")
	}
	if got := p.Exit(); got.Code != 3 || got.String() != "exited with code 3" {
		t.Errorf("exit %v", got)
	}
	if got := p.Stderr(); got != "missing KEY" {
		t.Errorf("stderr %q", got)
	}
	q := start(t, options("suicide"))
	<-q.Exited()
	if got := q.Exit().String(); got != "killed by signal: killed" {
		t.Errorf("exit %q", got)
	}
}

// Closing frees a writer that is stuck in a full pipe.
func TestCloseFreesAStuckWriter(t *testing.T) {
	p := start(t, options("deaf"))
	stuck := make(chan error, 1)
	go func() { _, err := p.Stdin.Write(make([]byte, 1<<20)); stuck <- err }()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := <-stuck; err == nil {
		t.Error("the write of 1 MiB to a child that does not read succeeded")
	}
}

func TestStartFails(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("not a program"), 0o600); err != nil {
		t.Fatal(err)
	}
	garbage := filepath.Join(dir, "garbage")
	if err := os.WriteFile(garbage, []byte{1, 2, 3}, 0o700); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=/nowhere:" + dir, "HOME=" + dir}
	tests := []struct{ name, command, want string }{
		{"not on PATH", "no-such-program", `program "no-such-program" not found on the PATH searched: /nowhere:` + dir},
		{"no such path", "./nothing", `program "./nothing": no such file or directory (tried ` + dir + `/nothing)`},
		{"not executable", "~/plain", `permission denied (tried ` + plain + `)`},
		{"directory", dir, "is a directory"},
		{"not a program", "garbage", "starting " + garbage + ": exec format error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Start(t.Context(), Options{Command: tt.command, Env: env, Dir: dir})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, options("echo")); !errors.Is(err, context.Canceled) {
		t.Errorf("start on a cancelled context: %v", err)
	}
}

// D100: a bare command is found on the PATH of the child's environment.
func TestLookPath(t *testing.T) {
	dir := t.TempDir()
	prog := filepath.Join(dir, "bin", "prog")
	if err := os.MkdirAll(filepath.Dir(prog), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(prog, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=/elsewhere", "PATH=" + filepath.Dir(prog), "HOME=" + dir}
	for _, command := range []string{"prog", "./bin/prog", "bin/prog", "~/bin/prog", prog} {
		if got, err := LookPath(command, dir, env); err != nil || got != prog {
			t.Errorf("LookPath(%q) = %q, %v, want %q", command, got, err, prog)
		}
	}
}
