package modeltest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// serverTools are the beginnings of the types of the tools that the API itself
// defines; a date follows, or nothing.
var serverTools = []string{
	"advisor_", "bash_", "browser_toolset_", "code_execution_", "computer_", "mcp_toolset", "memory_", "text_editor_",
	"tool_search_tool_bm25", "tool_search_tool_regex", "web_fetch_", "web_search_",
}

var toolFields = []string{
	"allowed_callers", "cache_control", "defer_loading", "description", "eager_input_streaming", "input_examples",
	"input_schema", "name", "strict", "type",
}

// tool decodes one tool definition.
func (d *decoder) tool(p *path, v json.RawMessage) {
	t := Tool{Raw: v}
	defer func() { d.r.Tools = append(d.r.Tools, t) }()
	if !d.object(p, v) {
		return
	}
	got := map[string]json.RawMessage{}
	eachField(v, func(key string, v json.RawMessage) { got[key] = v })
	if typ := got["type"]; typ != nil && kindOf(typ) != '0' {
		t.Type = d.text(p.key("type"), typ)
	}
	if name := got["name"]; name != nil {
		t.Name = d.text(p.key("name"), name)
	}
	if v := got["defer_loading"]; v != nil && kindOf(v) != '0' {
		t.DeferLoading = d.boolean(p.key("defer_loading"), v)
	}
	if t.Type == "" || t.Type == "custom" {
		p = p.key("custom")
		d.customTool(&t, p, got)
	} else if !slices.ContainsFunc(serverTools, func(prefix string) bool { return strings.HasPrefix(t.Type, prefix) }) {
		d.fail(p, "Input tag '%s' found using 'type' does not match any of the expected tags", t.Type)
	}
	if v := got["cache_control"]; v != nil && kindOf(v) != '0' {
		d.cacheControl(p.key("cache_control"), v)
		if t.DeferLoading {
			d.fail(p, "Tool '%s' cannot have both defer_loading=true and cache_control set. "+
				"Tools with defer_loading cannot use prompt caching.", t.Name)
		}
	}
}

func (d *decoder) customTool(t *Tool, p *path, got map[string]json.RawMessage) {
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if !slices.Contains(toolFields, key) {
			d.fail(p.key(key), extraInputs)
		}
	}
	d.toolName(t, p.key("name"), got["name"] != nil)
	if v := got["description"]; v != nil && kindOf(v) != '0' {
		t.Description = d.text(p.key("description"), v)
	}
	for _, key := range []string{"strict", "eager_input_streaming"} {
		if v := got[key]; v != nil && kindOf(v) != '0' {
			_ = d.boolean(p.key(key), v)
		}
	}
	schema, ok := got["input_schema"]
	if !ok {
		d.fail(p.key("input_schema"), "Field required")
		return
	}
	t.InputSchema = schema
	if !d.object(p.key("input_schema"), schema) {
		return
	}
	v := d.schemas.check(schema)
	if v.root != nil {
		d.fail(p.key("input_schema"+v.root.path), "%s", v.root.msg)
	}
	if v.msg != "" {
		d.fail(p.key("input_schema"+v.path), "%s", v.msg)
	}
	if string(got["strict"]) == "true" && v.open {
		d.fail(p.key("input_schema"), "For 'object' type, 'additionalProperties' must be explicitly set to false")
	}
}

func (d *decoder) toolName(t *Tool, p *path, present bool) {
	switch {
	case !present:
		d.fail(p, "Field required")
	case t.Name == "":
		d.fail(p, "String should have at least 1 character")
	case utf8.RuneCountInString(t.Name) > 128:
		d.fail(p, "String should have at most 128 characters")
	case !isName(t.Name, "", 128):
		d.fail(p, "String should match pattern '%s'", toolNamePattern)
	}
}

// toolRules checks the tools against each other and against tool_choice.
func (d *decoder) toolRules() {
	names := make(map[string]bool, len(d.r.Tools))
	deferred := 0
	for _, t := range d.r.Tools {
		if t.Name != "" && names[t.Name] {
			d.fail(&path{name: "tools"}, "Tool names must be unique. (Found twice: %s)", t.Name)
		}
		names[t.Name] = true
		if t.DeferLoading {
			deferred++
		}
	}
	if deferred > 0 && deferred == len(d.r.Tools) {
		d.fail(&path{name: "tools"}, "All tools have defer_loading set. At least one tool must be non-deferred.")
	}
	d.optional("tool_choice", func(p *path, v json.RawMessage) { d.toolChoice(p, v, names) })
	d.references(names)
}

func (d *decoder) toolChoice(p *path, v json.RawMessage, names map[string]bool) {
	var typ, name string
	if !d.members(p, v, map[string]check{
		"type":                      d.word(&typ, "auto", "any", "tool", "none"),
		"name":                      func(p *path, v json.RawMessage) { name = d.text(p, v) },
		"disable_parallel_tool_use": func(p *path, v json.RawMessage) { d.boolean(p, v) },
	}, "type") {
		return
	}
	switch {
	case len(d.r.Tools) == 0:
		d.fail(p, "tool_choice may only be specified while providing tools")
	case typ == "tool" && !names[name]:
		d.fail(p, "Tool '%s' not found in provided tools", name)
	}
}

// withoutReferences is how a gateway refuses a request that withholds definitions or refers to tools;
// nil if it does neither.
func withoutReferences(r *Request) *problem {
	for i, t := range r.Tools {
		if t.DeferLoading {
			return invalid("tools.%d.custom.defer_loading: %s", i, extraInputs)
		}
	}
	for i, m := range r.Messages {
		for j, c := range m.Content {
			for k, inner := range c.Content {
				if inner.Type == "tool_reference" {
					return invalid("messages.%d.content.%d.tool_result.content.%d: Input tag 'tool_reference' found using 'type' does not match any of the expected tags", i, j, k)
				}
			}
		}
	}
	return nil
}

// references refuses tool_reference blocks that name no tool of the request.
func (d *decoder) references(names map[string]bool) {
	for i, m := range d.r.Messages {
		for j := range m.Content {
			content := m.Content[j].Content
			for k := range content {
				if inner := &content[k]; inner.Type == "tool_reference" && !names[inner.ToolName] {
					d.fail((&path{name: "messages"}).at(i).key("content").at(j),
						"Tool reference '%s' not found in available tools", inner.ToolName)
				}
			}
		}
	}
}
