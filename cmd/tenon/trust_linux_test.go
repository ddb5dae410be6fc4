package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/internal/skip"
)

// A prompt is a command that runs on a terminal and asks about a project.
type prompt struct {
	*screen
	dir, home string
	out       bytes.Buffer
	done      chan int
}

// ask runs a command in a project with these files.
func ask(t *testing.T, files map[string]string, args ...string) *prompt {
	t.Helper()
	p := &prompt{screen: newScreen(t), dir: t.TempDir(), home: t.TempDir(), done: make(chan int, 1)}
	for name, text := range files {
		p.write(name, text)
	}
	t.Chdir(p.dir)
	env := append([]string{"HOME=" + p.home}, xterm...)
	go func() {
		p.done <- run(t.Context(), args, &process{in: p.tty, out: &p.out, err: p.tty, environ: env})
	}()
	p.waitFor(`\[N\]o: `)
	return p
}

func (p *prompt) write(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *prompt) answer(text string) {
	p.t.Helper()
	if _, err := p.master.WriteString(text + "\n"); err != nil {
		p.t.Fatal(err)
	}
}

// Who is asked sees what would be started and what else trust would give: all of it, as it stands, and nothing
// that a terminal takes for a command.
// fault A5
func TestWhatIsShownBeforeTrust(t *testing.T) {
	p := ask(t, map[string]string{
		".mcp.json": `{"mcpServers": {
			"a\u001b[2J": {"command": "srv\u001b]0;x\u0007", "args": ["calc", "${HOME}", ""], "env": {"LD_PRELOAD": "./evil.so"}, "cwd": "sub"},
			"long": {"command": "srv", "args": ["` + strings.Repeat("x", 2000) + `", "last"]},
			"later": {"command": "srv", "args": ["${ANTHROPIC_API_KEY}"]}}}`,
		".claude/settings.json":       `{"permissions": {"allow": ["mcp__calc"], "deny": ["mcp__x"]}, "apiKeyHelper": "touch y"}`,
		".claude/settings.local.json": `{"permissions": {"ask": ["mcp__x"]}, "hooks": null}`,
	}, "mcp", "list", "--setting-sources", "project")
	shown := p.visible()
	for _, want := range []string{
		`  "a\x1b[2J": "srv\x1b]0;x\a" calc ${HOME} ""` + "\n", "\n    cwd: \"sub\"\n", "\n    env: {\"LD_PRELOAD\":\"./evil.so\"}\n",
		"… (2000 bytes) last\n", "\nWith [a]lways this counts too:\n", "\n    server later: srv ${ANTHROPIC_API_KEY}\n",
		"/.claude/settings.json\n    apiKeyHelper: \"touch y\"\n    permissions.allow: [\"mcp__calc\"]\n",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is not shown", want)
		}
	}
	if strings.Contains(shown, "mcp__x") || strings.Contains(shown, "settings.local.json") || strings.Contains(shown, strings.Repeat("x", 700)) {
		t.Error("too much is shown")
	}
	if t.Failed() {
		t.Log(shown)
	}
	p.answer("n")
	if code := <-p.done; code != exitOK || strings.Contains(p.out.String(), "connected") {
		t.Errorf("exit status %d, want 0, and no server:\n%s", code, &p.out)
	}
}

// What is approved is what was shown: a file that changes before the answer is asked about once more.
// fault A5
func TestChangedFileIsAskedAboutAgain(t *testing.T) {
	p := ask(t, map[string]string{".mcp.json": serverConfig("calc")}, "mcp", "list", "--setting-sources", "project")
	p.write(".mcp.json", `{"mcpServers": {"calc": {"command": "srv", "args": ["calc", "changed"]}}}`)
	p.answer("a")
	p.waitFor(`(?s)srv calc changed.*\[N\]o: `)
	p.answer("n")
	if code := <-p.done; code != exitOK || !regexp.MustCompile(`calc +disabled`).Match(p.out.Bytes()) {
		t.Errorf("exit status %d, want 0, and a server that is disabled:\n%s", code, &p.out)
	}
}

// Where an approval cannot be kept, the servers are started all the same, this once. What stands in a file that others could
// have written is not taken up with it.
func TestApprovalThatCannotBeKept(t *testing.T) {
	p := ask(t, map[string]string{".mcp.json": serverConfig("calc")}, "mcp", "list", "--setting-sources", "project")
	if err := os.WriteFile(filepath.Join(p.home, ".config"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.answer("a")
	code := <-p.done
	p.rest()
	if code != exitOK || !regexp.MustCompile(`calc +connected`).Match(p.out.Bytes()) || !strings.Contains(p.visible(), "the servers are started this time only") {
		t.Errorf("exit status %d, want 0, and a server:\n%s%s", code, &p.out, p.visible())
	}
}

// A symbolic link of somebody else's leads to approvals of their choice, though the file behind it is the user's own.
// fault A5
func TestApprovalsBehindAForeignLink(t *testing.T) {
	if os.Geteuid() != 0 {
		skip.For(t, skip.Privilege, "only root can give a link away")
	}
	home := t.TempDir()
	kept := filepath.Join(home, "kept")
	if err := os.MkdirAll(filepath.Join(home, ".config"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(kept, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(home, ".config", "tenon")
	if err := os.Symlink(kept, link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(kept, "trusted.json"), []byte(`{"files": {"/f": {"sha256": "`+sha256Hex(nil)+`"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &process{environ: []string{"HOME=" + home}}
	if a, err := p.approvals(); err != nil || !a.has("/f", nil) {
		t.Errorf("the user's own link: %v", err)
	}
	if err := os.Lchown(link, 12345, -1); err != nil {
		t.Fatal(err)
	}
	a, err := p.approvals()
	if err == nil || !strings.Contains(err.Error(), "belongs to another user") || a.has("/f", nil) {
		t.Errorf("a link of somebody else's: %v", err)
	}
	if err := a.approve(map[string][]byte{"/g": nil}); err == nil || a.has("/f", nil) {
		t.Errorf("an approval on top of that: %v", err)
	}
}
