package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The keys in a tool's _meta for properties that the protocol does not define.
const (
	MetaSearchHint    = "anthropic/searchHint"         // string
	MetaAlwaysLoad    = "anthropic/alwaysLoad"         // boolean
	MetaMaxResultSize = "anthropic/maxResultSizeChars" // integer
	MetaConcurrency   = "tenon/concurrency"            // "parallel" or "serial"; absent for ByAnnotation
)

// A Tool describes a tool. Registration copies it.
type Tool struct {
	// Name has 1 to 128 of the characters A-Z a-z 0-9 _ - . and is unique on its server.
	Name string
	// Title is the name for people. Clients of protocol 2025-03-26 use
	// AnnotationTitle instead, which is part of the annotations.
	Title, AnnotationTitle string
	// Description tells the model what the tool does.
	Description string
	// InputSchema is the JSON Schema of the arguments, which are an object, in
	// dialect 2020-12, 2019-09 or draft-07. Nil means the schema of the Go type, or
	// any object for a raw handler. Clients repeat a property with x-mcp-header in
	// an HTTP header. Where the protocol does not allow the keyword, such as on a
	// number, it is logged and removed.
	InputSchema json.RawMessage
	// OutputSchema is the JSON Schema of the structured content. Nil means the
	// schema of the Go type, or none for a raw handler.
	OutputSchema json.RawMessage
	// ReadOnly, Idempotent, Destructive and OpenWorld are hints. Clients take a nil
	// Destructive or OpenWorld for true.
	ReadOnly, Idempotent   bool
	Destructive, OpenWorld *bool
	Icons                  []mcp.Icon
	Meta                   mcp.Meta
	// SearchHint holds words by which a host's tool search finds the tool.
	SearchHint string
	// AlwaysLoad keeps a host from leaving the tool to tool search.
	AlwaysLoad *bool
	// MaxResultSize is the number of characters of a result that a host shows in
	// place; 0 means the host's default.
	MaxResultSize int
	// Timeout is the time limit of a call; 0 means the session's or server's
	// (see [Options.Timeout]), [NoTimeout] none.
	Timeout     time.Duration
	Concurrency Concurrency
	// MaxSchemaDepth overrides [Options.MaxSchemaDepth] if it is not 0.
	MaxSchemaDepth int
}

// AddTool adds a tool with a hand-written schema and a raw handler. An invalid
// registration is rejected: AddTool logs it, adds it to [Server.Rejected] and returns
// its error. Other tools are not affected.
func (s *Server) AddTool(t *Tool, h RawHandler) error {
	if h == nil {
		return s.rejectTool(t, errors.New("it has no handler"))
	}
	return s.addTool(t, handlerParts{run: func(ctx context.Context, inv *Invocation) (err error) {
		inv.Result, err = h(ctx, inv.Arguments)
		return err
	}})
}

// AddRawTool is [Server.AddTool] for a handler that returns JSON. An invalid result,
// such as an object without content, becomes an error result.
func (s *Server) AddRawTool(t *Tool, h RawJSONHandler) error {
	if h == nil {
		return s.rejectTool(t, errors.New("it has no handler"))
	}
	return s.addTool(t, handlerParts{run: func(ctx context.Context, inv *Invocation) error {
		raw, err := h(ctx, inv.Arguments)
		if err == nil {
			inv.Result = decodeResult(inv.Name, raw)
		}
		return err
	}})
}

// decodeResult decodes the result of a raw handler.
func decodeResult(name string, raw json.RawMessage) *Result {
	var members map[string]json.RawMessage
	var r Result
	err := errNoContent
	if json.Unmarshal(raw, &members) == nil && members != nil {
		err = r.take(members)
	}
	switch {
	case errors.Is(err, errNoContent):
		return Errorf("Tool '%s' must return a JSON object with a content array, and its handler returned %s", name, excerpt(raw))
	case err != nil:
		return Errorf("Tool '%s' returned a malformed result: %v", name, err)
	}
	return &r
}

// excerpt returns the beginning of a JSON text.
func excerpt(raw json.RawMessage) string {
	const limit = 60
	text := strings.TrimSpace(string(raw))
	switch {
	case text == "":
		return "nothing"
	case len(text) > limit:
		return strings.ToValidUTF8(text[:limit], "") + "..."
	}
	return text
}

// RemoveTool removes tools and notifies all sessions. Unknown names are ignored.
// Running calls go on.
func (s *Server) RemoveTool(names ...string) {
	s.change(MethodToolListChanged, func(f *features) bool { return f.tools.remove(names) })
}

// handlerParts holds what the ways of registering a tool differ in.
type handlerParts struct {
	run           func(ctx context.Context, inv *Invocation) error
	typed         bool
	input, output json.RawMessage // derived from Go types; nil: none
}

func (s *Server) rejectTool(t *Tool, err error) error {
	name := ""
	if t != nil {
		name = t.Name
	}
	return s.reject(KindTool, name, err)
}

