package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/messages"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/internal/schemaguard"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/toolsearch"
)

const (
	// searchTool is the tool that finds and loads tools, under the name that Claude Code gives it.
	searchTool = "ToolSearch"
	// searchWait bounds how long a search waits for servers that are still connecting.
	searchWait = 5 * time.Second
	// maxLoadBytes bounds the definitions that one search loads: a quarter of the tokens, roughly.
	maxLoadBytes = 100_000
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
func newFinder(o *agent.Options, env environ) finder {
	v := string(o.ToolSearch)
	if v == "" {
		v = env.get("ENABLE_TOOL_SEARCH")
	}
	return finder{mode: parseToolSearch(v), tool: newSearchTool(), told: &told{}, kept: &told{}}
}

// searchOff reports whether the session begins without tool search, for whatever reason.
func (s *session) searchOff() bool {
	return s.finder.mode.off || !knowsReferences(s.wantedModel()) || s.permissions().Hidden(s.finder.tool.request())
}

// deferrable reports whether the definition of a tool is withheld while there is a search.
func (t *tool) deferrable() bool { return !t.AlwaysLoad }

// settleSearch decides whether the model gets the search with this table, and puts it in.
func (s *session) settleSearch(t *table) {
	f := &s.finder
	if _, refused := s.quarantined[searchTool]; refused || s.permissions().Hidden(f.tool.request()) {
		f.active = false
		return
	}
	if !f.active && !s.searchOff() {
		size := t.deferrableSize()
		f.active = f.mode.searches(size, s.wantedModel()) || f.mode.percent == 0 && len(s.connecting()) > 0
	}
	if f.active {
		t.take(s.finder.tool)
		t.sort()
	}
	for _, l := range f.loaded {
		l.follow(t)
	}
}

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

// connecting are the names of the servers that are connecting and have listed nothing yet, sorted.
func (s *session) connecting() []string {
	var names []string
	for _, st := range s.serverStatus() {
		if st.Status == mcphost.StatusPending && !st.Cached && st.ToolCount == 0 {
			names = append(names, st.Name)
		}
	}
	return names
}

// searchable is the index of the table's withheld tools.
func (s *session) searchable() *toolsearch.Index {
	f := &s.finder
	if f.of != s.table {
		f.index, f.of = s.engine.indexes.of(s.table), s.table
	}
	return f.index
}

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
	}, true, (*turn).searchTools)
}

// A searchQuery is the input of the search.
type searchQuery struct {
	phrasings []string
	most      int
}

// parseSearch reads the input of the search, in the forms that models write it.
func parseSearch(args json.RawMessage) (searchQuery, error) {
	var in struct {
		Query   json.RawMessage `json:"query"`
		Queries []string        `json:"queries"`
		Most    float64         `json:"max_results"`
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return searchQuery{}, fmt.Errorf("the input cannot be read: %w", err)
	}
	q := searchQuery{phrasings: in.Queries, most: int(min(max(in.Most, 0), toolsearch.MaxMatches))}
	var one string
	var many []string
	switch {
	case len(in.Query) == 0:
	case json.Unmarshal(in.Query, &one) == nil:
		q.phrasings = append(q.phrasings, one)
	case json.Unmarshal(in.Query, &many) == nil:
		q.phrasings = append(q.phrasings, many...)
	default:
		return searchQuery{}, errors.New("query must be a string or an array of strings")
	}
	q.phrasings = slices.DeleteFunc(q.phrasings, transcript.IsBlank)
	if len(q.phrasings) == 0 {
		return searchQuery{}, errors.New("query is missing: say what the tool should do, or name it with select:NAME")
	}
	return q, nil
}

// A searchOutcome is what the program hears of a search.
type searchOutcome struct {
	Matches []string `json:"matches"`
	Query   any      `json:"query"`
	Total   int      `json:"total_deferred_tools"`
	// NotSearched are servers that were still connecting.
	NotSearched []string `json:"pending_mcp_servers,omitempty"`
}

// searchTools answers a call of the search.
func (t *turn) searchTools(c *call, args json.RawMessage) answer {
	q, err := parseSearch(args)
	if err != nil {
		return errorAnswer(c, "ToolSearch: "+err.Error())
	}
	s := t.s
	found := s.search(t.ctx, q)
	if pending := s.connecting(); len(pending) > 0 && !found.complete {
		t.awaitServers(pending)
		s.refreshTable(t.ctx)
		found = s.search(t.ctx, q)
	}
	if t.ctx.Err() != nil {
		return errorAnswer(c, textInterrupted)
	}
	for _, tl := range found.tools {
		s.finder.load(tl)
	}
	return found.answer(c, q, s.connecting(), s.searchable().Len())
}

