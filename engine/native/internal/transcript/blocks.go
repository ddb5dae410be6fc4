package transcript

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/internal/kit"
	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/internal/jsonscan"
)

// maxNesting bounds the nesting of JSON in a history. The API's own bound is for the whole request.
const maxNesting = 400

// The kinds of blocks that package agent has no types for. Other kinds are left out, because the API refuses
// the whole request with them.
var (
	userKinds  = []string{"container_upload", "document", "search_result"}
	modelKinds = []string{
		"advisor_tool_result", "bash_code_execution_tool_result", "code_execution_tool_result", "compaction",
		"container_upload", "fallback", "mcp_tool_listing", "mcp_tool_result", "mcp_tool_use", "server_tool_use",
		"text_editor_code_execution_tool_result", "tool_search_tool_result", "web_fetch_tool_result", "web_search_tool_result",
	}
)

// resultBlock returns b if it is a result of a call, else nil.
func resultBlock(b agent.Block) *agent.ToolResultBlock {
	r, _ := Known(b).(*agent.ToolResultBlock)
	return r
}

// Known returns a block in the type that package agent has for its kind. It returns nil for a block that
// cannot be read, and for a nil pointer.
func Known(b agent.Block) agent.Block {
	if v := reflect.ValueOf(b); !v.IsValid() || v.IsNil() {
		return nil
	}
	u, ok := b.(*agent.UnknownBlock)
	switch {
	case !ok:
		return b
	case !validJSON(u.Raw):
		return nil
	}
	return agent.DecodeBlock(u.Raw)
}

// validJSON reports whether raw is JSON that nests no deeper than maxNesting.
func validJSON(raw json.RawMessage) bool {
	if !json.Valid(raw) {
		return false
	}
	d := jsontext.NewDecoder(bytes.NewReader(raw), anyText...)
	for d.StackDepth() <= maxNesting {
		if _, err := d.ReadToken(); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
	return false
}

// Readable checks a block in a message of the user or in a result. It returns the blocks that replace it.
func (l *Loader) Readable(index int, b agent.Block, inResult bool) []agent.Block {
	switch b := Known(b).(type) {
	case *agent.TextBlock:
		if IsBlank(b.Text) {
			l.Repair(index, agent.RepairEmpty, "a text without anything in it was left out")
			return nil
		}
		if b.Extra != nil {
			l.extras(index, "text", b.Extra)
			b = &agent.TextBlock{Text: b.Text}
		}
		return []agent.Block{b}
	case *agent.ImageBlock:
		return l.Image(index, b)
	case *agent.UnknownBlock:
		if slices.Contains(userKinds, b.Type) && (!inResult || b.Type != "container_upload") {
			return l.document(index, b)
		}
		l.Repair(index, agent.RepairMalformed, "a block of the kind %q was left out", clip.Text(b.Type, 40))
	default:
		l.misplaced(index, b)
	}
	return nil
}

// misplaced reports a block that is left out because it cannot be read, or not in this place.
func (l *Loader) misplaced(index int, b agent.Block) {
	if b == nil {
		l.Repair(index, agent.RepairMalformed, "a block that could not be read was left out")
		return
	}
	l.Repair(index, agent.RepairMalformed, "a block of the kind %q was left out, which cannot stand there", blockKind(b))
}

// CleanResult returns the content of a tool result as the API accepts it, and what was changed.
func CleanResult(ctx context.Context, content agent.Content) (agent.Content, []agent.HistoryRepair) {
	l := &Loader{ctx: ctx}
	var out agent.Content
	for _, b := range WithoutReferences(content) {
		out = append(out, l.Readable(0, b, true)...)
	}
	return out, l.Repairs
}

func blockKind(b agent.Block) string {
	var head struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(Encode(b), &head)
	return head.Type
}

// extras returns the fields of a block that are kept and reports the others, except cache breakpoints, which
// the engine sets itself.
func (l *Loader) extras(index int, kind string, extra agent.Fields, keep ...string) agent.Fields {
	kept := agent.Fields{}
	var gone []string
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		raw := extra[name]
		switch {
		case name == CacheField || string(bytes.TrimSpace(raw)) == "null":
		case slices.Contains(keep, name) && validJSON(raw):
			kept[name] = raw
		default:
			gone = append(gone, name)
		}
	}
	l.fieldsLeftOut(index, kind, gone)
	if len(kept) == 0 {
		return nil
	}
	return kept
}

