package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/tenon-sdk/tenon/internal/file"
	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
)

const callLong = `Call one tool of one server; no other server is started. The tool is named by SERVER and TOOL, or by its full
name alone (mcp__SERVER__TOOL, as 'tenon mcp tools' prints it).

The arguments are a JSON object: as it stands, "-" for standard input, "@FILE" for a file; or KEY=VALUE words, one
for each argument. A VALUE is a string where the tool's schema wants one, else JSON if it is that, else a string.
KEY:=JSON is always JSON. Without any the arguments are {}.

The text of the result goes to standard output; of a block that is not text there is a line that says what it
is. With --json the whole result is printed as the server sent it, also one that reports an error. --output FILE
writes the result into a file in place of standard output: an image, a sound or a resource as its bytes.

If the tool reports an error, its text goes to standard error and the exit status is 1. An unknown server or
tool is a mistake in the command line: exit status 2.`

const callExample = `  tenon mcp call files read_file '{"path": "notes.txt"}'
  tenon mcp call mcp__files__read_file path=notes.txt
  tenon mcp call browser screenshot --output page.png
  echo '{"a": 1, "b": 2}' | tenon mcp call calc add -
  tenon mcp call browser screenshot @arguments.json --json --timeout 2m`

func newCallCommand(p *process, f *mcpFlags) *cobra.Command {
	var (
		output  string
		timeout time.Duration
	)
	c := &cobra.Command{
		Use:     "call SERVER TOOL [JSON | KEY=VALUE ...] [flags]",
		Short:   "Call a tool",
		Long:    callLong,
		Example: callExample,
		Args:    wantArgs(1, 1000, "SERVER TOOL [JSON | KEY=VALUE ...]"),
		RunE: func(c *cobra.Command, args []string) error {
			return runCall(c.Context(), p, f, args, output, timeout)
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "write the result into `FILE`: text as it is, an image, a sound or a resource as its bytes")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print the whole result as JSON")
	c.Flags().DurationVar(&timeout, "timeout", 0, "the `TIME` that the call may take, such as 90s (default the server's timeout, else MCP_TOOL_TIMEOUT in milliseconds, else 10m)")
	return c
}

func runCall(ctx context.Context, p *process, f *mcpFlags, args []string, output string, timeout time.Duration) error {
	if timeout < 0 {
		return usagef("--timeout is %v; give more than 0, such as 90s", timeout)
	}
	servers, tool, words, err := f.toolArg(ctx, p, args)
	if err != nil {
		return err
	}
	input, err := argumentWords(ctx, p, words)
	if err != nil {
		return err
	}
	return f.with(ctx, p, servers, func(s *session) error {
		s.warnVariables()
		found, err := findTool(s.host, servers, tool)
		if err != nil {
			return err
		}
		s.progress.toolStarted(found.Name, found.Name)
		result, err := s.host.CallServer(ctx, found.Server, found.Name, input.object(found.InputSchema), &mcphost.CallOptions{
			Timeout:    timeout,
			OnProgress: func(g mcphost.Progress) { s.progress.toolNote(found.Name, progressNote(g)) },
		})
		s.progress.stop()
		switch {
		case errors.Is(err, mcphost.ErrTimeout):
			return fmt.Errorf("%w; to give it more time: --timeout, the timeout of its entry, or MCP_TOOL_TIMEOUT", err)
		case err != nil:
			return err
		case output != "" && !result.IsError:
			return s.saveResult(result, output)
		}
		return s.writeResult(result)
	})
}

// toolArg splits the arguments into the tool and the rest: SERVER and TOOL, or the full name in one
// word. The servers are those that may have the tool: two for mcp__a__b__c if there are a and a__b.
func (f *mcpFlags) toolArg(ctx context.Context, p *process, args []string) (servers []string, tool string, rest []string, err error) {
	if !strings.HasPrefix(args[0], toolname.Prefix) {
		if len(args) < 2 {
			return nil, "", nil, usagef("no TOOL given; 'tenon mcp tools %s' lists those of the server", args[0])
		}
		return args[:1], args[1], args[2:], nil
	}
	l, err := f.load(ctx, p)
	if err != nil {
		return nil, "", nil, err
	}
	if _, ok := l.cfg.Servers[args[0]]; ok && len(args) > 1 {
		return args[:1], args[1], args[2:], nil // a server's key may look like that
	}
	for _, name := range l.cfg.Names() {
		// The end of a name at the limit is a hash, which may begin within the server's part.
		if strings.HasPrefix(args[0], toolname.Server(name)+"__") || len(args[0]) == mcphost.DefaultNameLimit {
			servers = append(servers, name)
		}
	}
	if len(servers) == 0 {
		return nil, "", nil, usagef("no server has a tool %q; 'tenon mcp tools' lists the tools of all servers", args[0])
	}
	return servers, args[0], args[1:], nil
}

// findTool finds a tool by its own or its full name on the connected servers. There are several if
// the full name may be that of a tool of each.
func findTool(host *mcphost.Host, servers []string, tool string) (mcphost.Tool, error) {
	var names []string
	for _, t := range host.Tools() {
		if len(servers) == 1 && t.Name == tool || t.FullName == tool || t.LongName == tool {
			return t, nil
		}
		names = append(names, t.Name)
	}
	for _, s := range host.Status() {
		if s.Status != mcphost.StatusConnected {
			return mcphost.Tool{}, errors.New(serverLine(s))
		}
		for _, r := range s.Rejected {
			if r.Name == tool || toolname.Full(s.Name, r.Name) == tool {
				return mcphost.Tool{}, fmt.Errorf("tool %q of server %q cannot be used: %s", r.Name, s.Name, r.Reason)
			}
		}
	}
	if len(servers) > 1 {
		return mcphost.Tool{}, usagef("none of the servers %s has a tool %q; 'tenon mcp tools' lists their %s", strings.Join(servers, ", "), tool, count(len(names), "tool"))
	}
	server := servers[0]
	hint := didYouMean(strings.TrimPrefix(tool, toolname.Server(server)+"__"), names)
	if hint == "" {
		hint = fmt.Sprintf("; 'tenon mcp tools %s' lists its %s", server, count(len(names), "tool"))
	}
	return mcphost.Tool{}, usagef("server %q has no tool %q%s", server, tool, hint)
}

// progressNote returns a server's progress: 3 of 10, and its message.
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

// writeResult prints a result. One that reports an error goes to standard error.
func (s *session) writeResult(r *mcpserver.Result) error {
	out := s.out
	if r.IsError {
		out = s.process.err
	}
	var err error
	if s.asJSON {
		err = writeJSON(s.process, r)
	} else {
		_, err = io.WriteString(out, endLine(safeFor(out, resultText(r))))
	}
	if err == nil && r.IsError {
		err = errReported
	}
	return err
}

// saveResult writes a result into a file: the bytes of an image, a sound or a resource if the result
// has one of them, else its text, or with --json all of it.
func (s *session) saveResult(r *mcpserver.Result, name string) error {
	var (
		data  []byte
		texts []string
		blobs int
	)
	for _, c := range r.Content {
		if text, b := content(c); b != nil {
			data = b
			blobs++
		} else {
			texts = append(texts, text)
		}
	}
	switch {
	case s.asJSON:
		var err error
		if data, err = json.MarshalIndent(r, "", "  "); err != nil {
			return err
		}
		data, texts = append(data, '\n'), nil
	case blobs > 1:
		return fmt.Errorf("nothing was written to %s: the result has %d blocks of bytes and one file holds one of them; --json --output %s keeps all", name, blobs, name)
	case blobs == 0:
		data, texts = []byte(endLine(resultText(r))), nil
	}
	if err := os.WriteFile(name, data, 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", name, file.Cause(err))
	}
	fmt.Fprintf(s.process.err, "tenon: wrote %d bytes to %s\n", len(data), visible(name))
	_, err := io.WriteString(s.out, endLine(safeFor(s.out, strings.Join(texts, "\n"))))
	return err
}

// resultText returns the text of a result and a line for each block of another kind, or the
// structured content if there is nothing else.
func resultText(r *mcpserver.Result) string {
	var parts []string
	for _, c := range r.Content {
		text, _ := content(c)
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return string(r.StructuredContent)
	}
	return strings.Join(parts, "\n")
}

// content returns the text of a block, or a line about one that is not text with its bytes, if it
// has any.
func content(c mcp.Content) (text string, data []byte) {
	switch c := c.(type) {
	case *mcp.TextContent:
		return c.Text, nil
	case *mcp.ImageContent:
		return fmt.Sprintf("[image %s, %d bytes]", c.MIMEType, len(c.Data)), c.Data
	case *mcp.AudioContent:
		return fmt.Sprintf("[audio %s, %d bytes]", c.MIMEType, len(c.Data)), c.Data
	case *mcp.ResourceLink:
		return fmt.Sprintf("[resource %s] %s", c.Name, c.URI), nil
	case *mcp.EmbeddedResource:
		return resourceText(c.Resource), cmp.Or(c.Resource, &mcp.ResourceContents{}).Blob
	}
	return fmt.Sprintf("[%T]", c), nil
}

// resourceText returns a resource's text, or a line about one that is not text.
func resourceText(r *mcp.ResourceContents) string {
	switch {
	case r == nil:
		return "[empty resource]"
	case r.Blob != nil:
		return fmt.Sprintf("[resource %s %s, %d bytes]", r.URI, r.MIMEType, len(r.Blob))
	}
	return r.Text
}
