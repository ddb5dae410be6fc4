package mcpserver

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A mirror is what a face has registered with the library.
type mirror struct {
	mu        sync.Mutex // guards all; held while the library is brought in line
	tools     mirrored[*mcp.Tool]
	resources mirrored[*mcp.Resource]
	templates mirrored[*mcp.ResourceTemplate]
	prompts   mirrored[*mcp.Prompt]
}

// mirrored is one kind of thing, by the name that the library knows it by.
type mirrored[T any] struct {
	have   map[string]T
	name   func(T) string
	add    func(T)
	remove func(...string)
}

func (m *mirror) init(f *face) {
	m.tools = mirrored[*mcp.Tool]{
		have:   make(map[string]*mcp.Tool),
		name:   func(t *mcp.Tool) string { return t.Name },
		add:    func(t *mcp.Tool) { f.addTool(t) },
		remove: f.lib.RemoveTools,
	}
	m.resources = mirrored[*mcp.Resource]{
		have:   make(map[string]*mcp.Resource),
		name:   func(r *mcp.Resource) string { return r.URI },
		add:    func(r *mcp.Resource) { f.lib.AddResource(r, f.readResource) },
		remove: f.lib.RemoveResources,
	}
	m.templates = mirrored[*mcp.ResourceTemplate]{
		have:   make(map[string]*mcp.ResourceTemplate),
		name:   func(t *mcp.ResourceTemplate) string { return t.URITemplate },
		add:    func(t *mcp.ResourceTemplate) { f.lib.AddResourceTemplate(t, f.readResource) },
		remove: f.lib.RemoveResourceTemplates,
	}
	m.prompts = mirrored[*mcp.Prompt]{
		have:   make(map[string]*mcp.Prompt),
		name:   func(p *mcp.Prompt) string { return p.Name },
		add:    func(p *mcp.Prompt) { f.lib.AddPrompt(p, f.getPrompt) },
		remove: f.lib.RemovePrompts,
	}
}

// sync registers with the library what the server has and takes away what it
// has not. The library notifies its clients of what changed.
func (f *face) sync() { f.syncAnd("") }

// syncAnd is sync after a notification of that method: the library's clients are
// notified even if what changed is as it was by now.
func (f *face) syncAnd(method string) {
	f.mirror.mu.Lock()
	defer f.mirror.mu.Unlock()
	m := &f.mirror
	m.tools.sync(f, f.server.ListTools(), method == MethodToolListChanged)
	m.prompts.sync(f, f.server.ListPrompts(), method == MethodPromptListChanged)
	resources, notify := f.server.ListResources(), method == MethodResourceListChanged // one method for both
	changed := m.templates.sync(f, f.server.ListResourceTemplates(), notify && len(resources) == 0)
	m.resources.sync(f, resources, notify && !changed)
}

// has reports whether the library knows a tool of that name from us.
func (f *face) has(tool string) bool {
	f.mirror.mu.Lock()
	defer f.mirror.mu.Unlock()
	_, ok := f.mirror.tools.have[tool]
	return ok
}

// sync reports whether anything changed. If nothing did and there must be a
// notification, one thing is registered again, which makes one.
func (m *mirrored[T]) sync(f *face, want []T, notify bool) (changed bool) {
	wanted := make(map[string]bool, len(want))
	for _, t := range want {
		name := m.name(t)
		wanted[name] = true
		if have, ok := m.have[name]; ok && reflect.DeepEqual(have, t) {
			continue
		}
		m.have[name] = t
		changed = true
		m.register(f, name, t)
	}
	for name := range m.have {
		if !wanted[name] {
			delete(m.have, name)
			changed = true
			m.remove(name)
		}
	}
	if notify && !changed && len(want) > 0 {
		m.register(f, m.name(want[0]), want[0])
	}
	return changed
}

func (m *mirrored[T]) register(f *face, name string, t T) {
	if err := try(func() { m.add(t) }); err != nil {
		f.server.logger.Error("not served through the official library", "name", name, "error", err)
	}
}

// try runs f; the library panics over what it will not have.
func try(f func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	f()
	return nil
}

// addTool registers a tool with the raw handler: its arguments are validated by
// the server, never by the library, whose validator does not survive every
// schema. A schema that the library will not even register is registered as
// one that says nothing; clients see the true one (see receive).
func (f *face) addTool(t *mcp.Tool) {
	if try(func() { f.lib.AddTool(t, f.callTool) }) == nil {
		return
	}
	plain := *t
	plain.InputSchema = map[string]string{"type": "object"}
	plain.OutputSchema = nil
	f.lib.AddTool(&plain, f.callTool)
}
