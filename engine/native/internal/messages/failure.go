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

// A Failure is the failure of a request in the terms of the messages that report it.
type Failure struct {
	Status      int           // the HTTP status, or that of an error within a stream; 0 without a response
	Kind        string        // the error field of assistant and api_retry messages
	Text        string        // for people and models
	Passing     bool          // the same request may succeed later
	Unreachable bool          // no connection could be made
	After       time.Duration // the wait that the server requests; 0 if none
	Tool        int           // the index of the tool that the error names; -1 if none
}

// statusOverloaded is the API's own status for being overloaded.
const statusOverloaded = 529

// Classify returns the failure for an error of a request.
func Classify(err error) *Failure {
	f := &Failure{Kind: "unknown", Text: "API Error: " + err.Error(), Tool: -1}
	api, isAPI := errors.AsType[*anthropic.Error](err)
	switch {
	case isAPI:
		f.fromAPI(api)
	case errors.Is(err, context.Canceled):
	default: // no response, or one that broke off
		f.Kind, f.Passing, f.Unreachable = "server_error", !untrusted(err) && !errors.Is(err, ErrTooMuch), unreachable(err)
		f.Text = "API Error: connection error: " + unwrapURL(err)
	}
	return f
}

// unreachable reports that no connection could be made: the address refuses connections, or the host does
// not exist.
func unreachable(err error) bool {
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.Temporary() {
		return false
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial" && !op.Timeout()
}

// untrusted reports a faulty certificate or a server without TLS, which do not pass.
func untrusted(err error) bool {
	_, cert := errors.AsType[*tls.CertificateVerificationError](err)
	_, header := errors.AsType[tls.RecordHeaderError](err)
	return cert || header || errors.Is(err, http.ErrSchemeMismatch)
}

// unwrapURL returns an error's text without the address, which may have a credential.
func unwrapURL(err error) string {
	inner := errors.Unwrap(err)
	switch {
	case !strings.Contains(err.Error(), "://"):
		return err.Error()
	case inner != nil:
		return unwrapURL(inner)
	}
	return fmt.Sprintf("%T", err)
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
		if retry := api.Response.Header.Get("x-should-retry"); retry == "true" || retry == "false" {
			f.Passing = retry == "true"
		}
	}
	if f.Status == http.StatusBadRequest {
		f.Tool = NamedTool(message)
	}
}

// AboutThinking reports that the API refused the thoughts in the conversation: too many or too few.
func (f *Failure) AboutThinking() bool {
	return f.Status == http.StatusBadRequest && strings.Contains(f.Text, "thinking") && strings.Contains(f.Text, "messages")
}

var referencesRefused = regexp.MustCompile(`tool_reference|defer_loading|DeferredToolPlaceholder|Unexpected item type in content`)

// AboutReferences reports that the server does not know tool references or deferred definitions.
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

// kindOf returns the name of a failure in messages.
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

// NamedTool returns the index of the tool that an error of the API names, as in "tools.3.custom.input_schema:
// …", or -1.
func NamedTool(message string) int {
	if m := toolIndex.FindStringSubmatch(message); m != nil {
		if i, err := strconv.Atoi(m[1]); err == nil {
			return i
		}
	}
	return -1
}

// RetryAfter returns the wait that a response requests, or 0.
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
	// MaxRetryAfter is the longest wait before a retry. If a server requests a longer one, the request fails.
	MaxRetryAfter  = 5 * time.Minute
	firstRetryWait = 500 * time.Millisecond
	maxRetryWait   = 32 * time.Second
	// UnreachableRetries bounds the retries in a row while no connection can be made: about 7 s.
	UnreachableRetries = 4
)

// Backoff returns the wait before a retry, counted from 1.
func Backoff(retry int, after time.Duration) time.Duration {
	if after > 0 {
		return after
	}
	wait := min(maxRetryWait, firstRetryWait<<min(retry-1, 7))
	return wait - time.Duration(rand.Int64N(int64(wait/4)))
}
