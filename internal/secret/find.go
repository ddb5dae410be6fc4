package secret

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// What is a secret is told by the name that it goes by, or else by how it looks. In doubt it is one: a text with a
// word too few is a smaller harm. But an ordinary word, number, path or address is none, because hiding those makes
// what servers say unreadable.

// certainWords are parts of names that say that the value is a secret wherever in a word they stand.
var certainWords = []string{"secret", "passw", "passphrase", "token", "apikey", "credential", "bearer", "privatekey", "signature"}

// secretNames are words of names that say so as a whole word, or at the end of one.
var secretNames = []string{"key", "pass", "pwd", "pw", "jwt", "cred", "creds", "cookie", "cookies", "dsn", "authorization"}

// perhapsNames are words of names whose value is a secret unless it is an ordinary word: AUTH=basic.
var perhapsNames = []string{"auth", "session", "sid", "pat", "private", "keys"}

// aboutWords are words of names whose value is something about a secret: where it is, how long it lives.
var aboutWords = []string{
	"file", "path", "dir", "directory", "sock", "socket", "url", "uri", "endpoint", "host", "port", "issuer",
	"max", "min", "limit", "timeout", "ttl", "count", "size", "length", "expiry", "expires", "interval", "budget",
	"type", "mode", "method", "scheme", "provider", "strategy", "algorithm", "enabled", "enable", "disabled", "disable", "required",
	"name", "user", "username", "prefix", "public", "parallelism",
}

// A nameHint is what a name says of its value.
type nameHint uint8

const (
	saysNothing nameHint = iota
	saysPerhaps          // a secret, unless the value is an ordinary word
	saysSecret
)

// namesSecret reports whether the name of a variable, header, flag or parameter says that its value is a secret.
func namesSecret(name string) nameHint {
	if name == "PWD" || name == "OLDPWD" {
		return saysNothing // a shell's directories, which every message about a file would lose
	}
	words := nameWords(name)
	is := func(in []string) func(string) bool { return func(w string) bool { return slices.Contains(in, w) } }
	if slices.ContainsFunc(words, is(aboutWords)) {
		return saysNothing
	}
	if i := slices.Index(words, "key"); i >= 0 && i+1 < len(words) && words[i+1] == "id" {
		return saysNothing // whoever has a key tells its id
	}
	joined := strings.Join(words, "")
	switch {
	case slices.Contains(words, "tokens") && !slices.ContainsFunc(words, is([]string{"access", "auth", "secret", "api", "refresh"})):
		return saysNothing // they are counted
	case slices.ContainsFunc(certainWords, func(w string) bool { return strings.Contains(joined, w) }):
		return saysSecret
	case slices.ContainsFunc(words, func(w string) bool {
		return slices.Contains(secretNames, w) || len(w) > 4 && (strings.HasSuffix(w, "key") || strings.HasSuffix(w, "pwd"))
	}):
		return saysSecret
	case slices.ContainsFunc(words, func(w string) bool { return slices.Contains(perhapsNames, w) || strings.HasSuffix(w, "auth") }):
		return saysPerhaps
	}
	return saysNothing
}

// nameWords splits a name like API_KEY, api-key or apiKey.
func nameWords(name string) []string {
	var words []string
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			words = append(words, strings.ToLower(word.String()))
			word.Reset()
		}
	}
	before := rune(0)
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
		case unicode.IsUpper(r) && unicode.IsLower(before):
			end()
			word.WriteRune(r)
		default:
			word.WriteRune(r)
		}
		before = r
	}
	end()
	return words
}

// notSecret are values that are no secret whatever their name.
var notSecret = []string{"true", "false", "yes", "off", "none", "null", "undefined"}

// secretsOf finds the secrets in a value that goes by that name; an empty name says nothing.
func secretsOf(name, v string) []string {
	v = strings.TrimSpace(v)
	if len(v) < 3 || slices.Contains(notSecret, strings.ToLower(v)) {
		return nil
	}
	if hint := namesSecret(name); hint == saysNothing || hint == saysPerhaps && isWord(v) {
		return secretsIn(v)
	}
	all := append(secretsIn(v), v)
	if scheme, token, ok := strings.Cut(v, " "); ok && !strings.ContainsAny(scheme, "{=;") { // Bearer x
		all = append(all, token)
	}
	return all
}

// namedPart finds NAME=VALUE, NAME: VALUE and "NAME": "VALUE" in a value.
var namedPart = regexp.MustCompile(`(?i)([a-z_][\w.-]*)["']?\s*[:=]\s*["']?(?:(?:bearer|basic|token)\s+)?([^\s"',;&}]+)`)

// login finds the password in user:password@host.
var login = regexp.MustCompile(`^([^\s:/@]+):(.+)@[^@\s]+$`)

// secretsIn finds what looks like a secret in a value.
func secretsIn(v string) []string {
	switch {
	case len(v) < 8 || isNumber(v):
		return nil
	case strings.Contains(v, "-----BEGIN"):
		return append(strings.Fields(v), v) // its lines one by one, too
	case strings.Contains(v, "://"):
		if secrets, ok := secretsInURL(v); ok {
			return secrets
		}
	case isPath(v):
		return nil
	}
	var all []string
	if m := login.FindStringSubmatch(v); m != nil && m[1] != "mailto" {
		all = append(all, m[2])
	}
	for _, m := range namedPart.FindAllStringSubmatch(v, -1) {
		if namesSecret(m[1]) == saysSecret && !slices.Contains(notSecret, strings.ToLower(m[2])) {
			all = append(all, m[2])
		}
	}
	if looksPassword(v) || isBase64(v) {
		return append(all, v)
	}
	for _, t := range strings.FieldsFunc(v, func(r rune) bool { return !isAlnum(r) && !strings.ContainsRune("+=_-.~", r) }) {
		if looksToken(t) {
			all = append(all, t)
		}
	}
	return all
}

