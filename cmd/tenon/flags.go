package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagError words the flag parser's errors as this program words its own.
func flagError(c *cobra.Command, err error) error {
	var (
		msg     = err.Error()
		unknown *pflag.NotExistError
		bad     *pflag.InvalidValueError
		missing *pflag.ValueRequiredError
	)
	switch {
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		if len(name) > 1 {
			near := near(name, names)
			for i := range near {
				near[i] = "--" + near[i]
			}
			msg = fmt.Sprintf("unknown flag --%s%s", name, meaning(near))
		} else {
			msg = fmt.Sprintf("unknown flag -%s", name)
		}
	case errors.As(err, &bad):
		msg = badValue(bad)
	case errors.As(err, &missing):
		what, _ := pflag.UnquoteUsage(missing.GetFlag())
		msg = fmt.Sprintf("%s wants a value: %s", flagName(missing.GetFlag(), missing.GetSpecifiedName()), cmp.Or(what, "VALUE"))
	}
	return usagef("%s; try '%s --help'", msg, c.CommandPath())
}

// flagName is a flag as the user wrote it.
func flagName(f *pflag.Flag, specified string) string {
	if len(specified) == 1 && specified == f.Shorthand {
		return "-" + specified
	}
	return "--" + f.Name
}

// badValue says what a flag takes in place of its value.
func badValue(err *pflag.InvalidValueError) string {
	f, want := err.GetFlag(), ""
	switch f.Value.Type() {
	case "int":
		want = "a whole number, such as 10"
	case "float64":
		want = "a number, such as 0.5"
	case "duration":
		want = "a time with its unit, such as 5s or 2m"
	case "bool":
		want = "true or false, or no value at all"
	default: // the others say it in words of this program, or of a format like CSV
		return fmt.Sprintf("--%s: %v", f.Name, errors.Unwrap(err))
	}
	return fmt.Sprintf("--%s is %q, want %s", f.Name, err.GetValue(), want)
}

// wantArgs is a cobra.PositionalArgs for between low and high arguments; usage says what they are.
func wantArgs(low, high int, usage string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		what := ""
		switch {
		case len(args) < low || len(args) > high:
			what = ", got " + count(len(args), "argument")
		case len(args) > 0 && strings.TrimSpace(args[0]) == "":
			what = ", but the first argument is empty"
		default:
			return nil
		}
		return usagef("%s wants %s%s; try '%s --help'", strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" "), usage, what, c.CommandPath())
	}
}

// scopeFlag is the flag --scope, empty unless it is given or has a default.
func scopeFlag(fs *pflag.FlagSet, scope *string, unset, usage string) {
	fs.StringVarP(scope, "scope", "s", unset, usage+", `SCOPE` one of project (.mcp.json here), local or user (~/.claude.json)")
}

// ruleList is the value of --allowedTools and --disallowedTools: tool names and rules, separated by commas
// or white space outside parentheses; each use of the flag adds to the list.
type ruleList []string

func (l *ruleList) String() string     { return strings.Join(*l, ",") }
func (l *ruleList) Type() string       { return "TOOLS" }
func (l *ruleList) Set(s string) error { *l = append(*l, splitRules(s)...); return nil }

// sourceList is the value of --setting-sources: names separated by commas. The first use of the flag replaces the
// default, each further one adds to it.
type sourceList struct {
	names []string
	given bool
}

func (l *sourceList) String() string { return strings.Join(l.names, ",") }
func (l *sourceList) Type() string   { return "SOURCES" }

func (l *sourceList) Set(s string) error {
	if !l.given {
		l.names, l.given = nil, true
	}
	for name := range strings.SplitSeq(s, ",") {
		if name = strings.TrimSpace(name); name != "" { // --setting-sources= reads none
			l.names = append(l.names, name)
		}
	}
	return nil
}

// splitRules splits a list of tool rules at commas and spaces outside parentheses.
func splitRules(s string) []string {
	var (
		rules []string
		depth int
		start int
	)
	add := func(end int) {
		if rule := strings.TrimSpace(s[start:end]); rule != "" {
			rules = append(rules, rule)
		}
		start = end + 1
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c == '(':
			depth++
		case c == ')' && depth > 0:
			depth--
		case depth == 0 && (c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r'):
			add(i)
		}
	}
	if start < len(s) {
		add(len(s))
	}
	return rules
}
