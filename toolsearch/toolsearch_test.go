package toolsearch

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tool makes a tool with a full name as a host would.
// find searches for a query that has nothing against it.
func find(t testing.TB, x *Index, q Query) Result {
	t.Helper()
	r, err := x.Search(t.Context(), q)
	if err != nil {
		t.Error(err)
	}
	return r
}

func tool(server, name, description string, params ...Param) Tool {
	return Tool{FullName: "mcp__" + strings.ReplaceAll(server, ".", "_") + "__" + name, Server: server, Name: name, Description: description, Params: params}
}

// office are tools as servers have them.
func office() []Tool {
	hinted := tool("ops", "run", "Executes a runbook")
	hinted.Hint = "restart reboot kubernetes pods deployment"
	return []Tool{
		tool("github", "create_issue", "Create a new issue in a GitHub repository", Param{"owner", "Repository owner"}, Param{"labels", "Labels to apply to the issue"}),
		tool("github", "list_issues", "List issues in a repository, with filters", Param{"state", "open or closed"}),
		tool("github", "create_pull_request", "Open a new pull request", Param{"base", "The branch to merge into"}),
		tool("github", "merge_pull_request", "Merge a pull request"),
		tool("github", "search_code", "Search for code across repositories"),
		tool("github", "get_file_contents", "Get the contents of a file or directory from a repository"),
		tool("slack", "postMessage", "Post a message to a channel", Param{"channel", "The channel's id"}, Param{"thread_ts", "Reply in this thread"}),
		tool("slack", "listChannels", "List the channels of the workspace"),
		tool("files", "read_file", "Read the complete contents of a file from the file system"),
		tool("files", "write_file", "Create a file or overwrite it with new content"),
		tool("files", "move_file", "Move or rename files and directories"),
		tool("files", "directory_tree", "Get a recursive tree view of files and directories"),
		tool("my.db", "runQuery", "Execute an SQL query against the database", Param{"sql", "The statement to run"}),
		tool("my.db", "list_tables", "Lists all tables with their columns"),
		tool("weather", "get_forecast", "Weather forecast for a location", Param{"latitude", ""}, Param{"longitude", ""}),
		tool("calendar", "create_event", "Schedule a meeting with attendees", Param{"attendees", "E-mail addresses of those invited"}),
		tool("calendar", "find_free_slots", "Find times at which everybody is available"),
		tool("日本", "検索", "商品を検索する"),
		hinted,
	}
}

func fullNames(r Result) []string {
	var out []string
	for _, m := range r.Matches {
		out = append(out, m.FullName)
	}
	return out
}

func TestSearchFindsFirst(t *testing.T) {
	x := New(office())
	tests := []struct{ name, query, want string }{
		{"words of the name", "create issue", "mcp__github__create_issue"},
		{"words of the description", "overwrite with new content", "mcp__files__write_file"},
		{"a sentence", "I want to post a message to the team's channel, please", "mcp__slack__postMessage"},
		{"camel case", "post message", "mcp__slack__postMessage"},
		{"camel case as one word", "postmessage", "mcp__slack__postMessage"},
		{"two words for one", "git hub search code", "mcp__github__search_code"},
		{"one word for two", "pullrequest merge", "mcp__github__merge_pull_request"},
		{"other endings", "merging pull requests", "mcp__github__merge_pull_request"},
		{"words of a parameter", "attendees", "mcp__calendar__create_event"},
		{"words of a parameter's description", "statement", "mcp__my_db__runQuery"},
		{"the server and the name", "slack channels", "mcp__slack__listChannels"},
		{"a typing error", "forcast", "mcp__weather__get_forecast"},
		{"letters swapped", "wetaher forecast", "mcp__weather__get_forecast"},
		{"the beginning of a word", "dir tree", "mcp__files__directory_tree"},
		{"a hint", "restart pods", "mcp__ops__run"},
		{"a script without blanks", "商品 検索", "mcp__日本__検索"},
		{"required in the name", "+tables query", "mcp__my_db__list_tables"},
		{"a full name", "mcp__files__move_file", "mcp__files__move_file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := find(t, x, Query{Phrasings: []string{tt.query}})
			if len(r.Matches) == 0 || r.Matches[0].FullName != tt.want {
				t.Errorf("%q: got %q, want %s first", tt.query, fullNames(r), tt.want)
			}
		})
	}
}

