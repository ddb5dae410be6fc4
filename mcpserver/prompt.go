package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/goschema"
)

// AddPrompt adds a prompt. Its handler gets the arguments unchecked: p.Arguments is
// for clients. An invalid registration is rejected as by [Server.AddTool]. AddPrompt
// copies p.
func (s *Server) AddPrompt(p *mcp.Prompt, h PromptHandler) error { return s.addPrompt(p, h, nil) }

func (s *Server) addPrompt(p *mcp.Prompt, h PromptHandler, enums map[string][]string) error {
	if p == nil {
		return s.reject(KindPrompt, "", errors.New("the prompt is nil"))
	}
	listed, err := copyJSON(p)
	switch {
	case err != nil:
	case h == nil:
		err = errors.New("it has no handler")
	case p.Name == "":
		err = errors.New("it has no name")
	default:
		err = checkArguments(listed.Arguments)
	}
	if err != nil {
		return s.reject(KindPrompt, p.Name, err)
	}
	if !s.change(MethodPromptListChanged, func(f *features) bool { return f.prompts.add(p.Name, &prompt{listed, h, enums}) }) {
		return s.reject(KindPrompt, p.Name, errDuplicate)
	}
	return nil
}

func checkArguments(args []*mcp.PromptArgument) error {
	seen := map[string]bool{}
	for i, a := range args {
		switch {
		case a == nil || a.Name == "":
			return fmt.Errorf("argument %d has no name", i)
		case seen[a.Name]:
			return fmt.Errorf("argument %q is there twice", a.Name)
		}
		seen[a.Name] = true
	}
	return nil
}

// AddPrompt adds a prompt whose arguments are a struct. The protocol has only
// string arguments: a field is a string, a number, a boolean or a type that is
// decoded from text. The tags of the fields are those of tools (see [AddTool]); they
// describe p.Arguments unless it is set. The values of enums are suggested for
// completion. Arguments that do not match are an error; the handler is not called.
func AddPrompt[In any](s *Server, p *mcp.Prompt, h func(ctx context.Context, in In) (*mcp.GetPromptResult, error)) error {
	if p == nil || h == nil {
		return s.AddPrompt(p, nil)
	}
	a, err := newPromptArgs[In](s, p.Name)
	if err != nil {
		return s.reject(KindPrompt, p.Name, fmt.Errorf("arguments: %w", err))
	}
	c := *p
	if c.Arguments == nil {
		c.Arguments = a.listed
	}
	return s.addPrompt(&c, func(ctx context.Context, args map[string]string) (*mcp.GetPromptResult, error) {
		in, err := a.decode(args)
		if err != nil {
			return nil, fmt.Errorf("Prompt '%s': %w", p.Name, err) //nolint:staticcheck // worded as NotFoundError
		}
		return h(ctx, in)
	}, a.enums)
}

// promptArgs decodes the arguments of a prompt into a struct.
type promptArgs[In any] struct {
	check  *checker
	kinds  map[string]string // the JSON types of the arguments
	listed []*mcp.PromptArgument
	enums  map[string][]string
	read   func(json.RawMessage) (In, error)
}

func newPromptArgs[In any](s *Server, name string) (*promptArgs[In], error) {
	read, schema, err := decoderFor[In](false, false)
	if err != nil {
		return nil, err
	}
	a := &promptArgs[In]{kinds: map[string]string{}, enums: map[string][]string{}, read: read}
	if a.check, err = s.newChecker(name, schema, true, 0); err != nil {
		return nil, err
	}
	var root struct {
		Properties map[string]struct {
			Title, Description string
			Type               any
			Enum               []any
		}
		Required []string
	}
	if err := json.Unmarshal(schema, &root); err != nil {
		return nil, err
	}
	t := reflect.TypeFor[In]()
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("type %s: the arguments of a prompt are a struct", t)
	}
	for _, name := range goschema.Fields(t) {
		p := root.Properties[name]
		kind := p.Type
		if list, ok := kind.([]any); ok && len(list) > 0 { // with null
			kind = list[0]
		}
		switch kind {
		case "string", "integer", "number", "boolean":
		default:
			return nil, fmt.Errorf("argument %q is no string, number or boolean", name)
		}
		a.kinds[name], _ = kind.(string)
		a.listed = append(a.listed, &mcp.PromptArgument{
			Name: name, Title: p.Title, Description: p.Description, Required: slices.Contains(root.Required, name),
		})
		for _, v := range p.Enum {
			if v != nil {
				a.enums[name] = append(a.enums[name], fmt.Sprint(v))
			}
		}
	}
	return a, nil
}

