package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/tenon-sdk/tenon/internal/file"
	"github.com/tenon-sdk/tenon/mcpconfig"
)

const addLong = `Add a server to a configuration file: a program with its arguments, or a URL. The rest of the file stays as it
is. Put -- before the program if its arguments have flags.

The file may refer to environment variables as ${NAME} or ${NAME:-default}: write secrets so, in single quotes,
and they stay out of the file and of the shell's history.`

const addExample = `  tenon mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
  tenon mcp add search https://api.example.com/mcp --header 'Authorization: Bearer ${TOKEN}'
  tenon mcp add db --scope user --env 'DSN=${DB_DSN}' -- dbhub --readonly
  tenon mcp add files --json '{"command": "npx", "args": ["-y", "some-server"]}'`

type addFlags struct {
	scope, transport, dir, entry string
	env, headers                 []string
	force                        bool
}

func newAddCommand(p *process) *cobra.Command {
	a := new(addFlags)
	c := &cobra.Command{
		Use:     "add NAME [--] PROGRAM|URL [ARG ...]",
		Short:   "Add a server to a configuration file",
		Long:    addLong,
		Example: addExample,
		Args:    wantArgs(1, 1000, "NAME and PROGRAM or URL"),
		RunE: func(c *cobra.Command, args []string) error {
			if n := c.ArgsLenAtDash(); n > 1 && !assignment.MatchString(args[1]) {
				return usagef("one NAME wanted before --, got %s; quote a name that has blanks", count(n, "word")) // not the words: one may be secret
			}
			return a.add(p, args[0], args[1:])
		},
	}
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usagef("%s; if it belongs to the server's program, put -- before the program", strings.TrimSuffix(flagError(c, err).Error(), "; try 'tenon mcp add --help'"))
	})
	fs := c.Flags()
	scopeFlag(fs, &a.scope, "project", "where to")
	fs.StringVarP(&a.transport, "transport", "t", "", "`KIND` of a URL: http or sse (default http)")
	fs.StringArrayVarP(&a.env, "env", "e", nil, "`NAME=VALUE` for the program; may be repeated")
	fs.StringArrayVarP(&a.headers, "header", "H", nil, "`'NAME: VALUE'` for a URL; may be repeated")
	fs.StringVar(&a.dir, "cwd", "", "the `DIRECTORY` that the program starts in (default the one that tenon runs in)")
	fs.StringVar(&a.entry, "json", "", "the whole entry as `JSON`, in place of a program or URL")
	fs.BoolVar(&a.force, "force", false, "replace the entry if there is one")
	return c
}

func (a *addFlags) add(p *process, name string, words []string) error {
	if why := badName(name); why != "" {
		return usagef("the name %.80q %s; give another", name, why)
	}
	if !utf8.ValidString(strings.Join(slices.Concat(words, a.env, a.headers, []string{a.dir, a.entry}), " ")) {
		return usagef("an argument is not valid UTF-8, and a configuration file can hold nothing else") // not which: it may be secret
	}
	t, err := p.target(mcpconfig.Scope(a.scope))
	if err != nil {
		return err
	}
	entry := json.RawMessage(a.entry)
	if a.entry == "" {
		if entry, err = a.build(name, words); err != nil {
			return err
		}
	} else if len(words) > 0 {
		return usagef("--json is the whole entry; leave %q out", words[0])
	} else if err := checkObject(entry); err != nil {
		return usagef("--json is not a JSON object: %v", err)
	}
	if err := checkEntry(p, t, name, entry); err != nil {
		return err
	}
	return t.add(p, name, entry, a.force)
}

// add writes an entry to the file and says so. It warns of secrets in a project's file, which others
// read.
func (t target) add(p *process, name string, entry json.RawMessage, force bool) error {
	if err := t.set(p, name, entry, force); err != nil {
		return err
	}
	if t.scope == mcpconfig.ScopeProject {
		for _, place := range secretPlaces(entry) {
			p.warn("%s: %s of server %q looks like a secret, and a project's file is read by others; write ${%s} in its place and set that variable",
				t.file, visible(place), name, variableOf(place))
		}
	}
	_, err := fmt.Fprintf(p.out, "added %q to %s\n", name, t.where())
	return err
}

