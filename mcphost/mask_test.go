package mcphost

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/tenon-sdk/tenon/internal/growth"
)

// The one secret that came up in use is masked as well as many are.
// fault F1
func TestOneLiveSecret(t *testing.T) {
	m := newMasker(HTTP{URL: "https://example.com/mcp"})
	m.learn([]string{"computed-one"})
	if got := m.hide("it is computed-one now"); got != "it is *** now" {
		t.Errorf("got %q", got)
	}
	for i := range maxLive {
		m.learn([]string{fmt.Sprintf("letmein-number-%d!", i)})
	}
	if got := m.hide("computed-one letmein-number-0! letmein-number-63!"); got != "computed-one *** ***" {
		t.Errorf("after 64 more: %q", got)
	}
}

// A secret is found when it is encoded, stands in something encoded, is cut, or has something in it.
// fault C6
func TestDisguisedSecrets(t *testing.T) {
	const secret = "tok_live_8f3A9c1D2e77Qx"
	m := newMasker(HTTP{Headers: map[string]string{"Authorization": "Bearer " + secret}})
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for name, text := range map[string]string{
		"as it is":           secret,
		"base64":             b64(secret),
		"base64 of more":     b64("Authorization: Bearer " + secret + "\n"),
		"base64, one before": b64("x" + secret),
		"base64, two before": b64("xy" + secret + "zzz"),
		"base64 for URLs":    base64.RawURLEncoding.EncodeToString([]byte(secret)),
		"hexadecimal":        hex.EncodeToString([]byte(secret)),
		"for a URL":          url.QueryEscape("Bearer " + secret),
		"two halves":         "the first half is " + secret[:11] + " and the second " + secret[11:],
		"without its end":    secret[:len(secret)-3],
		"over two lines":     secret[:9] + "\n  " + secret[9:],
		"letter by letter":   strings.Join(strings.Split(secret, ""), " "),
		"quoted pieces":      `"` + secret[:5] + `", "` + secret[5:10] + `", "` + secret[10:] + `"`,
	} {
		got := m.hide("it says " + text + " now")
		if !strings.Contains(got, hidden) || !strings.HasPrefix(got, "it says ") || !strings.HasSuffix(got, " now") {
			t.Errorf("%s: %s", name, got)
		}
		rest := strings.NewReplacer(hidden, "", "it says ", "", " now", "").Replace(got)
		for i := range len(secret) - 5 {
			piece := secret[i : i+6]
			if strings.Contains(rest, piece) || strings.Contains(rest, b64(piece)) || strings.Contains(rest, hex.EncodeToString([]byte(piece))) {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
	const plain = "no authorization: connecting to localhost:8080 failed at 2026-11-30T10:00:00Z, token live"
	if got := m.hide(plain); got != plain {
		t.Errorf("an ordinary text became %s", got)
	}
}

// What a server repeats of a secret in an error of its tools/list, its instructions, the names and faults of its tools
// shows nowhere.
// fault C6
func TestSecretsInTheListOfTools(t *testing.T) {
	const secret = "tok_live_8f3A9c1D2e77Qx"
	var log syncBuffer
	failing := &rawHTTP{before: func(w http.ResponseWriter, _ *http.Request, m rawMsg) bool {
		switch m.Method {
		case "tools/list":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"no list for %s","data":{"auth":"%s"}}}`,
				m.ID, secret, base64.StdEncoding.EncodeToString([]byte("Bearer "+secret)))
			return true
		}
		return false
	}}
	odd := &rawHTTP{tools: `[{"name":"` + secret + strings.Repeat("x", maxToolName) + `"},{"name":"ok ` + secret + `","inputSchema":7}]`}
	headers := map[string]string{"Authorization": "Bearer " + secret}
	h := newHost(t, map[string]ServerConfig{
		"failing": HTTP{URL: serve(t, failing).URL, Headers: headers}, "odd": HTTP{URL: serve(t, odd).URL, Headers: headers},
	}, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	ready(t, h)
	s := status(t, h, "failing")
	if want := `tools/list: no list for ***; data: {"auth":"***`; !strings.HasPrefix(s.Error, want) {
		t.Errorf("got %s", s.Error)
	}
	if s := status(t, h, "odd"); len(s.Rejected) != 2 || !strings.HasPrefix(s.Rejected[1].Name, "ok ***") {
		t.Errorf("rejected: %+v", s.Rejected)
	}
	for _, s := range h.Status() {
		if text := fmt.Sprintf("%+v %v", s, s.Err); strings.Contains(text, "8f3A9c") || strings.Contains(text, "OGYzQTlj") {
			t.Errorf("shown: %s", text)
		}
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if strings.Contains(log.String(), "8f3A9c") {
		t.Errorf("logged: %s", log.String())
	}
}

// The beginning of an error's data is in its text, bounded and masked; who asks for the code still finds it.
// fault B8
func TestErrorData(t *testing.T) {
	m := newMasker(Stdio{Env: map[string]string{"API_KEY": "letmein99"}, CleanEnv: true})
	for data, want := range map[string]string{
		``:                                    "calling: Internal error",
		`null`:                                "calling: Internal error",
		`"the table is locked"`:               "calling: Internal error; data: the table is locked",
		`{"why":"letmein99"}`:                 `calling: Internal error; data: {"why":"***"}`,
		`"` + strings.Repeat("x", 9000) + `"`: "calling: Internal error; data: " + strings.Repeat("x", errorDataHead) + "…",
	} {
		err := m.wrap(fmt.Errorf("calling: %w", &jsonrpc.Error{Code: -32603, Message: "Internal error", Data: []byte(data)}))
		var rpc *jsonrpc.Error
		if err.Error() != want || !errors.As(err, &rpc) || rpc.Code != -32603 {
			t.Errorf("%.30s: %v", data, err)
		}
		if again := m.wrap(err); again.Error() != want {
			t.Errorf("wrapped twice: %v", again)
		}
	}
	h := newHost(t, map[string]ServerConfig{"s": HTTP{URL: serve(t, &rawHTTP{call: func(w http.ResponseWriter, _ *http.Request, m rawMsg) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"Internal error","data":{"detail":"the table is locked"}}}`, m.ID)
	}}).URL}})
	connected(t, h)
	_, err := h.Call(soon(t), "mcp__s__echo", nil, nil)
	const want = `MCP server "s", tool "echo": Internal error; data: {"detail":"the table is locked"}`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// The work of masking grows with the text, also where the text is all but a secret.
func TestMaskingGrows(t *testing.T) {
	secret := strings.Repeat("aaaaaaa1", 8)
	f := newFinder([]string{secret, "tok_live_8f3A9c1D2e77Qx"})
	growth.Check(t, 4000, func(n int) int {
		text := strings.Repeat("aaaaaaa1aaaaaab ", n/16)
		return growth.Bytes(func() { f.hide(text) })
	})
}
