package toolset

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"weak"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/messages"
	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/internal/schemaguard"
	"github.com/tenon-sdk/tenon/toolsearch"
)

const (
	// SearchTool is the tool that finds and loads tools, under the name that Claude Code gives it.
	SearchTool = "ToolSearch"
	// defaultSearchPercent is the share of the context window above which "auto" searches.
	defaultSearchPercent = 10
)

// A SearchMode is what is set about the tool search.
type SearchMode struct {
	Off     bool
	Percent int // of the context window, above which definitions are withheld; 0: always
	Tokens  int // above which definitions are withheld; 0: always
}

// Searches reports whether definitions of a size in bytes are withheld from a model.
func (m SearchMode) Searches(bytes int, model string) bool {
	tokens := bytes / CharsPerToken
	return bytes > 0 && tokens >= m.Tokens && (m.Percent == 0 || tokens > contextWindow(model)*m.Percent/100)
}

// ParseToolSearch reads ENABLE_TOOL_SEARCH or its typed form. Unknown values mean on, as in Claude Code.
func ParseToolSearch(v string) SearchMode {
	switch v = strings.ToLower(strings.TrimSpace(v)); v {
	case "":
		return SearchMode{Tokens: agent.ToolSearchTokens + 1}
	case "false", "0":
		return SearchMode{Off: true}
	case "auto":
		return SearchMode{Percent: defaultSearchPercent}
	}
	percent, auto := strings.CutPrefix(v, "auto:")
	n, err := strconv.Atoi(percent)
	if !auto || err != nil || n <= 0 {
		return SearchMode{}
	}
	if n >= 100 {
		return SearchMode{Off: true}
	}
	return SearchMode{Percent: n}
}

