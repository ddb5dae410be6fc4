package corpus

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/toolsearch"
)

const (
	manyTools = 10_000
	// mostIndex is what an index of manyTools may hold, in bytes.
	mostIndex = 60 << 20
)

// many is the corpus again and again, each time as another company has it: with
// other server names, and words of its own in names, descriptions and
// parameters, so that the vocabulary grows as well.
func many(tb testing.TB, n int) []toolsearch.Tool {
	tb.Helper()
	base := searchTools(Load(tb))
	out := make([]toolsearch.Tool, n)
	for i := range out {
		tool, round := base[i%len(base)], i/len(base)
		if round > 0 {
			company := companyOf(round)
			tool.Server = company + "-" + tool.Server
			if i%3 == 0 {
				tool.Name += "_" + companyOf(i%97)
			}
			tool.FullName = "mcp__" + tool.Server + "__" + tool.Name
			tool.Description += fmt.Sprintf(" For %s, %s and order %d.", company, companyOf(i%991), i)
		}
		out[i] = tool
	}
	return out
}

// companyOf makes a word of a number.
func companyOf(n int) string {
	const vowels, others = "aeiou", "bdfgklmnprstvz"
	word := ""
	for range 3 {
		word += string(others[n%len(others)]) + string(vowels[n/3%len(vowels)])
		n = n*7 + 5
	}
	return word
}

// An index of 10,000 tools fits beside other things, and what a prompt says of
// them into 4 KB.
func TestTenThousandTools(t *testing.T) {
	tools := many(t, manyTools)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	index := toolsearch.New(tools)
	runtime.GC()
	runtime.ReadMemStats(&after)
	held := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("the index of %d tools holds %.1f MB", index.Len(), float64(held)/(1<<20))
	if held > mostIndex {
		t.Errorf("the index holds %d bytes, want at most %d", held, mostIndex)
	}
	if index.Len() != manyTools {
		t.Errorf("%d tools are in the index, want %d", index.Len(), manyTools)
	}
	summary := toolsearch.Summary(tools, 0)
	t.Logf("the summary has %d bytes", len(summary))
	if len(summary) > 4<<10 {
		t.Errorf("the summary has %d bytes, want at most %d", len(summary), 4<<10)
	}
	runtime.KeepAlive(tools)
}

// A host's catalogue of 10,000 tools, schemas and all, and the index over it fit
// into 60 MB together.
func TestTenThousandToolsInAHost(t *testing.T) {
	lists := manyLists(t, manyTools)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	h, w := hostOf(t, lists)
	tools := hostTools(h)
	index := toolsearch.New(tools)
	clear(w.lists) // the servers' own copy does not count
	clear(lists)
	runtime.GC()
	runtime.GC() // what a finalizer held
	runtime.ReadMemStats(&after)
	held := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("catalogue and index of %d tools hold %.1f MB", index.Len(), float64(held)/(1<<20))
	if held > mostIndex || index.Len() != manyTools {
		t.Errorf("%d tools hold %d bytes, want %d in at most %d", index.Len(), held, manyTools, mostIndex)
	}
	if summary := toolsearch.Summary(tools, 0); len(summary) > 4<<10 {
		t.Errorf("the summary has %d bytes, want at most %d", len(summary), 4<<10)
	}
	runtime.KeepAlive(h)
}

// manyLists are n tools as servers list them, each time in the name of another company.
func manyLists(tb testing.TB, n int) map[string]json.RawMessage {
	tb.Helper()
	base := Load(tb)
	lists := map[string]json.RawMessage{}
	for round := 0; n > 0; round++ {
		for _, s := range base {
			tools := s.Tools[:min(n, len(s.Tools))]
			n -= len(tools)
			list, err := json.Marshal(tools)
			if err != nil {
				tb.Fatal(err)
			}
			lists[companyOf(round+1)+"-"+s.Name] = list
			if n == 0 {
				break
			}
		}
	}
	return lists
}

func hostTools(h *mcphost.Host) []toolsearch.Tool {
	var out []toolsearch.Tool
	for _, t := range h.Tools() {
		out = append(out, toolsearch.Tool{
			FullName: t.FullName, Server: t.Server, Name: t.Name, Title: t.Title, Description: t.Description,
			Hint: t.SearchHint, Params: toolsearch.Params(t.InputSchema),
		})
	}
	return out
}

func BenchmarkTenThousandTools(b *testing.B) {
	tools := many(b, manyTools)
	questions := loadQuestions(b)
	index := toolsearch.New(tools)
	b.Run("search", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			_, _ = index.Search(b.Context(), toolsearch.Query{Phrasings: []string{questions[i%len(questions)].Ask}})
		}
	})
	b.Run("search with three phrasings", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			_, _ = index.Search(b.Context(), toolsearch.Query{Phrasings: questions[i%len(questions)].Phrasings})
		}
	})
	b.Run("index", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			toolsearch.New(tools)
		}
	})
	b.Run("summary", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			toolsearch.Summary(tools, 0)
		}
	})
}
