package main

import (
	"strings"

	"github.com/spf13/cobra"
)

func newMCPCommand(p *process) *cobra.Command {
	c := &cobra.Command{
		Use:   "mcp",
		Short: "Inspect MCP servers and call their tools, without a model",
		Long: `Inspect MCP servers and call their tools, without a model, and edit their configuration.

The servers are those of .mcp.json here or in a parent directory of the repository (the nearest wins), of the
user's and the local configuration in ~/.claude.json, and of --mcp-config. What is wrong with a configuration
entry is reported on standard error, and the other entries are used. Servers of a project that is not trusted
are asked about on a terminal, and elsewhere not started: see 'tenon trust'.`,
		Args: cobra.ArbitraryArgs,
		RunE: groupRun,
	}
	for _, make := range []func(*process, *mcpFlags) *cobra.Command{
		newListCommand, newStatusCommand, newDoctorCommand, newToolsCommand, newSearchCommand, newCallCommand,
		newResourcesCommand, newReadCommand, newPromptsCommand, newPromptCommand,
	} {
		f := new(mcpFlags)
		sub := make(p, f)
		f.register(sub.Flags())
		if strings.Contains(sub.Use, "SERVER") {
			sub.ValidArgsFunction = f.complete(p)
		}
		c.AddCommand(sub)
	}
	c.AddCommand(newGetCommand(p), newAddCommand(p), newRemoveCommand(p), newImportCommand(p), newLoginCommand(p), newLogoutCommand(p))
	return c
}
