package mcphost

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// childVar names the program that this test binary plays when it is started as a child.
const childVar = "MCPHOST_TEST_CHILD"

func TestMain(m *testing.M) {
	if name := os.Getenv(childVar); name != "" {
		child := children[name]
		if child == nil {
			fmt.Fprintln(os.Stderr, "no such child:", name)
			os.Exit(99)
		}
		child()
		return
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "leak:", err)
			code = 1
		}
		if left := childProcesses(); len(left) > 0 {
			fmt.Fprintln(os.Stderr, "leak: child processes left:", left)
			code = 1
		}
	}
	os.Exit(code)
}

// childProcesses returns the processes that are children of this test binary in
// name or by parentage, zombies aside.
func childProcesses() []int {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	var left []int
	for _, path := range stats {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
		env, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "environ"))
		mine := string(fields[1]) == strconv.Itoa(os.Getpid()) || bytes.Contains(env, []byte(fmt.Sprintf("%s=%d\x00", parentVar, os.Getpid())))
		if mine && fields[0][0] != 'Z' {
			left = append(left, pid)
		}
	}
	return left
}

// parentVar marks all descendants of this test binary.
const parentVar = "MCPHOST_TEST_PARENT"

// child is the configuration of a child of this test binary. env is NAME=VALUE.
func child(name string, env ...string) Stdio {
	c := Stdio{Command: os.Args[0], Env: map[string]string{childVar: name, parentVar: strconv.Itoa(os.Getpid())}}
	for _, kv := range env {
		k, v, _ := strings.Cut(kv, "=")
		c.Env[k] = v
	}
	return c
}

// newHost starts a host that the test's end closes.
func newHost(t testing.TB, servers map[string]ServerConfig, edit ...func(*Options)) *Host {
	t.Helper()
	o := &Options{Servers: servers, CloseGrace: 300 * time.Millisecond, Dir: t.TempDir()}
	for _, e := range edit {
		e(o)
	}
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	h.Start(t.Context())
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("closing the host: %v", err)
		}
	})
	return h
}

// ready waits until all servers left pending.
func ready(t testing.TB, h *Host, names ...string) {
	t.Helper()
	if err := h.Ready(soon(t), names...); err != nil {
		t.Fatalf("Ready: %v; %s", err, dump(h))
	}
}

// soon is a context that ends before the test hangs, even on a busy machine.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func status(t testing.TB, h *Host, name string) ServerStatus {
	t.Helper()
	s, ok := h.ServerStatus(name)
	if !ok {
		t.Fatalf("no server %q", name)
	}
	return s
}

// connected checks that servers are.
func connected(t testing.TB, h *Host, names ...string) {
	t.Helper()
	ready(t, h, names...)
	for _, s := range h.Status() {
		if (len(names) == 0 || slices.Contains(names, s.Name)) && s.Status != StatusConnected {
			t.Fatalf("%s is %s: %v", s.Name, s.Status, s.Err)
		}
	}
}

func dump(h *Host) string {
	var b strings.Builder
	for _, s := range h.Status() {
		fmt.Fprintf(&b, "%s: %s %s; ", s.Name, s.Status, s.Error)
	}
	return b.String()
}

func toolNames(tools []Tool) []string {
	var names []string
	for _, t := range tools {
		names = append(names, t.FullName)
	}
	return names
}

// text calls a tool and returns the text of its result.
func text(t testing.TB, h *Host, full, args string) string {
	t.Helper()
	res, err := h.Call(soon(t), full, []byte(args), nil)
	if err != nil {
		t.Fatalf("calling %s: %v; %s", full, err, dump(h))
	}
	return plainText(res)
}

// kill ends a process as kill -9 does.
func kill(t *testing.T, pid int) {
	t.Helper()
	p, err := os.FindProcess(pid)
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
}
