package mcpauth

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
)

// Key is the name under which a server's credentials are stored: its address without what does not
// tell servers apart (letter case of scheme and host, default port, fragment, a final slash). An
// address that cannot be parsed is its own key.
func Key(serverURL string) string {
	u, err := url.Parse(serverURL)
	if err != nil || u.Host == "" {
		return serverURL
	}
	return canonical(u)
}

// canonical is the form in which RFC 8707 resources are sent and compared.
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

// MaskURL returns an address that may be shown: without user, password, query and fragment, each of
// which people put secrets in.
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
	return clip(u.String(), maxShownURL)
}

// maxShownURL bounds what is shown of an address, in bytes.
const maxShownURL = 1000

// secrets is what no text that others wrote may show of c.
func (c *Credentials) secrets() []string {
	if c == nil {
		return nil
	}
	return []string{c.AccessToken, c.RefreshToken, c.ClientSecret}
}

// secretParams are the members of a token request that are nobody else's business.
var secretParams = []string{"code", "code_verifier", "refresh_token", "client_assertion", "client_secret", "token"}

func formSecrets(form url.Values) []string {
	var secrets []string
	for _, name := range secretParams {
		secrets = append(secrets, form[name]...)
	}
	return secrets
}

// masked returns the text of a stranger without the secrets that it repeats, as they are or as a
// query has them.
func masked(text string, secrets ...string) string {
	secrets = slices.Clone(secrets)
	// The longest first: one may be the beginning of another.
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "***")
			text = strings.ReplaceAll(text, url.QueryEscape(s), "***")
		}
	}
	return text
}

// hide returns err with a text that shows none of the secrets.
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

// A hiddenError is an error whose own text shows a secret.
type hiddenError struct {
	text string
	err  error
}

func (e *hiddenError) Error() string { return e.text }

func (e *hiddenError) Unwrap() error { return e.err }