// secretsInURL finds the secrets in an address: the login, and what looks like one in its path and query. It
// reports false for what is no address.
func secretsInURL(v string) ([]string, bool) {
	if strings.ContainsAny(v, " \t\n\"'{") {
		return nil, false // a text that has one in it
	}
	u, err := url.Parse(v)
	if err != nil {
		return []string{v}, true // a password may be what it fails at
	}
	var all []string
	if u.User != nil {
		pw, ok := u.User.Password()
		if web := u.Scheme == "http" || u.Scheme == "https"; !ok && (web || looksToken(u.User.Username())) {
			pw = u.User.Username()
		}
		all = append(all, pw)
	}
	for _, part := range strings.FieldsFunc(u.Path, func(r rune) bool { return r == '/' }) {
		if looksToken(part) {
			all = append(all, part)
		}
	}
	for name, values := range u.Query() {
		for _, value := range values {
			if namesSecret(name) != saysNothing || looksToken(value) || looksPassword(value) {
				all = append(all, value)
			}
		}
	}
	return all, true
}

// isWord reports whether a value is one that people use.
func isWord(v string) bool {
	return !strings.ContainsFunc(v, func(r rune) bool { return !unicode.IsLetter(r) && r != '-' && r != '_' }) && !looksToken(v)
}

func isNumber(v string) bool {
	_, err := strconv.ParseFloat(v, 64)
	return err == nil
}

// driveLetter begins a path on Windows.
var driveLetter = regexp.MustCompile(`^[A-Za-z]:[\\/]`)

func isPath(v string) bool {
	for _, begin := range []string{"/", "~", "./", "../", `\\`, "@", "file:"} {
		if strings.HasPrefix(v, begin) {
			return true
		}
	}
	return driveLetter.MatchString(v)
}

func isAlnum(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// tokenPrefixes begin the keys and tokens of well-known services.
var tokenPrefixes = []string{
	"sk-", "sk_", "pk_live_", "rk_live_", "ghp_", "gho_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "xoxa-", "xoxs-", "xapp-",
	"AKIA", "ASIA", "AIza", "ya29.", "eyJ", "hf_", "npm_", "pypi-", "dop_v1_", "SG.", "shpat_", "ntn_", "secret_", "lin_api_", "whsec_", "figd_",
	"tvly-", "gsk_", "r8_", "pplx-", "xai-", "AGE-SECRET-KEY-", "sntrys_", "dapi", "atlasv1.", "hvs.", "PMAK-", "rpa_", "fly_", "tok_", "key-",
}

var uuid = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// looksToken reports whether a word looks made by a machine to be a secret.
func looksToken(t string) bool {
	if uuid.MatchString(t) {
		return true
	}
	for _, p := range tokenPrefixes {
		if rest, ok := strings.CutPrefix(t, p); ok && len(rest) >= 12 && (strings.ContainsFunc(rest, unicode.IsDigit) || mixedCase(rest)) {
			return true
		}
	}
	return slices.ContainsFunc(strings.FieldsFunc(t, func(r rune) bool { return !isAlnum(r) }), random)
}

func mixedCase(s string) bool {
	return strings.ContainsFunc(s, unicode.IsLower) && strings.ContainsFunc(s, unicode.IsUpper)
}

// chunk is what a word is made of in ordinary names: a word, a capitalised one, an acronym, a number.
var chunk = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+|[0-9]+`)

// random reports whether letters and digits follow each other as chance has it, in a run of them. Names are made of
// few words and numbers, however long; machines write in short pieces.
func random(s string) bool {
	if len(s) < 8 {
		return false
	}
	digits := strings.ContainsFunc(s, unicode.IsDigit)
	letters := strings.ContainsFunc(s, unicode.IsLetter)
	pieces := chunk.FindAllString(s, -1)
	long := float64(len(s)) / float64(len(pieces)) // of a piece, on average
	numbers := 0
	for _, p := range pieces {
		if isNumber(p) {
			numbers++
		}
	}
	switch {
	case !letters:
		return false
	case digits && len(s) >= 16 && isHex(s):
		return true
	case digits && len(s) >= 20:
		return numbers >= 2 || long < 3
	case digits && len(s) >= 12:
		return long < 2.7
	case digits:
		return long < 1.8
	case len(s) >= 20 && mixedCase(s):
		return long < 3
	}
	return len(s) >= 20 && noVowels.MatchString(s)
}

// noVowels finds what nobody can pronounce.
var noVowels = regexp.MustCompile(`(?i)[bcdfghjklmnpqrstvwxz]{6}`)

func isHex(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !isAlnum(r) || unicode.ToLower(r) > 'f' })
}

var base64Text = regexp.MustCompile(`^[A-Za-z0-9+/]{20,}={0,2}$`)

// isBase64 reports whether a value is bytes in base64.
func isBase64(v string) bool {
	if !base64Text.MatchString(v) || len(v)%4 != 0 {
		return false
	}
	pieces := chunk.FindAllString(v, -1)
	return mixedCase(v) && strings.ContainsFunc(v, unicode.IsDigit) && 2*len(v) < 7*len(pieces)
}

// looksPassword reports whether a value has what rules for passwords ask for: both cases, a digit and a sign that
// names do not have.
func looksPassword(v string) bool {
	return len(v) >= 8 && mixedCase(v) && strings.ContainsFunc(v, unicode.IsDigit) && strings.ContainsAny(v, "!$%&#^*?") &&
		!strings.ContainsAny(v, " \t\n/\\()[]{}<>=|\"',;")
}
