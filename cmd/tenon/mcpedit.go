package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenon-sdk/tenon/internal/file"
	"github.com/tenon-sdk/tenon/mcpconfig"
)

// editScopes are the configurations that can be edited, the one that wins first.
var editScopes = []mcpconfig.Scope{mcpconfig.ScopeLocal, mcpconfig.ScopeProject, mcpconfig.ScopeUser}

// A target is the place of an entry: a map of servers in a file.
type target struct {
	scope mcpconfig.Scope
	file  string
	place mcpconfig.Place
}

// where returns the file and, if that is a symbolic link, its target. The link may be a checkout's,
// and the target the user's.
func (t target) where() string {
	if real := file.Real(t.file); filepath.Base(real) != filepath.Base(t.file) || file.Real(filepath.Dir(t.file)) != filepath.Dir(real) {
		return fmt.Sprintf("%s, which is a link to %s", t.file, visible(real))
	}
	return t.file
}

// errNoHome reports that there are no local and user scopes.
var errNoHome = errors.New("there is no home directory for ~/.claude.json: set HOME or CLAUDE_CONFIG_DIR to an absolute path")

// target returns the place for new entries of a scope.
func (p *process) target(scope mcpconfig.Scope) (target, error) {
	dir, err := workDir()
	if err != nil {
		return target{}, err
	}
	if scope == mcpconfig.ScopeProject {
		return target{scope: scope, file: filepath.Join(dir, ".mcp.json")}, nil
	}
	user := mcpconfig.UserFile(p.lookupEnv)
	switch {
	case !slices.Contains(editScopes, scope):
		return target{}, usagef("--scope: unknown scope %q; give project, local or user", scope)
	case user == "":
		return target{}, errNoHome
	case scope == mcpconfig.ScopeLocal:
		return target{scope: scope, file: user, place: mcpconfig.LocalPlace(dir)}, nil
	}
	return target{scope: scope, file: user}, nil
}

// find looks for the entry with the name in the given scope, or in every one. A project's entry may
// be in a parent directory, as when it is used. Without a scope, a file that cannot be read is one
// of the faults.
func (p *process) find(name string, scope mcpconfig.Scope) (all []found, faults []error, err error) {
	scopes := editScopes
	if scope != "" {
		scopes = []mcpconfig.Scope{scope}
	}
	for _, s := range scopes {
		t, err := p.target(s)
		switch {
		case scope == "" && errors.Is(err, errNoHome):
			continue // the scope has no entries
		case err != nil:
			return nil, nil, err
		}
		files := []string{t.file}
		if s == mcpconfig.ScopeProject {
			files = mcpconfig.ProjectFiles(filepath.Dir(t.file))
		}
		for _, t.file = range files {
			entry, ok, err := t.get(name)
			if ok {
				all = append(all, found{t, entry})
				break
			}
			if err != nil && scope != "" {
				return nil, nil, err
			}
			sameFault := func(f error) bool { return f.Error() == err.Error() } // two scopes share a file
			if err != nil && !slices.ContainsFunc(faults, sameFault) {
				faults = append(faults, err)
			}
		}
	}
	return all, faults, nil
}

type found struct {
	target
	entry json.RawMessage
}

// get returns an entry as it is in the file. Without the file there is none.
func (t target) get(name string) (json.RawMessage, bool, error) {
	doc, err := file.ReadRegular(t.file, maxInput)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("reading %s: %w", t.file, file.Cause(err))
	}
	entry, ok, err := mcpconfig.GetServer(doc, t.place, name)
	if err != nil {
		return nil, false, fmt.Errorf("reading %s: %s", t.file, message(err))
	}
	return entry, ok, nil
}

// set writes an entry to the file. It replaces one only with force.
func (t target) set(p *process, name string, entry json.RawMessage, force bool) error {
	switch _, ok, err := t.get(name); {
	case err != nil:
		return err
	case ok && !force:
		return usagef("there is a server %q in %s already; --force replaces it", name, t.file)
	}
	mode := fs.FileMode(0o644)
	if t.scope != mcpconfig.ScopeProject {
		mode = 0o600
	}
	return t.update(p, mode, func(doc []byte) ([]byte, error) {
		return mcpconfig.SetServer(doc, t.place, name, entry)
	})
}

// update edits the file; an error names it. A project's file that was trusted, or did not exist,
// is trusted afterwards.
func (t target) update(p *process, mode fs.FileMode, edit func(doc []byte) ([]byte, error)) error {
	approved, place := &approvals{}, ""
	if t.scope == mcpconfig.ScopeProject {
		place = mcpconfig.ProjectFiles(filepath.Dir(t.file))[0]
		var err error
		if approved, err = p.approvals(); err != nil {
			p.warn("%s", oneLine(err.Error()))
			approved = &approvals{}
		}
	}
	var (
		trusted bool
		written []byte
	)
	err := mcpconfig.UpdateFile(t.file, mode, func(doc []byte) (edited []byte, err error) {
		trusted = doc == nil || approved.has(place, doc)
		written, err = edit(doc)
		return written, err
	})
	switch {
	case err != nil && !strings.Contains(err.Error(), t.file):
		return fmt.Errorf("%s: %s", t.file, message(err))
	case err != nil:
		return err
	case trusted && approved.file != "":
		if err := approved.approve(map[string][]byte{place: written}); err != nil {
			p.warn("%s is not trusted: %s", t.file, message(err))
		}
	}
	return nil
}

// noEntry returns the error for a name without an entry.
func (p *process) noEntry(name string) error {
	cfg, _ := mcpconfig.Load(&mcpconfig.LoadOptions{LookupEnv: p.lookupEnv}) // names for a hint, no more
	return usagef("no server %q in .mcp.json or ~/.claude.json%s", name, didYouMean(name, cfg.Names()))
}

func newRemoveCommand(p *process) *cobra.Command {
	var scope string
	c := &cobra.Command{
		Use:     "remove NAME [flags]",
		Aliases: []string{"rm"},
		Short:   "Remove a server's configuration entry",
		Long:    `Remove a server's entry from the file that it stands in. The rest of the file stays as it is, comments too.`,
		Args:    wantArgs(1, 1, "NAME"),
		RunE:    func(_ *cobra.Command, args []string) error { return p.remove(args[0], mcpconfig.Scope(scope)) },
	}
	c.ValidArgsFunction = newServerFlags().complete(p)
	scopeFlag(c.Flags(), &scope, "", "remove from this scope")
	return c
}

func (p *process) remove(name string, scope mcpconfig.Scope) error {
	all, faults, err := p.find(name, scope)
	switch {
	case err != nil:
		return err
	case len(faults) > 0 && len(all) > 0: // the unreadable file may have another one
		return fmt.Errorf("%w; to remove the one in %s all the same: --scope %s", faults[0], all[0].file, all[0].scope)
	case len(faults) > 0:
		return faults[0]
	case len(all) == 0:
		return p.noEntry(name)
	case len(all) > 1:
		return usagef("there is a server %q in more than one scope; say which: --scope %s or --scope %s", name, all[0].scope, all[1].scope)
	}
	t := all[0].target
	err = t.update(p, 0o600, func(doc []byte) ([]byte, error) {
		edited, _, err := mcpconfig.RemoveServer(doc, t.place, name)
		return edited, err
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.out, "removed %q from %s\n", name, t.where())
	return err
}
