package claudecode

import (
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
	"syscall"
	"testing"
	"time"

	"github.com/tenon-sdk/tenon/agent"
)

func init() {
	children["ladder"] = ladderMain
	children["orphan"] = func() {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		fmt.Println("deaf")
		select {}
	}
}

// ladderMain is a CLI with a child of its own that heeds nothing. It writes down what it is told when
// it is to end, and heeds it according to its mode.
func ladderMain() {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "CLAUDECODE_TEST_CHILD=orphan")
	out, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		os.Exit(2)
	}
	if _, err := io.ReadFull(out, make([]byte, len("deaf"))); err != nil {
		os.Exit(2)
	}
	diary, err := os.OpenFile(os.Getenv("CLAUDECODE_TEST_DIARY"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		os.Exit(2)
	}
	fmt.Fprintln(diary, cmd.Process.Pid)
	fmt.Fprintln(os.Stderr, "ready")
	mode := os.Getenv("CLAUDECODE_TEST_MODE")
	f := newFakeCLI()
	if mode == "never-answers" {
		_, _ = io.Copy(io.Discard, os.Stdin)
	} else {
		f.run()
	}
	fmt.Fprintln(diary, "eof")
	if mode == "heeds-eof" {
		os.Exit(0)
	}
	<-term
	fmt.Fprintln(diary, "term")
	if mode == "heeds-term" {
		os.Exit(143)
	}
	select {}
}

// A CLI is let go by closing its stdin, then by SIGTERM, then by SIGKILL, each after a grace, and
// nothing that it started is left, whoever ended first.
func TestClosingLadder(t *testing.T) { //nolint:tparallel // beside each other, not beside other tests
	for _, tt := range []struct {
		mode, heard string
	}{
		{"heeds-eof", "eof"},
		{"heeds-term", "eof term"},
		{"heeds-nothing", "eof term"},
		{"killed", ""},
		{"never-answers", "eof term"},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			diary := filepath.Join(t.TempDir(), "diary")
			e, o := fake(tt.mode)
			e.grace = 2 * time.Second
			e.opts.Stderr = func(line string) {
				if tt.mode == "never-answers" && line == "ready" {
					cancel()
				}
			}
			o.Env["CLAUDECODE_TEST_CHILD"], o.Env["CLAUDECODE_TEST_DIARY"] = "ladder", diary
			c, err := agent.Open(ctx, e, o)
			switch {
			case tt.mode == "never-answers":
				if !errors.Is(err, context.Canceled) {
					t.Fatalf("got %v", err)
				}
			case err != nil:
				t.Fatal(err)
			default:
				control, _ := ControlOf(c)
				proc := control.s.proc
				if tt.mode == "killed" {
					kill(t, proc.PID())
					<-proc.Exited()
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				if !ended(proc.PID()) {
					t.Errorf("the CLI lives on")
				}
				if killed := proc.Exit().Signal == "killed"; killed != (tt.heard == "" || tt.mode == "heeds-nothing") {
					t.Errorf("it ended by %s", proc.Exit())
				}
			}
			text, err := os.ReadFile(diary)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Fields(string(text))
			pid, err := strconv.Atoi(lines[0])
			if err != nil {
				t.Fatal(err)
			}
			if heard := strings.Join(lines[1:], " "); heard != tt.heard {
				t.Errorf("it was told %q, want %q", heard, tt.heard)
			}
			if !ended(pid) {
				t.Error("the CLI's child lives on")
			}
		})
	}
}

// ended reports whether a process is gone, or was ended and waits for its parent to notice.
func ended(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return gone(pid)
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	return len(fields) > 0 && (fields[0][0] == 'Z' || fields[0][0] == 'X')
}
