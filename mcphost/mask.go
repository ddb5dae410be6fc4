package mcphost

import (
	"errors"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// hidden stands where a secret was.
const hidden = "***"

// A masker hides the secrets of one server in texts that people and models
// read: status, errors, logs. Copies of a masker share what they learn.
type masker struct{ live *liveSecrets }

// liveSecrets are the secrets of a server: those of its configuration, and those
// that come up in use: computed headers, tokens, session ids. Connections come
// and go, so the oldest of the latter are forgotten in time.
type liveSecrets struct {
	configured []string

	mu     sync.Mutex
	all    []string // that came up in use, the latest last
	finder *finder  // of all secrets; nil when there are new ones
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

// with returns a masker that has more secrets of the configuration.
func (m masker) with(secrets []string) masker {
	return masker{&liveSecrets{configured: slices.Concat(m.live.configured, secrets)}}
}

// learn adds secrets for all who have this masker or a copy of it.
func (m masker) learn(secrets []string) {
	m.live.mu.Lock()
	defer m.live.mu.Unlock()
	for _, s := range secrets {
		if i := slices.Index(m.live.all, s); i >= 0 {
			m.live.all = slices.Delete(m.live.all, i, i+1)
		} else {
			m.live.finder = nil
		}
		m.live.all = append(m.live.all, s)
	}
	m.live.all = m.live.all[max(0, len(m.live.all)-maxLive):]
}

// hide replaces each secret in s, whole or in large parts, as it is or encoded.
func (m masker) hide(s string) string {
	m.live.mu.Lock()
	if m.live.finder == nil {
		m.live.finder = newFinder(slices.Concat(m.live.configured, m.live.all))
	}
	f := m.live.finder
	m.live.mu.Unlock()
	return f.hide(s)
}

// errorDataHead is how much is shown of the data of a server's error, in bytes.
const errorDataHead = 1 << 10

// wrap hides the secrets in what a server says in an error, and adds the
// beginning of the error's data to its text. Other texts are ours, and without
// any, while a secret may be a word of ours: an error without the server's words
// is returned as it is, and so is one without secrets or data.
func (m masker) wrap(err error) error {
	var rpc *jsonrpc.Error
	if !errors.As(err, &rpc) || errors.As(err, new(*maskedError)) || errors.As(err, new(*dataError)) {
		return err
	}
	text := err.Error()
	safe := m.hide(text)
	data := ""
	if len(rpc.Data) > 0 && !isNull(rpc.Data) {
		data = "; data: " + m.head([]byte(textOf(rpc.Data)), errorDataHead)
	}
	switch {
	case safe != text:
		return &maskedError{text: safe + data, err: err}
	case data != "":
		return &dataError{err, data}
	}
	return err
}

// A maskedError has a text without secrets. It is still what it was for
// errors.Is; errors.As does not look into it, where the secrets are.
type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string        { return e.text }
func (e *maskedError) Is(target error) bool { return errors.Is(e.err, target) }

// A dataError is the error of a server with the beginning of its data.
type dataError struct {
	error
	data string
}

func (e *dataError) Error() string { return e.error.Error() + e.data }
func (e *dataError) Unwrap() error { return e.error }

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
