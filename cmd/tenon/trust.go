package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenon-sdk/tenon/internal/file"
	"github.com/tenon-sdk/tenon/mcpconfig"
)

// trustEnv is the environment variable for --trust-project.
const trustEnv = "TENON_TRUST_PROJECT"

// A projectTrust decides which files of the project are trusted: all, or those that the user has
// approved with exactly the contents that are read.
type projectTrust struct {
	all      bool
	approved *approvals
	// files are the files of the project that were read, with their contents. untrusted are those
	// of them that are not trusted.
	files, untrusted map[string][]byte
}

func newTrust(approved *approvals) *projectTrust {
	return &projectTrust{approved: approved, files: map[string][]byte{}, untrusted: map[string][]byte{}}
}

func (p *process) newProjectTrust(flag bool) *projectTrust {
	approved, err := p.approvals()
	t := newTrust(approved)
	t.all = flag
	switch v := p.getenv(trustEnv); v {
	case "", "0", "false":
	case "1", "true":
		t.all = true
	default:
		p.warn("%s is %q, want 1 or 0: the project is not trusted for that", trustEnv, clipText(v, 40))
	}
	if err != nil && !t.all {
		p.warn("%s", oneLine(err.Error()))
	}
	return t
}

// trusts decides about a file. It is the TrustFile of all that reads configuration.
func (t *projectTrust) trusts(file string, contents []byte) bool {
	trusted := t.all || t.approved.has(file, contents)
	t.files[file] = bytes.Clone(contents)
	delete(t.untrusted, file)
	if !trusted {
		t.untrusted[file] = t.files[file]
	}
	return trusted
}

// A projectStart is what a command does with the servers of a project.
type projectStart struct {
	run  bool     // it is 'tenon run', which uses them if nobody can be asked, as claude -p does
	only []string // the servers that it may start; empty means all
}

// decide decides about the servers of an untrusted project. On a terminal it shows what they would
// run and asks. It disables the servers that are not to be started, and reports whether the user has
// approved the files, which are then to be read again.
func (t *projectTrust) decide(ctx context.Context, p *process, cfg *mcpconfig.Config, start projectStart) (approved bool, err error) {
	var names []string
	for _, name := range cfg.Names() {
		e := cfg.Servers[name]
		_, untrusted := t.untrusted[e.Source]
		if e.Scope == mcpconfig.ScopeProject && untrusted && !e.Disabled && (len(start.only) == 0 || slices.Contains(start.only, name)) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return false, nil
	}
	_, canAnswer := terminal(p.in)
	if _, canSee := terminal(p.err); !canAnswer || !canSee {
		if !start.run {
			disable(cfg, names, "the project is not trusted: see what it runs and approve it with 'tenon trust', or give --trust-project")
		}
		return false, nil
	}
	t.show(p.err, cfg, names)
	fmt.Fprintf(p.err, "\nStart them? [y]es, this time; [a]lways, and trust all that these files say; [N]o: ")
	answer, err := p.answer(ctx)
	if err != nil {
		return false, err
	}
	switch strings.ToLower(answer) {
	case "y", "yes":
		return false, nil
	case "a", "always":
		if err := t.approved.approve(t.untrusted); err != nil {
			p.warn("the servers are started this time only: the project could not be trusted: %s", message(err))
			return false, nil
		}
		return true, nil
	}
	disable(cfg, names, "not started, as you said; to approve the project: tenon trust")
	return false, nil
}

// show shows the servers of these names, and what else the files contain.
func (t *projectTrust) show(w io.Writer, cfg *mcpconfig.Config, names []string) {
	files := map[string]projectFile{}
	for file, contents := range t.untrusted {
		files[file] = readProjectFile(contents, filepath.Base(file))
	}
	fmt.Fprintf(w, "The files of this project would start:\n\n")
	for _, name := range names {
		f := files[cfg.Servers[name].Source]
		writeServer(w, "  ", "", name, f.servers[name])
		delete(f.servers, name)
	}
	heading := "\nWith [a]lways this counts too:\n\n"
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if f := files[file]; len(f.settings)+len(f.servers) > 0 {
			fmt.Fprintf(w, "%s  %s\n", heading, visible(file))
			heading = ""
			f.write(w, "    ")
		}
	}
}

func disable(cfg *mcpconfig.Config, names []string, why string) {
	for _, name := range names {
		e := cfg.Servers[name]
		e.Disabled, e.DisabledReason = true, why
		cfg.Servers[name] = e
	}
}

// answer reads a line from the terminal.
func (p *process) answer(ctx context.Context) (string, error) {
	return await(ctx, func() (string, error) {
		var line []byte
		b := make([]byte, 1) // no more than the line: the next reader gets what follows
		for {
			n, err := p.in.Read(b)
			switch {
			case err != nil && !errors.Is(err, io.EOF):
				return "", fmt.Errorf("reading the answer: %w", err)
			case err != nil || n > 0 && b[0] == '\n' || len(line) > 1<<10:
				return strings.TrimSpace(string(line)), nil //nolint:nilerr // no line means no
			}
			line = append(line, b[:n]...)
		}
	})
}

const trustLong = `Trust the files of this project: .mcp.json, .claude/settings.json and .claude/settings.local.json in the
repository that contains the current directory, or the FILEs given. What they say then counts: also rules that allow
tools, permission modes, hooks, environment variables, the model, directories, and commands that make headers. The
approval is for exactly the contents that the files have now; when one changes, it is asked about again.

Without trust a project's files may only narrow what a run does: rules that deny or ask, the modes plan and dontAsk,
servers that are switched off. Their servers are used by 'tenon run', which asks first on a terminal, and by 'tenon mcp'
on a terminal after asking.

The commands in these files may run programs of the project itself, which can change without the files.`

