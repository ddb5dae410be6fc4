//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
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

// A login through the browser; afterwards every command has the token, until the logout.
func TestLogin(t *testing.T) {
	s := newSecureServer(t)
	environ := []string{"XDG_CONFIG_HOME=" + t.TempDir()}
	config := []string{"--strict-mcp-config", "--mcp-config", fmt.Sprintf(`{"mcpServers": {"secure": {"type": "http", "url": "%s/mcp"}}}`, s.URL)}
	dir := t.TempDir()
	tenon := func(want int, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		code := run(t.Context(), append(args, config...), &process{in: strings.NewReader(""), out: &out, err: &errs, environ: environ, dir: dir})
		if code != want {
			t.Fatalf("tenon %q: exit status %d, want %d\n%s%s", args, code, want, &out, &errs)
		}
		return out.String() + errs.String()
	}
	if got := tenon(0, "mcp", "list"); !strings.Contains(got, "needs-auth") {
		t.Errorf("before the login:\n%s", got)
	}

	var out bytes.Buffer
	reader, writer := io.Pipe()
	done := make(chan int)
	go func() {
		code := run(t.Context(), append([]string{"mcp", "login", "secure"}, config...),
			&process{in: strings.NewReader(""), out: &out, err: writer, environ: environ, dir: dir})
		_ = writer.Close()
		done <- code
	}()
	var said strings.Builder
	var wg sync.WaitGroup
	for lines := bufio.NewScanner(reader); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if address := strings.TrimSpace(lines.Text()); strings.HasPrefix(address, "http") {
			wg.Go(func() { browse(t, address) })
		}
	}
	wg.Wait()
	if code := <-done; code != 0 || out.String() != "logged in to \"secure\"\n" {
		t.Fatalf("exit status %d, stdout %q, stderr\n%s", code, &out, &said)
	}

	if got := tenon(0, "mcp", "call", "secure", "add", `{"a": 1, "b": 2}`); got != "3\n" {
		t.Errorf("after the login: %s", got)
	}
	if got := tenon(0, "mcp", "logout", "secure"); got != "logged out of \"secure\"\n" {
		t.Errorf("the logout said %s", got)
	}
	if got := tenon(0, "mcp", "list"); !strings.Contains(got, "needs-auth") {
		t.Errorf("after the logout:\n%s", got)
	}
	tenon(1, "mcp", "logout", "secure")
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
