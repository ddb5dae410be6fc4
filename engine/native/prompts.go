package native

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/toolresult"
)

// commandsWait bounds the wait for the servers' lists of prompts. Later lists are requested again.
const commandsWait = 3 * time.Second

// A command is a prompt of a server.
type command struct {
	agent.Command
	host *mcphost.Host
}

// A commandList has the commands as of one revision of the servers. It is safe for concurrent use.
type commandList struct {
	mu       sync.Mutex // held while the lists are fetched
	commands []command
	revision uint64
	fetched  bool
	whole    bool // no server was left out
}

// commands returns the current commands, sorted by name. again requests lists again that failed.
func (s *session) commands(ctx context.Context, again bool) []command {
	l := &s.commandList
	l.mu.Lock()
	defer l.mu.Unlock()
	revision := s.revision()
	if l.fetched && l.revision == revision && (l.whole || !again) {
		return l.commands
	}
	ctx, cancel := context.WithTimeout(ctx, commandsWait)
	defer cancel()
	l.commands, l.whole = s.fetchCommands(ctx)
	l.revision, l.fetched = revision, true
	return l.commands
}

// fetchCommands requests the prompts of all servers concurrently. whole reports that none failed.
func (s *session) fetchCommands(ctx context.Context) (commands []command, whole bool) {
	sources := s.serversWith(func(c *mcp.ServerCapabilities) bool { return c.Prompts != nil })
	lists := make([][]mcphost.Prompt, len(sources))
	errs := make([]error, len(sources))
	var wg sync.WaitGroup
	for i, src := range sources {
		wg.Go(func() { lists[i], errs[i] = src.host.Prompts(ctx, src.name) })
	}
	wg.Wait()
	taken := map[string]bool{}
	for i, list := range lists {
		for _, p := range list {
			c := command{commandOf(sources[i].name, p.Prompt), sources[i].host}
			if taken[c.Name] {
				s.opts.Logger.Warn("prompt left out: another has its name", "server", c.Server, "prompt", c.Prompt, "name", c.Name)
				continue
			}
			taken[c.Name] = true
			commands = append(commands, c)
		}
		if errs[i] != nil {
			s.opts.Logger.Warn("listing prompts", "server", sources[i].name, "error", errs[i])
		}
	}
	slices.SortFunc(commands, func(a, b command) int { return strings.Compare(a.Name, b.Name) })
	return commands, errors.Join(errs...) == nil
}

// commandOf describes a prompt.
func commandOf(server string, p *mcp.Prompt) agent.Command {
	c := agent.Command{
		Name: toolname.Server(server) + toolname.Separator + p.Name, Title: p.Title, Description: p.Description,
		Server: server, Prompt: p.Name,
	}
	var hint []string
	for _, a := range p.Arguments {
		if a == nil {
			continue
		}
		c.Arguments = append(c.Arguments, agent.CommandArgument{Name: a.Name, Title: a.Title, Description: a.Description, Required: a.Required})
		usage := "[" + a.Name + "]"
		if a.Required {
			usage = "<" + a.Name + ">"
		}
		hint = append(hint, usage)
	}
	c.ArgumentHint = strings.Join(hint, " ")
	return c
}

// commandNames returns the names of the commands, each after prefix.
func (s *session) commandNames(ctx context.Context, prefix string) []string {
	var names []string
	for _, c := range s.commands(ctx, false) {
		names = append(names, prefix+c.Name)
	}
	return names
}

// Commands returns the session's commands.
func (s *session) Commands(ctx context.Context) ([]agent.Command, error) {
	if s.life.Err() != nil {
		return nil, agent.ErrClosed
	}
	var list []agent.Command
	for _, c := range s.commands(ctx, true) {
		c.Arguments = slices.Clone(c.Arguments)
		list = append(list, c.Command)
	}
	return list, ctx.Err()
}