// addTool registers a tool.
func (s *Server) addTool(t *Tool, p handlerParts) error {
	if t == nil {
		return s.rejectTool(t, errors.New("the tool is nil"))
	}
	made, err := s.makeTool(t, p)
	if err != nil {
		return s.rejectTool(t, err)
	}
	added := s.change(MethodToolListChanged, func(f *features) bool { return f.tools.add(made.listed.Name, made) })
	if !added {
		return s.rejectTool(t, errDuplicate)
	}
	return nil
}

func (s *Server) makeTool(t *Tool, p handlerParts) (*tool, error) {
	if err := checkToolName(t.Name); err != nil {
		return nil, err
	}
	made := &tool{run: p.run, typed: p.typed, timeout: t.Timeout, concurrency: t.Concurrency}
	var err error
	input, derived := p.input, p.input != nil && t.InputSchema == nil
	if !derived {
		if input, err = inputSchema(t.InputSchema); err != nil {
			return nil, &inputSchemaError{err}
		}
	}
	if made.headers, input, err = s.usableHeaders(t.Name, input); err != nil {
		return nil, &inputSchemaError{fmt.Errorf("input schema: %w", err)}
	}
	if made.input, err = s.newChecker(t.Name, input, derived, t.MaxSchemaDepth); err != nil {
		return nil, &inputSchemaError{fmt.Errorf("input schema: %w", err)}
	}
	output, derived := slices.Clone(t.OutputSchema), false
	if t.OutputSchema == nil && p.output != nil {
		output, derived = p.output, true
	}
	if string(output) == "null" {
		output = nil
	}
	if output != nil {
		if made.output, err = s.newChecker(t.Name, output, derived, t.MaxSchemaDepth); err != nil {
			return nil, fmt.Errorf("output schema: %w", err)
		}
	}
	made.listed, err = t.list(input, output)
	return made, err
}

// list returns the tool's entry in the list of tools.
func (t *Tool) list(input, output json.RawMessage) (*mcp.Tool, error) {
	meta := maps.Clone(t.Meta)
	set := func(key string, value any, use bool) {
		if use && meta == nil {
			meta = mcp.Meta{}
		}
		if use {
			meta[key] = value
		}
	}
	set(MetaSearchHint, t.SearchHint, t.SearchHint != "")
	if t.AlwaysLoad != nil {
		set(MetaAlwaysLoad, *t.AlwaysLoad, true)
	}
	set(MetaMaxResultSize, t.MaxResultSize, t.MaxResultSize > 0)
	set(MetaConcurrency, t.Concurrency.String(), t.Concurrency != ByAnnotation)
	if _, err := json.Marshal(meta); err != nil {
		return nil, fmt.Errorf("its _meta has no JSON form: %w", err)
	}
	listed := &mcp.Tool{
		Meta: meta, Name: t.Name, Title: t.Title, Description: t.Description,
		InputSchema: input, Icons: slices.Clone(t.Icons),
	}
	if output != nil {
		listed.OutputSchema = output
	}
	if t.AnnotationTitle != "" || t.ReadOnly || t.Idempotent || t.Destructive != nil || t.OpenWorld != nil {
		listed.Annotations = &mcp.ToolAnnotations{
			Title: t.AnnotationTitle, ReadOnlyHint: t.ReadOnly, IdempotentHint: t.Idempotent,
			DestructiveHint: clonePointer(t.Destructive), OpenWorldHint: clonePointer(t.OpenWorld),
		}
	}
	return listed, nil
}

func clonePointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// checkToolName checks a name by the rules of the protocol.
func checkToolName(name string) error {
	if name == "" {
		return errors.New("it has no name")
	}
	if len(name) > 128 {
		return fmt.Errorf("its name has %d characters, more than 128", len(name))
	}
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-', r == '.':
		default:
			return fmt.Errorf("its name has the character %q; only A-Z a-z 0-9 _ - . are allowed", r)
		}
	}
	return nil
}

// ToolTimeout returns the time limit of direct calls of a tool. If there is no such
// tool, it is that of tools that set none.
func (s *Server) ToolTimeout(name string) time.Duration {
	if t := s.registry().tool(name); t != nil {
		return s.limitFor(t, nil)
	}
	return s.timeout
}

// ToolTimeout returns the time limit of the session's calls of a tool. If there is
// no such tool, it is that of tools that set none.
func (ss *Session) ToolTimeout(name string) time.Duration {
	if t := ss.server.registry().tool(name); t != nil {
		return ss.server.limitFor(t, ss)
	}
	return ss.timeout
}

// ValidateInput checks arguments against a tool's input schema; nil means that
// they are valid.
func (s *Server) ValidateInput(tool string, args json.RawMessage) error {
	t := s.registry().tool(tool)
	if t == nil {
		return fmt.Errorf("mcpserver: tool %q not found", tool)
	}
	_, err := t.input.validate(args, t.typed)
	return err
}

// ValidateOutput checks structured content against a tool's output schema; nil
// means that it is valid, or that there is no output schema.
func (s *Server) ValidateOutput(tool string, data json.RawMessage) error {
	t := s.registry().tool(tool)
	if t == nil {
		return fmt.Errorf("mcpserver: tool %q not found", tool)
	}
	if t.output == nil {
		return nil
	}
	_, err := t.output.validate(data, false)
	return err
}
