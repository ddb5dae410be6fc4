package mcpauth

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/oauth2"
)

// Reason is why a server needs a login.
type Reason string

// The reasons of a [NeedsAuthError].
const (
	// ReasonNoCredentials: nobody has logged in to this server yet.
	ReasonNoCredentials Reason = "no stored login"
	// ReasonExpired: the access token has ended and there is no refresh token.
	ReasonExpired Reason = "the login has expired"
	// ReasonRefreshRefused: the authorization server refused the refresh token.
	ReasonRefreshRefused Reason = "the authorization server refused to renew the login"
	// ReasonRejected: the server refused a token that had not expired.
	ReasonRejected Reason = "the server rejected the stored login"
	// ReasonScope: the server wants a scope that the token lacks.
	ReasonScope Reason = "the stored login lacks a scope that the server demands"
)

// A NeedsAuthError reports that a person has to log in. It is the caller's state "needs-auth", not
// a fault of the server.
type NeedsAuthError struct {
	ServerURL string // as configured; secrets in it are masked in the text
	Reason    Reason
	Scopes    []string // what the server asked for, if it said so
	// Status is the HTTP status of the server's refusal, 0 without one, and Body the beginning of
	// its text, in one line and without the token.
	Status int
	Body   string
	Err    error // what the authorization server answered, or nil
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

// A TokenError is a refusal by the token endpoint (RFC 6749 section 5.2).
type TokenError struct {
	Endpoint    string
	Status      int    // HTTP status
	Code        string // "invalid_grant" and the like; empty if the answer had none
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

// redirectNote follows the status of an answer to a request that carried secrets.
func redirectNote(status int) string {
	if status/100 == 3 {
		return ", a redirect, which is not followed"
	}
	return ""
}

// final reports whether asking again with the same grant is useless.
func (e *TokenError) final() bool {
	return e.Code == "invalid_grant" || e.Code == "invalid_client" || e.Code == "unauthorized_client"
}

// tokenError turns the library's error into ours: its text would quote the whole body of the
// answer, which may hold secrets.
func tokenError(endpoint string, err error, secrets []string) error {
	var re *oauth2.RetrieveError
	if !errors.As(err, &re) || re.Response == nil {
		return fmt.Errorf("asking the token endpoint %s: %w", MaskURL(endpoint), hide(urlCause(err), secrets...))
	}
	return &TokenError{
		Endpoint:    endpoint,
		Status:      re.Response.StatusCode,
		Code:        clip(masked(re.ErrorCode, secrets...), 100),
		Description: clip(masked(re.ErrorDescription, secrets...), 300),
	}
}

// clip keeps a stranger's text from flooding ours: one line of valid UTF-8.
func clip(s string, limit int) string {
	cut := len(s) > limit
	if cut {
		s = s[:limit]
		for range utf8.UTFMax - 1 {
			if r, size := utf8.DecodeLastRuneInString(s); r == utf8.RuneError && size == 1 {
				s = s[:len(s)-1] // the piece of a rune
			}
		}
	}
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " ")
	if cut {
		s += "…"
	}
	return s
}
