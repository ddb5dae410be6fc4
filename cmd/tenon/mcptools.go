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
		var schema bytes.Buffer
		if err := json.Indent(&schema, rawOrNull(tool.InputSchema), "  ", "  "); err != nil {
			schema.Write(tool.InputSchema)
		}
		b.Write(jsonFor(p.out, schema.Bytes()))
		b.WriteByte('\n')
	}
	_, err := p.out.Write(b.Bytes())
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
