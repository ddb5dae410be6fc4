package native

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/messages"
	"github.com/tenon-sdk/tenon/modeltest"
)

// A retryNote is the payload of an api_retry message.
type retryNote struct {
	Attempt    int    `json:"attempt"`
	MaxRetries int    `json:"max_retries"`
	DelayMS    int64  `json:"retry_delay_ms"`
	Status     int    `json:"error_status"`
	Error      string `json:"error"`
	Message    string `json:"error_message"`
}

// retries are the api_retry messages among msgs.
func retries(t *testing.T, msgs []agent.Message) []retryNote {
	t.Helper()
	var notes []retryNote
	for _, m := range msgs {
		if s, ok := m.(*agent.System); ok && s.Subtype == "api_retry" {
			var n retryNote
			if err := s.Decode(&n); err != nil {
				t.Error(err)
			}
			notes = append(notes, n)
		}
	}
	return notes
}

// tags are the tags of the informational messages among msgs.
func tags(msgs []agent.Message) []string {
	var found []string
	for _, m := range msgs {
		if s, ok := m.(*agent.System); ok && s.Subtype == "informational" {
			var i informational
			if s.Decode(&i) == nil {
				found = append(found, i.Tag)
			}
		}
	}
	return found
}

func TestRetriesWhatPasses(t *testing.T) {
	failures := map[string]modeltest.Turn{
		"rate limit":     modeltest.RateLimited(0),
		"overloaded":     modeltest.Overloaded(),
		"server error":   modeltest.Fail(500, "api_error", "Internal server error"),
		"bad gateway":    modeltest.Fail(502, "api_error", "bad gateway"),
		"cut connection": modeltest.Say(modeltest.Cut()),
		"cut in a text":  modeltest.Say(modeltest.Text("half of an answer").After(1, modeltest.Cut())),
		"overload in mid-stream": modeltest.Say(modeltest.Text("half"),
			modeltest.Break("overloaded_error", "Overloaded")),
		"cut in a call": modeltest.Say(modeltest.Text("calling"), modeltest.ToolUse("mcp__a__b", `{"x":1}`).After(1, modeltest.Cut())),
	}
	for name, fail := range failures {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				model := modeltest.New(t, fail, fail, modeltest.Text("made it"))
				msgs, err := collect(t, t.Context(), testEngine(model), "x", nil)
				r := last[*agent.Result](msgs)
				if err != nil || r.Result != "made it" || r.NumTurns != 1 {
					t.Fatalf("result %+v, %v", r, err)
				}
				notes := retries(t, msgs)
				if len(notes) != 2 || notes[0].Attempt != 1 || notes[1].Attempt != 2 || notes[0].MaxRetries != DefaultMaxRetries || notes[0].DelayMS < 300 {
					t.Errorf("api_retry messages %+v", notes)
				}
				if got := len(model.Requests()); got != 3 {
					t.Errorf("%d requests, want 3", got)
				}
			})
		})
	}
}

// What was said by an attempt that broke off is taken back by the next one.
func TestRetrySupersedes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := modeltest.New(t,
			modeltest.Say(modeltest.Text("wrong"), modeltest.Text("too"), modeltest.Cut()),
			modeltest.Text("right"))
		msgs, err := collect(t, t.Context(), testEngine(model), "x", nil)
		if err != nil {
			t.Fatal(err)
		}
		var said []*agent.Assistant
		for _, m := range msgs {
			if a, ok := m.(*agent.Assistant); ok {
				said = append(said, a)
			}
		}
		if len(said) != 3 || said[2].Text() != "right" {
			t.Fatalf("%d assistant messages", len(said))
		}
		if diff := cmp.Diff([]string{said[0].UUID, said[1].UUID}, said[2].Supersedes); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRetryAfterIsHeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := modeltest.New(t, modeltest.RateLimited(7*time.Second), modeltest.Text("ok"))
		began := time.Now()
		msgs, err := collect(t, t.Context(), testEngine(model), "x", nil)
		if err != nil || time.Since(began) < 7*time.Second || time.Since(began) > 8*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if n := retries(t, msgs); len(n) != 1 || n[0].DelayMS != 7000 || n[0].Status != 429 || n[0].Error != "rate_limit" {
			t.Errorf("%+v", n)
		}
	})
}

