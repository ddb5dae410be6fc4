package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/tenon-sdk/tenon/mcpserver"
)

// A records is a log that keeps its records as JSON.
type records struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (r *records) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.Write(p)
}

func (r *records) logger() *slog.Logger { return slog.New(slog.NewJSONHandler(r, nil)) }

// A record is one record of a request that was refused.
type record struct {
	Msg, Reason string
	Status      int
	Unrecorded  int
}

func (r *records) take(t *testing.T) (all []record, text string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	text = r.b.String()
	r.b.Reset()
	for line := range strings.Lines(text) {
		var one record
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all, text
}

// Each request that is refused has one record, with its status and reason, and
// without its token. One that is served has none.
//
// fault C7
func TestHTTPRecordsWhatItTurnsAway(t *testing.T) {
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		switch token {
		case "good":
			return &auth.TokenInfo{UserID: "ann", Scopes: []string{"use"}, Expiration: time.Now().Add(time.Hour)}, nil
		case "poor":
			return &auth.TokenInfo{UserID: "ann", Expiration: time.Now().Add(time.Hour)}, nil
		case "crash":
			panic("verifier")
		}
		return nil, fmt.Errorf("%w: nobody knows %s", auth.ErrInvalidToken, token)
	}
	var log records
	_, url := web(t, served(t), &mcpserver.HTTPOptions{
		Logger: log.logger(), MaxBodyBytes: 1000, MaxSessions: 1,
		Auth: &mcpserver.BearerAuth{Verify: verify, Scopes: []string{"use"}},
	})
	tests := []struct {
		name, body string
		headers    []string
		status     int
		reason     string
	}{
		{"no token", initialize, []string{"Authorization", ""}, 401, "no bearer token"},
		{"an unknown token", initialize, []string{"Authorization", "Bearer s3cret-t0ken"}, 401, "invalid token: nobody knows ***"},
		{"a token without the scope", initialize, []string{"Authorization", "Bearer poor"}, 403, "insufficient scope"},
		{"a verifier that panics", initialize, []string{"Authorization", "Bearer crash"}, 500, "mcpserver: BearerAuth.Verify panicked"},
		{"a rebound host", initialize, []string{"Host", "evil.example"}, 403, `forbidden Host header "evil.example"`},
		{"another origin", initialize, []string{"Origin", "https://evil.example"}, 403, `forbidden Origin header "https://evil.example"`},
		{"a long body", initialize + strings.Repeat(" ", 1000), nil, 413, "the body is longer than 1000 bytes"},
		{"another media type", initialize, []string{"Content-Type", "text/plain"}, 415, "Content-Type must be 'application/json'"},
		{"an answer that it does not take", initialize, []string{"Accept", "image/png"}, 406, "the answer is text/event-stream, which the Accept header does not allow"},
		{"a session that is gone", initialize, []string{"Mcp-Session-Id", "gone"}, 404, "session not found"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := post(t, url, tt.body, append([]string{"Authorization", "Bearer good"}, tt.headers...)...)
			all, text := log.take(t)
			if tt.status == 500 && len(all) == 2 { // the panic has a record of its own
				all = all[1:]
			}
			want := record{Msg: "request refused", Reason: tt.reason, Status: tt.status}
			if r.status != tt.status || len(all) != 1 || all[0] != want {
				t.Errorf("%d; records %+v, want %+v", r.status, all, want)
			}
			if strings.Contains(text, "s3cret") {
				t.Errorf("the record has the token: %s", text)
			}
		})
	}
	open(t, url, "Authorization", "Bearer good")
	if all, text := log.take(t); len(all) != 0 {
		t.Errorf("records of requests that were served: %s", text)
	}
	if r := post(t, url, initialize, "Authorization", "Bearer good"); r.status != http.StatusServiceUnavailable {
		t.Errorf("one session too many: %d %s", r.status, r.body)
	}
	if all, _ := log.take(t); len(all) != 1 || all[0].Reason != "the limit of 1 sessions is reached" {
		t.Errorf("records %+v", all)
	}
}