// notInVariables matches characters that the name of a variable does not have.
var notInVariables = regexp.MustCompile(`[^A-Za-z0-9]+`)

// variableOf returns a name for the variable of a value: API_KEY for env.API_KEY, X_TOKEN for
// headers.X-Token.
func variableOf(place string) string {
	kind, key, _ := strings.Cut(place, ".")
	if kind != "env" && kind != "headers" || key == "" {
		return "NAME"
	}
	return strings.ToUpper(strings.Trim(notInVariables.ReplaceAllString(key, "_"), "_"))
}

// maxName is the longest name of a server that is added: it is part of the names of its tools.
const maxName = 128

// badName says why a new server cannot have a name. It returns "" if it can.
func badName(name string) string {
	switch {
	case name == "":
		return "is empty"
	case !utf8.ValidString(name):
		return "is not valid UTF-8"
	case len(name) > maxName:
		return fmt.Sprintf("is longer than %d bytes", maxName)
	case strings.TrimSpace(name) != name:
		return "begins or ends with a blank"
	case printable(name) != name:
		return "holds a character that cannot be seen"
	}
	return ""
}

// build returns the entry that the command line describes.
func (a *addFlags) build(name string, words []string) (json.RawMessage, error) {
	if len(words) == 0 {
		return nil, usagef("no program or URL given for %q; try 'tenon mcp add --help'", name)
	}
	env, err := pairs(a.env, "=", "--env", "NAME=VALUE")
	if err != nil {
		return nil, err
	}
	headers, err := pairs(a.headers, ":", "--header", "'NAME: VALUE'")
	if err != nil {
		return nil, err
	}
	if m := assignment.FindStringSubmatch(words[0]); m != nil { // not all of it: it may be secret
		return nil, usagef("%s=… is a variable and no program; give each variable with an --env of its own: --env %s=…", m[1], m[1])
	}
	isURL := strings.HasPrefix(words[0], "http://") || strings.HasPrefix(words[0], "https://")
	isStdio := a.transport == "" || a.transport == "stdio"
	kind := mcpconfig.Kind(a.transport)
	if a.transport == "" || a.transport == "streamable-http" {
		kind = mcpconfig.HTTP
	}
	switch scheme, _, found := strings.Cut(words[0], "://"); {
	case !isURL && found && !strings.ContainsAny(scheme, "/$"):
		return nil, usagef("%q is no URL that begins with http:// or https://, and no program", words[0])
	case !isURL && !isStdio:
		return nil, usagef("--transport %s wants a URL that begins with http:// or https://, not %q", a.transport, words[0])
	case !isURL && len(headers) > 0:
		return nil, usagef("--header is for a URL, and %q is none; leave it out", words[0])
	case !isURL:
		return mcpconfig.EntryJSON(mcpconfig.Entry{Name: name, Kind: mcpconfig.Stdio, Command: words[0], Args: words[1:], Env: env, Dir: a.dir})
	case a.transport == "stdio":
		return nil, usagef("--transport stdio is for a program, and %q is a URL; leave it out", words[0])
	case len(words) > 1:
		return nil, usagef("a URL has no arguments; leave out %q", words[1])
	case len(env) > 0 || a.dir != "":
		return nil, usagef("--env and --cwd are for a program, and %q is a URL; leave them out", words[0])
	case kind != mcpconfig.HTTP && kind != mcpconfig.SSE:
		return nil, usagef("--transport: unknown kind %q; give http or sse", a.transport)
	}
	return mcpconfig.EntryJSON(mcpconfig.Entry{Name: name, Kind: kind, URL: words[0], Headers: headers})
}

