package mcphost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tenon-sdk/tenon/mcpauth"
	"github.com/tenon-sdk/tenon/mcphost/internal/transport"
)

// damagedStore gives a login to a server at url, and what damages its entry.
func damagedStore(t *testing.T, url string) (auth *mcpauth.Authenticator, damage func()) {
	t.Helper()
	dir := t.TempDir()
	store, err := mcpauth.NewDirStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	if auth, err = mcpauth.New(url, &mcpauth.Options{Store: store}); err != nil {
		t.Fatal(err)
	}
	err = store.Update(t.Context(), mcpauth.Key(url), func(*mcpauth.Credentials) (*mcpauth.Credentials, error) {
		return &mcpauth.Credentials{AccessToken: "tok-tok-tok"}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	return auth, func() {
		if err := os.WriteFile(files[0], []byte("{half"), 0o600); err != nil {
			t.Error(err)
		}
	}
}

// noKeyring is a store that nothing listens for.
type noKeyring struct{}

func (noKeyring) Load(context.Context, string) (*mcpauth.Credentials, error) {
	return nil, &mcpauth.StoreError{Op: "read", Err: &net.OpError{Op: "dial", Net: "unix", Err: syscall.ECONNREFUSED}}
}

func (s noKeyring) Update(ctx context.Context, key string, _ func(*mcpauth.Credentials) (*mcpauth.Credentials, error)) error {
	_, err := s.Load(ctx, key)
	return err
}

// What only a person can mend is tried once, and is no lost connection.
func TestUnmendableFaultsAreNotRetried(t *testing.T) {
	url := serve(t, &rawHTTP{}).URL
	auth, damage := damagedStore(t, url)
	damage()
	keyring, err := mcpauth.New(url, &mcpauth.Options{Store: noKeyring{}})
	if err != nil {
		t.Fatal(err)
	}
	tlsServer := httptest.NewUnstartedServer(&rawHTTP{})
	tlsServer.Config.ErrorLog = log.New(io.Discard, "", 0) // it has much to say about refused certificates
	tlsServer.StartTLS()
	t.Cleanup(tlsServer.Close)
	servers := map[string]ServerConfig{
		"store":           HTTP{URL: url, Auth: auth},
		"keyring":         HTTP{URL: url, Auth: keyring},
		"store sse":       SSE{URL: url, Auth: auth},
		"certificate":     HTTP{URL: tlsServer.URL},
		"certificate sse": SSE{URL: tlsServer.URL},
		"no tls":          HTTP{URL: "https" + strings.TrimPrefix(url, "http")},
	}
	h := newHost(t, servers)
	ready(t, h)
	for name := range servers {
		s := status(t, h, name)
		var ce *ConnectError
		if !errors.As(s.Err, &ce) || s.Status != StatusFailed || s.Attempt != 1 || !s.NextAttempt.IsZero() || ce.Transient {
			t.Errorf("%s is %s after attempt %d, next %v: %v", name, s.Status, s.Attempt, s.NextAttempt, s.Err)
		}
		if errors.Is(s.Err, ErrConnectionLost) {
			t.Errorf("%s: told as a lost connection: %v", name, s.Err)
		}
	}
}

// A store that is damaged in mid-session: the call is not sent, nor made again, and the status tells.
func TestStoreDamagedInMidSession(t *testing.T) {
	raw := &rawHTTP{}
	url := serve(t, raw).URL
	auth, damage := damagedStore(t, url)
	h := newHost(t, map[string]ServerConfig{"r": HTTP{URL: url, Auth: auth}})
	connected(t, h)
	damage()
	_, err := h.Call(soon(t), "mcp__r__echo", nil, nil)
	var ce *CallError
	if !errors.As(err, &ce) || ce.Sent || !errors.As(err, new(*mcpauth.StoreError)) || errors.Is(err, ErrConnectionLost) || errors.As(err, new(*ConnectError)) {
		t.Errorf("the call: %+v", err)
	}
	c := h.conns["r"]
	if err := c.await(soon(t), func() bool { return c.state.phase == phaseFailed }); err != nil {
		t.Fatal(err)
	}
	if s := status(t, h, "r"); s.Attempt != 1 || !s.NextAttempt.IsZero() || !strings.HasPrefix(s.Error, "Couldn't read the stored credentials") {
		t.Errorf("attempt %d, next %v: %s", s.Attempt, s.NextAttempt, s.Error)
	}
}

func init() {
	// dies ends when it gets a message of the method that ENDS names.
	children["dies"] = func() {
		rawChild("["+echoTool+"]", func(_ *rawServer, m rawMsg) bool {
			if m.Method == os.Getenv("ENDS") {
				os.Exit(3)
			}
			return false
		})
	}
	// chatty writes lines that are no messages, and ends.
	children["chatty"] = func() {
		for i := range chattyLines {
			fmt.Println("line", i)
		}
	}
	// pings sends a request, then lines that are no messages, and ends.
	children["pings"] = func() {
		fmt.Println(`{"jsonrpc":"2.0","id":"a","method":"ping"}`)
		for i := range 1000 {
			fmt.Println("line", i)
		}
	}
}

const chattyLines = 20_000

// Only of a call that was sent is it said that the tool may have run.
func TestOnlyCallsMayHaveRun(t *testing.T) {
	const words = "the tool may have run"
	hangUp := func(method string) string {
		return serve(t, &rawHTTP{before: func(_ http.ResponseWriter, _ *http.Request, m rawMsg) bool {
			if m.Method == method {
				panic(http.ErrAbortHandler)
			}
			return false
		}}).URL
	}
	h := newHost(t, map[string]ServerConfig{
		"initialize": child("dies", "ENDS=initialize"), "list": child("dies", "ENDS=tools/list"),
		"web initialize": HTTP{URL: hangUp("initialize")}, "web list": HTTP{URL: hangUp("tools/list")},
		"call": child("dies", "ENDS=tools/call"), "webcall": HTTP{URL: hangUp("tools/call")},
		"read": child("dies", "ENDS=resources/read"), "webread": HTTP{URL: hangUp("resources/read")},
	})
	ready(t, h)
	for _, name := range []string{"initialize", "list", "web initialize", "web list"} {
		if s := status(t, h, name); s.Status != StatusFailed || s.Error == "" || strings.Contains(s.Error, words) {
			t.Errorf("%s is %s: %s", name, s.Status, s.Error)
		}
	}
	for _, name := range []string{"call", "webcall"} {
		_, err := h.CallServer(soon(t), name, "echo", nil, nil)
		if !errors.Is(err, ErrConnectionLost) || strings.Count(err.Error(), words) != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"read", "webread"} {
		_, err := h.ReadResource(soon(t), name, "mem://a")
		if !errors.Is(err, ErrConnectionLost) || strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s := status(t, h, "call"); strings.Contains(s.Error, words) {
		t.Errorf("the status after a lost call: %s", s.Error)
	}
	if text := (&CallError{Server: "s", Tool: "t", Err: ErrConnectionLost}).Error(); strings.Contains(text, words) {
		t.Errorf("a call that was not sent: %s", text)
	}
}

// What to do about a program that does not start goes with the reason.
func TestHintsForPrograms(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	data := file("data", "x", 0o600)
	tests := map[string]struct {
		cfg  Stdio
		want []string
	}{
		"bare":        {Stdio{Command: "no-such-program-anywhere"}, []string{"not found on the PATH", "install the program, give its full path"}},
		"path":        {Stdio{Command: filepath.Join(dir, "nothing")}, []string{"tried " + dir, "install the program there, or correct the path"}},
		"below":       {Stdio{Command: filepath.Join(data, "nothing")}, []string{"not a directory", "correct the path"}},
		"mode":        {Stdio{Command: data}, []string{"permission denied", "chmod +x"}},
		"directory":   {Stdio{Command: dir}, []string{"is a directory", "give the path of the program in it"}},
		"format":      {Stdio{Command: file("raw", "no program\n", 0o700)}, []string{"exec format error", "begin a script with #!"}},
		"interpreter": {Stdio{Command: file("script", "#!/no/such/interpreter\n", 0o700)}, []string{"no such file", "interpreter that a script names"}},
		"workdir":     {Stdio{Command: "true", Dir: filepath.Join(dir, "nowhere")}, []string{"no such file", "whether the working directory exists"}},
	}
	servers := map[string]ServerConfig{}
	for name, tt := range tests {
		servers[name] = tt.cfg
	}
	h := newHost(t, servers)
	ready(t, h)
	for name, tt := range tests {
		s := status(t, h, name)
		for _, want := range tt.want {
			if !strings.Contains(s.Error, want) {
				t.Errorf("%s: %q\nlacks %q", name, s.Error, want)
			}
		}
		if name != "bare" && strings.Contains(s.Error, "install the program,") {
			t.Errorf("%s: %q", name, s.Error)
		}
	}
}

// Of a process that ended all lines on its stdout count that were no messages.
func TestNoiseOfADeadProcess(t *testing.T) {
	h := newHost(t, map[string]ServerConfig{"c": child("chatty")})
	ready(t, h)
	s := status(t, h, "c")
	var ce *ConnectError
	if !errors.As(s.Err, &ce) || s.Noise != chattyLines || ce.Noise != chattyLines || len(s.NoiseHead) != 5 {
		t.Errorf("noise is %d lines, first %q: %v", s.Noise, s.NoiseHead, s.Err)
	}
}

// A write that fails because the process ended does not cut off what it wrote before: answers and noise.
func TestDeadProcessIsReadToTheEnd(t *testing.T) {
	h := newHost(t, nil)
	proc, err := startStdio(t.Context(), child("pings"), &h.opts, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := transport.Stdio(t.Context(), proc, newConn("s", Stdio{}, h).dialer.transportOptions(0))
	defer c.Close()
	<-proc.Exited()
	if _, err := c.Do(soon(t), &transport.Request{Method: "ping"}); !errors.Is(err, ErrConnectionLost) {
		t.Errorf("a request of a dead process: %v", err)
	}
	<-c.Done() // the reader was held up by its request until then
	if n, _ := c.Noise(); n != 1000 || !strings.Contains(c.Err().Error(), "exited with code 0") {
		t.Errorf("%d lines of noise, %v", n, c.Err())
	}
}

// A line above the limit that is no message is noise, too.
func TestOversizedNoiseCounts(t *testing.T) {
	c := child("longlines")
	c.MaxMessageBytes = 4096
	h := newHost(t, map[string]ServerConfig{"c": c})
	connected(t, h)
	if s := status(t, h, "c"); s.Noise != 1 || len(s.NoiseHead) != 1 {
		t.Errorf("noise is %d lines: %q", s.Noise, s.NoiseHead)
	}
}

func init() {
	children["longlines"] = func() {
		fmt.Println(strings.Repeat("x", 10_000))
		rawChild("["+echoTool+"]", nil)
	}
}
