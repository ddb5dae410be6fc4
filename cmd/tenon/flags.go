package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tenon-sdk/tenon/internal/editdistance"
	"github.com/tenon-sdk/tenon/permission"
)

// flagError returns the flag parser's errors in the words of this program.
func flagError(c *cobra.Command, err error) error {
	msg := err.Error()
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		msg = "unknown flag -" + e.GetSpecifiedName()
		if name := e.GetSpecifiedName(); len(name) > 1 {
			var names []string
			c.Flags().VisitAll(func(f *pflag.Flag) {
				if !f.Hidden {
					names = append(names, f.Name)
				}
			})
			near := near(name, names)
			for i := range near {
				near[i] = "--" + near[i]
			}
			msg = fmt.Sprintf("unknown flag --%s%s", name, meaning(near))
		}
	} else if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		msg = badValue(e)
	} else if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		f, name := e.GetFlag(), "--"+e.GetFlag().Name
		if e.GetSpecifiedName() == f.Shorthand {
			name = "-" + f.Shorthand
		}
		what, _ := pflag.UnquoteUsage(f)
		msg = fmt.Sprintf("%s wants a value: %s", name, cmp.Or(what, "VALUE"))
	}
	return usagef("%s; try '%s --help'", msg, c.CommandPath())
}

// badValue returns the error for a value that a flag does not take.
func badValue(err *pflag.InvalidValueError) string {
	f := err.GetFlag()
	want, ok := map[string]string{
		"int":      "a whole number, such as 10",
		"float64":  "a number, such as 0.5",
		"duration": "a time with its unit, such as 5s or 2m",
		"bool":     "true or false, or no value at all",
	}[f.Value.Type()]
	if !ok { // the value's own error says it
		return fmt.Sprintf("--%s: %v", f.Name, errors.Unwrap(err))
	}
	return fmt.Sprintf("--%s is %q, want %s", f.Name, err.GetValue(), want)
}

// wantArgs requires between low and high arguments; usage says what they are.
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

// scopeFlag adds the flag --scope. Its value is unset without the flag.
func scopeFlag(fs *pflag.FlagSet, scope *string, unset, usage string) {
	fs.StringVarP(scope, "scope", "s", unset, usage+", `SCOPE` one of project (.mcp.json here), local or user (~/.claude.json)")
}

// ruleList is the value of --allowedTools and --disallowedTools. Each use of the flag adds to it.
type ruleList []string

func (l *ruleList) String() string     { return strings.Join(*l, ",") }
func (l *ruleList) Type() string       { return "TOOLS" }
func (l *ruleList) Set(s string) error { *l = append(*l, permission.SplitList(s)...); return nil }

// didYouMean returns a part of an error message about an unknown name: "; did you mean "x"?", or "".
func didYouMean(name string, known []string) string {
	close := near(name, known)
	for i, k := range close {
		close[i] = strconv.Quote(k)
	}
	return meaning(close)
}

// meaning asks whether one of the names is meant. It returns "" without names.
func meaning(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(names, " or ") + "?"
}

// near returns up to three of the known names that name may stand for, the nearest first.
func near(name string, known []string) []string {
	dist := map[string]int{}
	want := strings.ToLower(name)
	for _, k := range known {
		have := strings.ToLower(k)
		far := 1 + len(have)/4
		if d := editdistance.Distance(want, have, far); d <= far && d < len(have) {
			dist[k] = d
		} else if len(want) >= 3 && strings.Contains(have, want) || len(have) >= 3 && strings.Contains(want, have) {
			dist[k] = len(have) // behind the misspellings
		}
	}
	names := slices.SortedFunc(maps.Keys(dist), func(a, b string) int {
		return cmp.Or(cmp.Compare(dist[a], dist[b]), cmp.Compare(a, b))
	})
	return names[:min(3, len(names))]
}
