package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/tenon-sdk/tenon/mcphost"
)

func newResourcesCommand(p *process, f *mcpFlags) *cobra.Command {
	return f.command(p, &cobra.Command{
		Use:   "resources [SERVER] [flags]",
		Short: "List resources",
		Long: `List the resources of every server, or of one, and the templates of such: the server, the address, and the
first line of the description.`,
		Args: wantArgs(0, 1, "at most one SERVER"),
	}, "print JSON", (*session).resources)
}

// resourceList is the JSON form of 'tenon mcp resources'.
type resourceList struct {
	Resources []mcphost.Resource         `json:"resources"`
	Templates []mcphost.ResourceTemplate `json:"resourceTemplates"`
}

func (s *session) resources(ctx context.Context, args []string) error {
	server := strings.Join(args, "")
	resources, err := s.host.Resources(ctx, server)
	if err != nil {
		return s.connectedError(server, err)
	}
	templates, err := s.host.ResourceTemplates(ctx, server)
	if err != nil {
		return s.connectedError(server, err)
	}
	s.report()
	t := s.newTable()
	for _, r := range resources {
		t.add(r.Server, r.URI, firstLine(r.Description, r.Name))
	}
	for _, r := range templates {
		t.add(r.Server, r.URITemplate, firstLine(r.Description, r.Name))
	}
	return s.print(resourceList{append([]mcphost.Resource{}, resources...), append([]mcphost.ResourceTemplate{}, templates...)}, t)
}

func newReadCommand(p *process, f *mcpFlags) *cobra.Command {
	return f.command(p, &cobra.Command{
		Use:   "read SERVER URI [flags]",
		Short: "Read a resource",
		Long: `Read a resource of a server; no other server is started. Its text goes to standard output as it is, and so do
the bytes of a resource that is not text, unless that is a terminal. With --json the whole answer is printed.`,
		Args: wantArgs(2, 2, "SERVER URI"),
	}, "print the whole answer as JSON", (*session).read)
}

func (s *session) read(ctx context.Context, args []string) error {
	server, uri := args[0], args[1]
	s.warnVariables()
	s.progress.set("reading %s", uri)
	result, err := s.host.ReadResource(ctx, server, uri)
	if err != nil {
		return fmt.Errorf("reading %s: %w", uri, s.connectedError(server, err))
	}
	s.progress.stop()
	if s.asJSON {
		return writeJSON(s.process, result)
	}
	_, isTerminal := terminal(s.out)
	for _, c := range result.Contents {
		data := []byte(endLine(safeFor(s.out, resourceText(c))))
		if c.Blob != nil && !isTerminal {
			data = c.Blob
		}
		if _, err := s.out.Write(data); err != nil {
			return err
		}
	}
	return nil
}

func newPromptsCommand(p *process, f *mcpFlags) *cobra.Command {
	return f.command(p, &cobra.Command{
		Use:   "prompts [SERVER] [flags]",
		Short: "List prompts",
		Long: `List the prompts of every server, or of one: the server, the name with its arguments (those in brackets may be
left out), and the first line of the description.`,
		Args: wantArgs(0, 1, "at most one SERVER"),
	}, "print JSON", (*session).prompts)
}

func (s *session) prompts(ctx context.Context, args []string) error {
	server := strings.Join(args, "")
	prompts, err := s.host.Prompts(ctx, server)
	if err != nil {
		return s.connectedError(server, err)
	}
	s.report()
	t := s.newTable()
	for _, pr := range prompts {
		t.add(pr.Server, promptUse(pr.Prompt), firstLine(pr.Description, pr.Title))
	}
	return s.print(append([]mcphost.Prompt{}, prompts...), t)
}

// promptUse returns a prompt's name with its arguments.
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
	values := map[string]string{}
	return f.command(p, &cobra.Command{
		Use:     "prompt SERVER NAME [ARGUMENT=VALUE ...] [flags]",
		Short:   "Get a prompt",
		Long:    `Get a prompt of a server, filled in with arguments; no other server is started.`,
		Example: `  tenon mcp prompt docs review file=main.go | tenon run -`,
		Args:    wantArgs(2, 100, "SERVER NAME [ARGUMENT=VALUE ...]"),
		PreRunE: func(_ *cobra.Command, args []string) error {
			for _, a := range args[2:] {
				k, v, ok := strings.Cut(a, "=")
				if !ok {
					return usagef("%q is no argument of a prompt; write it as NAME=VALUE", a)
				}
				values[k] = v
			}
			return nil
		},
	}, "print the whole answer as JSON", func(s *session, ctx context.Context, args []string) error {
		return s.prompt(ctx, args[0], args[1], values)
	})
}

func (s *session) prompt(ctx context.Context, server, name string, values map[string]string) error {
	s.warnVariables()
	result, err := s.host.GetPrompt(ctx, server, name, values)
	if err != nil {
		return fmt.Errorf("getting the prompt %q: %w", name, s.connectedError(server, err))
	}
	s.progress.stop()
	if s.asJSON {
		return writeJSON(s.process, result)
	}
	var texts []string
	for _, m := range result.Messages {
		text, _ := content(m.Content)
		text = endLine(safeFor(s.out, text))
		if len(result.Messages) > 1 {
			text = fmt.Sprintf("%s: %s", m.Role, text)
		}
		texts = append(texts, text)
	}
	_, err = io.WriteString(s.out, strings.Join(texts, "\n"))
	return err
}
