package mcpconfig

import (
	"fmt"
	"regexp"
	"strings"
)

const (
	// maxExpanded bounds the expansion of a string, in bytes.
	maxExpanded = 1 << 20
	// maxExpandedAll bounds the expansion of all strings of a document, in bytes.
	maxExpandedAll = 16 << 20
	// maxNested bounds the nesting of references in defaults.
	maxNested = 16
)

// An expandError says why a reference cannot be expanded, and what to write instead. It contains no value
// of a variable.
type expandError struct{ message, instead string }

// expand replaces each ${NAME} by the variable's value, and each ${NAME:-default} by the value, or by the
// default if the variable is not set. An empty variable is set. The default ends at the matching brace,
// may contain references, and is expanded only if it is used. Values are not expanded again. $NAME, $5, $$
// and ${} are ordinary text. In \${NAME} and $${NAME}, the first character is ordinary text. The text
// "${NAME}" is written ${_:-$}{NAME}, with a variable that is not set. With an error, expand returns the
// text up to the fault.
func expand(s string, lookup lookupFunc) (string, *expandError) {
	if !strings.Contains(s, "${") {
		return s, nil
	}
	var b strings.Builder
	err := expandInto(&b, s, lookup, 0)
	return b.String(), err
}

func expandInto(b *strings.Builder, s string, lookup lookupFunc, nested int) *expandError {
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
		default: // without any closing brace, ordinary text
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

// cutReference cuts s at the brace that closes a reference. It skips the braces of nested references only.
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

// reference writes the expansion of ${inner}.
func reference(b *strings.Builder, inner string, lookup lookupFunc, nested int) *expandError {
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
	e := &expandError{fmt.Sprintf("the environment variable %s is not set", name), fmt.Sprintf("${%s:-DEFAULT} to give a default, or set it", name)}
	if plain, def, ok := strings.Cut(name, "-"); ok && variable.MatchString(plain) {
		e.instead = fmt.Sprintf("${%s:-%s}", plain, def)
	} else if !variable.MatchString(name) {
		e.message, e.instead = fmt.Sprintf("${%s} is no reference to an environment variable", name), "${NAME} or ${NAME:-DEFAULT}"
	}
	return e
}

// foreignReference returns an error for the reference forms of VS Code.
func foreignReference(name string) *expandError {
	e := &expandError{message: fmt.Sprintf("${%s} is a form of VS Code", name)}
	switch kind, what, _ := strings.Cut(name, ":"); kind {
	case "env":
		e.instead = "${" + what + "}"
	case "input":
		e.message = fmt.Sprintf("${%s} is a question that VS Code asks, and nobody is asked here", name)
		e.instead = "${" + variableName(what) + "} and set that variable"
	case "workspaceFolder":
		e.instead = "a relative path: servers start in the session's directory"
	case "userHome":
		e.instead = "${HOME}"
	default:
		return nil
	}
	return e
}

// variable matches a usual name of an environment variable.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// notInVariable matches what an environment variable's name cannot contain.
var notInVariable = regexp.MustCompile(`[^A-Z0-9_]|^(?:[0-9]|$)`)

// variableName returns a name for an environment variable: GITHUB_TOKEN for github-token.
func variableName(s string) string {
	return notInVariable.ReplaceAllStringFunc(strings.ToUpper(s), func(bad string) string {
		if bad == "" || bad[0] >= '0' && bad[0] <= '9' {
			return "_" + bad
		}
		return "_"
	})
}
