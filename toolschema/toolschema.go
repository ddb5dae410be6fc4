// Package toolschema makes the definition of a tool for a model.
//
// The Messages API refuses a whole request for one tool whose name, description or schema it does
// not accept. [ForModel] returns a definition that it accepts, reports what it corrected, and can
// reverse the changes in arguments. A tool that cannot be corrected is a [Quarantine] with the
// reason. ForModel does not modify the tool, and equal tools give equal bytes.
//
//	m, q := toolschema.ForModel(ctx, toolschema.Tool{Server: "notion", Name: "search", InputSchema: raw}, nil)
//	if q != nil {
//		return q // leave this tool out, say why, keep its siblings
//	}
//	request.Tools = append(request.Tools, apiTool(m.Name, m.Description, m.InputSchema))
//	// later, when the model calls m.Name:
//	args = m.RestoreArgs(args)
//
// # Corrections
//
// The schema becomes valid draft 2020-12, whatever its dialect. Older forms are rewritten and
// invalid parts removed, so that it may accept more than the server's schema, with which the server
// validates the arguments.
//
//   - A root that is missing, null, no object or without properties becomes an object with properties.
//   - allOf, anyOf, oneOf, if, not and $ref at the root are merged into optional properties, and the
//     description has the rule in words.
//   - Property keys outside [A-Za-z0-9_.-]{1,64} get aliases. The schema tells the model the original
//     names, and [Model.RestoreArgs] restores them.
//   - References keep their definitions. A target elsewhere in the schema becomes a definition. A
//     reference without a target in the schema, or in a circle, is removed.
//   - Unknown types (int, str, Object), booleans and strings in place of numbers, lists in place of
//     one value and the like are corrected or removed.
//   - Long enumerations and texts, and values that are nested too deep, are cut.
//   - Invalid Unicode is replaced by U+FFFD.
//   - A long name is cut and ends in a hash. A long description is cut and says so.
package toolschema

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// DefaultMaxName is the longest name that is accepted everywhere, in bytes. Definitions may
	// have 128, tool references 64.
	DefaultMaxName = 64
	// DefaultMaxDescription is the longest description, in characters.
	DefaultMaxDescription = 4096
	// DefaultMaxSchema is the largest schema, in bytes.
	DefaultMaxSchema = 256 << 10

	// maxInput is the largest schema that is read, in bytes.
	maxInput = 8 << 20
)

// nestingLimits are the depths, in brackets, that are tried one after the other while a schema is
// too large.
var nestingLimits = []int{64, 16, 8, 4}

// A Tool is a tool from a server's list.
type Tool struct {
	// Server is the server's key. It is empty for tools that are not MCP.
	Server string
	// Name is the tool's own name.
	Name string
	// FullName is the name for the model before correction. Empty means mcp__SERVER__NAME, or NAME
	// without a server, with "_" in place of illegal characters.
	FullName string
	// Description is the tool's description.
	Description string
	// InputSchema is the JSON Schema of the arguments. Nil counts as missing.
	InputSchema json.RawMessage
}

// Options are limits. The zero value, like a nil pointer, means the defaults.
type Options struct {
	// Budget limits the work for all tools that share it. Nil means a budget for each tool.
	Budget *Budget
	// MaxName is the longest name in bytes, between 16 and 128. Zero means [DefaultMaxName].
	MaxName int
	// MaxDescription is the longest description in characters, without the mark of shortened text.
	// Zero means [DefaultMaxDescription].
	MaxDescription int
	// MaxSchema is the largest schema in bytes. Zero means [DefaultMaxSchema].
	MaxSchema int
}

func (o *Options) withDefaults() Options {
	opts := Options{Budget: &Budget{}, MaxName: DefaultMaxName, MaxDescription: DefaultMaxDescription, MaxSchema: DefaultMaxSchema}
	if o == nil {
		return opts
	}
	if o.Budget != nil {
		opts.Budget = o.Budget
	}
	if o.MaxName > 0 {
		opts.MaxName = min(max(o.MaxName, 16), 128)
	}
	if o.MaxDescription > 0 {
		opts.MaxDescription = o.MaxDescription
	}
	if o.MaxSchema > 0 {
		opts.MaxSchema = o.MaxSchema
	}
	return opts
}

// A Model is the definition of a tool for a model. It is immutable and safe for concurrent use.
type Model struct {
	// Name has 1 to MaxName characters of A-Z a-z 0-9 _ -.
	Name string
	// Description is valid UTF-8. It is empty only if the tool's is.
	Description string
	// InputSchema is a JSON object in one line, with the type "object" and properties. The caller
	// must not modify it.
	InputSchema json.RawMessage
	// Report lists the corrections in a fixed order.
	Report []Mend

	// back reverses the aliases; nil if there are none.
	back *back
}

// A Mend is a correction of a tool.
type Mend struct {
	// Path is the JSON pointer of the place in the schema, or "name" or "description".
	Path string
	// Kind is name, description, root, key, reference, type, keyword, shape, dialect, size, depth,
	// text or more.
	Kind string
	// Detail describes the correction.
	Detail string
}

// String returns the correction in one line.
func (m Mend) String() string { return m.Path + ": " + m.Detail }

// A Quarantine is the error of a tool that a model cannot use.
type Quarantine struct {
	Server, Tool string
	// Reason is what is wrong.
	Reason string
}