func TestForms(t *testing.T) {
	x := New(office())
	tests := []struct {
		name    string
		q       Query
		want    []string
		unknown []string
	}{
		{"select", Query{Phrasings: []string{"select:mcp__files__read_file, mcp__slack__postMessage"}}, []string{"mcp__files__read_file", "mcp__slack__postMessage"}, nil},
		{"select by a tool's own name", Query{Phrasings: []string{"select:runQuery"}}, []string{"mcp__my_db__runQuery"}, nil},
		{"select is exact", Query{Phrasings: []string{"select:RUNQUERY,gone,mcp__files__read_file"}}, []string{"mcp__files__read_file"}, []string{"RUNQUERY", "gone"}},
		{"select finds each once", Query{Phrasings: []string{"select:runQuery,runQuery", "select:mcp__my_db__runQuery"}}, []string{"mcp__my_db__runQuery"}, nil},
		{"select finds all", Query{Phrasings: []string{"select:create_issue,list_issues,search_code"}, Max: 1}, []string{"mcp__github__create_issue", "mcp__github__list_issues", "mcp__github__search_code"}, nil},
		{"a server", Query{Phrasings: []string{"my.db"}}, []string{"mcp__my_db__list_tables", "mcp__my_db__runQuery"}, nil},
		{"a server, normalised", Query{Phrasings: []string{"my_db"}}, []string{"mcp__my_db__list_tables", "mcp__my_db__runQuery"}, nil},
		{"a server by the beginning of its tools' names", Query{Phrasings: []string{"mcp__my_db__*"}}, []string{"mcp__my_db__list_tables", "mcp__my_db__runQuery"}, nil},
		{"a server with more than five tools", Query{Phrasings: []string{"GitHub"}}, []string{"mcp__github__create_issue", "mcp__github__create_pull_request", "mcp__github__get_file_contents", "mcp__github__list_issues", "mcp__github__merge_pull_request", "mcp__github__search_code"}, nil},
		{"a server, bounded", Query{Phrasings: []string{"github"}, Max: 2}, []string{"mcp__github__create_issue", "mcp__github__create_pull_request"}, nil},
		{"nothing", Query{}, nil, nil},
		{"blank", Query{Phrasings: []string{" "}}, nil, nil},
		{"no such word", Query{Phrasings: []string{"zzzzqqqq"}}, nil, nil},
		{"required and absent", Query{Phrasings: []string{"+zzzz issue"}}, nil, nil},
		{"bounded", Query{Phrasings: []string{"file"}, Max: 1}, []string{"mcp__files__read_file"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := find(t, x, tt.q)
			if d := cmp.Diff(tt.want, fullNames(r)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.unknown, r.Unknown); d != "" {
				t.Errorf("unknown (-want +got):\n%s", d)
			}
		})
	}
}

// What the index knows is meant: only unknown words are repaired.
func TestKnownWordsAreNotRepaired(t *testing.T) {
	x := New([]Tool{tool("a", "list_posts", "All posts"), tool("a", "list_ports", "All ports"), tool("a", "list_hosts", "All hosts")})
	for word, want := range map[string]string{"posts": "mcp__a__list_posts", "ports": "mcp__a__list_ports", "hosts": "mcp__a__list_hosts"} {
		if r := find(t, x, Query{Phrasings: []string{word}}); len(r.Matches) != 1 || r.Matches[0].FullName != want {
			t.Errorf("%s: got %q, want %s alone", word, fullNames(r), want)
		}
	}
}

// A tool that several phrasings find beats those that one of them finds first.
func TestPhrasingsAreFused(t *testing.T) {
	x := New([]Tool{
		tool("a", "remove_user", "Delete an account"), tool("a", "remove_tag", "Remove a tag"), tool("a", "remove_pin", "Remove a pin"),
		tool("a", "delete_file", "Delete a file"), tool("a", "account_info", "About an account"),
	})
	r := find(t, x, Query{Phrasings: []string{"remove person", "delete account", "drop user"}})
	if len(r.Matches) == 0 || r.Matches[0].FullName != "mcp__a__remove_user" {
		t.Errorf("got %q", fullNames(r))
	}
	r = find(t, x, Query{Phrasings: []string{"account", "mcp__a__remove_pin"}, Max: 2})
	if d := cmp.Diff([]string{"mcp__a__remove_pin", "mcp__a__account_info"}, fullNames(r)); d != "" {
		t.Errorf("a tool that is named comes first (-want +got):\n%s", d)
	}
	r = find(t, x, Query{Phrasings: []string{"select:delete_file", "account"}, Max: 2})
	if d := cmp.Diff([]string{"mcp__a__delete_file", "mcp__a__account_info"}, fullNames(r)); d != "" {
		t.Errorf("selected tools come first (-want +got):\n%s", d)
	}
}

