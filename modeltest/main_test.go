package modeltest

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// basic is the smallest request, streamed or not.
const (
	basic    = `{"model":"claude-test","max_tokens":1024,"messages":[{"role":"user","content":"Hello"}]}`
	streamed = `{"model":"claude-test","max_tokens":1024,"stream":true,"messages":[{"role":"user","content":"Hello"}]}`
)

// newRequest is a request with the headers that the API wants.
func newRequest(t testing.TB, url, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", "sk-ant-fake")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	req.Header.Set("Content-Type", "application/json")
	return req
}

// reply is a response that has been read to its end.
type reply struct {
	*http.Response
	body string
	err  error // of reading the body
}

// post sends a body to /v1/messages of a model without a socket.
func post(t testing.TB, m *Model, body string) reply {
	t.Helper()
	return do(t, m.Client(), newRequest(t, "https://api.example/v1/messages", body))
}

func do(t testing.TB, c *http.Client, req *http.Request) reply {
	t.Helper()
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return reply{res, string(b), err}
}

// errorText is "type: message" of an error response, empty if it is none.
func (r reply) errorText(t testing.TB) string {
	t.Helper()
	var e struct {
		Type  string `json:"type"`
		Error struct{ Type, Message string }
	}
	if err := json.Unmarshal([]byte(r.body), &e); err != nil {
		t.Fatalf("status %d, not JSON: %s", r.StatusCode, r.body)
	}
	if e.Type != "error" {
		return ""
	}
	return e.Error.Type + ": " + e.Error.Message
}

// event is one server-sent event.
type event struct {
	Name string
	Data string
}

// events reads an event stream as a client would.
func events(t testing.TB, body string) []event {
	t.Helper()
	var list []event
	var e event
	for s := bufio.NewScanner(strings.NewReader(body)); s.Scan(); {
		name, value, _ := strings.Cut(s.Text(), ": ")
		switch name {
		case "event":
			e.Name = value
		case "data":
			e.Data += value
		case "":
			list = append(list, e)
			e = event{}
		default:
			t.Fatalf("not an event stream: %q", s.Text())
		}
	}
	return list
}
