package mcpauth

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
)

// Key returns the key of a server's credentials: its URL in one form, with scheme and host in lower
// case and without default port, user, fragment and final slash. A URL that cannot be parsed is its
// own key.
func Key(serverURL string) string {
	u, err := url.Parse(serverURL)
	if err != nil || u.Host == "" {
		return serverURL
	}
	return canonical(u)
}

// canonical returns the form in which resources (RFC 8707) are sent and compared.
func canonical(u *url.URL) string {
	c := *u
	c.Scheme = strings.ToLower(c.Scheme)
	c.Host = strings.ToLower(c.Host)
	if p := c.Port(); p == "443" && c.Scheme == "https" || p == "80" && c.Scheme == "http" {
		c.Host = strings.TrimSuffix(c.Host, ":"+p)
	}
	c.User, c.Fragment, c.RawFragment = nil, "", ""
	c.Path = strings.TrimSuffix(c.Path, "/")
	c.RawPath = strings.TrimSuffix(c.RawPath, "/")
	return c.String()
}

// MaskURL returns a URL for messages, without user, password, query and fragment, which may have
// secrets, and shortened to a thousand bytes.
func MaskURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "(an address that cannot be parsed)"
	}
	if u.User != nil {
		u.User = url.User("…")
	}
	if u.RawQuery != "" {
		u.RawQuery = "…"
	}
	u.Fragment, u.RawFragment = "", ""
	return clipped(u.String(), 1000)
}

// secrets returns the secrets of c, which may be empty.
func (c *Credentials) secrets() []string {
	if c == nil {
		return nil
	}
	return []string{c.AccessToken, c.RefreshToken, c.ClientSecret}
}

// secretParams are the parameters of a token request that are secret.
var secretParams = []string{"code", "code_verifier", "refresh_token", "client_assertion", "client_secret", "token"}

func formSecrets(form url.Values) []string {
	var secrets []string
	for _, name := range secretParams {
		secrets = append(secrets, form[name]...)
	}
	return secrets
}

// masked replaces secrets in a server's text, as they are and in the form of a query.
func masked(text string, secrets ...string) string {
	secrets = slices.Clone(secrets)
	// The longest first, since one may contain another.
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "***")
			text = strings.ReplaceAll(text, url.QueryEscape(s), "***")
		}
	}
	return text
}

// hide returns err with a text without the secrets.
func hide(err error, secrets ...string) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if clean := masked(text, secrets...); clean != text {
		return &hiddenError{text: clean, err: err}
	}
	return err
}

// A hiddenError replaces the text of an error.
type hiddenError struct {
	text string
	err  error
}

func (e *hiddenError) Error() string { return e.text }

func (e *hiddenError) Unwrap() error { return e.err }
