package mcpconfig

import (
	"fmt"
	"strings"
)

const (
	// maxExpanded bounds what one string expands to, in bytes.
	maxExpanded = 1 << 20
	// maxExpandedAll bounds what all strings of a document with references expand to, in bytes.
	maxExpandedAll = 16 << 20
	// maxNested bounds how deep defaults may hold references.
	maxNested = 16
)

// An expandError is a reference that cannot be expanded. It never holds a variable's value.
type expandError struct {
	// name is what stands between the braces, without the default.
	name    string
	message string
	instead string
}

func (e *expandError) Error() string { return e.message }

// expand returns what it has written also with an error. It replaces each ${NAME} by the variable's value and each ${NAME:-default} by the value, or the default if the
// variable is not set; one that is set and empty counts as set. The default ends at the matching
// brace, may hold references itself, and is looked at only when it is needed. What a variable holds is not expanded again. $NAME, $5,
// $$ and ${} stay as they are; \${NAME} and $${NAME} expand after their first character. For
// "${NAME}" as such write ${_:-$}{NAME}, with a variable that is not set.
func expand(s string, lookup func(string) (string, bool)) (string, error) {
	if !strings.Contains(s, "${") {
		return s, nil
	}
	var b strings.Builder
	err := expandInto(&b, s, lookup, 0)
	return b.String(), err
}

func expandInto(b *strings.Builder, s string, lookup func(string) (string, bool), nested int) error {
	if nested > maxNested {
		return &expandError{message: fmt.Sprintf("defaults hold references more than %d levels deep", maxNested)}
	}
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			b.WriteString(s)
			return nil
		}
		inner, rest, ok := cutReference(s[i+2:])
		switch {
		case ok:
		case strings.Contains(s[i:], "}"):
			return &expandError{message: "a reference that begins with ${ is not closed", instead: "${NAME} or ${NAME:-DEFAULT}"}
		default: // no brace closes anything: not meant as a reference
			b.WriteString(s)
			return nil
		}
		b.WriteString(s[:i])
		if inner == "" {
			b.WriteString("${}")
		} else if err := reference(b, inner, lookup, nested); err != nil {
			return err
		}
		if b.Len() > maxExpanded {
			return &expandError{message: fmt.Sprintf("expands to more than %d bytes", maxExpanded)}
		}
		s = rest
	}
}

// cutReference cuts s at the brace that closes a reference. References within count, other braces don't.
func cutReference(s string) (inner, rest string, ok bool) {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], "${"):
			depth++
			i++
		case s[i] == '}' && depth == 0:
			return s[:i], s[i+1:], true
		case s[i] == '}':
			depth--
		}
	}
	return "", "", false
}

// reference writes what ${inner} stands for.
func reference(b *strings.Builder, inner string, lookup func(string) (string, bool), nested int) error {
	name, fallback, hasDefault := strings.Cut(inner, ":-")
	if e := foreignReference(name); e != nil {
		return e
	}
	if v, ok := lookup(name); ok {
		b.WriteString(v)
		return nil
	}
	if hasDefault {
		return expandInto(b, fallback, lookup, nested+1)
	}
	e := &expandError{name: name, message: fmt.Sprintf("the environment variable %s is not set", name), instead: fmt.Sprintf("${%s:-DEFAULT} to give a default, or set it", name)}
	if plain, def, ok := strings.Cut(name, "-"); ok && isVariable(plain) {
		e.instead = fmt.Sprintf("${%s:-%s}", plain, def)
	} else if !isVariable(name) {
		e.message, e.instead = fmt.Sprintf("${%s} is no reference to an environment variable", name), "${NAME} or ${NAME:-DEFAULT}"
	}
	return e
}

// foreignReference refuses the forms of VS Code, which would otherwise seem to be variables with odd names.
func foreignReference(name string) error {
	kind, what, ok := strings.Cut(name, ":")
	switch {
	case ok && kind == "env":
		return &expandError{name: name, message: fmt.Sprintf("${%s} is a form of VS Code", name), instead: "${" + what + "}"}
	case ok && kind == "input":
		return &expandError{name: name, message: fmt.Sprintf("${%s} is a question that VS Code asks, and nobody is asked here", name), instead: "${" + variableName(what) + "} and set that variable"}
	case name == "workspaceFolder":
		return &expandError{name: name, message: "${workspaceFolder} is a form of VS Code", instead: "a relative path: servers start in the session's directory"}
	case name == "userHome":
		return &expandError{name: name, message: "${userHome} is a form of VS Code", instead: "${HOME}"}
	}
	return nil
}

// isVariable reports whether s is the usual name of an environment variable.
func isVariable(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || i > 0 && '0' <= c && c <= '9') {
			return false
		}
	}
	return s != ""
}

// variableName makes the name of an environment variable out of any name: github-token is GITHUB_TOKEN.
func variableName(s string) string {
	out := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case r == '_' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9':
			return r
		}
		return '_'
	}, s)
	if out == "" || '0' <= out[0] && out[0] <= '9' {
		out = "_" + out
	}
	return out
}