func (l *Loader) fieldsLeftOut(index int, kind string, names []string) {
	if len(names) > 0 {
		l.Repair(index, agent.RepairMalformed, "fields of a %s block were left out: %s", kind, clip.Text(strings.Join(names, ", "), 200))
	}
}

// assistantBlock checks a block of the model.
func (l *Loader) assistantBlock(index int, b agent.Block) (draft, bool) {
	d := draft{index: index}
	switch b := Known(b).(type) {
	case *agent.TextBlock:
		if IsBlank(b.Text) {
			l.Repair(index, agent.RepairEmpty, "a text without anything in it was left out")
			return d, false
		}
		d.Raw = EncodeBlock(&agent.TextBlock{Text: b.Text, Extra: l.citations(index, b.Extra)})
	case *agent.ThinkingBlock:
		if b.Signature == "" {
			l.Repair(index, agent.RepairThought, "a thought without a signature was left out")
			return d, false
		}
		l.extras(index, "thinking", b.Extra)
		d.Raw, d.Thought = EncodeBlock(&agent.ThinkingBlock{Thinking: b.Thinking, Signature: b.Signature}), true
	case *agent.ToolUseBlock:
		d.call = l.toolUse(index, b)
		d.Raw = EncodeBlock(d.call)
	case *agent.UnknownBlock:
		return l.modelBlock(index, b)
	default:
		l.misplaced(index, b)
		return d, false
	}
	return d, true
}

// citations returns the citations among the other fields of a text.
func (l *Loader) citations(index int, extra agent.Fields) agent.Fields {
	kept := l.extras(index, "text", extra, "citations")
	var list []map[string]json.RawMessage
	if raw, ok := kept["citations"]; ok && (json.Unmarshal(raw, &list) != nil || len(list) == 0) {
		if len(list) > 0 || string(bytes.TrimSpace(raw)) != "[]" {
			l.Repair(index, agent.RepairMalformed, "the citations of a text were left out")
		}
		return nil
	}
	return kept
}

// toolUse checks a call, except its ID.
func (l *Loader) toolUse(index int, b *agent.ToolUseBlock) *agent.ToolUseBlock {
	use := &agent.ToolUseBlock{ID: b.ID, Name: ValidName(b.Name), Input: b.Input, Extra: l.extras(index, "tool_use", b.Extra, "caller")}
	if use.Name != b.Name {
		l.Repair(index, agent.RepairRenamed, "the name of a tool that is not allowed was changed: %q is %q now", clip.Text(b.Name, 150), use.Name)
	}
	if caller := use.Extra["caller"]; caller != nil && !kit.IsObject(caller) {
		l.fieldsLeftOut(index, "tool_use", []string{"caller"})
		use.Extra = nil
	}
	switch raw := bytes.TrimSpace(b.Input); {
	case len(raw) == 0 || string(raw) == "null":
		use.Input = json.RawMessage("{}")
	case raw[0] != '{' || !validJSON(raw):
		l.Repair(index, agent.RepairMalformed, "the input of a call of %s was replaced by {}: it is no JSON object", clip.Text(use.Name, 100))
		use.Input = json.RawMessage("{}")
	}
	return use
}

// modelBlock checks a block of the model that package agent has no type for.
func (l *Loader) modelBlock(index int, b *agent.UnknownBlock) (draft, bool) {
	d := draft{index: index}
	fields, why := blockFields(b)
	switch {
	case why != "":
	case b.Type == "redacted_thinking":
		d.Thought = true
		if len(fields) != 2 || stringIn(fields, "data") == "" {
			why = "it has not the fields that it should have"
		}
	case !slices.Contains(modelKinds, b.Type):
		why = "it is of no kind that the model could have said"
	case strings.HasSuffix(b.Type, "_tool_use"):
		if d.use = stringIn(fields, "id"); d.use == "" || !kit.IsObject(fields["input"]) {
			why = "it has not the fields that it should have"
		}
	case strings.HasSuffix(b.Type, "_tool_result"):
		if d.answers = stringIn(fields, "tool_use_id"); d.answers == "" {
			why = "it does not say which use it answers"
		}
	}
	if why != "" {
		l.Repair(index, agent.RepairMalformed, "a block of the kind %q was left out: %s", clip.Text(b.Type, 40), why)
		return d, false
	}
	d.Raw = Encode(b)
	if _, cached := fields[CacheField]; cached {
		delete(fields, CacheField)
		d.Raw = Encode(fields)
	}
	return d, true
}

