package messages

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"

	"github.com/tenon-sdk/tenon/internal/clip"
)

// A Failure is why a request failed, in the terms of the messages that report it.
type Failure struct {
	// Status is the HTTP status, or the one that belongs to an error in mid-stream; 0 without a response.
	Status int
	// Kind is the error field of assistant and api_retry messages.
	Kind string
	// Text is what people and models read.
	Text string
	// Passing reports that the same request may succeed later.
	Passing bool
	// Unreachable reports that no connection could be made.
	Unreachable bool
	// After is how long the server asks to wait; 0 if it does not say.
	After time.Duration
	// Tool is the index that a refused request names in its tools; -1 if it names none.
	Tool int
}

// statusOverloaded is the API's own status for being overloaded.
const statusOverloaded = 529

// Classify tells what a failed request means.
func Classify(err error) *Failure {
	f := &Failure{Kind: "unknown", Text: "API Error: " + err.Error(), Tool: -1}
	var api *anthropic.Error
	switch {
	case errors.As(err, &api):
		f.fromAPI(api)
	case errors.Is(err, context.Canceled):
	default: // no response, or one that broke off
		f.Kind, f.Passing, f.Unreachable = "server_error", !untrusted(err) && !errors.Is(err, ErrTooMuch), unreachable(err)
		f.Text = "API Error: connection error: " + unwrapURL(err)
	}
	return f
}

// unreachable reports that no connection could be made at all: nobody listens at the address, or there is
// no such host. It says so at once and each time, unlike a server that is busy.
func unreachable(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	if errors.As(err, &dns) && dns.Temporary() {
		return false
	}
	return errors.As(err, &op) && op.Op == "dial" && !op.Timeout()
}

// untrusted reports that the server is not the one that it should be, or speaks no TLS: it will not change.
func untrusted(err error) bool {
	var cert *tls.CertificateVerificationError
	var header tls.RecordHeaderError
	return errors.As(err, &cert) || errors.As(err, &header) || errors.Is(err, http.ErrSchemeMismatch)
}

// unwrapURL is an error's text without the address, which may hold a credential.
func unwrapURL(err error) string {
	if inner := errors.Unwrap(err); inner != nil && strings.Contains(err.Error(), "://") {
		return unwrapURL(inner)
	}
	if strings.Contains(err.Error(), "://") {
		return fmt.Sprintf("%T", err)
	}
	return err.Error()
}

func (f *Failure) fromAPI(api *anthropic.Error) {
	typ := string(api.Type())
	f.Status = api.StatusCode
	if f.Status < 400 { // an error event in mid-stream
		f.Status = cmp.Or(statuses[typ], http.StatusInternalServerError)
	}
	f.Kind = kindOf(f.Status, typ, api.Message)
	message := cmp.Or(api.Message, clip.Text(strings.TrimSpace(api.RawJSON()), 500), http.StatusText(f.Status))
	f.Text = "API Error: " + strconv.Itoa(f.Status) + " " + message
	if typ != "" {
		f.Text = fmt.Sprintf("API Error: %d %s: %s", f.Status, typ, message)
	}
	if api.RequestID != "" {
		f.Text += fmt.Sprintf(" (request %s)", api.RequestID)
	}
	f.Passing = f.Status == http.StatusRequestTimeout || f.Status == http.StatusConflict ||
		f.Status == http.StatusTooManyRequests || f.Status >= 500
	if api.Response != nil {
		f.After = RetryAfter(api.Response.Header)
		switch api.Response.Header.Get("x-should-retry") {
		case "true":
			f.Passing = true
		case "false":
			f.Passing = false
		}
	}
	if f.Status == http.StatusBadRequest {
		f.Tool = NamedTool(message)
	}
}

// AboutThinking reports that the thoughts in the conversation are what was refused: too many of them, or too few.
func (f *Failure) AboutThinking() bool {
	return f.Status == http.StatusBadRequest && strings.Contains(f.Text, "thinking") && strings.Contains(f.Text, "messages")
}

var referencesRefused = regexp.MustCompile(`tool_reference|defer_loading|DeferredToolPlaceholder|Unexpected item type in content`)

// AboutReferences reports that the server does not know tool references, or withheld definitions.
func (f *Failure) AboutReferences() bool {
	return (f.Status == http.StatusBadRequest || f.Status == http.StatusUnprocessableEntity) && referencesRefused.MatchString(f.Text)
}

// statuses are the HTTP statuses of the API's error types, for errors within a stream.
var statuses = map[string]int{
	"invalid_request_error": http.StatusBadRequest,
	"authentication_error":  http.StatusUnauthorized,
	"billing_error":         http.StatusPaymentRequired,
	"permission_error":      http.StatusForbidden,
	"not_found_error":       http.StatusNotFound,
	"request_too_large":     http.StatusRequestEntityTooLarge,
	"rate_limit_error":      http.StatusTooManyRequests,
	"timeout_error":         http.StatusGatewayTimeout,
	"overloaded_error":      statusOverloaded,
}

// kindOf is the word of the stream-json messages for a failure.
func kindOf(status int, typ, message string) string {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return "authentication_failed"
	case status == http.StatusPaymentRequired:
		return "billing_error"
	case status == http.StatusNotFound && strings.Contains(message, "model"):
		return "model_not_found"
	case status == http.StatusTooManyRequests:
		return "rate_limit"
	case status == statusOverloaded || typ == "overloaded_error":
		return "overloaded"
	case status >= 500 || status == http.StatusRequestTimeout || status == http.StatusConflict:
		return "server_error"
	case status >= 400:
		return "invalid_request"
	}
	return "unknown"
}

var toolIndex = regexp.MustCompile(`(?:^|[^.\w])tools\.(\d+)\b`)

// NamedTool is the index of the tool that a refusal is about: the API says "tools.3.custom.input_schema: …".
func NamedTool(message string) int {
	if m := toolIndex.FindStringSubmatch(message); m != nil {
		if i, err := strconv.Atoi(m[1]); err == nil {
			return i
		}
	}
	return -1
}

// RetryAfter is how long a response asks to wait; 0 if it does not say.
func RetryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("retry-after-ms"), 64); err == nil && ms > 0 && ms < 1e12 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	v := h.Get("retry-after")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 && s < 1e9 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

const (
	// MaxRetryAfter is the longest wait that a server may ask for: a longer one is an answer, not a delay.
	MaxRetryAfter  = 5 * time.Minute
	firstRetryWait = 500 * time.Millisecond
	maxRetryWait   = 32 * time.Second
	// UnreachableRetries bounds the retries in a row while no connection can be made: about 7 s.
	UnreachableRetries = 4
)

// Backoff is how long to wait before the retry of this number, counted from 1.
func Backoff(retry int, after time.Duration) time.Duration {
	if after > 0 {
		return after
	}
	wait := min(maxRetryWait, firstRetryWait<<min(retry-1, 7))
	return wait - time.Duration(rand.Int64N(int64(wait/4)))
}