// A failure that will not pass is the text of an error result.
func TestLastingFailures(t *testing.T) {
	tests := []struct {
		name   string
		turn   modeltest.Turn
		status int
		kind   string
	}{
		{"bad request", modeltest.Fail(400, "invalid_request_error", "messages: nonsense"), 400, "invalid_request"},
		{"no access", modeltest.Fail(403, "permission_error", "not for you"), 403, "authentication_failed"},
		{"bad key", modeltest.Fail(401, "authentication_error", "invalid x-api-key"), 401, "authentication_failed"},
		{"no such model", modeltest.Fail(404, "not_found_error", "model: x"), 404, "model_not_found"},
		{"no money", modeltest.Fail(402, "billing_error", "pay first"), 402, "billing_error"},
		{"wait an hour", modeltest.RateLimited(time.Hour), 429, "rate_limit"},
		{"refused in mid-stream", modeltest.Say(modeltest.Break("invalid_request_error", "no")), 400, "invalid_request"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			model := modeltest.New(t, tt.turn)
			msgs, err := collect(t, t.Context(), testEngine(model), "x", nil)
			r := last[*agent.Result](msgs)
			re := (*agent.ResultError)(nil)
			if !errors.As(err, &re) || re.Result != r {
				t.Fatalf("got %v, want a ResultError of the last message", err)
			}
			if r.Subtype != agent.SubtypeSuccess || !r.IsError || r.APIErrorStatus != tt.status || r.TerminalReason != agent.ReasonAPIError || r.Result == "" {
				t.Errorf("result %+v", r)
			}
			a := last[*agent.Assistant](msgs)
			if a == nil || a.Error != tt.kind || a.Message.Model != "<synthetic>" || a.Text() != r.Result {
				t.Errorf("assistant %+v", a)
			}
			if len(retries(t, msgs)) != 0 || strings.Contains(r.Result, "model.test") {
				t.Errorf("%d retries, text %q", len(retries(t, msgs)), r.Result)
			}
		})
	}
}

func TestRetriesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns []modeltest.Turn
		for range 3 {
			turns = append(turns, modeltest.Fail(500, "api_error", "down"))
		}
		model := modeltest.New(t, turns...)
		e := New(&Options{APIKey: "test", HTTPClient: model.Client(), MaxRetries: 2})
		msgs, err := collect(t, t.Context(), e, "x", nil)
		if r := last[*agent.Result](msgs); err == nil || r.APIErrorStatus != 500 || len(retries(t, msgs)) != 2 {
			t.Errorf("%v, %+v", err, r)
		}
		model.Add(modeltest.Overloaded())
		e = New(&Options{APIKey: "test", HTTPClient: model.Client(), MaxRetries: NoRetries})
		if msgs, _ = collect(t, t.Context(), e, "x", nil); len(retries(t, msgs)) != 0 {
			t.Error("retries although there should be none")
		}
	})
}

// Where nobody listens, or there is no such host, the run says so with the first retry and ends within
// seconds. A certificate that is not accepted ends it at once.
//
// fault E5
func TestUnreachable(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	tests := map[string]struct {
		err     error
		retries int
	}{
		"refused":                    {refused, 4},
		"no such host":               {&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "x.invalid", IsNotFound: true}}, 4},
		"name server in trouble":     {&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "server misbehaving", Name: "x", IsTemporary: true}}, DefaultMaxRetries},
		"reset":                      {&net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, DefaultMaxRetries},
		"certificate":                {&tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{}, Host: "x"}}, 0},
		"no TLS":                     {tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, 0},
		"plain HTTP where it is TLS": {http.ErrSchemeMismatch, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := New(&Options{APIKey: "test", BaseURL: "http://127.0.0.1:1", HTTPClient: &http.Client{Transport: roundTripFunc(func(*http.Request) (*http.Response, error) {
					return nil, tt.err
				})}})
				began := time.Now()
				msgs, err := collect(t, t.Context(), e, "x", nil)
				if err == nil || !strings.Contains(err.Error(), "connection error") {
					t.Errorf("the run ended with %v", err)
				}
				notes := retries(t, msgs)
				if took := time.Since(began); len(notes) != tt.retries || tt.retries == 4 && took > 8*time.Second {
					t.Errorf("%d retries in %v", len(notes), took)
				}
				for _, n := range notes {
					if !strings.Contains(n.Message, "connection error") || n.MaxRetries != tt.retries || n.DelayMS == 0 {
						t.Errorf("a retry is told of with %+v", n)
					}
				}
			})
		})
	}
}