const trustExample = `  tenon trust
  tenon trust --list
  tenon trust --revoke`

func newTrustCommand(p *process) *cobra.Command {
	var list, revoke bool
	c := &cobra.Command{
		Use:     "trust [FILE ...] [flags]",
		Short:   "Trust the configuration files of this project",
		Long:    trustLong,
		Example: trustExample,
		Args:    cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case list && revoke:
				return usagef("--list and --revoke exclude each other")
			case list && len(args) > 0:
				return usagef("--list takes no FILE")
			case list:
				return p.listTrusted()
			case revoke:
				return p.revokeTrust(args)
			}
			return p.trustProject(args)
		},
	}
	c.Flags().BoolVar(&list, "list", false, "show what is trusted")
	c.Flags().BoolVar(&revoke, "revoke", false, "take the approval of this project, or of the FILEs, back")
	return c
}

// projectFiles reads the files of the project as a run would.
func (p *process) projectFiles() (*projectTrust, []mcpconfig.Problem, error) {
	if _, err := workDir(); err != nil {
		return nil, nil, err
	}
	approved, err := p.approvals()
	if err != nil {
		return nil, nil, err
	}
	t := newTrust(approved)
	_, problems := mcpconfig.LoadSettings(&mcpconfig.SettingsOptions{
		SettingSources: []mcpconfig.Scope{mcpconfig.ScopeProject, mcpconfig.ScopeLocal}, TrustFile: t.trusts, LookupEnv: p.lookupEnv,
	})
	_, more := mcpconfig.Load(&mcpconfig.LoadOptions{
		SettingSources: []mcpconfig.Scope{mcpconfig.ScopeProject}, TrustFile: t.trusts, LookupEnv: p.lookupEnv,
	})
	return t, append(problems, more...), nil
}

func (p *process) trustProject(only []string) error {
	t, problems, err := p.projectFiles()
	if err != nil {
		return err
	}
	files := t.files
	if len(only) > 0 {
		if files, err = p.pick(t.files, only); err != nil {
			return err
		}
	}
	// A file that others can write to must not be trusted, and was not read.
	report := newReporter(p, nil) // two readers may refuse one file
	for _, pr := range problems {
		if pr.Level == mcpconfig.LevelFile {
			report.warn(problemText(pr))
			err = errReported
		}
	}
	if len(files) == 0 {
		if err == nil {
			p.warn("there is nothing to trust: this project has neither .mcp.json nor .claude/settings.json")
		}
		return err
	}
	if err := t.approved.approve(files); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(p.out, "trusted %s\n", visible(name))
		readProjectFile(files[name], filepath.Base(name)).write(p.out, "  ")
	}
	return err
}

// pick returns the files that the arguments name.
func (p *process) pick(files map[string][]byte, args []string) (map[string][]byte, error) {
	picked := map[string][]byte{}
	for _, arg := range args {
		found := false
		for _, place := range places(p, arg) {
			if contents, ok := files[place]; ok {
				picked[place], found = contents, true
			}
		}
		if !found {
			return nil, usagef("%s is no configuration file of this project; they are .mcp.json, .claude/settings.json and .claude/settings.local.json", arg)
		}
	}
	return picked, nil
}

// places returns the paths under which a file or folder may have been approved. It does not follow
// a symbolic link in the place of a file; see [approvals.has].
func places(p *process, arg string) []string {
	path, err := filepath.Abs(arg)
	if err != nil {
		path = arg
	}
	dir, name := filepath.Dir(path), filepath.Base(path)
	all := []string{path, filepath.Join(file.Real(dir), name)}
	if filepath.Base(dir) == ".claude" { // which may be a link as well
		all = append(all, filepath.Join(file.Real(filepath.Dir(dir)), ".claude", name))
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		all = append(all, file.Real(path))
	}
	return all
}

func (p *process) listTrusted() error {
	approved, err := p.approvals()
	if err != nil {
		return err
	}
	if len(approved.Files) == 0 {
		p.warn("no project is trusted")
		return nil
	}
	t := p.newTable()
	for _, name := range slices.Sorted(maps.Keys(approved.Files)) {
		state := "in force"
		a, ok := approved.get(name)
		if !ok {
			state = "damaged; not trusted"
		} else if data, err := file.ReadRegular(name, maxInput); err != nil {
			state = "cannot be read: " + file.Cause(err).Error()
		} else if !approved.has(name, data) {
			state = "changed since; not trusted"
		}
		t.add(a.Approved.Local().Format("2006-01-02 15:04"), visible(name), state)
	}
	return t.write(p.out)
}

// revokeTrust revokes approvals: of files, of all files below a folder, or of this project.
func (p *process) revokeTrust(args []string) error {
	approved, err := p.approvals()
	if err != nil {
		return err
	}
	var wanted []string
	for _, arg := range args {
		wanted = append(wanted, places(p, arg)...)
	}
	if len(args) == 0 {
		t, _, err := p.projectFiles()
		if err != nil {
			return err
		}
		wanted = slices.Collect(maps.Keys(t.files))
	}
	const sep = string(filepath.Separator)
	var revoked []string
	err = approved.update(func(files map[string]json.RawMessage) {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if slices.ContainsFunc(wanted, func(w string) bool { return name == w || strings.HasPrefix(name, strings.TrimSuffix(w, sep)+sep) }) {
				delete(files, name)
				revoked = append(revoked, name)
			}
		}
	})
	if err != nil {
		return err
	}
	for _, name := range revoked {
		fmt.Fprintf(p.out, "no longer trusted: %s\n", visible(name))
	}
	if len(revoked) == 0 {
		p.warn("nothing of that was trusted; 'tenon trust --list' shows what is")
	}
	return nil
}