// A word in just this form says more than another of its stem, and a tool that does what is asked for is before one that
// does something else with the same words.
func TestFormsAndActions(t *testing.T) {
	x := New([]Tool{
		tool("a", "create_board", "Create a new board"), tool("a", "list_boards", "List all boards that the user has access to"),
		tool("a", "get_board_labels", "Get the labels of a board"), tool("a", "get_board_members", "Get the members of a board"),
		tool("b", "products_delete", "Delete products of the store"), tool("b", "production_status", "Status of the production systems"),
		tool("c", "archive", "Puts a record away"), tool("c", "delete_record", "Takes a record away"), tool("c", "get_record", "A record as it is"),
	})
	for query, want := range map[string]string{
		"What's in my boards?":   "mcp__a__list_boards",
		"new board":              "mcp__a__create_board",
		"production":             "mcp__b__production_status",
		"products":               "mcp__b__products_delete",
		"remove this record":     "mcp__c__delete_record",
		"which record is it":     "mcp__c__get_record",
		"zeige mir den record":   "mcp__c__get_record",
		"supprimer ce record":    "mcp__c__delete_record",
		"put the record archive": "mcp__c__archive",
	} {
		if r := find(t, x, Query{Phrasings: []string{query}}); len(r.Matches) == 0 || r.Matches[0].FullName != want {
			t.Errorf("%q: got %q, want %q first", query, fullNames(r), want)
		}
	}
}

// A synonym counts, and less than the word itself.
func TestSynonyms(t *testing.T) {
	x := New([]Tool{
		tool("a", "delete_label", "Delete a label"), tool("a", "remove_widget", "Remove a widget"), tool("b", "create_folder", "Create a folder"),
		tool("b", "list_colours", "List all colours"), tool("b", "rename_layer", "Rename a layer"),
	})
	for query, want := range map[string]string{
		"erase the label": "mcp__a__delete_label",
		"delete":          "mcp__a__delete_label",
		"remove":          "mcp__a__remove_widget",
		"new directory":   "mcp__b__create_folder",
	} {
		if r := find(t, x, Query{Phrasings: []string{query}}); len(r.Matches) == 0 || r.Matches[0].FullName != want {
			t.Errorf("%q: got %q, want %q first", query, fullNames(r), want)
		}
	}
}

// The commonest words of other languages are understood, and none of them is taken for a misspelt English one.
func TestOtherLanguages(t *testing.T) {
	x := New(office())
	for query, want := range map[string]string{
		"Datei verschieben":    "mcp__files__move_file",
		"envoyer un message":   "mcp__slack__postMessage",
		"crear evento":         "mcp__calendar__create_event",
		"previsão do clima":    "mcp__weather__get_forecast",
		"список каналов канал": "mcp__slack__listChannels",
		"搜索 代码 github":         "mcp__github__search_code",
		"商品を検索する":              "mcp__日本__検索",
		"读取文件":                 "mcp__files__read_file",
	} {
		if r := find(t, x, Query{Phrasings: []string{query}}); len(r.Matches) == 0 || r.Matches[0].FullName != want {
			t.Errorf("%q: got %q, want %q first", query, fullNames(r), want)
		}
	}
}

// A phrasing whose words fit badly does not put its best beside the best of one that fits well.
func TestBadPhrasingDoesLittleHarm(t *testing.T) {
	x := New(office())
	good := find(t, x, Query{Phrasings: []string{"create issue"}})
	r := find(t, x, Query{Phrasings: []string{"create issue", "make something with a new thing in it", "the list of a thing"}})
	if len(r.Matches) == 0 || r.Matches[0].FullName != good.Matches[0].FullName {
		t.Errorf("got %q, want %q first", fullNames(r), good.Matches[0].FullName)
	}
}

func TestOrderOfToolsDoesNotMatter(t *testing.T) {
	tools := append(office(), corpus(500)...)
	want := New(tools)
	r := rand.New(rand.NewPCG(1, 1))
	for range 3 {
		shuffled := slices.Clone(tools)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		got := New(shuffled)
		for _, q := range []string{"create issue", "get weather for customer", "updte invoice", "+list file"} {
			a, b := find(t, want, Query{Phrasings: []string{q, "find " + q}, Max: 50}), find(t, got, Query{Phrasings: []string{q, "find " + q}, Max: 50})
			if d := cmp.Diff(a, b); d != "" {
				t.Errorf("%q (-first +second):\n%s", q, d)
			}
		}
	}
}

