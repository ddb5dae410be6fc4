package secret

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// InNamed returns the secrets among named values, such as headers or variables.
func InNamed(values map[string]string) []string {
	var s []string
	for k, v := range values {
		s = append(s, secretsOf(k, v)...)
	}
	return s
}

// InEnviron returns the secrets of an environment in the form of [os.Environ], by the names of the
// variables alone.
func InEnviron(environ []string) []string {
	var s []string
	for _, kv := range environ {
		if k, v, _ := strings.Cut(kv, "="); namesSecret(k) == saysSecret {
			s = append(s, secretsOf(k, v)...)
		}
	}
	return s
}

// InArgs returns the secrets of a command line: x in --token=x and --token x, the password of a
// URL, and what looks like a secret.
func InArgs(args []string) []string {
	var s []string
	flag := "" // the flag before the argument, if it has no value of its own
	for _, a := range args {
		k, v, named := strings.Cut(a, "=")
		named = named && !strings.ContainsAny(k, " :/")
		isFlag := strings.HasPrefix(a, "-")
		switch {
		case named:
			s = append(s, secretsOf(k, v)...)
		case !isFlag:
			s = append(s, secretsOf(flag, a)...)
		}
		flag = ""
		if isFlag && !strings.Contains(a, "=") {
			flag = a
		}
	}
	return s
}

// InURL returns the secrets of an address: its login, all but short values of its query, and what
// looks like a secret in its path. All of an address that cannot be parsed is secret.
func InURL(raw string) []string {
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

// SafeURL returns an address without its login, its fragment and the values of its query.
func SafeURL(u *url.URL) string {
	safe := *u
	safe.User = nil
	safe.Fragment = ""
	if safe.RawQuery != "" {
		var b strings.Builder
		for i, k := range slices.Sorted(maps.Keys(u.Query())) {
			if i > 0 {
				b.WriteByte('&')
			}
			b.WriteString(url.QueryEscape(k) + "=" + Hidden)
		}
		safe.RawQuery = b.String()
	}
	return safe.String()
}

// SafeRawURL is SafeURL for an address that may not parse. It is empty then.
func SafeRawURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return SafeURL(u)
}
