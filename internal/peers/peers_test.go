//go:build unix

package peers

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tenon-sdk/tenon/internal/skip"
)

// children are the programs that this test binary plays when it is started as a
// child.
var children = map[string]func(){
	"parent": func() {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "PEERS_TEST_CHILD=sleeper")
		cmd.Stdout = os.Stdout
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		fmt.Println("child", cmd.Process.Pid)
		_ = cmd.Wait()
	},
	"sleeper": func() { time.Sleep(time.Hour) },
	"leaver": func() {
		fmt.Println("last words")
		os.Exit(3)
	},
}

func TestMain(m *testing.M) {
	if child := children[os.Getenv("PEERS_TEST_CHILD")]; child != nil {
		child()
		return
	}
	goleak.VerifyTestMain(m)
}

// child is this test binary as one of the children.
func child(name string) Command {
	return Command{Path: os.Args[0], Env: map[string]string{"PEERS_TEST_CHILD": name}}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	if got, err := find(dir); err == nil {
		t.Errorf("find in an empty directory: got %q, want an error", got)
	} else if !strings.Contains(err.Error(), "make peers") {
		t.Errorf("error %q does not say what to do", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "node_modules"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := find(dir); err != nil || got != dir {
		t.Errorf("find: got %q, %v, want %q", got, err, dir)
	}
}

// A lock file with download addresses ties every machine to the registry of
// the one that wrote it.
func TestLockNamesNoRegistry(t *testing.T) {
	data, err := os.ReadFile("package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	if at := regexp.MustCompile(`"resolved"|registry\.|\.tgz"`).FindIndex(data); at != nil {
		t.Errorf("package-lock.json has %q: write it with omit-lockfile-registry-resolved", data[at[0]:at[1]])
	}
	if n := strings.Count(string(data), `"integrity": "sha512-`); n < 100 {
		t.Errorf("package-lock.json has %d checksums, want one for each package", n)
	}
}

func TestNode22(t *testing.T) {
	p := Start(t, Command{Path: Node22(t), Args: []string{"--version"}})
	p.WaitFor(t, `^v22\.`)
	if err := p.Wait(t); err != nil {
		t.Error(err)
	}
}

func TestScriptImportsPackages(t *testing.T) {
	p := Start(t, Script(t, `
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { query } from "@anthropic-ai/claude-agent-sdk";
console.log("client", typeof Client, "query", typeof query, process.argv[2]);
`, "given"))
	p.WaitFor(t, `client function query function given\n`)
}

func TestServersListen(t *testing.T) {
	tests := []struct {
		name  string
		serve func(t testing.TB) *Server
		path  string
	}{
		{"everything sse", func(t testing.TB) *Server { return ServeEverything(t, "sse") }, "/sse"},
		{"everything http", func(t testing.TB) *Server { return ServeEverything(t, "streamableHttp") }, "/mcp"},
		{"dbhub http", func(t testing.TB) *Server { return ServeDBHub(t, SQLite(t, "create table shelf(sku text)")) }, "/mcp"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := tt.serve(t)
			if !strings.HasPrefix(s.URL, "http://127.0.0.1:") || !strings.HasSuffix(s.URL, tt.path) {
				t.Errorf("URL %q, want one on 127.0.0.1 with path %s", s.URL, tt.path)
			}
			answer(t, s.URL)
			s.Restart(t)
			answer(t, s.URL)
			s.Kill()
			if err := get(t, s.URL); err == nil {
				t.Error("the server still answers after Kill")
			}
		})
	}
}

func answer(t *testing.T, url string) {
	t.Helper()
	if err := get(t, url); err != nil {
		t.Error(err)
	}
}

// get asks for a response, of whatever status.
func get(t *testing.T, url string) error {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func TestStdioServersShakeHands(t *testing.T) {
	database := SQLite(t, "create table shelf(sku text, quantity int); insert into shelf values ('AB-00017', 7)")
	tests := []struct {
		name    string
		command Command
		call    string
		want    string
	}{
		{"everything", Everything(t, "stdio"), `{"name":"echo","arguments":{"message":"hello"}}`, "Echo: hello"},
		{"filesystem", Filesystem(t, filepath.Dir(database)), fmt.Sprintf(`{"name":"list_directory","arguments":{"path":%q}}`, filepath.Dir(database)), "peers.db"},
		{"dbhub", DBHub(t, database), `{"name":"execute_sql","arguments":{"sql":"select quantity from shelf where sku = 'AB-00017'"}}`, `\"quantity\": 7`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := converse(t, NewLoopback(t).Wrap(tt.command), tt.call)
			if !strings.Contains(out, tt.want) {
				t.Errorf("the call's answer has no %q:\n%s", tt.want, out)
			}
		})
	}
}

// converse runs a stdio server through a handshake and one call.
func converse(t *testing.T, c Command, call string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), c.Path, c.Args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"peers","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":"called","method":"tools/call","params":`+call+"}\n")
	if err != nil {
		t.Fatal(err)
	}
	var seen strings.Builder
	buf := make([]byte, 64<<10)
	for !strings.Contains(seen.String(), `"id":"called"`) {
		n, err := out.Read(buf)
		seen.Write(buf[:n])
		if err != nil {
			t.Fatalf("the server ended: %v; it said:\n%s", err, &seen)
		}
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	_ = cmd.Process.Kill() // some do not end when their input does
	_ = cmd.Wait()
	return seen.String()
}

func TestInspectorCalls(t *testing.T) {
	s := ServeEverything(t, "streamableHttp")
	p := Start(t, Inspector(t, s.URL, "--transport", "http", "--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=hello"))
	p.WaitFor(t, "Echo: hello")
	if err := p.Wait(t); err != nil {
		t.Errorf("%v\n%s", err, p.Output())
	}
}

func TestConformanceLists(t *testing.T) {
	p := Start(t, Conformance(t, "list"))
	p.WaitFor(t, "server-initialize")
}

func TestKillTakesTheGroup(t *testing.T) {
	p := Start(t, child("parent"))
	p.WaitFor(t, `child \d+\n`)
	p.Kill()
	p.Kill() // a second time is nothing
	// The grandchild has the output open, too: it is read to its end only when
	// both are gone.
	if errors.Is(p.err, exec.ErrWaitDelay) {
		t.Error("the grandchild lives on")
	}
}

func TestEndBeforeTheLine(t *testing.T) {
	p := Start(t, child("leaver"))
	_, err := p.waitFor(regexp.MustCompile("never"))
	if err == nil || !strings.Contains(err.Error(), "last words") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("got %v, want an error with the exit status and the output", err)
	}
	var exit *exec.ExitError
	if err := p.Wait(t); !errors.As(err, &exit) {
		t.Errorf("Wait: got %v, want an exit error", err)
	}
}

func TestLoopbackReachesItsListenerOnly(t *testing.T) {
	l := NewLoopback(t)
	if !l.Isolated {
		skip.For(t, skip.Privilege, "making a network namespace takes what this process lacks")
	}
	if runtime.GOOS != "linux" {
		t.Fatal("isolated without namespaces")
	}
	inside := l.Listen(t)
	outside, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = outside.Close() }()

	const dial = `const net = require("node:net");
const s = net.connect(Number(process.argv[1]), "127.0.0.1");
s.on("connect", () => { console.log("connected"); s.destroy(); }).on("error", (e) => console.log(e.code));`
	for _, tt := range []struct {
		name string
		to   net.Listener
		want string
	}{
		{"inside", inside, "connected"},
		{"outside", outside, "ECONNREFUSED"},
	} {
		port := fmt.Sprint(tt.to.Addr().(*net.TCPAddr).Port)
		Start(t, l.Wrap(Command{Path: Node22(t), Args: []string{"-e", dial, port}})).WaitFor(t, "^"+tt.want+"\n")
		Start(t, Command{Path: l.Executable(t, Node22(t)), Args: []string{"-e", dial, port}}).WaitFor(t, "^"+tt.want+"\n")
	}
}

func TestClaudeCodeAsksOnlyTheModel(t *testing.T) {
	l := NewLoopback(t)
	lis := l.Listen(t)
	asked := make(chan *http.Request, 64)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Clone(r.Context())
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest) // not retried
		_, _ = io.WriteString(w, `{"type":"error","error":{"type":"invalid_request_error","message":"scripted refusal"}}`)
	})}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(lis) }()

	p := Start(t, l.Wrap(ClaudeCode(t, "http://"+lis.Addr().String(), "-p", "ping", "--output-format", "json")))
	p.WaitFor(t, "scripted refusal")
	_ = p.Wait(t) // a refusal is its failure
	if err := srv.Close(); err != nil {
		t.Error(err)
	}
	<-served
	close(asked)
	messages := 0
	for r := range asked {
		if key := r.Header.Get("X-Api-Key"); key != fakeKey {
			t.Errorf("%s came with key %q, want the fake one", r.URL, key)
		}
		if r.URL.Path == "/v1/messages" {
			messages++
		} else {
			t.Logf("also asked: %s %s", r.Method, r.URL)
		}
	}
	if messages == 0 {
		t.Error("the CLI never asked for a message")
	}
}
