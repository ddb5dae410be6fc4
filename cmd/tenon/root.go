package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const rootLong = `Tenon asks a Claude model with tools from MCP servers (the Model Context Protocol), and runs
MCP servers from the shell without any model.

Answers go to standard output, all else to standard error.

Exit status:
  0    fine
  1    it failed
  2    the command line is wrong
  128+n  ended by signal n: 130 after Ctrl-C, 143 after SIGTERM, 141 when the reader of the output went away
  The first Ctrl-C stops the work and closes the servers; the second ends everything at once.`

func newRootCommand(p *process) *cobra.Command {
	root := &cobra.Command{
		Use:           "tenon",
		Short:         "Agents and MCP servers from the shell",
		Long:          rootLong,
		Args:          cobra.ArbitraryArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          groupRun,
		Version:       versionLine(),
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return flagError(c, err) })
	root.SetGlobalNormalizationFunc(normalizeFlag)
	root.SetUsageTemplate(usageTemplate)
	root.AddCommand(newRunCommand(p), newMCPCommand(p), newTrustCommand(p), newVersionCommand(p))
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	return root
}

// groupRun is what a command that only has sub-commands does when none of them was named.
func groupRun(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef("no command given; try '%s --help'", c.CommandPath())
	}
	if args[0] == "help" { // as in 'tenon help'
		sub, rest, err := c.Find(args[1:])
		if err != nil || len(rest) > 0 {
			return usagef("no help for %q; try '%s --help'", strings.Join(args[1:], " "), c.CommandPath())
		}
		return sub.Help()
	}
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return usagef("unknown command %q%s; try '%s --help'", args[0], didYouMean(args[0], names), c.CommandPath())
}

// normalizeFlag accepts both spellings of the flags that have two.
func normalizeFlag(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	switch name {
	case "allowed-tools":
		name = "allowedTools"
	case "disallowed-tools":
		name = "disallowedTools"
	}
	return pflag.NormalizedName(name)
}

// usageTemplate is cobra's, less the aliases and with the flags wrapped to the width of a page.
const usageTemplate = `Usage:{{if .Runnable}}{{if not .HasAvailableSubCommands}}
  {{.UseLine}}{{end}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} COMMAND{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if (or .IsAvailableCommand (eq .Name "help"))}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsagesWrapped 110 | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableInheritedFlags}}

Flags of every '{{.Parent.CommandPath}}' command:
{{.InheritedFlags.FlagUsagesWrapped 110 | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableSubCommands}}

'{{.CommandPath}} COMMAND --help' says more about a command.{{end}}
`

func newVersionCommand(p *process) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  wantArgs(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(p.out, versionLine())
			return err
		},
	}
}

// versionLine returns the module's version as the Go tool recorded it, and the platform.
func versionLine() string {
	version := "(unknown)" // in a binary built without module support
	if info, ok := debug.ReadBuildInfo(); ok {
		version = cmp.Or(strings.Trim(info.Main.Version, "()"), "devel")
	}
	return fmt.Sprintf("tenon %s (%s %s/%s)", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