// CompleteCommand asks a prompt's server for values of an argument.
func (s *session) CompleteCommand(ctx context.Context, name, argument, value string, filled map[string]string) (*agent.Completion, error) {
	if s.life.Err() != nil {
		return nil, agent.ErrClosed
	}
	name = strings.TrimPrefix(name, "/")
	commands := s.commands(ctx, false)
	i := slices.IndexFunc(commands, func(c command) bool { return c.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("native: there is no command %q", name)
	}
	c := commands[i]
	if st, ok := c.host.ServerStatus(c.Server); ok && (st.Capabilities == nil || st.Capabilities.Completions == nil) {
		return &agent.Completion{}, nil
	}
	p := &mcp.CompleteParams{
		Ref:      &mcp.CompleteReference{Type: "ref/prompt", Name: c.Prompt},
		Argument: mcp.CompleteParamsArgument{Name: argument, Value: value},
	}
	if len(filled) > 0 {
		p.Context = &mcp.CompleteContext{Arguments: filled}
	}
	res, err := c.host.Complete(ctx, c.Server, p)
	if err != nil {
		return nil, err
	}
	return &agent.Completion{Values: res.Completion.Values, Total: res.Completion.Total, HasMore: res.Completion.HasMore}, nil
}

// expand returns the blocks of an input or, if it is a command, those of the prompt. It returns why a
// command fails.
func (t *turn) expand(in *agent.Input) ([]transcript.Part, string) {
	text := strings.TrimLeftFunc(in.Content.Text(), unicode.IsSpace)
	if !strings.HasPrefix(text, "/mcp__") {
		return t.s.enter(t.ctx, in.Content), ""
	}
	c, rest, ok := t.findCommand(text[1:])
	if !ok {
		name, _, _ := strings.Cut(text, " ")
		known := "No connected MCP server has prompts."
		if names := t.s.commandNames(t.ctx, "/"); len(names) > 0 {
			known = "There are: " + clip.Text(strings.Join(names, ", "), 1000)
		}
		return nil, fmt.Sprintf("Unknown command: %s. %s", clip.Text(oneLine(name), 200), known)
	}
	args, err := commandArguments(c.Arguments, rest)
	if err != nil {
		return nil, fmt.Sprintf("/%s: %v. Usage: /%s", c.Name, err, strings.TrimSpace(c.Name+" "+c.ArgumentHint))
	}
	res, err := c.host.GetPrompt(t.ctx, c.Server, c.Prompt, args)
	if err != nil {
		return nil, fmt.Sprintf("/%s: %v", c.Name, err)
	}
	said := "<command-name>/" + c.Name + "</command-name>"
	if rest = strings.TrimSpace(rest); rest != "" {
		said += "\n<command-args>" + rest + "</command-args>"
	}
	parts := []transcript.Part{transcript.TextPart(said)}
	for _, m := range res.Messages {
		if m == nil {
			continue
		}
		blocks := toolresult.Convert(t.ctx, c.Server, c.Prompt, &mcpserver.Result{Content: []mcp.Content{m.Content}}, &toolresult.ConvertOptions{Save: t.s.store.Save})
		for _, b := range transcript.ResultContent(toolresult.Fit(t.ctx, blocks, t.outputOptions(c.Server, c.Prompt, false, 0))) {
			parts = append(parts, transcript.Part{Raw: transcript.EncodeBlock(b)})
		}
	}
	beside := slices.DeleteFunc(slices.Clone(in.Content), func(b agent.Block) bool { _, ok := b.(*agent.TextBlock); return ok })
	return append(parts, t.s.enter(t.ctx, beside)...), ""
}

// findCommand finds the command with which a text begins, and returns the rest. Names of prompts may contain
// space, so the longest name applies. findCommand waits for a server that is connecting.
func (t *turn) findCommand(text string) (c command, rest string, ok bool) {
	for range 2 {
		for _, known := range t.s.commands(t.ctx, true) {
			after, found := strings.CutPrefix(text, known.Name)
			if found && (after == "" || unicode.IsSpace(rune(after[0]))) && len(known.Name) > len(c.Name) {
				c, rest, ok = known, after, true
			}
		}
		h, server, pending := toolset.ServerOf(t.s.hosts(), text, func(st mcphost.ServerStatus) bool { return st.Status == mcphost.StatusPending })
		if ok || !pending || h.Ready(t.ctx, server.Name) != nil {
			break
		}
	}
	return c, rest, ok
}

// commandArguments reads the arguments of a command, by position or by name.
func commandArguments(declared []agent.CommandArgument, text string) (map[string]string, error) {
	words, err := splitArguments(text)
	if err != nil {
		return nil, err
	}
	args := map[string]string{}
	var open []string
	for _, w := range words {
		name, value, named := strings.Cut(w.text, "=")
		if named && !w.quotedName && slices.ContainsFunc(declared, func(a agent.CommandArgument) bool { return a.Name == name }) {
			args[name] = value
			continue
		}
		open = append(open, w.text)
	}
	for _, a := range declared {
		if _, given := args[a.Name]; given || len(open) == 0 {
			continue
		}
		args[a.Name], open = open[0], open[1:]
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("%d arguments too many, from %q on (quote an argument that has space in it)", len(open), clip.Text(open[0], 100))
	}
	for _, a := range declared {
		if _, given := args[a.Name]; a.Required && !given {
			return nil, fmt.Errorf("argument %q is missing", a.Name)
		}
	}
	return args, nil
}

// A word is an argument.
type word struct {
	text       string
	quotedName bool // it begins with a quote, so that it is not NAME=VALUE
}

// splitArguments splits a text at white space that is not quoted. In double quotes and outside of quotes a
// backslash escapes a quote, a space or a backslash.
func splitArguments(line string) ([]word, error) {
	var words []word
	inWord := false
	var quote rune
	var text []rune // of the last word
	runes := []rune(line + " ")
	for i := 0; i < len(runes); i++ {
		r := runes[i]
		isSpace := quote == 0 && unicode.IsSpace(r)
		if !inWord && !isSpace {
			inWord, text = true, nil
			words = append(words, word{quotedName: r == '"' || r == '\''})
		}
		switch {
		case isSpace && inWord:
			words[len(words)-1].text, inWord = string(text), false
		case isSpace:
		case r == '\\' && quote != '\'' && i+2 < len(runes) && strings.ContainsRune(`"'\ `, runes[i+1]):
			i++
			text = append(text, runes[i])
		case r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote = r
		default:
			text = append(text, r)
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote %c is not closed", quote)
	}
	return words, nil
}

var _ agent.Commander = (*session)(nil)