// A record ends before a token that its reason was cut in, and holds no more than the
// beginning of what the client wrote.
//
// fault C7
func TestHTTPRecordsAreShort(t *testing.T) {
	s := served(t)
	defer s.Close()
	for _, before := range []int{0, 200, 270, 290, 400} {
		var log records
		h := mcpserver.NewHTTPHandler(s, &mcpserver.HTTPOptions{Logger: log.logger(), Auth: &mcpserver.BearerAuth{
			Verify: func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
				return nil, fmt.Errorf("%w: %s%s", auth.ErrInvalidToken, strings.Repeat(".", before), token)
			},
		}})
		req := httptest.NewRequestWithContext(t.Context(), strings.Repeat("M", 10_000), "http://127.0.0.1/", http.NoBody)
		req.Host = "h" + strings.Repeat("o", 10_000)
		req.Header.Set("Authorization", "Bearer "+strings.Repeat("s3cret", 200))
		h.ServeHTTP(httptest.NewRecorder(), req)
		if all, text := log.take(t); len(all) != 1 || strings.Contains(text, "s3") || len(text) > 1000 || before == 270 && !strings.HasSuffix(all[0].Reason, ".***") {
			t.Errorf("a token after %d bytes: %s", before, text)
		}
		if err := h.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A flood of refused requests makes a hundred records a minute. How many have none
// is said with the next record, or in the end.
//
// fault C7
func TestHTTPBoundsItsRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := served(t)
		defer s.Close()
		var log records
		h := mcpserver.NewHTTPHandler(s, &mcpserver.HTTPOptions{Logger: log.logger(), AllowedHosts: []string{"here"}})
		flood := func(n int) {
			for range n {
				h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://there/", http.NoBody))
			}
		}
		flood(1000)
		if all, _ := log.take(t); len(all) != 100 || all[99].Unrecorded != 0 {
			t.Errorf("%d records, want 100", len(all))
		}
		time.Sleep(time.Minute)
		flood(101)
		if all, _ := log.take(t); len(all) != 100 || all[0].Unrecorded != 900 || all[1].Unrecorded != 0 {
			t.Errorf("%d records, the first %+v", len(all), all[0])
		}
		if err := h.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if all, text := log.take(t); len(all) != 1 || all[0].Unrecorded != 1 {
			t.Errorf("in the end: %s", text)
		}
	})
}

// What a client takes is read as RFC 9110 has it: without Accept it takes all.
//
// fault E4
func TestHTTPNegotiates(t *testing.T) {
	tests := []struct {
		accept       []string
		served, json bool // without and with JSONResponse
	}{
		{nil, true, true},
		{[]string{""}, true, true},
		{[]string{"*/*"}, true, true},
		{[]string{"*/*;q=0.1"}, true, true},
		{[]string{"application/json, text/event-stream"}, true, true},
		{[]string{"application/json", "text/event-stream"}, true, true},
		{[]string{"text/event-stream"}, true, true},
		{[]string{"TEXT/Event-Stream; charset=utf-8 ; q=0.5"}, true, true},
		{[]string{"text/*, application/*"}, true, true},
		{[]string{"application/json"}, false, true},
		{[]string{"application/json, text/event-stream;q=0"}, false, true},
		{[]string{"*/*, text/event-stream;q=0.0"}, false, true},
		{[]string{"*/*;q=0, text/event-stream"}, true, true},
		{[]string{"text/*;q=0, text/event-stream"}, true, true},
		{[]string{"text/event-stream;q=0, text/*, */*"}, false, true},
		{[]string{"*/*;q=0"}, false, false},
		{[]string{"image/png"}, false, false},
		{[]string{"text/event-stream;q=much"}, false, false},
		{[]string{"nonsense;;;"}, false, false},
	}
	for _, asJSON := range []bool{false, true} {
		_, url := web(t, served(t), &mcpserver.HTTPOptions{JSONResponse: asJSON})
		for _, tt := range tests {
			want := tt.served
			if asJSON {
				want = tt.json
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(initialize))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header["Accept"] = tt.accept
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			status := http.StatusNotAcceptable
			if want {
				status = http.StatusOK
			}
			if resp.StatusCode != status {
				t.Errorf("JSONResponse %v, Accept %q: %d, want %d", asJSON, tt.accept, resp.StatusCode, status)
			}
		}
	}
	_, url := web(t, served(t), nil)
	id := open(t, url)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Mcp-Session-Id", id)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("a standing stream without Accept: %s", resp.Status)
	}
}

// The requests at a time are bounded, standing streams among them.
//
// fault G11
func TestHTTPBoundsRequests(t *testing.T) {
	_, url := web(t, served(t), &mcpserver.HTTPOptions{MaxRequests: 1})
	id := open(t, url)
	standing(t, url, id)
	r := post(t, url, `{"jsonrpc":"2.0","id":2,"method":"ping"}`, "Mcp-Session-Id", id)
	if r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") != "1" || !strings.Contains(r.body, "the limit of 1 requests at a time is reached") {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// Each message of a batch is a request of these, and they leave with it.
//
// fault G11
func TestHTTPCountsTheRequestsOfABatch(t *testing.T) {
	_, url := web(t, served(t), &mcpserver.HTTPOptions{MaxRequests: 3})
	id := open(t, url)
	batch := func(n int) reply {
		return post(t, url, "["+strings.Repeat(`{"jsonrpc":"2.0","id":2,"method":"nothing"},`, n-1)+`{"jsonrpc":"2.0","id":3,"method":"ping"}]`,
			"Mcp-Session-Id", id, "Mcp-Protocol-Version", "2025-03-26")
	}
	for range 3 {
		if r := batch(4); r.status != http.StatusServiceUnavailable || r.body != "the limit of 3 requests at a time is reached\n" {
			t.Errorf("a batch of four: %d %s", r.status, r.body)
		}
		if r := batch(1); r.status != http.StatusOK {
			t.Errorf("a batch of one: %d %s", r.status, r.body)
		}
	}
}
