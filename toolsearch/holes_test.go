package toolsearch

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// words are the words that a text is split into, wholes with a mark.
func words(text string) []string {
	var out []string
	tokenize(text, func(w string, whole bool) bool {
		if whole {
			w = "=" + w
		}
		out = append(out, w)
		return true
	})
	return out
}

// Names of two and three parts are words as a whole, in order; of more parts only the parts count.
// fault F15
func TestNamesAsAWhole(t *testing.T) {
	for text, want := range map[string][]string{
		"issue":                    {"issue"},
		"createIssue":              {"create", "issue", "=createissue"},
		"git_hub_api":              {"git", "hub", "api", "=githubapi"},
		"HTTPServerName":           {"http", "server", "name", "=httpservername"},
		"a.b-c":                    {"a", "b", "c", "=abc"},
		"one_two_three_four":       {"one", "two", "three", "four"},
		"pull_request and git_hub": {"pull", "request", "=pullrequest", "and", "git", "hub", "=github"},
		"abcdefghijklmnopqrst_uvwxyzabcdefghijklmn":  {"abcdefghijklmnopqrst", "uvwxyzabcdefghijklmn", "=abcdefghijklmnopqrstuvwxyzabcdefghijklmn"},
		"abcdefghijklmnopqrst_uvwxyzabcdefghijklmno": {"abcdefghijklmnopqrst", "uvwxyzabcdefghijklmno"}, // 41 bytes
		"page2": {"page2", "=page"},
		"v2":    {"v2"},
	} {
		if d := cmp.Diff(want, words(text)); d != "" {
			t.Errorf("%q (-want +got):\n%s", text, d)
		}
	}
	x := New([]Tool{
		tool("pages", "git_hub_api", "Calls something"), tool("pages", "git_api_hub", "Calls something"), tool("pages", "hub", "Calls something"),
	})
	if got := fullNames(find(t, x, Query{Phrasings: []string{"githubapi"}})); len(got) == 0 || got[0] != "mcp__pages__git_hub_api" {
		t.Errorf("githubapi finds %q", got)
	}
}

// A server is named by its key in any case, or by the beginning of its tools' names.
// fault F15
func TestFormsOfAServer(t *testing.T) {
	for key, want := range map[string][]string{
		"":               nil,
		"zz":             {"mcp__zz", "zz"},
		"Zapier":         {"mcp__zapier", "zapier"},
		"a-z_0-9":        {"a-z_0-9", "mcp__a-z_0-9"},
		"azAZ09":         {"azaz09", "mcp__azaz09"},
		"my.db":          {"mcp__my_db", "my.db", "my_db"},
		"a b/c@d[e]{f}`": {"a b/c@d[e]{f}`", "a_b_c_d_e__f__", "mcp__a_b_c_d_e__f__"},
		"日本":             {"__", "mcp____", "日本"},
	} {
		if d := cmp.Diff(want, serverForms(key)); d != "" {
			t.Errorf("%q (-want +got):\n%s", key, d)
		}
	}
}

// The tools of a server with a z in its key are found by it.
// fault F15
func TestServerWithAZ(t *testing.T) {
	x := New([]Tool{tool("zendesk", "list", "Lists what there is"), tool("azure.z9", "list", "Lists what there is"), tool("other", "list", "Lists what there is")})
	for query, want := range map[string]string{
		"zendesk list": "mcp__zendesk__list", "mcp__zendesk": "mcp__zendesk__list", "mcp__azure_z9": "mcp__azure_z9__list", "azure.z9": "mcp__azure_z9__list",
	} {
		got := fullNames(find(t, x, Query{Phrasings: []string{query}}))
		if len(got) == 0 || got[0] != want || query[:3] == "mcp" && slices.Contains(got, "mcp__other__list") {
			t.Errorf("%q finds %q, want %s first", query, got, want)
		}
	}
}

// The heap keeps the best of any number, in any order of their coming.
func TestBestKeepsTheBest(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		n, most := 1+r.IntN(40), 1+r.IntN(12)
		all := make([]scored, n)
		b := newBest(most)
		for i := range all {
			all[i] = scored{tool: int32(i), score: float32(r.IntN(5))}
			b.add(all[i])
		}
		slices.SortFunc(all, compare)
		if d := cmp.Diff(all[:min(n, most)], b.sorted(), cmp.AllowUnexported(scored{})); d != "" {
			t.Fatalf("%d of %d (-want +got):\n%s", most, n, d)
		}
	}
}
