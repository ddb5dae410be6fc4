// Package toolschema makes the copy of a tool that a model is shown.
//
// The Messages API refuses a whole request for one tool whose name, description or schema it
// does not accept. [ForModel] makes of any tool a copy that it does accept, says what it mended,
// and keeps the way back for the arguments; what cannot be mended comes back as a [Quarantine]
// with its reason. The tool that it is given is never modified, and equal input gives equal
// bytes.
//
//	m, q := toolschema.ForModel(ctx, toolschema.Tool{Server: "notion", Name: "search", InputSchema: raw}, nil)
//	if q != nil {
//		return q // leave this tool out, say why, keep its siblings
//	}
//	request.Tools = append(request.Tools, apiTool(m.Name, m.Description, m.InputSchema))
//	// later, when the model calls m.Name:
//	args = m.RestoreArgs(args)
//
// # What it mends
//
// The copy's schema is valid draft 2020-12, whatever dialect the tool's is in, so that one bad
// keyword does not cost a request. Older forms are rewritten, what cannot be right is taken out,
// and the schema then accepts more than the server does: the server has the last word, with the tool's own schema.
//
//   - A root that is missing, null, no object or without properties becomes an object with properties.
//   - allOf, anyOf, oneOf, if, not and $ref at the root are merged into optional properties, and
//     the rule is said in the description.
//   - Property keys outside [A-Za-z0-9_.-]{1,64} get other names, wherever they stand. The model is told what the server
//     calls them, and [Model.RestoreArgs] puts them back.
//   - References are kept with their definitions. One to a place that is no definition gets one; one that leads nowhere, out of the schema or
//     round in a circle is taken out.
//   - Types that are none (int, str, Object), booleans and strings where numbers belong, lists where one is meant, and their like are
//     put right or taken out.
//   - Long enumerations and texts, and what is nested too deep, are cut.
//   - Text that is not valid Unicode is replaced by U+FFFD.
//   - A long name is cut and ends in a hash; a long description is cut and says so.
//
// It works on anyone's tools: it knows no host and does no I/O.
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
	// DefaultMaxName is the longest name that is accepted everywhere: tool references may have 64 bytes, definitions 128.
	DefaultMaxName = 64
	// DefaultMaxDescription is the longest description, in characters.
	DefaultMaxDescription = 4096
	// DefaultMaxSchema is the largest schema, in bytes.
	DefaultMaxSchema = 256 << 10

	// maxInput is the largest schema that is looked at, in bytes.
	maxInput = 8 << 20
)

// nestingLimits are how deep, in brackets, a schema may be nested: the next one is tried when it is still too large.
var nestingLimits = []int{64, 16, 8, 4}

// A Tool is a tool as its server lists it.
type Tool struct {
	// Server is the server's registration key. Empty for a tool that belongs to no MCP server.
	Server string
	// Name is the tool's own name.
	Name string
	// FullName is the name for the model before mending; empty means mcp__SERVER__NAME, or NAME
	// without a server, with every illegal character replaced by "_".
	FullName string
	// Description is the tool's description.
	Description string
	// InputSchema is the JSON Schema of the arguments; nil counts as missing.
	InputSchema json.RawMessage
}

// Options are the limits. The zero value, like a nil pointer, means the defaults.
type Options struct {
	// Budget bounds the work for all tools that it is given to; nil means that each tool has one of its own.
	Budget *Budget
	// MaxName is the longest name, in bytes. Zero means [DefaultMaxName]; it is kept within 16 and 128.
	MaxName int
	// MaxDescription is the longest description, in characters, before the mark that it is cut. Zero means [DefaultMaxDescription].
	MaxDescription int
	// MaxSchema is the largest schema, in bytes. Zero means [DefaultMaxSchema].
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

// A Model is a tool as the model sees it. It is immutable and safe for concurrent use.
type Model struct {
	// Name is the name in the request: 1 to MaxName of A-Z a-z 0-9 _ -.
	Name string
	// Description is valid UTF-8, and not empty unless the tool's is.
	Description string
	// InputSchema is a JSON object in one line whose root has type "object" and properties. The caller must not modify it.
	InputSchema json.RawMessage
	// Report lists what was mended, in a fixed order; empty if the tool was fine as it was.
	Report []Mend

	// back is the way back for arguments; nil if no key was mended.
	back *back
}

// A Mend is one change that was made to a tool.
type Mend struct {
	// Path is the JSON pointer of the place in the schema; "name" or "description" for what is not in it.
	Path string
	// Kind is what the change is about: name, description, root, key, reference, type, keyword,
	// shape, dialect, size, depth, text or more.
	Kind string
	// Detail says it in words.
	Detail string
}

// String is the mend in one line.
func (m Mend) String() string { return m.Path + ": " + m.Detail }

// A Quarantine is a tool that cannot be shown to a model, and why. It is an error for whoever wants one.
type Quarantine struct {
	Server, Tool string
	// Reason says what is wrong and cannot be mended.
	Reason string
}

// Error tells which tool it is and why it is left out.
func (q *Quarantine) Error() string {
	if q.Server == "" {
		return fmt.Sprintf("tool %q is left out: %s", q.Tool, q.Reason)
	}
	return fmt.Sprintf("tool %q of server %q is left out: %s", q.Tool, q.Server, q.Reason)
}

// ForModel makes the model's copy of t. With a Quarantine the Model is empty. Tools whose mended names are alike are for the caller to tell apart.
//
// The work is bounded for each tool and each [Budget]; a tool that would take more is quarantined, and so is one that
// is being mended when ctx ends.
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

// mendSchema mends a schema whose values below a level are cut. A reason means that it cannot be mended.
func mendSchema(work *meter, raw json.RawMessage, nesting int) (m *mender, schema json.RawMessage, reason string) {
	m = &mender{meter: work, loosened: map[*object]bool{}}
	if over := work.guarded(func() { schema, reason = m.all(raw, nesting) }); over != "" {
		return nil, nil, over
	}
	return m, schema, reason
}

// all goes through the passes, one after the other.
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

// parse reads a schema and makes its root an object.
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

// modelDescription cuts a description so that the rules find room behind it.
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
