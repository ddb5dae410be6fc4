package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenon-sdk/tenon/mcpconfig"
)

// trustEnv is the environment variable that stands for --trust-project.
const trustEnv = "TENON_TRUST_PROJECT"

// A projectTrust decides which files of the project are trusted: all, or those that the user has approved with exactly
// the contents that are read.
type projectTrust struct {
	all      bool
	approved *approvals
	// files are the files of the project that were read, each with its contents, and untrusted those that are not trusted.
	files     map[string][]byte
	untrusted map[string]bool
}

func (p *process) newProjectTrust(flag bool) *projectTrust {
	t := &projectTrust{files: map[string][]byte{}, untrusted: map[string]bool{}}
	switch v := p.getenv(trustEnv); v {
	case "", "0", "false":
		t.all = flag
	case "1", "true":
		t.all = true
	default:
		p.warn(fmt.Sprintf("%s is %q, want 1 or 0: the project is not trusted for that", trustEnv, clipText(v, 40)))
		t.all = flag
	}
	var err error
	if t.approved, err = p.approvals(); err != nil && !t.all {
		p.warn(oneLine(err.Error()))
	}
	return t
}

// trusts decides about one file. It is the TrustFile of all that reads configuration.
func (t *projectTrust) trusts(file string, contents []byte) bool {
	trusted := t.all || t.approved.has(file, contents)
	t.files[file] = bytes.Clone(contents)
	t.untrusted[file] = !trusted
	return trusted
}

// A projectStart is what a command does with the servers of a project.
type projectStart struct {
	run   bool     // it is 'tenon run', which uses them where nobody can be asked, as claude -p does
	only  []string // the servers that it may start; nil means all
	named bool
}

func startNamed(names []string) projectStart { return projectStart{only: names, named: names != nil} }

// decide settles what becomes of the servers of a project that is not trusted. On a terminal it shows what they would
// run and asks. It disables those that are not to be started, and reports whether the user has approved the files, so
// that they count as trusted when they are read again.
func (t *projectTrust) decide(ctx context.Context, p *process, cfg *mcpconfig.Config, start projectStart) (approved bool, err error) {
	var names []string
	for _, name := range cfg.Names() {
		e := cfg.Servers[name]
		if e.Scope == mcpconfig.ScopeProject && t.untrusted[e.Source] && !e.Disabled && (!start.named || slices.Contains(start.only, name)) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return false, nil
	}
	if !p.canAsk() {
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
		if err := t.approved.approve(t.pending()); err != nil {
			p.warn(fmt.Sprintf("the servers are started this time only: the project could not be trusted: %s", message(err)))
			return false, nil
		}
		return true, nil
	}
	disable(cfg, names, "not started, as you said; to approve the project: tenon trust")
	return false, nil
}

// show shows what the servers of these names are, and what else the files say.
func (t *projectTrust) show(w io.Writer, cfg *mcpconfig.Config, names []string) {
	files := map[string]projectFile{}
	shown := map[string][]string{}
	for file, contents := range t.pending() {
		files[file] = readProjectFile(file, contents)
	}
	fmt.Fprintf(w, "The files of this project would start:\n\n")
	for _, name := range names {
		source := cfg.Servers[name].Source
		writeServer(w, "  ", "", name, files[source].servers[name])
		shown[source] = append(shown[source], name)
	}
	said := false
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if !files[file].says(shown[file]) {
			continue
		}
		if !said {
			fmt.Fprintf(w, "\nWith [a]lways this counts too:\n\n")
			said = true
		}
		fmt.Fprintf(w, "  %s\n", visible(file))
		files[file].write(w, "    ", shown[file])
	}
}

// pending are the files that are not trusted, with their contents.
func (t *projectTrust) pending() map[string][]byte {
	files := map[string][]byte{}
	for file, untrusted := range t.untrusted {
		if untrusted {
			files[file] = t.files[file]
		}
	}
	return files
}

func disable(cfg *mcpconfig.Config, names []string, why string) {
	for _, name := range names {
		e := cfg.Servers[name]
		e.Disabled, e.DisabledReason = true, why
		cfg.Servers[name] = e
	}
}

// canAsk reports whether a person can be asked: standard input and standard error are terminals.
func (p *process) canAsk() bool {
	_, in := terminal(p.in)
	_, out := terminal(p.err)
	return in && out
}

