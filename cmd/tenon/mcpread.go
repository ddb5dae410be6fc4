package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
)

func newResourcesCommand(p *process, f *mcpFlags) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "resources [SERVER] [flags]",
		Short: "List resources",
		Long: `List the resources of every server, or of one, and the templates of such: the server, the address, and the
first line of the description.`,
		Args: wantArgs(0, 1, "at most one SERVER"),
		RunE: func(c *cobra.Command, args []string) error {
			server := strings.Join(args, "")
			return f.with(c.Context(), p, server, func(s *session) error { return s.resources(c.Context(), server, asJSON) })
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// resourceRow and templateRow are the JSON forms of a resource and of a template of such, with the server.
type resourceRow struct {
	Server string `json:"server"`
	*mcp.Resource
}

type templateRow struct {
	Server string `json:"server"`
	*mcp.ResourceTemplate
}

// resourceList is the JSON form of 'tenon mcp resources'.
type resourceList struct {
	Resources []resourceRow `json:"resources"`
	Templates []templateRow `json:"resourceTemplates"`
}

func (s *session) resources(ctx context.Context, server string, asJSON bool) error {
	resources, err := s.host.Resources(ctx, server)
	if err != nil {
		return s.connectedError(server, err)
	}
	templates, err := s.host.ResourceTemplates(ctx, server)
	if err != nil {
		return s.connectedError(server, err)
	}
	s.report()
	list := resourceList{make([]resourceRow, 0, len(resources)), make([]templateRow, 0, len(templates))}
	t := s.newTable()
	for _, r := range resources {
		list.Resources = append(list.Resources, resourceRow(r))
		t.add(r.Server, r.URI, firstLine(r.Description, r.Name))
	}
	for _, r := range templates {
		list.Templates = append(list.Templates, templateRow(r))
		t.add(r.Server, r.URITemplate, firstLine(r.Description, r.Name))
	}
	if asJSON {
		return writeJSON(s.process, list)
	}
	return t.write(s.out)
}

func newReadCommand(p *process, f *mcpFlags) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "read SERVER URI [flags]",
		Short: "Read a resource",
		Long: `Read a resource of a server; no other server is started. Its text goes to standard output as it is, and so do
the bytes of a resource that is not text, unless that is a terminal. With --json the whole answer is printed.`,
		Args: wantArgs(2, 2, "SERVER URI"),
		RunE: func(c *cobra.Command, args []string) error {
			return f.with(c.Context(), p, args[0], func(s *session) error { return s.read(c.Context(), args[0], args[1], asJSON) })
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the whole answer as JSON")
	return c
}

func (s *session) read(ctx context.Context, server, uri string, asJSON bool) error {
	s.warnVariables()
	s.progress.set("reading %s", uri)
	result, err := s.host.ReadResource(ctx, server, uri)
	if err != nil {
		return fmt.Errorf("reading %s: %w", uri, s.connectedError(server, err))
	}
	s.progress.stop()
	if asJSON {
		return writeJSON(s.process, result)
	}
	for _, c := range result.Contents {
		data := []byte(endLine(safeFor(s.out, c.Text)))
		if _, ok := terminal(s.out); c.Blob != nil && ok {
			data = []byte(resourceText(c) + "\n")
		} else if c.Blob != nil {
			data = c.Blob
		}
		if _, err := s.out.Write(data); err != nil {
			return err
		}
	}
	return nil
}

func newPromptsCommand(p *process, f *mcpFlags) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "prompts [SERVER] [flags]",
		Short: "List prompts",
		Long: `List the prompts of every server, or of one: the server, the name with its arguments (those in brackets may be
left out), and the first line of the description.`,
		Args: wantArgs(0, 1, "at most one SERVER"),
		RunE: func(c *cobra.Command, args []string) error {
			server := strings.Join(args, "")
			return f.with(c.Context(), p, server, func(s *session) error { return s.prompts(c.Context(), server, asJSON) })
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// promptRow is the JSON form of a prompt, with the server that has it.
type promptRow struct {
	Server string `json:"server"`
	*mcp.Prompt
}

func (s *session) prompts(ctx context.Context, server string, asJSON bool) error {
	prompts, err := s.host.Prompts(ctx, server)
	if err != nil {
		return s.connectedError(server, err)
	}
	s.report()
	rows := make([]promptRow, 0, len(prompts))
	t := s.newTable()
	for _, pr := range prompts {
		rows = append(rows, promptRow(pr))
		t.add(pr.Server, promptUse(pr.Prompt), firstLine(pr.Description, pr.Title))
	}
	if asJSON {
		return writeJSON(s.process, rows)
	}
	return t.write(s.out)
}

// promptUse is a prompt's name with its arguments.
func promptUse(pr *mcp.Prompt) string {
	words := []string{pr.Name}
	for _, a := range pr.Arguments {
		word := a.Name + "="
		if !a.Required {
			word = "[" + word + "]"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func newPromptCommand(p *process, f *mcpFlags) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "prompt SERVER NAME [ARGUMENT=VALUE ...] [flags]",
		Short:   "Get a prompt",
		Long:    `Get a prompt of a server, filled in with arguments; no other server is started.`,
		Example: `  tenon mcp prompt docs review file=main.go | tenon run -`,
		Args:    wantArgs(2, 100, "SERVER NAME [ARGUMENT=VALUE ...]"),
		RunE: func(c *cobra.Command, args []string) error {
			values := map[string]string{}
			for _, a := range args[2:] {
				k, v, ok := strings.Cut(a, "=")
				if !ok {
					return usagef("%q is no argument of a prompt; write it as NAME=VALUE", a)
				}
				values[k] = v
			}
			return f.with(c.Context(), p, args[0], func(s *session) error { return s.prompt(c.Context(), args[0], args[1], values, asJSON) })
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the whole answer as JSON")
	return c
}

func (s *session) prompt(ctx context.Context, server, name string, values map[string]string, asJSON bool) error {
	s.warnVariables()
	result, err := s.host.GetPrompt(ctx, server, name, values)
	if err != nil {
		return fmt.Errorf("getting the prompt %q: %w", name, s.connectedError(server, err))
	}
	s.progress.stop()
	if asJSON {
		return writeJSON(s.process, result)
	}
	for i, m := range result.Messages {
		text := endLine(safeFor(s.out, contentText(m.Content)))
		if len(result.Messages) > 1 {
			text = fmt.Sprintf("%s: %s", m.Role, text)
		}
		if i > 0 {
			text = "\n" + text
		}
		if _, err := io.WriteString(s.out, text); err != nil {
			return err
		}
	}
	return nil
}