func TestSearchIsSafeForConcurrentUse(t *testing.T) {
	x := New(office())
	want := fullNames(find(t, x, Query{Phrasings: []string{"files"}}))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got := fullNames(find(t, x, Query{Phrasings: []string{"files"}})); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	wg.Wait()
}

func TestEmptyAndOddTools(t *testing.T) {
	if r := find(t, New(nil), Query{Phrasings: []string{"x", "select:y"}}); len(r.Matches) > 0 || len(r.Unknown) != 1 {
		t.Errorf("without tools: got %+v", r)
	}
	x := New([]Tool{{}, {FullName: "a"}, {FullName: "a", Description: "second"}, {FullName: "\xff", Name: "\xff", Description: strings.Repeat("x ", 1<<17)}})
	if x.Len() != 3 {
		t.Errorf("got %d tools, want 3", x.Len())
	}
	find(t, x, Query{Phrasings: []string{"\xff\xfe", strings.Repeat("word ", 1<<16), "+", "select:", "+\xff"}, Max: 1 << 30})
}

func TestTokenize(t *testing.T) {
	tests := []struct {
		in   string
		want []string
	}{
		{"createIssue", []string{"creat", "issu", "createissu"}},
		{"HTTPServer2 get_URL", []string{"http", "server2", "server", "httpserver2", "get", "url", "geturl"}},
		{"GitHub's read-only API", []string{"git", "hub", "github", "s", "read", "only", "readon", "api"}},
		{"one two", []string{"one", "two"}},
		{"Größe Äpfel", []string{"größe", "äpfel"}},
		{"検索する", []string{"検", "索", "検索", "す", "索す", "る", "する"}},
		{"a.b.c.d", []string{"a", "b", "c", "d"}},
		{"", nil},
	}
	for _, tt := range tests {
		var got []string
		tokenize(tt.in, func(w string, _ bool) bool { got = append(got, stem(w)); return true })
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", tt.in, d)
		}
	}
}