// Error returns the tool and the reason.
func (q *Quarantine) Error() string {
	if q.Server == "" {
		return fmt.Sprintf("tool %q is left out: %s", q.Tool, q.Reason)
	}
	return fmt.Sprintf("tool %q of server %q is left out: %s", q.Tool, q.Server, q.Reason)
}

// ForModel returns the definition of t for a model, or a quarantine. Names of different tools may
// become equal; the caller tells them apart.
//
// The work is limited for each tool and each [Budget]. A tool beyond the limit is quarantined, as
// is one being corrected when ctx ends.
func ForModel(ctx context.Context, t Tool, o *Options) (Model, *Quarantine) {
	opts := o.withDefaults()
	return mendTool(&meter{ctx: ctx, budget: opts.Budget}, t, opts)
}

func mendTool(work *meter, t Tool, opts Options) (Model, *Quarantine) {
	quarantine := func(reason string) (Model, *Quarantine) {
		return Model{}, &Quarantine{Server: t.Server, Tool: t.Name, Reason: reason}
	}
	var report []Mend
	name, ok := modelName(t, opts.MaxName, &report)
	if !ok {
		return quarantine("it has no name")
	}
	if len(t.InputSchema) > maxInput {
		return quarantine(fmt.Sprintf("its schema has %d bytes", len(t.InputSchema)))
	}
	for i, nesting := range nestingLimits {
		m, schema, reason := mendSchema(work, t.InputSchema, nesting)
		if reason != "" {
			return quarantine(reason)
		}
		if len(schema) > opts.MaxSchema {
			continue
		}
		if i > 0 {
			m.mend("", "size", "cut at %d levels to fit in %d bytes", nesting, opts.MaxSchema)
		}
		out := Model{Name: name, InputSchema: schema}
		out.Description = modelDescription(t.Description, m.ruleText(), opts.MaxDescription, &report)
		out.Report = append(report, m.report...)
		if m.more > 0 {
			out.Report = append(out.Report, Mend{Kind: "more", Detail: fmt.Sprintf("%d more changes", m.more)})
		}
		if len(m.alias) > 0 {
			out.back = &back{root: m.root, original: m.original}
		}
		return out, nil
	}
	return quarantine(fmt.Sprintf("its schema is larger than %d bytes, also when what is nested in it is cut", opts.MaxSchema))
}

// mendSchema corrects a schema whose values below a depth are cut. It returns the reason if it
// cannot be corrected.
func mendSchema(work *meter, raw json.RawMessage, nesting int) (m *mender, schema json.RawMessage, reason string) {
	m = &mender{meter: work, loosened: map[*object]bool{}}
	if over := work.guarded(func() { schema, reason = m.all(raw, nesting) }); over != "" {
		return nil, nil, over
	}
	return m, schema, reason
}

// all runs the passes in order.
func (m *mender) all(raw json.RawMessage, nesting int) (schema json.RawMessage, reason string) {
	m.spend(1 + len(raw)/8)
	root, reason := m.parse(raw, nesting)
	if reason != "" {
		return nil, reason
	}
	m.root = root
	m.resolve(root)
	m.findAliases(root)
	m.clean(root)
	if reason, ok := m.rootType(root); !ok {
		return nil, reason
	}
	if reason, ok := m.flattenRoot(root); !ok {
		return nil, reason
	}
	return m.json(root), ""
}

// parse parses a schema and makes its root an object.
func (m *mender) parse(raw json.RawMessage, nesting int) (root *object, reason string) {
	anything := newObject(member{"type", "object"}, member{"properties", &object{}})
	if len(bytes.TrimSpace(raw)) == 0 {
		m.mend("", "root", "there is no schema; any object is accepted")
		return anything, ""
	}
	v, p, err := parseJSON(raw, nesting)
	if err != nil {
		return nil, "its schema " + err.Error()
	}
	m.cut = p.cut > 0
	if p.mangled {
		m.mend("", "text", "text that is not valid Unicode is replaced by U+FFFD")
	}
	switch v := v.(type) {
	case *object:
		return v, ""
	case string:
		if inner, _, err := parseJSON([]byte(v), nesting); err == nil {
			if o, ok := inner.(*object); ok {
				m.mend("", "root", "the schema stands in a string and is taken from it")
				return o, ""
			}
		}
		m.mend("", "root", "a string is no schema; any object is accepted")
	case nil:
		m.mend("", "root", "the schema is null; any object is accepted")
	default:
		m.mend("", "root", "the schema is no object; any object is accepted")
	}
	return anything, ""
}

// modelDescription shortens a description so that the rules fit after it.
func modelDescription(s, rules string, limit int, report *[]Mend) string {
	if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		s = strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
		*report = append(*report, Mend{"description", "text", "text that is not valid Unicode is replaced by U+FFFD"})
	}
	if rules == "" {
		cut, ok := truncate(s, limit)
		if ok {
			*report = append(*report, Mend{"description", "description", fmt.Sprintf("cut to %d characters", limit)})
		}
		return cut
	}
	rules, _ = truncate(rules, max(limit/2, 1))
	cut, ok := truncate(s, max(limit-utf8.RuneCountInString(rules)-1, 0))
	if ok {
		*report = append(*report, Mend{"description", "description", fmt.Sprintf("cut, to fit in %d characters", limit)})
	}
	if s == "" {
		return rules
	}
	return cut + "\n" + rules
}
