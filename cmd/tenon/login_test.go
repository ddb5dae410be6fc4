//go:build unix

package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/peers"
)

// newSecureServer is an MCP server that wants a login, and the authorization server for it in one.
func newSecureServer(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	answer := func(path string, v func(r *http.Request) any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if path == "/register" {
				w.WriteHeader(http.StatusCreated)
			}
			if err := json.NewEncoder(w).Encode(v(r)); err != nil {
				t.Error(err)
			}
		})
	}
	calc := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return calcServer(&events{}) }, nil)
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer good-token" {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata="%s/.well-known/oauth-protected-resource/mcp"`, s.URL))
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		calc.ServeHTTP(w, r)
	})
	answer("/.well-known/oauth-protected-resource/mcp", func(*http.Request) any {
		return map[string]any{"resource": s.URL + "/mcp", "authorization_servers": []string{s.URL}}
	})
	answer("/.well-known/oauth-authorization-server", func(*http.Request) any {
		return map[string]any{
			"issuer": s.URL, "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token", "registration_endpoint": s.URL + "/register",
			"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
		}
	})
	answer("/register", func(*http.Request) any { return map[string]any{"client_id": "client-1"} })
	answer("/token", func(*http.Request) any {
		return map[string]any{"access_token": "good-token", "token_type": "Bearer", "expires_in": 3600, "refresh_token": "refresh-1"}
	})
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {"code-1"}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
	})
	return s
}

// A shell is somebody's: with a place for logins and one server, "secure".
type shell struct {
	t      *testing.T
	config string // where logins are kept
	dir    string
	server []string // flags
}

func newShell(t *testing.T, url string) *shell {
	t.Chdir(t.TempDir())
	config := fmt.Sprintf(`{"mcpServers": {"secure": {"type": "http", "url": %q}}}`, url)
	return &shell{t, t.TempDir(), t.TempDir(), []string{"--strict-mcp-config", "--mcp-config", config}}
}

func (s *shell) process(in io.Reader, out, errs io.Writer) *process {
	return &process{in: in, out: out, err: errs, environ: []string{"XDG_CONFIG_HOME=" + s.config}}
}

// tenon runs a command, wants the exit status, and gives both outputs.
func (s *shell) tenon(want int, args ...string) string {
	s.t.Helper()
	var out, errs bytes.Buffer
	if code := run(s.t.Context(), append(args, s.server...), s.process(strings.NewReader(""), &out, &errs)); code != want {
		s.t.Fatalf("tenon %q: exit status %d, want %d\n%s%s", args, code, want, &out, &errs)
	}
	return out.String() + errs.String()
}

// login runs 'tenon mcp login' with a person who opens the address, wants the exit status, and gives the outputs.
func (s *shell) login(want int) (stdout, stderr string) {
	s.t.Helper()
	var out bytes.Buffer
	reader, writer := io.Pipe()
	done := make(chan int)
	go func() {
		code := run(s.t.Context(), append([]string{"mcp", "login", "secure"}, s.server...), s.process(strings.NewReader(""), &out, writer))
		_ = writer.Close()
		done <- code
	}()
	var said strings.Builder
	var wg sync.WaitGroup
	for lines := bufio.NewScanner(reader); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if address := strings.TrimSpace(lines.Text()); strings.HasPrefix(address, "http") {
			wg.Go(func() { browse(s.t, address) })
		}
	}
	wg.Wait()
	if code := <-done; code != want {
		s.t.Fatalf("the login: exit status %d, want %d, stdout %q, stderr\n%s", code, want, &out, &said)
	}
	return out.String(), said.String()
}

// A login through the browser; afterwards every command has the token, until the logout.
func TestLogin(t *testing.T) {
	s := newShell(t, newSecureServer(t).URL+"/mcp")
	if got := s.tenon(0, "mcp", "list"); !strings.Contains(got, "needs-auth") {
		t.Errorf("before the login:\n%s", got)
	}
	if out, _ := s.login(0); out != "logged in to \"secure\"\n" {
		t.Errorf("the login said %s", out)
	}
	if got := s.tenon(0, "mcp", "call", "secure", "add", `{"a": 1, "b": 2}`); got != "3\n" {
		t.Errorf("after the login: %s", got)
	}
	if got := s.tenon(0, "mcp", "logout", "secure"); got != "logged out of \"secure\"\n" {
		t.Errorf("the logout said %s", got)
	}
	if got := s.tenon(0, "mcp", "list"); !strings.Contains(got, "needs-auth") {
		t.Errorf("after the logout:\n%s", got)
	}
	s.tenon(1, "mcp", "logout", "secure")
}

