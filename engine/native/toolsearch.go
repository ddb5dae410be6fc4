package native

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/messages"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/internal/schemaguard"
	"github.com/tenon-sdk/tenon/toolsearch"
)

const (
	// searchTool is the tool that finds and loads tools, under the name that Claude Code gives it.
	searchTool = "ToolSearch"
	// defaultSearchPercent is the share of the context window above which "auto" searches.
	defaultSearchPercent = 10
)

// A searchMode is what is set about the tool search.
type searchMode struct {
	off     bool
	percent int // of the context window, above which definitions are withheld; 0: always
	tokens  int // above which definitions are withheld; 0: always
}

// searches reports whether definitions of so many bytes are withheld from a model.
func (m searchMode) searches(bytes int, model string) bool {
	tokens := bytes / charsPerToken
	return bytes > 0 && tokens >= m.tokens && (m.percent == 0 || tokens > contextWindow(model)*m.percent/100)
}

// parseToolSearch reads ENABLE_TOOL_SEARCH and its typed form. What it does not know counts as on, as
// it does in Claude Code.
func parseToolSearch(v string) searchMode {
	v = strings.ToLower(strings.TrimSpace(v))
	percent, auto := strings.CutPrefix(v, "auto:")
	switch {
	case v == "":
		return searchMode{tokens: agent.ToolSearchTokens + 1}
	case v == "false" || v == "0":
		return searchMode{off: true}
	case v == "auto":
		return searchMode{percent: defaultSearchPercent}
	case auto:
		n, err := strconv.Atoi(percent)
		switch {
		case err != nil || n <= 0:
			return searchMode{}
		case n >= 100:
			return searchMode{off: true}
		}
		return searchMode{percent: n}
	}
	return searchMode{}
}

// knowsReferences reports whether a model takes tool references. Those of before Claude 4 do not; what
// is not known is taken to.
func knowsReferences(model string) bool {
	i := strings.LastIndex(model, "claude-")
	if i < 0 {
		return true
	}
	name := model[i+len("claude-"):]
	return !slices.ContainsFunc([]string{"1", "2", "3", "instant"}, func(old string) bool {
		rest, ok := strings.CutPrefix(name, old)
		return ok && (rest == "" || rest[0] == '-' || rest[0] == '.')
	})
}

// A finder is a session's tool search. Only the session's goroutine uses it.
type finder struct {
	mode searchMode
	tool *tool // that the model searches with
	// active is set once the model has the search; it keeps it, so that its prompt stays the same.
	active bool
	loaded []*loadedTool
	names  map[string]bool   // of loaded
	index  *toolsearch.Index // nil until a search needs it
	of     *table            // what index was made from
	told   *told             // what the model knows of; never modified
	kept   *told             // told, as of what the API has accepted
}

// A loadedTool is a tool whose definition the model was given by a search. It stays in the requests
// as long as the session lives, since the conversation refers to it.
type loadedTool struct {
	def  apiTool
	tool *tool // nil while nobody offers it
}

// newFinder reads the settings of a session.
func newFinder(o *agent.Options, getenv func(string) string) finder {
	v := string(o.ToolSearch)
	if v == "" {
		v = getenv("ENABLE_TOOL_SEARCH")
	}
	return finder{mode: parseToolSearch(v), tool: newSearchTool(), told: &told{}, kept: &told{}}
}

// deferrable reports whether the definition of a tool is withheld while there is a search.
func (t *tool) deferrable() bool { return !t.AlwaysLoad }

// deferrableSize is about how many bytes the definitions take that a search would withhold.
func (t *table) deferrableSize() int {
	size := 0
	for _, tl := range t.tools {
		if tl.deferrable() {
			size += len(tl.model.Name) + len(tl.model.Description) + len(tl.model.InputSchema) + len(`{"name":"","description":"","input_schema":}`)
		}
	}
	return size
}

const charsPerToken = 4

// contextWindow is a model's, in tokens.
func contextWindow(model string) int {
	if spec, ok := messages.SpecOf(model); ok {
		return int(spec.ContextWindow)
	}
	return 200_000
}

// follow takes in what has become of a loaded tool.
func (l *loadedTool) follow(t *table) {
	l.tool = t.byName[l.def.Name]
	if l.tool != nil {
		l.def = l.tool.definition()
	}
}

