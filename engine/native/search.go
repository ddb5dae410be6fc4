package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/toolsearch"
)

const (
	// searchWait bounds how long a search waits for servers that are still connecting.
	searchWait = 5 * time.Second
	// maxLoadBytes bounds the definitions that one search loads: a quarter of the tokens, roughly.
	maxLoadBytes = 100_000
)

// searchOff reports whether the session begins without tool search.
func (s *session) searchOff() bool {
	return s.finder.Mode.Off || !toolset.KnowsReferences(s.wantedModel()) || s.permissions().Hidden(s.finder.Tool.Request())
}

// settleSearch adds the search to a table if the model gets it.
func (s *session) settleSearch(t *toolset.Table) {
	f := &s.finder
	if _, refused := s.quarantined[toolset.SearchTool]; refused || s.permissions().Hidden(f.Tool.Request()) {
		f.Active = false
		return
	}
	if !f.Active && !s.searchOff() {
		size := t.DeferrableSize()
		f.Active = f.Mode.Searches(size, s.wantedModel()) || f.Mode.Percent == 0 && len(s.connecting()) > 0
	}
	if f.Active {
		t.Take(f.Tool)
		t.Sort()
	}
	for _, l := range f.Loaded {
		l.Follow(t)
	}
}

// connecting returns the names of the servers that are connecting and have not listed tools, sorted.
func (s *session) connecting() []string {
	var names []string
	for _, st := range s.serverStatus() {
		if st.Status == mcphost.StatusPending && !st.Cached && st.ToolCount == 0 {
			names = append(names, st.Name)
		}
	}
	return names
}

// searchable returns the index of the table's withheld tools.
func (s *session) searchable() *toolsearch.Index {
	f := &s.finder
	if f.Of != s.table {
		f.Index, f.Of = s.engine.indexes.Of(s.table), s.table
	}
	return f.Index
}

// A searchQuery is the input of the search.
type searchQuery struct {
	phrasings []string
	most      int
}

// parseSearch reads the input of the search in the forms that models use.
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
	if len(in.Query) > 0 {
		var more []string
		if in.Query[0] != '[' {
			in.Query = slices.Concat(json.RawMessage("["), in.Query, json.RawMessage("]"))
		}
		if json.Unmarshal(in.Query, &more) != nil {
			return searchQuery{}, errors.New("query must be a string or an array of strings")
		}
		q.phrasings = append(q.phrasings, more...)
	}
	q.phrasings = slices.DeleteFunc(q.phrasings, transcript.IsBlank)
	if len(q.phrasings) == 0 {
		return searchQuery{}, errors.New("query is missing: say what the tool should do, or name it with select:NAME")
	}
	return q, nil
}

// A searchOutcome is the result of a search for the program.
type searchOutcome struct {
	Matches     []string `json:"matches"`
	Query       any      `json:"query"`
	Total       int      `json:"total_deferred_tools"`
	NotSearched []string `json:"pending_mcp_servers,omitempty"` // servers that were connecting
}

// searchTools answers a call of the search.
func (t *turn) searchTools(c *call, args json.RawMessage) *answer {
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
		s.finder.Load(tl.Model.Name, tl)
	}
	return found.answer(c, q, s.connecting(), s.searchable().Len())
}

// awaitServers waits until servers no longer connect, at most searchWait.
func (t *turn) awaitServers(names []string) {
	ctx, cancel := context.WithTimeout(t.ctx, searchWait)
	defer cancel()
	for h, st := range t.s.servers() {
		if slices.Contains(names, st.Name) {
			_ = h.Ready(ctx, st.Name) // the answer names servers that are not ready in time
		}
	}
}

// A finding is the result of a search.
type finding struct {
	tools    []*toolset.Tool
	ready    []string // named tools whose definitions the model has
	unknown  []string // names that no tool has
	excess   []string // matches that are too large to load with the others
	complete bool     // only names were asked for, and all were found
}

