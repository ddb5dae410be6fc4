package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
)

const callLong = `Call one tool of one server; no other server is started. TOOL is the tool's own name or the full one
(mcp__SERVER__TOOL). JSON is an object with the arguments: as it stands, "-" for standard input, "@FILE" for a
file; without it the arguments are {}.

The text of the result goes to standard output; of a block that is not text there is a line that says what it
is. With --json the whole result is printed as the server sent it, also one that reports an error.

If the tool reports an error, its text goes to standard error and the exit status is 1. An unknown server or
tool is a mistake in the command line: exit status 2.`

const callExample = `  tenon mcp call files read_file '{"path": "notes.txt"}'
  echo '{"a": 1, "b": 2}' | tenon mcp call calc add -
  tenon mcp call browser screenshot @arguments.json --json --timeout 2m`

type callFlags struct {
	asJSON  bool
	timeout time.Duration
}

func newCallCommand(p *process, f *mcpFlags) *cobra.Command {
	cf := new(callFlags)
	c := &cobra.Command{
		Use:     "call SERVER TOOL [JSON] [flags]",
		Short:   "Call a tool",
		Long:    callLong,
		Example: callExample,
		Args:    wantArgs(2, 3, "SERVER TOOL [JSON]"),
		RunE: func(c *cobra.Command, args []string) error {
			arg := ""
			if len(args) == 3 {
				arg = args[2]
			}
			return runCall(c.Context(), p, f, cf, args[0], args[1], arg)
		},
	}
	c.Flags().BoolVar(&cf.asJSON, "json", false, "print the whole result as JSON")
	c.Flags().DurationVar(&cf.timeout, "timeout", 0, "the `TIME` that the call may take, such as 90s (default the server's timeout, else MCP_TOOL_TIMEOUT in milliseconds, else 10m)")
	return c
}

func runCall(ctx context.Context, p *process, f *mcpFlags, cf *callFlags, server, tool, arg string) error {
	if cf.timeout < 0 {
		return usagef("--timeout is %v; give more than 0, such as 90s", cf.timeout)
	}
	input, err := objectArg(ctx, p, arg)
	if err != nil {
		return err
	}
	return f.with(ctx, p, server, func(s *session) error {
		s.tellVariables()
		name, err := findTool(s.host, server, tool)
		if err != nil {
			return err
		}
		result, err := call(ctx, s.host, s.progress, server, name, input, cf.timeout)
		s.progress.stop()
		switch {
		case errors.Is(err, mcphost.ErrTimeout):
			return fmt.Errorf("%w; to give it more time: --timeout, the timeout of its entry, or MCP_TOOL_TIMEOUT", err)
		case err != nil:
			return err
		}
		return writeResult(p, result, cf.asJSON)
	})
}

// findTool resolves the name of a tool, its own or the full one, on the one server that is connected.
func findTool(host *mcphost.Host, server, tool string) (string, error) {
	status := host.Status()
	for _, s := range status {
		if s.Status != mcphost.StatusConnected {
			return "", errors.New(serverLine(s))
		}
		for _, r := range s.Rejected {
			if r.Name == tool {
				return "", fmt.Errorf("tool %q of server %q cannot be used: %s", tool, server, r.Reason)
			}
		}
	}
	var names []string
	for _, t := range host.Tools() {
		if t.Name == tool || t.FullName == tool || t.LongName == tool {
			return t.Name, nil
		}
		names = append(names, t.Name)
	}
	hint := didYouMean(tool, names)
	if hint == "" {
		hint = fmt.Sprintf("; 'tenon mcp tools %s' lists its %s", server, count(len(names), "tool"))
	}
	return "", usagef("server %q has no tool %q%s", server, tool, hint)
}

func call(ctx context.Context, host *mcphost.Host, pr *progress, server, tool string, input json.RawMessage, timeout time.Duration) (*mcpserver.Result, error) {
	pr.toolStarted(tool, tool)
	defer pr.toolEnded(tool)
	return host.CallServer(ctx, server, tool, input, &mcphost.CallOptions{
		Timeout:    timeout,
		OnProgress: func(g mcphost.Progress) { pr.toolNote(tool, progressNote(g)) },
	})
}

// progressNote is what a server says of its progress: 3 of 10, and its message.
func progressNote(g mcphost.Progress) string {
	note := fmt.Sprintf("%g", g.Progress)
	if g.Total > 0 {
		note += fmt.Sprintf(" of %g", g.Total)
	}
	if g.Message != "" {
		note += " " + g.Message
	}
	return "(" + note + ")"
}

// writeResult prints a result. One that reports an error ends in errReported.
func writeResult(p *process, r *mcpserver.Result, asJSON bool) error {
	out := p.out
	switch {
	case asJSON:
		if err := writeJSON(p, r); err != nil {
			return err
		}
	default:
		if r.IsError {
			out = p.err
		}
		if _, err := io.WriteString(out, endLine(safeFor(out, resultText(r)))); err != nil {
			return err
		}
	}
	if r.IsError {
		return errReported
	}
	return nil
}

// endLine ends a text that is not empty with a newline.
func endLine(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

// resultText is the part of a result that can be read: its text, a line for each block of another kind,
// and the structured content if there is nothing else.
func resultText(r *mcpserver.Result) string {
	var parts []string
	for _, c := range r.Content {
		parts = append(parts, contentText(c))
	}
	if len(parts) == 0 && len(r.StructuredContent) > 0 {
		parts = append(parts, string(r.StructuredContent))
	}
	return strings.Join(parts, "\n")
}

func contentText(c mcp.Content) string {
	switch c := c.(type) {
	case *mcp.TextContent:
		return c.Text
	case *mcp.ImageContent:
		return fmt.Sprintf("[image %s, %d bytes]", c.MIMEType, len(c.Data))
	case *mcp.AudioContent:
		return fmt.Sprintf("[audio %s, %d bytes]", c.MIMEType, len(c.Data))
	case *mcp.ResourceLink:
		return fmt.Sprintf("[resource %s] %s", c.Name, c.URI)
	case *mcp.EmbeddedResource:
		return resourceText(c.Resource)
	}
	return fmt.Sprintf("[%T]", c)
}

// resourceText is a resource's text, or a line about one that is not text.
func resourceText(r *mcp.ResourceContents) string {
	switch {
	case r == nil:
		return "[empty resource]"
	case r.Blob != nil:
		return fmt.Sprintf("[resource %s %s, %d bytes]", r.URI, r.MIMEType, len(r.Blob))
	}
	return r.Text
}