// answer reads a line from the terminal. When ctx ends, one goroutine stays behind in the read, as in readInput.
func (p *process) answer(ctx context.Context) (string, error) {
	type result struct {
		line string
		err  error
	}
	done := make(chan result, 1) // the goroutine never blocks on it
	go func() {
		var line []byte
		b := make([]byte, 1) // no more than the line: what follows is for who reads next
		for {
			n, err := p.in.Read(b)
			if n > 0 && b[0] == '\n' || err != nil || len(line) > 1<<10 {
				done <- result{strings.TrimSpace(string(line)), err}
				return
			}
			line = append(line, b[:n]...)
		}
	}()
	select {
	case r := <-done:
		if r.err != nil && !errors.Is(r.err, io.EOF) {
			return "", fmt.Errorf("reading the answer: %w", r.err)
		}
		return r.line, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
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

// projectFiles reads the files of the project as a run would, without trust.
func (p *process) projectFiles() (*projectTrust, []mcpconfig.Problem, error) {
	if _, err := p.workDir(); err != nil {
		return nil, nil, err
	}
	approved, err := p.approvals()
	if err != nil {
		return nil, nil, err
	}
	t := &projectTrust{approved: approved, files: map[string][]byte{}, untrusted: map[string]bool{}}
	never := func(file string, contents []byte) bool {
		t.trusts(file, contents)
		return false
	}
	scopes := []mcpconfig.Scope{mcpconfig.ScopeProject, mcpconfig.ScopeLocal}
	_, problems := mcpconfig.LoadSettings(&mcpconfig.SettingsOptions{Dir: p.dir, SettingSources: scopes, TrustFile: never, LookupEnv: p.lookupEnv})
	_, more := mcpconfig.Load(&mcpconfig.LoadOptions{Dir: p.dir, SettingSources: []mcpconfig.Scope{mcpconfig.ScopeProject}, TrustFile: never, LookupEnv: p.lookupEnv})
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
	// A file that others can write to is none to trust, and none of what it says was read.
	told := map[string]bool{} // two readers may refuse one file
	for _, pr := range problems {
		if text := problemText(pr); pr.Level == mcpconfig.LevelFile && !told[text] {
			told[text] = true
			p.warn(text)
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
	for _, file := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(p.out, "trusted %s\n", visible(file))
		readProjectFile(file, files[file]).write(p.out, "  ", nil)
	}
	return err
}

// pick keeps the files that the arguments name.
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

// places are the paths that a file or folder can have been approved by. A file is not looked for behind a symbolic link
// in its own place: see [approvals.has].
func places(p *process, arg string) []string {
	path := absolute(p, arg)
	dir, name := filepath.Split(path)
	all := []string{path, filepath.Join(realPath(dir), name)}
	if filepath.Base(filepath.Clean(dir)) == ".claude" { // which may be a link as well
		all = append(all, filepath.Join(realPath(filepath.Dir(filepath.Clean(dir))), ".claude", name))
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		all = append(all, realPath(path))
	}
	return all
}

func absolute(p *process, path string) string {
	abs, err := filepath.Abs(p.path(path))
	if err != nil {
		return path
	}
	return abs
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
	for _, file := range slices.Sorted(maps.Keys(approved.Files)) {
		state := "in force"
		if approved.Files[file].faulty != nil {
			state = "damaged; not trusted"
		} else if data, err := readRegular(file); err != nil {
			state = "cannot be read: " + pathCause(err).Error()
		} else if !approved.has(file, data) {
			state = "changed since; not trusted"
		}
		t.add(approved.Files[file].Approved.Local().Format("2006-01-02 15:04"), visible(file), state)
	}
	return t.write(p.out)
}

// revokeTrust takes approvals back: of files, of all files below a folder, or of this project.
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
		for file := range t.files {
			wanted = append(wanted, file)
		}
	}
	var revoked []string
	err = approved.update(func(files map[string]approval) {
		for file := range files {
			if slices.ContainsFunc(wanted, func(w string) bool {
				return file == w || strings.HasPrefix(file, strings.TrimSuffix(w, string(filepath.Separator))+string(filepath.Separator))
			}) {
				delete(files, file)
				revoked = append(revoked, file)
			}
		}
	})
	if err != nil {
		return err
	}
	slices.Sort(revoked)
	for _, file := range revoked {
		fmt.Fprintf(p.out, "no longer trusted: %s\n", visible(file))
	}
	if len(revoked) == 0 {
		p.warn("nothing of that was trusted; 'tenon trust --list' shows what is")
	}
	return nil
}