// assignment matches a word that sets an environment variable in a shell.
var assignment = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)=`)

// pairs reads the values of a repeated flag.
func pairs(values []string, sep, flag, form string) (map[string]string, error) {
	m := make(map[string]string, len(values))
	for _, kv := range values {
		k, v, ok := strings.Cut(kv, sep)
		if k = strings.TrimSpace(k); !ok || k == "" {
			return nil, usagef("%s wants %s", flag, form) // not the value: it may be secret
		}
		m[k] = strings.TrimSpace(v)
	}
	return m, nil
}

// checkEntry returns an error for an entry that is refused when it is used, and reports its other
// problems. A variable that is not set now may be set then, to a value that fits.
func checkEntry(p *process, t target, name string, entry json.RawMessage) error {
	var problems []mcpconfig.Problem
	for _, unset := range []string{"x", "http://x"} {
		problems = mcpconfig.CheckEntry(name, entry, &mcpconfig.ParseOptions{
			File: t.file, Scope: t.scope,
			LookupEnv: func(name string) (string, bool) { return cmp.Or(p.getenv(name), unset), true },
		})
		if !slices.ContainsFunc(problems, isFault) {
			reportProblems(p, problems)
			return nil
		}
	}
	first := problems[slices.IndexFunc(problems, isFault)]
	first.Level, first.File = mcpconfig.LevelNote, "" // it is not left out, it was never there
	return usagef("nothing was added: %s", problemText(first))
}

const importLong = `Add the servers of another program's configuration file: Claude Desktop's, Cursor's, VS Code's mcp.json or
settings.json. FILE is a path, or "claude-desktop" for the place where Claude Desktop keeps its own. With NAMEs
only these are added.

What has another form there is translated, and each translation that matters is told on standard error. Servers
that are there already are left as they are, unless --force is given.`

func newImportCommand(p *process) *cobra.Command {
	var (
		scope string
		force bool
	)
	c := &cobra.Command{
		Use:   "import FILE [NAME ...] [flags]",
		Short: "Add the servers of another program's configuration",
		Long:  importLong,
		Args:  wantArgs(1, 1000, "FILE and perhaps NAMEs"),
		RunE: func(c *cobra.Command, args []string) error {
			return runImport(c.Context(), p, args[0], args[1:], mcpconfig.Scope(scope), force)
		},
	}
	scopeFlag(c.Flags(), &scope, "project", "where to")
	c.Flags().BoolVar(&force, "force", false, "replace entries that are there")
	return c
}

func runImport(ctx context.Context, p *process, path string, only []string, scope mcpconfig.Scope, force bool) error {
	t, err := p.target(scope)
	if err != nil {
		return err
	}
	if path == "claude-desktop" {
		if path, err = mcpconfig.ClaudeDesktopFile(); err != nil {
			return err
		}
	}
	data, err := readNamed(ctx, path)
	if err != nil {
		return usagef("reading %s: %v", path, file.Cause(err))
	}
	entries, problems := mcpconfig.Import(data, path)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
	}
	for _, name := range only {
		if !slices.Contains(names, name) {
			return usagef("no server %q in %s%s", name, path, didYouMean(name, names))
		}
	}
	wanted := func(name string) bool { return len(only) == 0 || slices.Contains(only, name) }
	failed := false
	for _, pr := range problems {
		if pr.Server == "" || wanted(pr.Server) {
			failed = failed || isFault(pr)
			p.warn("%s", problemText(pr))
		}
	}
	for _, e := range entries {
		if !wanted(e.Name) {
			continue
		}
		if why := badName(e.Name); why != "" {
			failed = true
			p.warn("left out %.80q: the name %s; give the server another one in %s", e.Name, why, path)
			continue
		}
		err := t.add(p, e.Name, e.Entry, force)
		if exists, ok := errors.AsType[*usageError](err); ok {
			failed = true
			p.warn("left out %q: %s", e.Name, exists.msg)
		} else if err != nil {
			return err
		}
	}
	if failed {
		return errReported
	}
	return nil
}