func TestParams(t *testing.T) {
	got := Params(json.RawMessage(`{"type":"object","properties":{
		"b":{"type":"string","description":"The b","enum":["x","y"]},
		"a":{"type":"object","title":"A","properties":{"inner":{"description":"In"}}},
		"list":{"type":"array","items":{"properties":{"element":{}}}},
		"odd":true,"worse":{"description":7,"enum":"x"}},
		"oneOf":[{"properties":{"c":{"description":"See"}}}]}`))
	want := []Param{{"a", "A  "}, {"inner", " In "}, {"b", " The b  x y"}, {"list", "  "}, {"element", "  "}, {"odd", "  "}, {"worse", "  "}, {"c", " See "}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, bad := range []string{"", "null", "{", "7", strings.Repeat(`{"properties":{"a":`, 9000) + "1" + strings.Repeat("}}", 9000)} {
		if got := Params(json.RawMessage(bad)); len(got) > maxParams {
			t.Errorf("%.20s: %d parameters", bad, len(got))
		}
	}
}

func TestSummary(t *testing.T) {
	if got := Summary([]Tool{tool("b", "y", ""), tool("a", "x", "")}, 0); got != "mcp__a__x\nmcp__b__y" {
		t.Errorf("got %q", got)
	}
	got := Summary(office(), 300)
	want := strings.Join([]string{
		"calendar (2 tools)", "files (4 tools): directory_tree, …", "github (6 tools): create_issue, …",
		"my.db (2 tools): list_tables, …", "ops (1 tools): run", "slack (2 tools): listChannels, postMessage", "weather (1 tools): get_forecast", "日本 (1 tools): 検索",
	}, "\n")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	big := corpus(10_000)
	for _, limit := range []int{0, 100, 500, 1000, 20_000} {
		s := Summary(big, limit)
		most := limit
		if most == 0 {
			most = 4 << 10
		}
		if len(s) > most || len(s) < most/3 {
			t.Errorf("limit %d: %d bytes", limit, len(s))
		}
		shuffled := slices.Clone(big)
		slices.Reverse(shuffled)
		if again := Summary(shuffled, limit); again != s {
			t.Errorf("limit %d: the order of the tools changes the summary", limit)
		}
	}
	many := make([]Tool, 3000)
	for i := range many {
		many[i] = tool(fmt.Sprintf("server-with-a-long-name-%04d", i), "only", "")
	}
	if s := Summary(many, 0); len(s) > 4096 || !strings.Contains(s, "more servers with") {
		t.Errorf("3000 servers: %d bytes, ending %q", len(s), s[max(0, len(s)-60):])
	}
}

// corpus makes n tools of the kind that servers have, the same each time.
func corpus(n int) []Tool {
	verbs := strings.Fields("get list create update delete search find send move copy read write export import sync archive restore share assign close open merge approve reject schedule cancel start stop")
	nouns := strings.Fields("issue ticket invoice customer order product file folder document page comment message channel user team project task event meeting email report dashboard metric alert deployment pod cluster bucket object table row column query index pipeline job build branch commit tag release secret key token policy role group domain record zone certificate image container volume network subnet firewall route")
	fill := strings.Fields("the a of in with for and to by from on all given specified optional existing new current workspace account organization repository returns details including status pagination filter sorted matching identifier name time range")
	r := rand.New(rand.NewPCG(42, 42))
	tools := make([]Tool, 0, n)
	for i := range n {
		verb, noun := verbs[r.IntN(len(verbs))], nouns[r.IntN(len(nouns))]
		words := []string{verb, noun}
		for range 15 + r.IntN(40) {
			words = append(words, fill[r.IntN(len(fill))])
		}
		words = append(words, nouns[r.IntN(len(nouns))], fmt.Sprintf("code%d", r.IntN(20_000)))
		params := make([]Param, 1+r.IntN(6))
		for j := range params {
			params[j] = Param{nouns[r.IntN(len(nouns))] + "_" + fill[r.IntN(len(fill))], strings.Join(words[:5], " ")}
		}
		tools = append(tools, tool(fmt.Sprintf("server%d", i%200), fmt.Sprintf("%s_%s_%d", verb, noun, i), strings.Join(words, " "), params...))
	}
	return tools
}

// The index over 10,000 tools stays below 60 MB.
func TestIndexIsSmall(t *testing.T) {
	tools := corpus(10_000)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	x := New(tools)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if used := int64(after.HeapAlloc) - int64(before.HeapAlloc); used > 60<<20 {
		t.Errorf("%d bytes, want at most 60 MB", used)
	}
	if r := find(t, x, Query{Phrasings: []string{"create invoice"}}); len(r.Matches) != DefaultMax || !strings.Contains(r.Matches[0].Name, "create_invoice") {
		t.Errorf("got %q", fullNames(r))
	}
	runtime.KeepAlive(tools)
}

func FuzzSearch(f *testing.F) {
	for _, q := range []string{"create issue", "select:a,b", "+x y", "mcp__github", "検索", "postmessage", "\xff"} {
		f.Add(q, "forcast")
	}
	x := New(office())
	f.Fuzz(func(t *testing.T, a, b string) {
		q := Query{Phrasings: []string{a, b}}
		r := find(t, x, q)
		if d := cmp.Diff(r, find(t, x, q)); d != "" {
			t.Errorf("two searches differ:\n%s", d)
		}
		seen := map[string]bool{}
		for i, m := range r.Matches {
			if seen[m.FullName] {
				t.Errorf("%s is found twice", m.FullName)
			}
			seen[m.FullName] = true
			if i > 0 && m.Score > r.Matches[i-1].Score {
				t.Errorf("match %d scores %v after %v", i, m.Score, r.Matches[i-1].Score)
			}
		}
		find(t, New([]Tool{tool(a, b, a+b), {FullName: b, Description: b}}), q)
	})
}

func BenchmarkNew10000(b *testing.B) {
	tools := corpus(10_000)
	b.ReportAllocs()
	for b.Loop() {
		New(tools)
	}
}

func BenchmarkSearch10000(b *testing.B) {
	x := New(corpus(10_000))
	for _, q := range []Query{
		{Phrasings: []string{"create a new invoice for the customer"}},
		{Phrasings: []string{"crate a new invioce for the custmer"}},
		{Phrasings: []string{"+invoice create"}},
		{Phrasings: []string{"create invoice", "new bill for a customer", "add an order document"}},
	} {
		b.Run(fmt.Sprintf("%.20s %d", q.Phrasings[0], len(q.Phrasings)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				find(b, x, q)
			}
		})
	}
}

func BenchmarkSummary10000(b *testing.B) {
	tools := corpus(10_000)
	for b.Loop() {
		Summary(tools, 0)
	}
}