// Where a login could not be kept, nobody is sent through it: the place and the way out are named first.
func TestLoginWithoutAPlaceForIt(t *testing.T) {
	s := newShell(t, newSecureServer(t).URL+"/mcp")
	s.config = filepath.Join(s.dir, "file")
	if err := os.WriteFile(s.config, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out, said := s.login(1)
	if out != "" || strings.Contains(said, "/authorize") {
		t.Errorf("the person was asked: %s%s", out, said)
	}
	for _, want := range []string{"the login could not be kept", s.config, "set XDG_CONFIG_HOME"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in %s", want, said)
		}
	}
}

// A stored login that something overwrote is named with its file; logging in again and logging out both work.
func TestDamagedLogin(t *testing.T) {
	s := newShell(t, newSecureServer(t).URL+"/mcp")
	damage := func() string {
		t.Helper()
		files, _ := filepath.Glob(filepath.Join(s.config, "tenon", "credentials", "*.json"))
		if len(files) != 1 {
			t.Fatalf("files %v, want one", files)
		}
		if err := os.WriteFile(files[0], []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		return files[0]
	}
	s.login(0)
	file := damage()
	if got := s.tenon(1, "mcp", "call", "secure", "add"); !strings.Contains(got, file) || !strings.Contains(got, "log in again") {
		t.Errorf("got %s, want the file and what to do", got)
	}
	s.login(0)
	if got := s.tenon(0, "mcp", "call", "secure", "add", `{"a": 1, "b": 2}`); got != "3\n" {
		t.Errorf("after the second login: %s", got)
	}
	damage()
	s.tenon(0, "mcp", "logout", "secure")
	if got := s.tenon(0, "mcp", "list"); !strings.Contains(got, "needs-auth") {
		t.Errorf("after the logout:\n%s", got)
	}
}

//go:embed testdata/oauth.mjs
var typescriptOAuth string

// The life of a login at the authorization server of the TypeScript library: registration, consent, a refresh by each
// command with a token that is good once, a revocation; and what is said when the person or the server says no.
func TestLoginAtTheTypeScriptLibrary(t *testing.T) {
	server := peers.Start(t, peers.Script(t, typescriptOAuth))
	address := server.WaitFor(t, `listening on (\S+)`)[1]
	post := func(path string) {
		t.Helper()
		resp, err := http.Post(strings.TrimSuffix(address, "/mcp")+path, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	s := newShell(t, address)
	if got := s.tenon(1, "mcp", "doctor"); !strings.Contains(got, "tenon mcp login secure") {
		t.Errorf("the doctor before the login:\n%s", got)
	}
	if out, _ := s.login(0); out != "logged in to \"secure\"\n" {
		t.Errorf("the login said %s", out)
	}
	for range 3 { // each time with the refresh token of the time before
		if got := s.tenon(0, "mcp", "call", "secure", "greet"); got != "hello, whoever you are\n" {
			t.Errorf("after the login: %s", got)
		}
	}
	server.WaitFor(t, `(?s)(refreshed.*){3}`)
	s.tenon(0, "mcp", "logout", "secure")
	server.WaitFor(t, `revoked`)

	s.login(0)
	post("/forget")
	if got := s.tenon(1, "mcp", "call", "secure", "greet"); !strings.Contains(got, "invalid_grant (this refresh token is not good)") || !strings.Contains(got, "tenon mcp login secure") {
		t.Errorf("after the server forgot the tokens: %s", got)
	}
	post("/deny")
	if out, said := s.login(1); out != "" || !strings.Contains(said, "the authorization server refused: access_denied (The person said no)") {
		t.Errorf("after the refusal: %s%s", out, said)
	}
}

// browse is the person with a browser.
func browse(t *testing.T, address string) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(address)
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
}