// KnowsReferences reports whether a model accepts tool references. Models before Claude 4 do not; unknown
// ones are taken to.
func KnowsReferences(model string) bool {
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

// A Finder is a session's tool search. Only the session's goroutine uses it.
type Finder struct {
	Mode SearchMode
	Tool *Tool // that the model searches with
	// Active is set once the model has the search, which it keeps so that its prompt stays the same.
	Active    bool
	Loaded    []*loadedTool
	names     map[string]bool   // of Loaded
	Index     *toolsearch.Index // nil until a search needs it
	Of        *Table            // the table that Index was made from
	Announced *Announced        // what the model knows
	Accepted  *Announced        // what it knew when the API last accepted the conversation
}

// A loadedTool is a tool that a search has loaded. It stays in the requests, because the conversation refers
// to it.
type loadedTool struct {
	def  APITool
	tool *Tool // nil while no server has it
}

// NewFinder returns the search of a session.
func NewFinder(o *agent.Options, getenv func(string) string) Finder {
	v := cmp.Or(string(o.ToolSearch), getenv("ENABLE_TOOL_SEARCH"))
	return Finder{Mode: ParseToolSearch(v), Tool: newSearchTool(), Announced: &Announced{}, Accepted: &Announced{}}
}

// Deferrable reports whether a search loads the definition of the tool.
func (t *Tool) Deferrable() bool { return !t.AlwaysLoad }

// DeferrableSize estimates the bytes of the deferrable definitions.
func (t *Table) DeferrableSize() int {
	size := 0
	for _, tl := range t.Tools {
		if tl.Deferrable() {
			size += len(tl.Model.Name) + len(tl.Model.Description) + len(tl.Model.InputSchema) + len(`{"name":"","description":"","input_schema":}`)
		}
	}
	return size
}

// CharsPerToken estimates the size of a token.
const CharsPerToken = 4

// contextWindow returns the context window of a model in tokens.
func contextWindow(model string) int {
	spec, _ := messages.SpecOf(model)
	return int(cmp.Or(spec.ContextWindow, 200_000))
}

// Follow updates a loaded tool to a new table.
func (l *loadedTool) Follow(t *Table) {
	if l.tool = t.ByName[l.def.Name]; l.tool != nil {
		l.def = l.tool.Definition()
	}
}

// Definition returns the tool in the form of requests.
func (t *Tool) Definition() APITool {
	return APITool{Name: t.Model.Name, Description: t.Model.Description, InputSchema: t.Model.InputSchema}
}

// Refused replaces a definition that the API refused. The conversation may refer to it, so it stays.
func (f *Finder) Refused(name string) {
	for _, l := range f.Loaded {
		if l.def.Name == name {
			l.def = stub
			l.def.Name = name
		}
	}
}

// Unread reports whether the model does not know the parameters of a tool.
func (f *Finder) Unread(tl *Tool) bool {
	return f.Active && tl.Deferrable() && len(toolsearch.Params(tl.Model.InputSchema)) > 0 && !f.names[tl.Model.Name]
}

// SchemaHint is a text for a model that called a tool without knowing its parameters.
func SchemaHint(tl *Tool) string {
	return fmt.Sprintf("The definition of %s was not loaded when it was called. It can be loaded with %s (select:%s). Its input schema is: %s",
		tl.Model.Name, SearchTool, tl.Model.Name, clip.Text(string(tl.Model.InputSchema), maxHint))
}

// FitsSchema reports whether arguments match a schema, or the schema cannot be used.
func FitsSchema(schema, args json.RawMessage) bool {
	s, err := schemaguard.New(schema)
	if err != nil {
		return true
	}
	_, invalid := errors.AsType[*schemaguard.ValidationError](s.Validate(args, schemaguard.Limits{}))
	return !invalid
}

// maxHint bounds the schema in a hint, in bytes.
const maxHint = 8 << 10

// ToSearch returns the deferrable tools of a table for the search.
func ToSearch(t *Table) []toolsearch.Tool {
	var tools []toolsearch.Tool
	for _, tl := range t.Tools {
		if tl.Deferrable() {
			tools = append(tools, toolsearch.Tool{
				FullName: tl.Model.Name, Server: tl.Server, Name: tl.Name, Title: tl.Title,
				Description: tl.Description, Hint: tl.SearchHint, Params: toolsearch.Params(tl.InputSchema),
			})
		}
	}
	return tools
}

// newSearchTool returns the search.
func newSearchTool() *Tool {
	return Builtin(APITool{
		Name: SearchTool,
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

// Unavailable is the description of a tool that cannot be called.
const Unavailable = "This tool is not available."

// stub is the definition of a tool that cannot be called.
var stub = APITool{Description: Unavailable, InputSchema: json.RawMessage(`{"type":"object","properties":{}}`)}

// Load adds a tool to those whose definitions are sent. tl is nil if no server has the tool.
func (f *Finder) Load(name string, tl *Tool) {
	if f.names[name] {
		return
	}
	l := &loadedTool{def: stub, tool: tl}
	l.def.Name = name
	if tl != nil {
		l.def = tl.Definition()
	}
	if f.names == nil {
		f.names = map[string]bool{}
	}
	f.names[name] = true
	f.Loaded = append(f.Loaded, l)
}

// Announced is what the system prompt and later announcements have told the model. It is immutable.
type Announced struct {
	Tools        map[string]bool // withheld tools, by name
	Instructions map[string]bool // servers
	Pending      string          // servers that were connecting
	// As of when: nothing has changed since if they are the same.
	Table    *Table
	Revision uint64
}

// Indexes are the search indexes of an engine's sessions. Sessions with the same tools share an index, which
// lives as long as one of them has it: making an index takes a hundred times as long as finding it. The zero
// value is ready. Indexes are safe for concurrent use.
type Indexes struct {
	mu    sync.Mutex
	ByKey map[[sha256.Size]byte]weak.Pointer[toolsearch.Index] // guarded by mu
}

// Of returns the index of the withheld tools of a table.
func (x *Indexes) Of(t *Table) *toolsearch.Index {
	key := keyOf(t)
	x.mu.Lock()
	defer x.mu.Unlock()
	if index := x.ByKey[key].Value(); index != nil {
		return index
	}
	if x.ByKey == nil {
		x.ByKey = map[[sha256.Size]byte]weak.Pointer[toolsearch.Index]{}
	}
	maps.DeleteFunc(x.ByKey, func(_ [sha256.Size]byte, p weak.Pointer[toolsearch.Index]) bool { return p.Value() == nil })
	index := toolsearch.New(ToSearch(t))
	x.ByKey[key] = weak.Make(index)
	return index
}

// keyOf returns a hash of everything that an index is made from.
func keyOf(t *Table) [sha256.Size]byte {
	h := sha256.New()
	for _, tl := range t.Tools {
		if tl.Deferrable() {
			fmt.Fprintf(h, "%q", []string{tl.Model.Name, tl.Server, tl.Name, tl.Title, tl.Description, tl.SearchHint, string(tl.InputSchema)})
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}
