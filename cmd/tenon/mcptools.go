package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/toolsearch"
)

const toolsLong = `List the tools of every server, or of one: the name under which a model calls it and permission
rules know it, and the first line of its description.

A server that cannot be connected is reported on standard error. If it is the one asked for, the exit
status is 1.`

func newToolsCommand(p *process, f *mcpFlags) *cobra.Command {
	var schema bool
	c := f.command(p, &cobra.Command{
		Use:   "tools [SERVER] [flags]",
		Short: "List tools",
		Long:  toolsLong,
		Args:  wantArgs(0, 1, "at most one SERVER"),
	}, "print JSON, with the schemas", func(s *session, _ context.Context, args []string) error {
		return s.tools(len(args) > 0, schema)
	})
	c.Flags().BoolVar(&schema, "schema", false, "print whole descriptions and the schemas of the arguments")
	return c
}

func (s *session) tools(named, schema bool) error {
	tools := s.host.Tools()
	failed := s.report()
	var err error
	if schema && !s.asJSON {
		err = writeSchemas(s.process, tools)
	} else {
		err = s.print(toolRows(tools), s.toolTable(tools))
	}
	if err == nil && named && failed {
		err = errReported
	}
	return err
}

func (s *session) toolTable(tools []mcphost.Tool) *table {
	t := s.newTable()
	for _, tool := range tools {
		t.add(tool.FullName, firstLine(tool.Description, tool.Title))
	}
	return t
}

func writeSchemas(p *process, tools []mcphost.Tool) error {
	var b bytes.Buffer
	for i, tool := range tools {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s\n", tool.FullName)
		for line := range strings.Lines(strings.TrimSpace(tool.Description)) {
			fmt.Fprintf(&b, "  %s\n", printable(strings.TrimRight(line, "\r\n")))
		}
		b.WriteString("  ")
		if err := json.Indent(&b, rawOrNull(tool.InputSchema), "  ", "  "); err != nil {
			return err
		}
		b.WriteByte('\n')
	}
	_, err := p.out.Write(jsonFor(p.out, b.Bytes()))
	return err
}

// toolRow is the JSON form of a tool: that of tools/list, with the server and the full name.
type toolRow struct {
	Server       string               `json:"server"`
	Name         string               `json:"name"`
	FullName     string               `json:"fullName"`
	Title        string               `json:"title,omitempty"`
	Description  string               `json:"description"`
	InputSchema  json.RawMessage      `json:"inputSchema"`
	OutputSchema json.RawMessage      `json:"outputSchema,omitempty"`
	Annotations  *mcp.ToolAnnotations `json:"annotations,omitempty"`
	Meta         mcp.Meta             `json:"_meta,omitempty"`
}

func toolRows(tools []mcphost.Tool) []toolRow {
	rows := make([]toolRow, len(tools))
	for i, t := range tools {
		rows[i] = toolRow{
			t.Server, t.Name, t.FullName, t.Title, t.Description,
			rawOrNull(t.InputSchema), t.OutputSchema, t.Annotations, t.Meta,
		}
	}
	return rows
}

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