// A response that has gone silent is given up and asked for again.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := modeltest.NewGate()
		model := modeltest.New(t, modeltest.Say(modeltest.Text("one two three").After(1, modeltest.Hold(gate))), modeltest.Text("done"))
		e := New(&Options{APIKey: "test", HTTPClient: model.Client(), IdleTimeout: time.Minute})
		began := time.Now()
		msgs, err := collect(t, t.Context(), e, "x", nil)
		r := last[*agent.Result](msgs)
		if err != nil || r.Result != "done" || time.Since(began) < time.Minute {
			t.Errorf("%+v, %v after %v", r, err, time.Since(began))
		}
		if n := retries(t, msgs); len(n) != 1 || n[0].Error != "server_error" || n[0].Status != 0 {
			t.Errorf("%+v", n)
		}
	})
}

func TestFallbackModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := modeltest.Overloaded()
		model := modeltest.New(t, o, o, o, modeltest.Text("here"), modeltest.Text("still here"))
		c, err := agent.Open(t.Context(), testEngine(model), &agent.Options{Model: "claude-opus-5-5", FallbackModel: "claude-sonnet-5-5"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for _, want := range []string{"here", "still here"} {
			if r, _ := say(t, c, "x"); r.Result != want {
				t.Errorf("got %+v, want %s", r, want)
			}
		}
		var models []string
		for _, r := range model.Requests() {
			models = append(models, r.Model)
		}
		want := []string{
			"claude-opus-5-5", "claude-opus-5-5", "claude-opus-5-5", "claude-sonnet-5-5",
			"claude-opus-5-5", // the next turn tries it again
		}
		if diff := cmp.Diff(want, models); diff != "" {
			t.Error(diff)
		}
	})
}

// The models of a list take over one after the other, and a model that the program sets is tried itself.
func TestFallbackModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := modeltest.Overloaded()
		model := modeltest.New(t, o, o, o, o, o, o, modeltest.ToolUse("mcp__t__no", nil), modeltest.Text("one"), o, o, o, modeltest.Text("two"))
		c, err := agent.Open(t.Context(), testEngine(model), &agent.Options{Model: "claude-opus-5-5", FallbackModel: "claude-sonnet-5-5, ,claude-haiku-4-5,"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if r, _ := say(t, c, "x"); r.Result != "one" {
			t.Errorf("got %+v", r)
		}
		if err := c.SetModel(t.Context(), "claude-haiku-4-5"); err != nil {
			t.Fatal(err)
		}
		if r, _ := say(t, c, "x"); r.Result != "two" {
			t.Errorf("got %+v", r)
		}
		var models []string
		for _, r := range model.Requests() {
			models = append(models, r.Model)
		}
		opus, sonnet, haiku := "claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-4-5"
		want := []string{opus, opus, opus, sonnet, sonnet, sonnet, haiku, haiku, haiku, haiku, haiku, sonnet}
		if diff := cmp.Diff(want, models); diff != "" {
			t.Error(diff)
		}
	})
}

// A model that there is not is no reason to fail while another one is named.
func TestFallbackFromAModelThatIsNotFound(t *testing.T) {
	gone := modeltest.Fail(404, "not_found_error", "model: claude-nine")
	model := modeltest.New(t, gone, modeltest.Text("here"))
	msgs, err := collect(t, t.Context(), testEngine(model), "x", &agent.Options{Model: "claude-nine", FallbackModel: "claude-sonnet-5-5"})
	if err != nil {
		t.Fatal(err)
	}
	if r := last[*agent.Result](msgs); r.Result != "here" || r.IsError {
		t.Errorf("got %+v", r)
	}
}

// say sends a text and returns the turn's result and messages.
func say(t *testing.T, c *agent.Client, text string) (*agent.Result, []agent.Message) {
	t.Helper()
	if err := c.Send(t.Context(), text); err != nil {
		t.Fatal(err)
	}
	return hear(t, c)
}

// hear reads the messages up to the next result.
func hear(t *testing.T, c *agent.Client) (*agent.Result, []agent.Message) {
	t.Helper()
	var msgs []agent.Message
	for m, err := range c.Response(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		msgs = append(msgs, m)
	}
	r := last[*agent.Result](msgs)
	if r == nil {
		t.Fatalf("no result among %d messages", len(msgs))
	}
	return r, msgs
}