// definition is the tool in the form of the request.
func (t *tool) definition() apiTool {
	return apiTool{Name: t.model.Name, Description: t.model.Description, InputSchema: t.model.InputSchema}
}

// refused replaces a definition that the API does not take. A reference to it may stand in the
// conversation, so it cannot just go.
func (f *finder) refused(name string) {
	for _, l := range f.loaded {
		if l.def.Name == name {
			l.def = stub(name)
		}
	}
}

// stub is the definition of a tool that cannot be called.
func stub(name string) apiTool {
	return apiTool{Name: name, Description: unavailable, InputSchema: json.RawMessage(`{"type":"object","properties":{}}`)}
}

// load adds a tool to those whose definitions are sent.
func (f *finder) load(tl *tool) {
	f.add(&loadedTool{def: tl.definition(), tool: tl})
}

func (f *finder) add(l *loadedTool) {
	if f.names[l.def.Name] {
		return
	}
	if f.names == nil {
		f.names = map[string]bool{}
	}
	f.names[l.def.Name] = true
	f.loaded = append(f.loaded, l)
}

// unread reports whether the model has to call a tool without having read its parameters.
func (f *finder) unread(tl *tool) bool {
	return f.active && tl.deferrable() && len(toolsearch.Params(tl.model.InputSchema)) > 0 && !f.names[tl.model.Name]
}

// schemaHint helps a model that called a tool with wrong arguments, without knowing its parameters.
func schemaHint(tl *tool) string {
	return fmt.Sprintf("The definition of %s was not loaded when it was called. It can be loaded with %s (select:%s). Its input schema is: %s",
		tl.model.Name, searchTool, tl.model.Name, transcript.Clip(string(tl.model.InputSchema), maxHint))
}

// fitsSchema reports whether a call's arguments are what a tool's schema asks for, as far as that can be
// told: then the failure of the call has another cause.
func fitsSchema(schema, args json.RawMessage) bool {
	s, err := schemaguard.New(schema)
	if err != nil {
		return true
	}
	err = s.Validate(args, schemaguard.Limits{})
	var invalid *schemaguard.ValidationError
	return !errors.As(err, &invalid)
}

// maxHint bounds the schema in a hint, in bytes.
const maxHint = 8 << 10

// toSearch are the withheld tools of a table as the search sees them.
func toSearch(t *table) []toolsearch.Tool {
	var tools []toolsearch.Tool
	for _, tl := range t.tools {
		if tl.deferrable() {
			tools = append(tools, toolsearch.Tool{
				FullName: tl.model.Name, Server: tl.Server, Name: tl.Name, Title: tl.Title,
				Description: tl.Description, Hint: tl.SearchHint, Params: toolsearch.Params(tl.InputSchema),
			})
		}
	}
	return tools
}

// newSearchTool is the tool that the model searches with.
func newSearchTool() *tool {
	return builtin(apiTool{
		Name: searchTool,
		Description: "Finds tools and loads their definitions, so that they can be called. Some tools are known by name only " +
			"until they are loaded: their parameters are not known before.\n\n" +
			"query is one phrasing, or better several of one wish in different words, synonyms and the usual product names among them. A phrasing is one of:\n" +
			"- \"select:NAME\" or \"select:NAME,NAME\": these tools by name\n" +
			"- words that say what the tool should do, such as \"open a bug report\"\n" +
			"- \"+word more words\": only tools that have word in their name\n" +
			"- the name of a server: its tools\n\n" +
			"Tools that are found can be called from then on like any other.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"query":{"description":"one phrasing, or several at once","anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":10}]},` +
			`"max_results":{"type":"integer","description":"how many tools to load at most; 5 unless it is set","minimum":1,"maximum":100}},` +
			`"required":["query"]}`),
	}, true)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

const unavailable = "This tool is not available."

// recall loads a tool that an earlier run had loaded. Nil stands for one that there is not.
func (f *finder) recall(name string, tl *tool) {
	if tl != nil {
		f.load(tl)
		return
	}
	f.add(&loadedTool{def: stub(name)})
}

// told is what the model knows of, from the system prompt and from announcements since. Each is
// immutable.
type told struct {
	tools        map[string]bool // withheld tools, by name
	instructions map[string]bool // servers
	pending      string          // servers that were connecting
	// As of when: nothing has changed since if they are the same.
	table    *table
	revision uint64
}