// blockFields returns the fields of a block, or why it is not one.
func blockFields(b *agent.UnknownBlock) (fields map[string]json.RawMessage, why string) {
	if !validJSON(b.Raw) || json.Unmarshal(b.Raw, &fields) != nil || fields == nil {
		return nil, "it is no JSON object"
	}
	if stringIn(fields, "type") != b.Type || repeated(b.Raw) {
		return nil, "its fields are not clear"
	}
	for _, name := range []string{"text", "id", "name", "tool_use_id", "tool_name", "thinking", "signature"} {
		if raw, ok := fields[name]; ok && (len(raw) == 0 || raw[0] != '"') {
			return nil, name + " is no text"
		}
	}
	if raw, ok := fields["is_error"]; ok && !slices.Contains([]string{"true", "false", "null"}, string(raw)) {
		return nil, "is_error is neither true nor false"
	}
	return fields, ""
}

// repeated reports whether a value is not an object, or an object with two members of one name: readers
// differ in which one they use.
func repeated(raw json.RawMessage) bool {
	seen, twice := map[string]bool{}, false
	err := jsonscan.Object(raw, func(name []byte, _ json.RawMessage) {
		twice = twice || seen[string(name)]
		seen[string(name)] = true
	})
	return err != nil || twice
}

// stringIn returns the field that is a string, or "".
func stringIn(fields map[string]json.RawMessage, name string) (s string) {
	_ = json.Unmarshal(fields[name], &s)
	return s
}

var clientName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// resultContent checks a result. It also returns the names of the tools that the result refers to.
func (l *Loader) resultContent(index int, r *agent.ToolResultBlock) (*agent.ToolResultBlock, []string) {
	l.extras(index, "tool_result", r.Extra)
	out := &agent.ToolResultBlock{ToolUseID: r.ToolUseID, IsError: r.IsError}
	var names []string
	for _, b := range r.Content {
		if name := referenceIn(b); name != "" {
			names = append(names, name)
			out.Content = append(out.Content, Reference(name))
			continue
		}
		out.Content = append(out.Content, l.Readable(index, b, true)...)
	}
	if len(names) > 0 && (r.IsError || len(names) < len(out.Content)) {
		l.Repair(index, agent.RepairReference, "references to tools stood beside something else, so words stand for them: %s", clip.Text(strings.Join(names, ", "), 200))
		out.Content, names = WithoutReferences(out.Content), nil
	}
	if r.IsError {
		out.Content = l.textOnly(index, out.Content)
	}
	switch {
	case len(r.Content) == 0:
	case len(out.Content) == 0:
		out.Content = agent.TextContent("(no output)")
	case len(out.Content) == len(r.Content) && len(r.Content) == 1:
		if t, ok := r.Content[0].(*agent.TextBlock); ok && out.Content[0] == agent.Block(t) {
			out.Content = r.Content // which may be one plain text
		}
	}
	return out, names
}

// referenceIn returns the name of the tool that a block refers to, or "".
func referenceIn(b agent.Block) string {
	u, ok := Known(b).(*agent.UnknownBlock)
	if !ok || u.Type != "tool_reference" {
		return ""
	}
	fields, why := blockFields(u)
	if name := stringIn(fields, "tool_name"); why == "" && clientName.MatchString(name) {
		return name
	}
	return ""
}

// WithoutReferences replaces references to tools by texts.
func WithoutReferences(c agent.Content) agent.Content {
	var out agent.Content
	for _, b := range c {
		if name := referenceIn(b); name != "" {
			b = &agent.TextBlock{Text: "[tool " + name + "]"}
		}
		out = append(out, b)
	}
	return out
}

// textOnly returns the texts of an error result, which must not have other blocks.
func (l *Loader) textOnly(index int, c agent.Content) agent.Content {
	return slices.DeleteFunc(c, func(b agent.Block) bool {
		_, ok := b.(*agent.TextBlock)
		if !ok {
			l.Repair(index, agent.RepairMalformed, "a block of the kind %q was left out of a result: one that is an error has text only", blockKind(b))
		}
		return !ok
	})
}

// Reference returns a block that refers to a tool.
func Reference(name string) agent.Block {
	const kind = "tool_reference"
	return &agent.UnknownBlock{Type: kind, Raw: Encode(struct {
		Type string `json:"type"`
		Name string `json:"tool_name"`
	}{kind, name})}
}
