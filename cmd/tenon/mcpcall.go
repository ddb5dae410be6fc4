package main

import (
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

type callFlags struct {
	asJSON  bool
	output  string
	timeout time.Duration
}

func newCallCommand(p *process, f *mcpFlags) *cobra.Command {
	cf := new(callFlags)
	c := &cobra.Command{
		Use:     "call SERVER TOOL [JSON | KEY=VALUE ...] [flags]",
		Short:   "Call a tool",
		Long:    callLong,
		Example: callExample,
		Args:    wantArgs(1, 1000, "SERVER TOOL [JSON | KEY=VALUE ...]"),
		RunE: func(c *cobra.Command, args []string) error {
			return runCall(c.Context(), p, f, cf, args)
		},
	}
	c.Flags().StringVarP(&cf.output, "output", "o", "", "write the result into `FILE`: text as it is, an image, a sound or a resource as its bytes")
	c.Flags().BoolVar(&cf.asJSON, "json", false, "print the whole result as JSON")
	c.Flags().DurationVar(&cf.timeout, "timeout", 0, "the `TIME` that the call may take, such as 90s (default the server's timeout, else MCP_TOOL_TIMEOUT in milliseconds, else 10m)")
	return c
}

func runCall(ctx context.Context, p *process, f *mcpFlags, cf *callFlags, args []string) error {
	if cf.timeout < 0 {
		return usagef("--timeout is %v; give more than 0, such as 90s", cf.timeout)
	}
	servers, tool, words, err := f.toolArg(ctx, p, args)
	if err != nil {
		return err
	}
	input, err := argumentWords(ctx, p, words)
	if err != nil {
		return err
	}
	return f.withServers(ctx, p, servers, func(s *session) error {
		s.warnVariables()
		found, err := findTool(s.host, servers, tool)
		if err != nil {
			return err
		}
		result, err := call(ctx, s.host, s.progress, found.Server, found.Name, input.object(found.InputSchema), cf.timeout)
		s.progress.stop()
		switch {
		case errors.Is(err, mcphost.ErrTimeout):
			return fmt.Errorf("%w; to give it more time: --timeout, the timeout of its entry, or MCP_TOOL_TIMEOUT", err)
		case err != nil:
			return err
		case cf.output != "" && !result.IsError:
			return saveResult(p, result, cf)
		}
		return writeResult(p, result, cf.asJSON)
	})
}

// toolArg takes the tool out of the arguments: SERVER and TOOL, or the full name in one word. The servers are those
// that may have the tool: two for the full name mcp__a__b__c if there are servers a and a__b.
func (f *mcpFlags) toolArg(ctx context.Context, p *process, args []string) (servers []string, tool string, rest []string, err error) {
	if !strings.HasPrefix(args[0], toolname.Prefix) {
		if len(args) < 2 {
			return nil, "", nil, usagef("no TOOL given; 'tenon mcp tools %s' lists those of the server", args[0])
		}
		return args[:1], args[1], args[2:], nil
	}
	cfg, _, _, err := f.load(ctx, p)
	if err != nil {
		return nil, "", nil, err
	}
	if _, ok := cfg.Servers[args[0]]; ok && len(args) > 1 {
		return args[:1], args[1], args[2:], nil // a server's key may look like that
	}
	for _, name := range cfg.Names() {
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

// findTool finds a tool by its own name or by the full one on the servers that are connected: one, unless the full
// name may be that of a tool of several.
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

// saveResult writes a result into the file of --output: the bytes of an image, a sound or a resource if the result has
// one of them, else its text, or with --json all of it.
func saveResult(p *process, r *mcpserver.Result, cf *callFlags) error {
	var (
		data  []byte
		texts []string
		blobs int
	)
	for _, c := range r.Content {
		b := contentBytes(c)
		if b == nil {
			texts = append(texts, contentText(c))
			continue
		}
		data = b
		blobs++
	}
	switch {
	case cf.asJSON:
		var err error
		if data, err = json.MarshalIndent(r, "", "  "); err != nil {
			return err
		}
		data = append(data, '\n')
	case blobs > 1:
		return fmt.Errorf("nothing was written to %s: the result has %d blocks of bytes and one file holds one of them; --json --output %s keeps all", cf.output, blobs, cf.output)
	case blobs == 0:
		data, texts = []byte(endLine(resultText(r))), nil
	}
	if err := os.WriteFile(p.path(cf.output), data, 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", cf.output, pathCause(err))
	}
	fmt.Fprintf(p.err, "tenon: wrote %d bytes to %s\n", len(data), visible(cf.output))
	if len(texts) == 0 || cf.asJSON {
		return nil
	}
	_, err := io.WriteString(p.out, endLine(safeFor(p.out, strings.Join(texts, "\n"))))
	return err
}

// contentBytes are the bytes of a block that is not text; nil for one that is.
func contentBytes(c mcp.Content) []byte {
	switch c := c.(type) {
	case *mcp.ImageContent:
		return c.Data
	case *mcp.AudioContent:
		return c.Data
	case *mcp.EmbeddedResource:
		if c.Resource != nil {
			return c.Resource.Blob
		}
	}
	return nil
}