func (a *promptArgs[In]) decode(args map[string]string) (In, error) {
	var zero In
	members := make(map[string]json.RawMessage, len(args))
	for name, text := range args {
		value := json.RawMessage(strings.TrimSpace(text))
		if kind, known := a.kinds[name]; kind == "string" || !known || !json.Valid(value) {
			quoted, err := json.Marshal(text)
			if err != nil {
				return zero, err
			}
			value = quoted
		}
		members[name] = value
	}
	raw, err := json.Marshal(members)
	if err != nil {
		return zero, err
	}
	if raw, err = a.check.validate(raw, true); err != nil {
		return zero, fmt.Errorf("the arguments do not match:\n%w", err)
	}
	return a.read(raw)
}

// RemovePrompt removes prompts and notifies all sessions. Unknown names are ignored.
func (s *Server) RemovePrompt(names ...string) {
	s.change(MethodPromptListChanged, func(f *features) bool { return f.prompts.remove(names) })
}

// GetPrompt returns a prompt. An unknown name is a [*NotFoundError]. It returns the
// handler's error unchanged. See [Server.CallTool] for the errors after the end of
// ctx or the server.
func (s *Server) GetPrompt(ctx context.Context, name string, args map[string]string) (*mcp.GetPromptResult, error) {
	return s.prompt(ctx, nil, name, args)
}

func (s *Server) prompt(ctx context.Context, ss *Session, name string, args map[string]string) (*mcp.GetPromptResult, error) {
	p := s.registry().prompts[name]
	if p == nil {
		return nil, &NotFoundError{KindPrompt, name}
	}
	if args == nil {
		args = map[string]string{}
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	var r *mcp.GetPromptResult
	input, err := s.runReader(ctx, ss, KindPrompt, name, raw, func(ctx context.Context) (mcp.InputRequestMap, string, error) {
		var err error
		if r, err = p.make(ctx, args); r == nil {
			return nil, "", err
		}
		return r.InputRequests, r.RequestState, err
	})
	switch {
	case err != nil:
		return nil, err
	case input != nil:
		return &mcp.GetPromptResult{InputRequests: input.InputRequests, RequestState: input.RequestState}, nil
	case r == nil || r.Messages == nil && r.InputRequests == nil:
		return nil, fmt.Errorf("Prompt '%s' must return a *mcp.GetPromptResult with messages, and its handler returned none", name) //nolint:staticcheck // worded as NotFoundError
	}
	return r, nil
}

// UserMessage returns a message of the user with a text.
func UserMessage(text string) *mcp.PromptMessage {
	return &mcp.PromptMessage{Role: "user", Content: &mcp.TextContent{Text: text}}
}

// AssistantMessage returns a message of the assistant with a text.
func AssistantMessage(text string) *mcp.PromptMessage {
	return &mcp.PromptMessage{Role: "assistant", Content: &mcp.TextContent{Text: text}}
}

// GetPrompt makes a prompt, as [Server.GetPrompt] does.
func (ss *Session) GetPrompt(ctx context.Context, name string, args map[string]string) (*mcp.GetPromptResult, error) {
	return ss.server.prompt(ctx, ss, name, args)
}
