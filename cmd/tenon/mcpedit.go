package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tenon-sdk/tenon/mcpconfig"
)

// editScopes are the configurations that can be edited, the one that wins first.
var editScopes = []mcpconfig.Scope{mcpconfig.ScopeLocal, mcpconfig.ScopeProject, mcpconfig.ScopeUser}

// A target is where an entry stands or is to stand: a map of servers in a file.
type target struct {
	scope mcpconfig.Scope
	file  string
	place mcpconfig.Place
}

// target is the place of a scope for entries that are new.
func (p *process) target(scope mcpconfig.Scope) (target, error) {
	dir := p.dir
	if dir == "" {
		var err error
		if dir, err = os.Getwd(); err != nil {
			return target{}, err
		}
	}
	if scope == mcpconfig.ScopeProject {
		return target{scope: scope, file: filepath.Join(dir, ".mcp.json")}, nil
	}
	user := mcpconfig.UserFile(p.lookupEnv)
	switch {
	case !slices.Contains(editScopes, scope):
		return target{}, usagef("--scope: unknown scope %q; give project, local or user", scope)
	case user == "":
		return target{}, errors.New("there is no home directory for ~/.claude.json: set HOME or CLAUDE_CONFIG_DIR")
	case scope == mcpconfig.ScopeLocal:
		return target{scope: scope, file: user, place: mcpconfig.LocalPlace(dir)}, nil
	}
	return target{scope: scope, file: user}, nil
}

// find looks for the entry of that name: in the given scope, or in every one. A project's entry may stand in
// a parent directory, as when it is used.
func (p *process) find(name string, scope mcpconfig.Scope) ([]found, error) {
	scopes := editScopes
	if scope != "" {
		scopes = []mcpconfig.Scope{scope}
	}
	var all []found
	for _, s := range scopes {
		t, err := p.target(s)
		if err != nil {
			return nil, err
		}
		for {
			entry, ok, err := t.get(name)
			if err != nil {
				return nil, err
			}
			if ok {
				all = append(all, found{t, entry})
				break
			}
			up := filepath.Dir(filepath.Dir(t.file))
			if s != mcpconfig.ScopeProject || filepath.Join(up, ".mcp.json") == t.file {
				break
			}
			t.file = filepath.Join(up, ".mcp.json")
		}
	}
	return all, nil
}

type found struct {
	target
	entry json.RawMessage
}

// get is an entry as it stands in the file. Without the file there is none.
func (t target) get(name string) (json.RawMessage, bool, error) {
	info, err := os.Stat(t.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case err == nil && info.IsDir():
		err = errors.New("it is a directory")
	case err == nil && !info.Mode().IsRegular(): // a pipe, say, that nobody writes to
		err = errors.New("it is no regular file")
	}
	var doc []byte
	if err == nil {
		doc, err = readFile(t.file)
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading %s: %w", t.file, pathCause(err))
	}
	entry, ok, err := mcpconfig.GetServer(doc, t.place, name)
	if err != nil {
		return nil, false, fmt.Errorf("reading %s: %s", t.file, message(err))
	}
	return entry, ok, nil
}

// set puts an entry into the file. One that is there is replaced only with force.
func (t target) set(name string, entry json.RawMessage, force bool) error {
	if _, ok, err := t.get(name); err != nil || ok && !force {
		if err == nil {
			err = usagef("there is a server %q in %s already; --force replaces it", name, t.file)
		}
		return err
	}
	mode := fs.FileMode(0o644)
	if t.scope != mcpconfig.ScopeProject {
		mode = 0o600
	}
	return t.update(mode, func(doc []byte) ([]byte, error) {
		return mcpconfig.SetServer(doc, t.place, name, entry)
	})
}

// update edits the file; an error names it.
func (t target) update(mode fs.FileMode, edit func(doc []byte) ([]byte, error)) error {
	err := mcpconfig.UpdateFile(t.file, mode, edit)
	if err != nil && !strings.Contains(err.Error(), t.file) {
		err = fmt.Errorf("%s: %s", t.file, message(err))
	}
	return err
}

