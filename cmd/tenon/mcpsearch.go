package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/toolsearch"
)

const searchLong = `Search the tools of the connected servers, as a model with many tools does: the best match first.

Each QUERY is a phrasing of its own, and their rankings are put together: say the same in other words and the
right tool rises. Within a QUERY, +WORD has to be in the name; select:A,B picks tools by name; the name of a
server lists its tools.

A server that cannot be connected is reported on standard error: its tools were not searched. If nothing
matches, the exit status is 1.`

func newSearchCommand(p *process, f *mcpFlags) *cobra.Command {
	var most int
	c := f.command(p, &cobra.Command{
		Use:   "search QUERY... [flags]",
		Short: "Search the tools by words",
		Long:  searchLong,
		Args:  wantArgs(1, toolsearch.MaxPhrasings, "a QUERY, or several phrasings of it"),
		PreRunE: func(*cobra.Command, []string) error {
			if most < 0 || most > toolsearch.MaxMatches {
				return usagef("--max is %d; give 1 to %d", most, toolsearch.MaxMatches)
			}
			return nil
		},
	}, "print JSON, with the schemas", func(s *session, ctx context.Context, args []string) error {
		return s.search(ctx, toolsearch.Query{Phrasings: args, Max: most})
	})
	c.Flags().IntVar(&most, "max", 0, fmt.Sprintf("show at most `N` tools (default %d, or 20 for a server's)", toolsearch.DefaultMax))
	return c
}

func (s *session) search(ctx context.Context, q toolsearch.Query) error {
	tools := s.host.Tools()
	s.report()
	found, err := toolsearch.New(searchable(tools)).Search(ctx, q)
	if err != nil {
		return err
	}
	for _, name := range found.Unknown {
		fmt.Fprintf(s.process.err, "tenon: no tool is called %q\n", printable(name))
	}
	var matches []mcphost.Tool
	for _, m := range found.Matches {
		if t, ok := s.host.Tool(m.FullName); ok {
			matches = append(matches, t)
		}
	}
	if err := s.print(toolRows(matches), s.toolTable(matches)); err != nil {
		return err
	}
	if len(matches) > 0 {
		return nil
	}
	if len(s.configs) > 0 {
		fmt.Fprintf(s.process.err, "tenon: none of the %s matches\n", count(len(tools), "tool"))
	}
	return errReported
}

func searchable(tools []mcphost.Tool) []toolsearch.Tool {
	out := make([]toolsearch.Tool, len(tools))
	for i, t := range tools {
		out[i] = toolsearch.Tool{
			FullName: t.FullName, Server: t.Server, Name: t.Name, Title: t.Title,
			Description: t.Description, Hint: t.SearchHint, Params: toolsearch.Params(t.InputSchema),
		}
	}
	return out
}
