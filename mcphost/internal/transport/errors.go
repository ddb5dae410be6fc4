package transport

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/tenon-sdk/tenon/mcpauth"
)

var (
	// ErrConnectionLost reports that the connection broke before a request was answered.
	ErrConnectionLost = errors.New("connection lost")
	// ErrTooLarge reports a message above the size limit.
	ErrTooLarge = errors.New("message is above the size limit")
	// ErrSessionLost reports that the server does not know the session, or the login, of a request.
	ErrSessionLost = errors.New("the server does not accept this session any more")
	// ErrClosed reports that the connection was closed by [Client.Close].
	ErrClosed = errors.New("the connection was closed")
	// ErrRedirect reports a redirect that is not followed.
	ErrRedirect = errors.New("redirect refused")
)

// An HTTPError is a response that refuses a request.
type HTTPError struct {
	Status int
	// Body is the beginning of the response's body, with secrets masked.
	Body string
	// NeedsAuth reports that the response asks for a login.
	NeedsAuth bool
}

// Error implements error.
func (e *HTTPError) Error() string {
	s := fmt.Sprintf("HTTP %d %s", e.Status, http.StatusText(e.Status))
	if e.Body != "" {
		s += ": " + e.Body
	}
	return s
}

// NeverSent reports whether an error shows that a request did not reach the server, or was refused
// before the server processed it.
func NeverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, new(*mcpauth.NeedsAuthError)) || Permanent(err)
}

// Permanent reports whether the same request fails with an error again until a person acts: a
// failing store of credentials, a certificate that is not accepted, or no TLS behind an https URL.
// Requests with such errors are not sent.
func Permanent(err error) bool {
	return errors.As(err, new(*mcpauth.StoreError)) || errors.As(err, new(*tls.CertificateVerificationError)) ||
		errors.As(err, new(tls.RecordHeaderError)) || errors.Is(err, http.ErrSchemeMismatch)
}

// tooLarge returns the error of a message above the size limit. size says what is known of its length.
func tooLarge(size string, limit int) error {
	return fmt.Errorf("%w: %s, limit %d; ask for less at a time, or raise the server's maxMessageBytes (MaxMessageBytes in code)", ErrTooLarge, size, limit)
}
