package mcphost

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// hidden stands where a secret was.
const hidden = "***"

// A masker hides the secrets of one server in texts that people and models
// read: status, errors, logs.
type masker struct {
	secrets []string // of the configuration; longest first, no two alike
	live    *liveSecrets
}

// liveSecrets are those that come up in use: computed headers, tokens, session
// ids. Connections come and go, so the oldest are forgotten in time.
type liveSecrets struct {
	mu  sync.Mutex
	all []string // the latest last
}

// maxLive bounds the secrets that are remembered of connections.
const maxLive = 64

// newMasker gathers the secrets of a configuration: values of its environment
// and headers, and what its URL and arguments give away.
func newMasker(c ServerConfig) masker {
	m := masker{live: &liveSecrets{}}
	switch c := c.(type) {
	case Stdio:
		var s []string
		for k, v := range c.Env {
			if namesSecret(k) && len(v) >= 3 || looksSecret(v) {
				s = append(s, v)
			}
		}
		for i, a := range c.Args {
			if v, ok := argSecret(c.Args[:i], a); ok {
				s = append(s, v)
			}
		}
		m = m.with(s)
	case HTTP:
		m = m.with(headerSecrets(c.Headers)).with(urlSecrets(c.URL))
	case SSE:
		m = m.with(headerSecrets(c.Headers)).with(urlSecrets(c.URL))
	}
	return m
}

// with adds secrets.
func (m masker) with(secrets []string) masker {
	return masker{longestFirst(slices.Concat(m.secrets, forms(secrets))), m.live}
}

// learn adds secrets for all who have this masker or a copy of it.
func (m masker) learn(secrets []string) {
	m.live.mu.Lock()
	defer m.live.mu.Unlock()
	for _, s := range forms(secrets) {
		if i := slices.Index(m.live.all, s); i >= 0 {
			m.live.all = slices.Delete(m.live.all, i, i+1)
		}
		m.live.all = append(m.live.all, s)
	}
	m.live.all = m.live.all[max(0, len(m.live.all)-maxLive):]
}

// forms are the forms in which secrets turn up in texts.
func forms(secrets []string) []string {
	var all []string
	for _, s := range secrets {
		if s = strings.TrimSpace(s); len(s) >= 3 {
			all = append(all, s)
			if q := strings.Trim(strconv.Quote(s), `"`); q != s {
				all = append(all, q)
			}
			if e := url.QueryEscape(s); e != s {
				all = append(all, e)
			}
		}
	}
	return all
}

// longestFirst sorts secrets so that one that holds another is found whole.
func longestFirst(all []string) []string {
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	return slices.Compact(all)
}

// hide replaces each secret in s.
func (m masker) hide(s string) string {
	secrets := m.secrets
	m.live.mu.Lock()
	if len(m.live.all) > 0 {
		secrets = longestFirst(slices.Concat(secrets, m.live.all))
	}
	m.live.mu.Unlock()
	for _, secret := range secrets {
		s = strings.ReplaceAll(s, secret, hidden)
	}
	return s
}

// headSlack is how much of a text beyond its head is looked at, so that no part
// of a secret stands at the head's end.
const headSlack = 4 << 10

// head is the beginning of a text that may be long, in about n bytes.
func (m masker) head(s []byte, n int) string {
	return clip(m.hide(string(s[:min(len(s), n+headSlack)])), n)
}

// args hides the secrets in an argument list.
func (m masker) args(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = m.hide(a)
	}
	return out
}

var secretWords = []string{"key", "token", "secret", "passw", "pwd", "auth", "cred", "bearer", "session", "cookie", "signature", "dsn", "private"}

// namesSecret reports whether the name of a variable, header, flag or parameter
// says that its value is a secret.
func namesSecret(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(name, w) })
}

// looksSecret reports whether a value must be taken for a secret because
// nothing shows that it is none: it is not short, no number and no path.
func looksSecret(v string) bool {
	if len(v) < 8 || strings.HasPrefix(v, "/") || strings.HasPrefix(v, "~") || strings.HasPrefix(v, `C:\`) {
		return false
	}
	_, err := strconv.ParseFloat(v, 64)
	return err != nil
}

// headerSecrets are the values of headers, and what follows "Bearer " and the like.
func headerSecrets(headers map[string]string) []string {
	var s []string
	for k, v := range headers {
		if !namesSecret(k) && !looksSecret(v) {
			continue
		}
		s = append(s, v)
		if _, token, ok := strings.Cut(v, " "); ok && namesSecret(k) {
			s = append(s, token)
		}
	}
	return s
}

func urlSecrets(raw string) []string {
	u, err := url.Parse(raw)
	if err != nil {
		return []string{raw}
	}
	var s []string
	if pw, ok := u.User.Password(); ok {
		s = append(s, pw)
	}
	for _, vs := range u.Query() {
		for _, v := range vs {
			if len(v) >= 6 {
				s = append(s, v)
			}
		}
	}
	return s
}

// argSecret finds the secret in an argument such as --token=x, x after --token,
// or the password of a URL.
func argSecret(before []string, a string) (string, bool) {
	if strings.HasPrefix(a, "-") {
		flag, v, ok := strings.Cut(a, "=")
		return v, ok && namesSecret(flag)
	}
	if n := len(before); n > 0 && strings.HasPrefix(before[n-1], "-") && namesSecret(before[n-1]) && !strings.Contains(before[n-1], "=") {
		return a, true
	}
	if u, err := url.Parse(a); err == nil && u.User != nil {
		return u.User.Password()
	}
	if k, v, ok := strings.Cut(a, "="); ok && namesSecret(k) {
		return v, true
	}
	return "", false
}

// safeURL renders a URL without credentials: no user, no values in its query.
func safeURL(u *url.URL) string {
	safe := *u
	safe.User = nil
	safe.Fragment = ""
	if safe.RawQuery != "" {
		var b strings.Builder
		for i, k := range slices.Sorted(maps.Keys(u.Query())) {
			if i > 0 {
				b.WriteByte('&')
			}
			b.WriteString(url.QueryEscape(k) + "=" + hidden)
		}
		safe.RawQuery = b.String()
	}
	return safe.String()
}

// safeRawURL is safeURL for a URL that may not parse.
func safeRawURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return safeURL(u)
}
