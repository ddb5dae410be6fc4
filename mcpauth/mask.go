package mcpauth

import (
	"net/url"
	"strings"
)

// Key is the name under which a server's credentials are stored: its address
// without what does not tell servers apart (letter case of scheme and host,
// default port, fragment, a final slash). An address that cannot be parsed is
// its own key.
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

// MaskURL returns an address that may be shown: without user, password, query
// and fragment, each of which people put secrets in.
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
	return u.String()
}
