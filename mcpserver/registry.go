package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/yosida95/uritemplate/v3"
)

// features holds the tools, resources and prompts of a server. Server.mu guards it.
type features struct {
	tools     ordered[*tool]
	resources ordered[*resource]
	templates ordered[*template]
	prompts   ordered[*prompt]
}

func (f *features) init() {
	f.tools.init()
	f.resources.init()
	f.templates.init()
	f.prompts.init()
}

// An ordered map keeps the order in which entries were added.
type ordered[T any] struct {
	next  int
	items map[string]ordinal[T]
}

type ordinal[T any] struct {
	n    int
	item T
}

func (o *ordered[T]) init() { o.items = map[string]ordinal[T]{} }

// add reports false if the key is taken.
func (o *ordered[T]) add(key string, item T) bool {
	if _, taken := o.items[key]; taken {
		return false
	}
	o.items[key] = ordinal[T]{o.next, item}
	o.next++
	return true
}

// remove reports whether it removed anything.
func (o *ordered[T]) remove(keys []string) bool {
	before := len(o.items)
	for _, key := range keys {
		delete(o.items, key)
	}
	return len(o.items) != before
}

func (o *ordered[T]) list() []T {
	entries := make([]ordinal[T], 0, len(o.items))
	for _, e := range o.items {
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b ordinal[T]) int { return a.n - b.n })
	items := make([]T, len(entries))
	for i, e := range entries {
		items[i] = e.item
	}
	return items
}

// A registry is an immutable view of a server's features. Calls read it without a
// lock. The first read after a change makes a new one.
type registry struct {
	tools     map[string]*tool
	resources map[string]*resource
	prompts   map[string]*prompt
	templates []*template
	completes bool // a prompt has enums to suggest

	listedTools     []*mcp.Tool
	listedResources []*mcp.Resource
	listedTemplates []*mcp.ResourceTemplate
	listedPrompts   []*mcp.Prompt
}

func (r *registry) tool(name string) *tool { return r.tools[name] }

// registry returns the current view.
func (s *Server) registry() *registry {
	if r := s.snapshot.Load(); r != nil {
		return r
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.snapshot.Load(); r != nil {
		return r
	}
	r := s.features.view()
	s.snapshot.Store(r)
	return r
}

func (f *features) view() *registry {
	r := &registry{tools: map[string]*tool{}, resources: map[string]*resource{}, prompts: map[string]*prompt{}, templates: f.templates.list()}
	for _, t := range f.tools.list() {
		r.tools[t.listed.Name] = t
		r.listedTools = append(r.listedTools, t.listed)
	}
	for _, x := range f.resources.list() {
		r.resources[x.listed.URI] = x
		r.listedResources = append(r.listedResources, x.listed)
	}
	for _, t := range r.templates {
		r.listedTemplates = append(r.listedTemplates, t.listed)
	}
	for _, p := range f.prompts.list() {
		r.prompts[p.listed.Name] = p
		r.listedPrompts = append(r.listedPrompts, p.listed)
		r.completes = r.completes || len(p.enums) > 0
	}
	return r
}

// errDuplicate reports a name that is taken. The first registration keeps it.
var errDuplicate = fmt.Errorf("the name is taken; the one that was there first stays")

// copyJSON returns a deep copy of v, made by way of JSON.
func copyJSON[T any](v *T) (*T, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	c := new(T)
	if err := json.Unmarshal(text, c); err != nil {
		return nil, err
	}
	return c, nil
}

// A ToolList is a list of tools whose JSON includes empty descriptions.
type ToolList []*mcp.Tool

// MarshalJSON returns an array, also for a nil list.
func (l ToolList) MarshalJSON() ([]byte, error) {
	type described struct {
		*mcp.Tool
		Description string `json:"description"`
	}
	all := make([]described, len(l))
	for i, t := range l {
		all[i] = described{t, t.Description}
	}
	return encodeJSON(all)
}

// encodeJSON returns the JSON of v without escapes for <, > and &.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// ListTools returns the tools in the order of their registration. Their schemas are
// [json.RawMessage] values. The caller must not modify the tools.
func (s *Server) ListTools() ToolList { return slices.Clone(s.registry().listedTools) }

// ListResources returns the resources in the order of their registration. The
// caller must not modify them.
func (s *Server) ListResources() []*mcp.Resource { return slices.Clone(s.registry().listedResources) }

// ListResourceTemplates returns the resource templates in the order of their
// registration. The caller must not modify them.
func (s *Server) ListResourceTemplates() []*mcp.ResourceTemplate {
	return slices.Clone(s.registry().listedTemplates)
}

// ListPrompts returns the prompts in the order of their registration. The
// caller must not modify them.
func (s *Server) ListPrompts() []*mcp.Prompt { return slices.Clone(s.registry().listedPrompts) }

// A tool is a registered tool. It is immutable.
type tool struct {
	listed      *mcp.Tool
	input       *checker
	output      *checker // nil: no output schema
	typed       bool     // the handler decodes: defaults are filled in
	run         func(ctx context.Context, inv *Invocation) error
	timeout     time.Duration
	concurrency Concurrency
	headers     []HeaderParam
}

type prompt struct {
	listed *mcp.Prompt
	make   PromptHandler
	enums  map[string][]string // values of arguments, to suggest
}

type resource struct {
	listed *mcp.Resource
	read   ResourceReader
}

type template struct {
	listed  *mcp.ResourceTemplate
	parsed  *uritemplate.Template
	pattern *regexp.Regexp // of a whole URI
	read    TemplateReader
}