// scopeFlag is the flag --scope, empty unless it is given or has a default.
func scopeFlag(fs *pflag.FlagSet, scope *string, unset, usage string) {
	fs.StringVarP(scope, "scope", "s", unset, usage+", `SCOPE` one of project (.mcp.json here), local or user (~/.claude.json)")
}

func newGetCommand(p *process) *cobra.Command {
	var (
		scope  string
		asJSON bool
	)
	c := &cobra.Command{
		Use:   "get NAME [flags]",
		Short: "Show a server's configuration entry",
		Long: `Show a server's configuration entry and the file that it stands in. Where several scopes have one, the first
shown is the one in force. The values of environment variables and headers are not shown, since they are often
secret; with --json the entry in force is printed as it stands in the file.`,
		Args: wantArgs(1, 1, "NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := p.find(args[0], mcpconfig.Scope(scope))
			if err != nil {
				return err
			}
			if len(all) == 0 {
				return p.noEntry(args[0])
			}
			if asJSON {
				return writeJSON(p, all[0].entry)
			}
			for _, f := range all {
				fmt.Fprintf(p.out, "%s (%s scope, %s)\n", visible(args[0]), f.scope, f.file)
				if err := writeEntry(p, f.entry); err != nil {
					return err
				}
			}
			return nil
		},
	}
	scopeFlag(c.Flags(), &scope, "", "look in one scope only")
	c.Flags().BoolVar(&asJSON, "json", false, "print the entry as JSON")
	return c
}

// visible is a name as it can be printed: quoted if it holds what cannot be seen.
func visible(name string) string {
	if printable(name) != name || strings.TrimSpace(name) != name {
		return strconv.Quote(name)
	}
	return name
}

// noEntry is the error for a name that no file has an entry for.
func (p *process) noEntry(name string) error {
	cfg, _ := mcpconfig.Load(&mcpconfig.LoadOptions{Dir: p.dir, LookupEnv: p.lookupEnv}) // names for a hint, no more
	return usagef("no server %q in .mcp.json or ~/.claude.json%s", name, didYouMean(name, cfg.Names()))
}

// writeEntry prints the members of an entry, less what may be secret.
func writeEntry(p *process, entry json.RawMessage) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(entry, &members); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		text := string(members[key])
		var inner map[string]json.RawMessage
		if (key == "env" || key == "headers") && json.Unmarshal(members[key], &inner) == nil {
			text = strings.Join(slices.Sorted(maps.Keys(inner)), ", ")
		}
		if _, err := fmt.Fprintf(p.out, "  %s: %s\n", key, oneLine(text)); err != nil {
			return err
		}
	}
	return nil
}

func newRemoveCommand(p *process) *cobra.Command {
	var scope string
	c := &cobra.Command{
		Use:   "remove NAME [flags]",
		Short: "Remove a server's configuration entry",
		Long:  `Remove a server's entry from the file that it stands in. The rest of the file stays as it is, comments too.`,
		Args:  wantArgs(1, 1, "NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			name := args[0]
			all, err := p.find(name, mcpconfig.Scope(scope))
			switch {
			case err != nil:
				return err
			case len(all) == 0:
				return p.noEntry(name)
			case len(all) > 1:
				return usagef("there is a server %q in more than one scope; say which: --scope %s or --scope %s", name, all[0].scope, all[1].scope)
			}
			t := all[0].target
			err = t.update(0o600, func(doc []byte) ([]byte, error) {
				edited, _, err := mcpconfig.RemoveServer(doc, t.place, name)
				return edited, err
			})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(p.out, "removed %q from %s\n", name, t.file)
			return err
		},
	}
	scopeFlag(c.Flags(), &scope, "", "remove from this scope")
	return c
}
