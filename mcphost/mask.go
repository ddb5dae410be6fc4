package mcphost

import (
	"cmp"
	"maps"
	"net/url"
	"os"
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

// newMasker gathers the secrets of a configuration: in its environment, also as
// far as it is this process's, in its headers, its URL and its arguments.
func newMasker(c ServerConfig) masker {
	m := masker{live: &liveSecrets{}}
	switch c := c.(type) {
	case Stdio:
		var s []string
		if !c.CleanEnv {
			s = inherited(os.Environ())
		}
		for k, v := range c.Env {
			s = append(s, secretsOf(k, v)...)
		}
		for i, a := range c.Args {
			s = append(s, argSecrets(c.Args[:i], a)...)
		}
		m = m.with(s)
	case HTTP:
		m = m.with(headerSecrets(c.Headers)).with(urlSecrets(c.URL))
	case SSE:
		m = m.with(headerSecrets(c.Headers)).with(urlSecrets(c.URL))
	}
	return m
}

// MaskSecrets hides in a text the secrets of a configuration: those in its
// environment, arguments, headers and URL. It is how statuses, errors and logs
// are masked, for programs that show what is configured. What is secret is told
// by the names that values go by, and by how they look.
func MaskSecrets(c ServerConfig, text string) string { return newMasker(c).hide(text) }

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

// headerSecrets are the secrets in the values of headers.
func headerSecrets(headers map[string]string) []string {
	var s []string
	for k, v := range headers {
		s = append(s, secretsOf(k, v)...)
	}
	return s
}

// inherited are the secrets in the environment that a child process gets from this one.
func inherited(environ []string) []string {
	var s []string
	for _, kv := range environ {
		if k, v, _ := strings.Cut(kv, "="); namesSecret(k) == saysSecret {
			s = append(s, secretsOf(k, v)...)
		}
	}
	return s
}

func urlSecrets(raw string) []string {
	u, err := url.Parse(raw)
	if err != nil {
		return []string{raw}
	}
	s, _ := secretsInURL(raw)
	for _, vs := range u.Query() {
		for _, v := range vs {
			if len(v) >= 6 {
				s = append(s, v)
			}
		}
	}
	return s
}

// argSecrets finds the secrets in an argument such as --token=x, x after --token, a URL with a password, or one
// that looks like a secret.
func argSecrets(before []string, a string) []string {
	if k, v, ok := strings.Cut(a, "="); ok && !strings.ContainsAny(k, " :/") {
		return secretsOf(k, v)
	}
	if strings.HasPrefix(a, "-") {
		return nil
	}
	flag := ""
	if n := len(before); n > 0 && strings.HasPrefix(before[n-1], "-") && !strings.Contains(before[n-1], "=") {
		flag = before[n-1]
	}
	return secretsOf(flag, a)
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