// search looks for tools that are not hidden. It finds nothing once ctx has ended.
func (s *session) search(ctx context.Context, q searchQuery) finding {
	res, err := s.searchable().Search(ctx, toolsearch.Query{Phrasings: q.phrasings, Max: q.most})
	var f finding
	if err != nil {
		return f
	}
	policy, bytes := s.permissions(), 0
	for _, m := range res.Matches {
		tl := s.table.ByName[m.FullName]
		if tl == nil || policy.Hidden(tl.Request()) { // denied since the table was made
			continue
		}
		bytes += len(tl.Model.InputSchema) + len(tl.Model.Description)
		if bytes > maxLoadBytes && len(f.tools) > 0 {
			f.excess = append(f.excess, m.FullName)
			continue
		}
		f.tools = append(f.tools, tl)
	}
	for _, name := range res.Unknown {
		if tl := s.table.ByName[name]; tl != nil && !policy.Hidden(tl.Request()) {
			f.ready = append(f.ready, name)
			continue
		}
		f.unknown = append(f.unknown, name)
	}
	byName := func(p string) bool {
		return strings.HasPrefix(strings.TrimSpace(p), "select:") || s.table.ByName[strings.TrimSpace(p)] != nil
	}
	f.complete = len(f.unknown) == 0 && !slices.ContainsFunc(q.phrasings, func(p string) bool { return !byName(p) })
	return f
}

// answer returns what was found as tool references and, for servers without them, in words.
func (f *finding) answer(c *call, q searchQuery, pending []string, total int) *answer {
	out := searchOutcome{Matches: []string{}, Query: q.phrasings, Total: total, NotSearched: pending}
	if len(q.phrasings) == 1 {
		out.Query = q.phrasings[0]
	}
	var references agent.Content
	var plain strings.Builder
	for _, tl := range f.tools {
		name := tl.Model.Name
		out.Matches = append(out.Matches, name)
		references = append(references, transcript.Reference(name))
		plain.WriteString(describe(name, tl.Model.Description))
	}
	note := f.note(pending)
	a := &answer{raw: transcript.Encode(out)}
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
	a.plain = &agent.ToolResultBlock{ToolUseID: c.use.ID, Content: loadedContent(plain.String())}
	return a
}

// describe returns a line about a tool for servers without tool references.
func describe(name, description string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(description), "\n")
	return name + ": " + clip.Text(line, 200) + "\n"
}

// loadedContent returns the result of a search for servers without tool references.
func loadedContent(lines string) agent.Content {
	return agent.TextContent("These tools are loaded and can be called now:\n" + strings.TrimSpace(lines))
}

// note returns a text about names and servers that were not found or searched.
func (f *finding) note(pending []string) string {
	var lines []string
	say := func(format string, names []string) {
		if len(names) > 0 {
			lines = append(lines, fmt.Sprintf(format, clip.Text(oneLines(names), 1000)))
		}
	}
	say("Loaded already: %s.", f.ready)
	say("No tool has the name: %s.", f.unknown)
	say("These match as well and were not loaded, because their definitions are too long to load all at once: %s.", f.excess)
	say("Not searched, because they are still connecting: %s. Search again later if the tool may be theirs.", pending)
	return strings.Join(lines, "\n")
}

// plainly reports whether requests must not have deferred definitions and tool references.
func (s *session) plainly() bool {
	return s.engine.opts.DisableToolReferences || s.api.Plain.Load() || !toolset.KnowsReferences(s.model)
}

// tools returns the tools of the next request. cache adds a breakpoint after those that are always sent.
func (s *session) tools(plain, cache bool) *toolset.Definitions {
	d := s.definitions
	if d == nil || d.Table != s.table || d.Loaded != len(s.finder.Loaded) || d.Plain != plain || d.Cache != cache {
		s.definitions = toolset.NewDefinitions(s.table, &s.finder, s.output.tools(), plain, cache)
	}
	return s.definitions
}
