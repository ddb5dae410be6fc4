package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/tenon-sdk/tenon/internal/skip"
)

// A screen is the far side of a pseudo-terminal: it takes what is written and knows what is to be seen.
type screen struct {
	t      *testing.T
	master *os.File
	tty    *os.File
	raw    bytes.Buffer
}

func newScreen(t *testing.T) *screen {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		skip.Missing(t, "no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { _ = master.Close() })
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tty.Close() })
	if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 72}); err != nil {
		t.Fatal(err)
	}
	return &screen{t: t, master: master, tty: tty}
}

// waitFor reads what is written until it matches, all of it taken together.
func (s *screen) waitFor(pattern string) {
	s.t.Helper()
	re := regexp.MustCompile(pattern)
	b := make([]byte, 4096)
	for !re.Match(s.raw.Bytes()) {
		n, err := s.master.Read(b)
		s.raw.Write(b[:n])
		if err != nil {
			s.t.Fatalf("the terminal was never told %q: %v\n%q", pattern, err, s.raw.String())
		}
	}
}

// rest reads what is left when nobody writes any more.
func (s *screen) rest() {
	_ = s.tty.Close()
	b := make([]byte, 4096)
	for {
		n, err := s.master.Read(b) // EIO at the end
		s.raw.Write(b[:n])
		if err != nil {
			return
		}
	}
}

// visible is what stands on the terminal in the end. The only escape sequences that are known are those that
// this program may use.
func (s *screen) visible() string {
	text := regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(s.raw.String(), "")
	var lines []string
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		var cells []rune
		col := 0
		for i, part := range strings.Split(line, "\r") {
			if i > 0 {
				col = 0
			}
			erased, rest, found := strings.Cut(part, "\x1b[K")
			if found && erased == "" {
				cells, part = cells[:col], rest
			}
			if strings.ContainsRune(part, '\x1b') {
				s.t.Errorf("an escape sequence that nobody knows: %q", part)
			}
			for _, r := range part {
				if col == len(cells) {
					cells = append(cells, ' ')
				}
				cells[col] = r
				col++
			}
			if i > 0 && col > 72 {
				s.t.Errorf("a line of %d cells on a terminal of 72: %q", col, part)
			}
		}
		lines = append(lines, strings.TrimRight(string(cells), " "))
	}
	return strings.Join(lines, "\n")
}

// runOn runs tenon with its standard error on the screen until it says pattern, and then interrupts it.
func (s *screen) runOn(environ []string, pattern string, args ...string) (code int, stdout string) {
	s.t.Helper()
	ctx, cancel := context.WithCancelCause(s.t.Context())
	defer cancel(nil)
	s.t.Chdir(s.t.TempDir())
	var out bytes.Buffer
	done := make(chan int)
	go func() {
		done <- run(ctx, args, &process{in: strings.NewReader(""), out: &out, err: s.tty, environ: environ})
	}()
	s.waitFor(pattern)
	cancel(&signalError{syscall.SIGINT})
	code = <-done
	s.rest()
	return code, out.String()
}

var xterm = []string{"TERM=xterm-256color"}

func TestProgressWhileConnecting(t *testing.T) {
	s := newScreen(t)
	code, out := s.runOn(xterm, `\d\.\ds  connecting to silent \(1 of 2 done\)`,
		"mcp", "list", "--strict-mcp-config", "--mcp-config", serverConfig("calc", "silent"))
	if code != 130 || out != "" {
		t.Errorf("exit status %d and stdout %q, want 130 and nothing", code, out)
	}
	if got, want := s.visible(), "tenon: interrupted\n"; got != want {
		t.Errorf("on the terminal stands %q, want %q", got, want)
	}
}

func TestProgressWhileAToolRuns(t *testing.T) {
	s := newScreen(t)
	code, _ := s.runOn(xterm, `running mcp__calc__block \d`,
		"run", "--offline", `@mcp__calc__block {}`, "--allowedTools", "mcp__calc",
		"--strict-mcp-config", "--mcp-config", serverConfig("calc"))
	if code != 130 {
		t.Errorf("exit status %d, want 130", code)
	}
	if got := s.visible(); strings.Contains(got, "running") || strings.Contains(got, "stopping") || !strings.HasSuffix(got, "tenon: interrupted\n") {
		t.Errorf("the line is still there, or the end is not told:\n%s", got)
	}
}

func TestProgressWithoutEscapeSequences(t *testing.T) {
	for _, env := range []string{"NO_COLOR=1", "TERM=dumb"} {
		t.Run(env, func(t *testing.T) {
			s := newScreen(t)
			s.runOn(append(xterm[:len(xterm):len(xterm)], env), `connecting to silent`,
				"mcp", "tools", "--strict-mcp-config", "--mcp-config", serverConfig("silent"))
			if bytes.ContainsRune(s.raw.Bytes(), '\x1b') {
				t.Errorf("escape sequences: %q", s.raw.String())
			}
			if got, want := s.visible(), "tenon: interrupted\n"; got != want {
				t.Errorf("on the terminal stands %q, want %q", got, want)
			}
		})
	}
}