// awaitServers waits until servers have left connecting, within bounds.
func (t *turn) awaitServers(names []string) {
	ctx, cancel := context.WithTimeout(t.ctx, searchWait)
	defer cancel()
	for _, h := range t.s.hosts() {
		var own []string
		for _, st := range h.Status() {
			if slices.Contains(names, st.Name) {
				own = append(own, st.Name)
			}
		}
		if len(own) > 0 {
			_ = h.Ready(ctx, own...) // what is not there in time is told of
		}
	}
}

// A finding is what a search has found.
type finding struct {
	tools    []*tool
	ready    []string // tools asked for by name whose definitions the model has anyway
	unknown  []string // names that no tool has
	excess   []string // tools that match as well, and were too much to load at once
	complete bool     // everything that was asked for by name is there, and only names were asked for
}

// search looks for tools that the model may see. It finds nothing once ctx has ended.
func (s *session) search(ctx context.Context, q searchQuery) finding {
	res, err := s.searchable().Search(ctx, toolsearch.Query{Phrasings: q.phrasings, Max: q.most})
	var f finding
	if err != nil {
		return f
	}
	policy, bytes := s.permissions(), 0
	for _, m := range res.Matches {
		tl := s.table.byName[m.FullName]
		if tl == nil || policy.Hidden(tl.request()) { // denied since the table was made
			continue
		}
		bytes += len(tl.model.InputSchema) + len(tl.model.Description)
		if bytes > maxLoadBytes && len(f.tools) > 0 {
			f.excess = append(f.excess, m.FullName)
			continue
		}
		f.tools = append(f.tools, tl)
	}
	for _, name := range res.Unknown {
		if tl := s.table.byName[name]; tl != nil && !policy.Hidden(tl.request()) {
			f.ready = append(f.ready, name)
			continue
		}
		f.unknown = append(f.unknown, name)
	}
	byName := func(p string) bool {
		return strings.HasPrefix(strings.TrimSpace(p), "select:") || s.table.byName[strings.TrimSpace(p)] != nil
	}
	f.complete = len(f.unknown) == 0 && !slices.ContainsFunc(q.phrasings, func(p string) bool { return !byName(p) })
	return f
}

// answer says what was found: to models that know them by tool references, to others in words.
func (f *finding) answer(c *call, q searchQuery, pending []string, total int) answer {
	out := searchOutcome{Matches: []string{}, Query: q.phrasings, Total: total, NotSearched: pending}
	if len(q.phrasings) == 1 {
		out.Query = q.phrasings[0]
	}
	var references agent.Content
	var plain strings.Builder
	for _, tl := range f.tools {
		name := tl.model.Name
		out.Matches = append(out.Matches, name)
		references = append(references, &agent.UnknownBlock{Type: "tool_reference", Raw: transcript.Encode(transcript.ToolReference{Type: "tool_reference", Name: name})})
		fmt.Fprintf(&plain, "%s: %s\n", name, transcript.Clip(firstLine(tl.model.Description), 200))
	}
	note := f.note(pending)
	a := answer{raw: transcript.Encode(out)}
	if len(references) == 0 {
		a.result = &agent.ToolResultBlock{ToolUseID: c.use.ID, Content: agent.TextContent(strings.TrimSpace("No matching deferred tools found\n" + note))}
		return a
	}
	loaded := "Tools loaded."
	if len(references) == 1 {
		loaded = "Tool loaded."
	}
	// A result has nothing but references, or no references: the words go beside it.
	a.result = &agent.ToolResultBlock{ToolUseID: c.use.ID, Content: references}
	a.after = strings.TrimSpace(loaded + "\n" + note)
	a.plain = &agent.ToolResultBlock{ToolUseID: c.use.ID, Content: agent.TextContent("These tools are loaded and can be called now:\n" + strings.TrimSpace(plain.String()))}
	return a
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// note is what there is to say beside the tools that were found.
func (f *finding) note(pending []string) string {
	var lines []string
	say := func(format string, names []string) {
		if len(names) > 0 {
			lines = append(lines, fmt.Sprintf(format, transcript.Clip(oneLines(names), 1000)))
		}
	}
	say("Loaded already: %s.", f.ready)
	say("No tool has the name: %s.", f.unknown)
	say("These match as well and were not loaded, because their definitions are too long to load all at once: %s.", f.excess)
	say("Not searched, because they are still connecting: %s. Search again later if the tool may be theirs.", pending)
	return strings.Join(lines, "\n")
}

const unavailable = "This tool is not available."
