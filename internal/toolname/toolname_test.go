package toolname

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFull(t *testing.T) {
	tests := []struct{ name, server, tool, want string }{
		{"plain", "stock", "lookup", "mcp__stock__lookup"},                                    // D38
		{"dot in the key", "my.server", "list_issues", "mcp__my_server__list_issues"},         // D39
		{"blank in the key", "claude.ai Foo", "x", "mcp__claude_ai_Foo__x"},                   // D39
		{"hyphens and case stay", "A-b_C", "D-e", "mcp__A-b_C__D-e"},                          // D98
		{"each character one underscore", "a..b", "c//d", "mcp__a__b__c__d"},                  // D98
		{"letters of other scripts", "日本語", "é", "mcp_______" + "_"},                          // D98
		{"beyond the basic plane, as the CLI does", "emoji😀", "x", "mcp__emoji____x"},         // D98
		{"empty key", "", "echo", "mcp____echo"},                                              // D98
		{"separator inside a name", "a__b", "echo", "mcp__a__b__echo"},                        // D38
		{"plugin form is a plain key", "plugin:my-plug:sr", "e", "mcp__plugin_my-plug_sr__e"}, // D41
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Full(tt.server, tt.tool); got != tt.want {
				t.Errorf("Full(%q, %q) = %q, want %q", tt.server, tt.tool, got, tt.want)
			}
		})
	}
}

func TestServer(t *testing.T) {
	if got, want := Server("s.one"), "mcp__s_one"; got != want {
		t.Errorf("Server = %q, want %q", got, want)
	}
}

// Pain 31 and F07.
func TestFitKeepsLongNamesApart(t *testing.T) {
	server := "0b9e4cb2-6f1d-4f57-9a55-0f4f3a0d7c11"
	public := "repository_content_listing_public"
	private := "repository_content_listing_private"
	if a, b := Full(server, public), Full(server, private); a[:64] != b[:64] {
		t.Fatalf("the case is not hard: %q and %q differ early", a, b)
	}
	a, b := Fit(server, public, 0), Fit(server, private, 0)
	if len(a) > DefaultLimit || len(b) > DefaultLimit {
		t.Errorf("too long: %d and %d bytes", len(a), len(b))
	}
	if a == b {
		t.Errorf("both tools are named %q", a)
	}
	if again := Fit(server, public, 0); again != a {
		t.Errorf("second run gives %q, first gave %q", again, a)
	}
	if !strings.HasPrefix(a, Server(server)+Separator) {
		t.Errorf("%q lost the server's part, which rules match", a)
	}
}

func TestFitBounds(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, limit := range []int{-1, 0, 1, 16, 64, 128} {
		got := Fit(long, long, limit)
		want := max(limit, 16)
		if limit == 0 {
			want = DefaultLimit
		}
		if len(got) != want {
			t.Errorf("Fit with limit %d: %d bytes, want %d", limit, len(got), want)
		}
	}
	if got := Fit("a", "b", 16); got != "mcp__a__b" {
		t.Errorf("a short name was changed to %q", got)
	}
}

func FuzzFit(f *testing.F) {
	f.Add("server", "tool")
	f.Add("\xff\xfe", "\x00")
	f.Add("😀", strings.Repeat("_", 64))
	ok := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	f.Fuzz(func(t *testing.T, server, tool string) {
		if got := Fit(server, tool, 0); !ok.MatchString(got) || !utf8.ValidString(got) {
			t.Errorf("Fit(%q, %q) = %q", server, tool, got)
		}
	})
}

func TestOverlap(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"a", "a", true},
		{"my db", "my_db", true},
		{"a", "a__b", true},
		{"a", "a__b__c", true},
		{"a", "a_b", false},
		{"a", "ab", false},
		{"a_", "a", true},
		{"a_", "a_b", false},
		{"a__b", "a__c", false},
		{"", "__a", true},
	} {
		if Overlap(tt.a, tt.b) != tt.want || Overlap(tt.b, tt.a) != tt.want {
			t.Errorf("%q and %q: %v and %v, want %v", tt.a, tt.b, Overlap(tt.a, tt.b), Overlap(tt.b, tt.a), tt.want)
		}
	}
}