// A terminal as standard output gets colours, and nothing else does.
func TestStatusTableOnATerminal(t *testing.T) {
	t.Chdir(t.TempDir())
	s := newScreen(t)
	done := make(chan int)
	go func() {
		done <- run(t.Context(), []string{"mcp", "list", "--strict-mcp-config", "--mcp-config", serverConfig("calc", "exit3")},
			&process{in: strings.NewReader(""), out: s.tty, err: s.tty, environ: xterm})
	}()
	s.waitFor(`exit3[^$]*missing KEY`)
	if code := <-done; code != exitOK {
		t.Errorf("exit status %d, want 0", code)
	}
	s.rest()
	if !strings.Contains(s.raw.String(), "\x1b[32mconnected") || !strings.Contains(s.raw.String(), "\x1b[31mfailed") {
		t.Errorf("no colours: %q", s.raw.String())
	}
	if got := s.visible(); !regexp.MustCompile(`(?m)^NAME +STATUS +TRANSPORT +TOOLS +TIME +REASON\ncalc +connected +stdio +6 .*\nexit3 +failed +stdio +- .*exited\n {20,}[\s\S]*missing KEY`).MatchString(got) {
		t.Errorf("the table is\n%s", got)
	}
}

// JSON on a terminal holds nothing that a terminal obeys, and is the same JSON.
func TestJSONOnATerminal(t *testing.T) {
	t.Chdir(t.TempDir())
	const odd = "a\u009b31mb\u202ec\x7fd\U000e0041e"
	s := newScreen(t)
	done := make(chan int)
	go func() {
		done <- run(t.Context(), []string{"mcp", "call", "calc", "echo", `{"text": "` + odd + `"}`, "--json", "--strict-mcp-config", "--mcp-config", serverConfig("calc")},
			&process{in: strings.NewReader(""), out: s.tty, err: io.Discard, environ: xterm})
	}()
	s.waitFor(`\n}\r\n`)
	if code := <-done; code != exitOK {
		t.Errorf("exit status %d, want 0", code)
	}
	s.rest()
	for _, r := range strings.ReplaceAll(s.raw.String(), "\r\n", "\n") {
		if r != '\n' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf)) {
			t.Errorf("%q was written to the terminal: %q", r, s.raw.String())
		}
	}
	var result struct {
		Content []struct{ Text string }
	}
	if err := json.Unmarshal(s.raw.Bytes(), &result); err != nil || len(result.Content) != 1 || result.Content[0].Text != odd {
		t.Errorf("it reads as %+q, %v; want %+q", result, err, odd)
	}
}

// On a terminal the servers of a project that is not trusted are shown, and started only if the user says so. fault A5
func TestProjectServersAreAskedAbout(t *testing.T) {
	for _, tt := range []struct {
		answer, list, again string
	}{
		{"n", `calc +disabled`, `calc +disabled`},
		{"", `calc +disabled`, `calc +disabled`},
		{"y", `calc +connected`, `calc +disabled`},
		{"a", `calc +connected`, `calc +connected`},
	} {
		t.Run("answer "+tt.answer, func(t *testing.T) {
			dir, home := t.TempDir(), t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, ".mcp.json"), []byte(serverConfig("calc")), 0o644); err != nil {
				t.Fatal(err)
			}
			t.Chdir(dir)
			env := append([]string{"HOME=" + home}, xterm...)
			s := newScreen(t)
			var out bytes.Buffer
			done := make(chan int)
			go func() {
				done <- run(t.Context(), []string{"mcp", "list", "--setting-sources", "project"}, &process{in: s.tty, out: &out, err: s.tty, environ: env})
			}()
			s.waitFor(`\[N\]o: `)
			if !strings.Contains(s.visible(), "  calc: srv calc\n") {
				t.Errorf("what would be started is not shown: %s", s.visible())
			}
			if _, err := s.master.WriteString(tt.answer + "\n"); err != nil {
				t.Fatal(err)
			}
			if code := <-done; code != exitOK || !regexp.MustCompile(tt.list).Match(out.Bytes()) {
				t.Errorf("exit status %d, want 0; want %s in\n%s", code, tt.list, &out)
			}
			// Once more, where nobody can be asked.
			out.Reset()
			code := run(t.Context(), []string{"mcp", "list", "--setting-sources", "project"}, &process{in: strings.NewReader(""), out: &out, err: io.Discard, environ: env})
			if code != exitOK || !regexp.MustCompile(tt.again).Match(out.Bytes()) {
				t.Errorf("again: exit status %d, want 0; want %s in\n%s", code, tt.again, &out)
			}
		})
	}
}