// What the API refuses is taken out of the conversation, which goes on.
func TestConversationSurvivesARefusedInput(t *testing.T) {
	model := modeltest.New(t, modeltest.Text("hello"),
		modeltest.Fail(400, "invalid_request_error", "messages.2.content.0: image exceeds 5 MB maximum"),
		modeltest.Text("fine again"))
	c, err := agent.Open(t.Context(), testEngine(model), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	say(t, c, "hi")
	if r, _ := say(t, c, "here is a bad image"); !r.IsError {
		t.Errorf("got %+v, want an error", r)
	}
	if r, _ := say(t, c, "and now?"); r.Result != "fine again" {
		t.Errorf("got %+v", r)
	}
	var texts []string
	for _, m := range model.Last().Messages {
		for _, b := range m.Content {
			texts = append(texts, b.Text)
		}
	}
	if diff := cmp.Diff([]string{"hi", "hello", "and now?"}, texts); diff != "" {
		t.Error(diff)
	}
}

func TestRefusal(t *testing.T) {
	model := modeltest.New(t, modeltest.Text("hello"),
		modeltest.Say(modeltest.Text("I cannot")).Stop(modeltest.StopRefusal), modeltest.Text("of course"))
	c, err := agent.Open(t.Context(), testEngine(model), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	say(t, c, "hi")
	r, _ := say(t, c, "do harm")
	if !r.IsError || r.StopReason != "refusal" || r.Err() == nil {
		t.Errorf("got %+v", r)
	}
	if r, _ := say(t, c, "do good"); r.Result != "of course" {
		t.Errorf("got %+v", r)
	}
	if got := model.Last(); len(got.Messages) != 3 || got.LastUserText() != "do good" {
		t.Errorf("the refused turn is still in the conversation: %+v", got.Messages)
	}
}

func TestBackoff(t *testing.T) {
	for retry, most := range map[int]time.Duration{1: 500 * time.Millisecond, 2: time.Second, 4: 4 * time.Second, 7: 32 * time.Second, 8: 32 * time.Second, 1000: 32 * time.Second} {
		for range 20 {
			if got := messages.Backoff(retry, 0); got > most || got < most*3/4 {
				t.Errorf("retry %d: %v, want at most %v", retry, got, most)
			}
		}
	}
	if got := messages.Backoff(1, time.Minute); got != time.Minute {
		t.Errorf("with retry-after: %v", got)
	}
}

func TestNamedTool(t *testing.T) {
	for text, want := range map[string]int{
		"tools.3.custom.input_schema: JSON schema is invalid": 3,
		"tools.0: bad":                                0,
		"tools.12.name":                               12,
		"messages.3.content.0.tools.1: no":            -1,
		"something about tools":                       -1,
		"In request: tools.7.name: must be a string":  7,
		"tools.99999999999999999999999.name: too big": -1,
	} {
		if got := messages.NamedTool(text); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

func TestRetryAfterHeader(t *testing.T) {
	tests := []struct {
		name, value string
		want        time.Duration
	}{
		{"retry-after", "2", 2 * time.Second},
		{"retry-after", "0.5", 500 * time.Millisecond},
		{"retry-after-ms", "1500", 1500 * time.Millisecond},
		{"retry-after", "nonsense", 0},
		{"retry-after", "-3", 0},
		{"retry-after", "Mon, 02 Jan 2006 15:04:05 GMT", 0},
	}
	for _, tt := range tests {
		h := http.Header{}
		h.Set(tt.name, tt.value)
		if got := messages.RetryAfter(h); got != tt.want {
			t.Errorf("%s: %s: got %v, want %v", tt.name, tt.value, got, tt.want)
		}
	}
}

// Errors of the network do not carry the address, which may hold a credential.
func TestFailureHidesTheAddress(t *testing.T) {
	err := fmt.Errorf(`Post "https://user:secret@host/v1/messages": %w`, errors.New("dial tcp: connection refused"))
	if f := messages.Classify(err); strings.Contains(f.Text, "secret") || !strings.Contains(f.Text, "connection refused") || !f.Passing {
		t.Errorf("got %+v", f)
	}
	if f := messages.Classify(errors.New(`Post "https://user:secret@host/": bad`)); strings.Contains(f.Text, "secret") {
		t.Errorf("got %+v", f)
	}
}
