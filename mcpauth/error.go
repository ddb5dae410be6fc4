package mcpauth

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/oauth2"

	"github.com/tenon-sdk/tenon/internal/clip"
)

// A Reason says why a server needs a login.
type Reason string

// The reasons of a [NeedsAuthError].
const (
	// ReasonNoCredentials means that nobody has logged in to the server yet.
	ReasonNoCredentials Reason = "no stored login"
	// ReasonExpired means that the access token has expired and there is no refresh token.
	ReasonExpired Reason = "the login has expired"
	// ReasonRefreshRefused means that the authorization server refused the refresh token.
	ReasonRefreshRefused Reason = "the authorization server refused to renew the login"
	// ReasonRejected means that the server refused a token that had not expired.
	ReasonRejected Reason = "the server rejected the stored login"
	// ReasonScope means that the server requires a scope that the token lacks.
	ReasonScope Reason = "the stored login lacks a scope that the server demands"
)

// A NeedsAuthError reports that a person must log in. Hosts show the server as "needs-auth".
type NeedsAuthError struct {
	ServerURL string // as configured; the text masks secrets in it
	Reason    Reason
	Scopes    []string // the scopes that the server named
	Status    int      // the HTTP status of the server's refusal, or 0
	Body      string   // the beginning of the refusal's body, in one line and without the token
	Err       error    // the error of the authorization server, or nil
}

func (e *NeedsAuthError) Error() string {
	s := fmt.Sprintf("%s needs a login: %s", MaskURL(e.ServerURL), e.Reason)
	if len(e.Scopes) > 0 {
		s += fmt.Sprintf(" (scopes asked for: %q)", e.Scopes)
	}
	switch {
	case e.Body != "":
		s += fmt.Sprintf("; it answered HTTP %d: %s", e.Status, e.Body)
	case e.Status != 0:
		s += fmt.Sprintf("; it answered HTTP %d", e.Status)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *NeedsAuthError) Unwrap() error { return e.Err }

// A TokenError is an error response of the token endpoint (RFC 6749 section 5.2).
type TokenError struct {
	Endpoint    string
	Status      int    // the HTTP status
	Code        string // such as "invalid_grant"; may be empty
	Description string
}

func (e *TokenError) Error() string {
	s := fmt.Sprintf("the token endpoint %s answered HTTP %d%s", MaskURL(e.Endpoint), e.Status, redirectNote(e.Status))
	if e.Code != "" {
		s += " " + e.Code
	}
	if e.Description != "" {
		s += " (" + e.Description + ")"
	}
	return s
}

// redirectNote is appended to the status of a response to a request with secrets.
func redirectNote(status int) string {
	if status/100 == 3 {
		return ", a redirect, which is not followed"
	}
	return ""
}

// final reports whether another request with the same grant would fail too.
func (e *TokenError) final() bool {
	return e.Code == "invalid_grant" || e.Code == "invalid_client" || e.Code == "unauthorized_client"
}

// tokenError converts the library's error, whose text has the whole body and may have secrets.
func tokenError(endpoint string, err error, secrets []string) error {
	var re *oauth2.RetrieveError
	if !errors.As(err, &re) || re.Response == nil {
		return fmt.Errorf("asking the token endpoint %s: %w", MaskURL(endpoint), hide(urlCause(err), secrets...))
	}
	return &TokenError{
		Endpoint:    endpoint,
		Status:      re.Response.StatusCode,
		Code:        clipped(masked(re.ErrorCode, secrets...), 100),
		Description: clipped(masked(re.ErrorDescription, secrets...), 300),
	}
}

// clipped returns the beginning of a server's text in one line, for messages.
func clipped(s string, limit int) string {
	return clip.Text(strings.Join(strings.Fields(s), " "), limit)
}
