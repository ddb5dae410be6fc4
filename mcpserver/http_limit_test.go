package mcpserver_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/tenon-sdk/tenon/mcpserver"
)

// The bound on sessions holds however a session begins: alone, in a batch, under a
// name that is not the method's, in older versions.
//
// fault G11
func TestHTTPBoundsSessionsHoweverTheyBegin(t *testing.T) {
	h, url := web(t, served(t), &mcpserver.HTTPOptions{MaxSessions: 2})
	open(t, url)
	open(t, url)
	const ping = `{"jsonrpc":"2.0","id":7,"method":"ping"}`
	for name, body := range map[string]string{
		"alone":               initialize,
		"in a batch":          "[" + initialize + "]",
		"behind another":      "[" + ping + "," + initialize + "]",
		"as the first of two": strings.Replace(initialize, `"method":`, `"method":"ping","method":`, 1),
		"before another name": strings.Replace(initialize, `"method":`, `"Method":"ping","method":`, 1),
		"as no initialize":    ping,
	} {
		for _, version := range []string{"", "2025-03-26", "2025-11-25"} {
			var headers []string
			if version != "" {
				headers = []string{"Mcp-Protocol-Version", version}
			}
			r := post(t, url, body, headers...)
			if r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") != "30" || r.body != "the limit of 2 sessions is reached\n" {
				t.Errorf("%s, version %q: %d %s", name, version, r.status, r.body)
			}
		}
	}
	if n := h.Sessions(); n != 2 {
		t.Errorf("%d sessions are open", n)
	}
}

// What a client says of itself is kept with its session, so it is bounded apart
// from the bodies of other requests.
//
// fault H4
func TestHTTPBoundsWhatOpensASession(t *testing.T) {
	h, url := web(t, served(t), nil)
	const most = 64 << 10
	padded := func(body string, n int) string { return body + strings.Repeat(" ", n-len(body)) }
	for name, body := range map[string]string{
		"initialize":     padded(initialize, most+1),
		"a batch":        padded("["+initialize+"]", most+1),
		"no JSON":        strings.Repeat("x", most+1),
		"something else": padded(`{"jsonrpc":"2.0","id":7,"method":"ping"}`, most+1),
	} {
		if r := post(t, url, body); r.status != http.StatusRequestEntityTooLarge || !strings.Contains(r.body, "longer than 65536 bytes") {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	if n := h.Sessions(); n != 0 {
		t.Errorf("%d sessions are open", n)
	}
	r := post(t, url, padded(initialize, most))
	if r.status != http.StatusOK {
		t.Errorf("the longest: %d %s", r.status, r.body)
	}
	id := r.header.Get("Mcp-Session-Id")
	if r := post(t, url, padded(`{"jsonrpc":"2.0","id":7,"method":"ping"}`, 2*most), "Mcp-Session-Id", id); r.status != http.StatusOK {
		t.Errorf("in the session: %d %s", r.status, r.body)
	}
	const listing = `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	if r := post(t, url, padded(listing, 2*most), "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list"); r.status != http.StatusOK {
		t.Errorf("2026-07-28: %d %s", r.status, r.body)
	}
}

// A user has a part of the sessions and requests only; others, and what the user
// gives back, are not affected.
//
// fault G11
func TestHTTPUsersDoNotTakeTheRoomOfOthers(t *testing.T) {
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{UserID: strings.TrimSuffix(token, "2"), Expiration: time.Now().Add(time.Hour)}, nil
	}
	h, url := web(t, served(t), &mcpserver.HTTPOptions{
		MaxSessions: 4, MaxRequests: 10,
		Auth: &mcpserver.BearerAuth{Verify: verify, MaxSessions: 2, MaxRequests: 2},
	})
	ann, again, bob := []string{"Authorization", "Bearer ann"}, []string{"Authorization", "Bearer ann2"}, []string{"Authorization", "Bearer bob"}
	first, second := open(t, url, ann...), open(t, url, again...)
	for _, headers := range [][]string{ann, again} {
		r := post(t, url, initialize, headers...)
		if r.status != http.StatusTooManyRequests || r.header.Get("Retry-After") != "30" || r.body != "the limit of 2 sessions for each user is reached\n" {
			t.Errorf("one session too many of %s: %d %s", headers[1], r.status, r.body)
		}
	}
	bobs := open(t, url, bob...)
	remove := func(id string, headers []string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Mcp-Session-Id", id)
		req.Header.Set(headers[0], headers[1])
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	remove(first, ann)
	third := open(t, url, ann...)
	if n := h.Sessions(); n != 3 {
		t.Errorf("%d sessions are open", n)
	}

	standing(t, url, second, ann...)
	standing(t, url, third, ann...)
	const ping = `{"jsonrpc":"2.0","id":7,"method":"ping"}`
	r := post(t, url, ping, append(ann, "Mcp-Session-Id", third)...)
	if r.status != http.StatusTooManyRequests || r.header.Get("Retry-After") != "1" || r.body != "the limit of 2 requests at a time for each user is reached\n" {
		t.Errorf("one request too many: %d %s", r.status, r.body)
	}
	if r := post(t, url, ping, append(bob, "Mcp-Session-Id", bobs)...); r.status != http.StatusOK {
		t.Errorf("another user: %d %s", r.status, r.body)
	}
	remove(second, bob) // is not bob's
	if r := post(t, url, ping, append(ann, "Mcp-Session-Id", third)...); r.status != http.StatusTooManyRequests {
		t.Errorf("after bob tried to end a session of ann's: %d %s", r.status, r.body)
	}
}
