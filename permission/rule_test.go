package permission

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/internal/toolname"
)

// tool makes the request of a tool of a server, as a host would.
func tool(server, name string) Request {
	return Request{Tool: toolname.Full(server, name), Server: server, ToolName: name}
}

// known makes a list of servers.
func known(keys ...string) *Servers {
	list := make([]Server, len(keys))
	for i, key := range keys {
		list[i].Key = key
	}
	return NewServers(list...)
}

// matches reports whether a rule covers a call in a run with these servers.
func matches(r Rule, servers *Servers, c Request) bool {
	p := &Policy{rules: []Rule{r}}
	_, ok := p.WithServers(servers).match(r.behavior, c)
	return ok
}

func TestMatch(t *testing.T) {
	tests := []struct {
		name     string
		rule     string
		behavior Behavior
		call     Request
		want     bool
	}{
		// D40 D42: a full name approves just that tool.
		{"exact", "mcp__srv__read", Allow, tool("srv", "read"), true},
		{"exact, a longer name", "mcp__srv__read", Allow, tool("srv", "read_all"), false},
		{"exact, another server", "mcp__srv__read", Allow, tool("srv2", "read"), false},
		{"exact, another case", "mcp__srv__Read", Allow, tool("srv", "read"), false},
		{"space around the rule", "  mcp__srv__read\n", Allow, tool("srv", "read"), true},
		// D03 D42: the server's all, in both forms.
		{"server", "mcp__srv", Allow, tool("srv", "read"), true},
		{"wildcard", "mcp__srv__*", Allow, tool("srv", "read"), true},
		{"prefix", "mcp__srv__re*", Allow, tool("srv", "read"), true},
		{"prefix, another tool", "mcp__srv__re*", Allow, tool("srv", "write"), false},
		{"prefix that is the name", "mcp__srv__read*", Allow, tool("srv", "read"), true},
		{"star within", "mcp__srv__get_*_by_id", Allow, tool("srv", "get_user_by_id"), true},
		{"star within, end differs", "mcp__srv__get_*_by_id", Allow, tool("srv", "get_user_by_ids"), false},
		{"stars do not overlap", "mcp__srv__ab*ba", Allow, tool("srv", "aba"), false},
		{"two stars", "mcp__srv__*a*b", Allow, tool("srv", "xaxb"), true},
		// D45: a wildcard grants that server and nothing else, also where keys begin alike.
		{"wildcard, longer key", "mcp__srv__*", Allow, tool("srv2", "read"), false},
		{"wildcard, key that goes on with __", "mcp__srv__*", Allow, tool("srv__admin", "drop"), false},
		{"prefix, key that goes on with __", "mcp__srv__a*", Allow, tool("srv__admin", "drop"), false},
		{"server, key that goes on with __", "mcp__srv", Allow, tool("srv__admin", "drop"), false},
		{"server form of a longer key", "mcp__srv__admin", Allow, tool("srv__admin", "drop"), true},
		{"wildcard is no tool outside MCP", "mcp__srv__*", Allow, Request{Tool: "Read"}, false},
		// D98: rules match the normalised form only.
		{"normalised key", "mcp__my_server__list", Allow, tool("my.server", "list"), true},
		{"hyphen kept", "mcp__my-server__list", Allow, tool("my-server", "list"), true},
		{"hyphen is not an underscore", "mcp__my_server__list", Allow, tool("my-server", "list"), false},
		{"normalised tool", "mcp__s__a_b", Allow, tool("s", "a.b"), true},
		// D41: a plugin's server has the plugin-scoped form.
		{"plugin", "mcp__plugin_my-plug_sr_v__*", Allow, tool("plugin:my-plug:sr.v", "echo"), true},
		{"plugin by its bare key", "mcp__sr_v__*", Allow, tool("plugin:my-plug:sr.v", "echo"), false},
		{"empty key", "mcp____*", Allow, tool("", "echo"), true},
		{"a name that was shortened, by the short one", "mcp__long__na_0123abcd", Allow, Request{Tool: "mcp__long__na_0123abcd", Server: "long", ToolName: "name"}, true},
		{"a name that was shortened, by the whole one", "mcp__long__name", Allow, Request{Tool: "mcp__long__na_0123abcd", Server: "long", ToolName: "name"}, true},
		{"not MCP", "ToolSearch", Allow, Request{Tool: "ToolSearch"}, true},
		{"arguments match nothing", "Bash(git log:*)", Allow, Request{Tool: "Bash"}, false},
		{"arguments match nothing, deny", "Bash(git log:*)", Deny, Request{Tool: "Bash"}, false},

		// Deny and ask take stars anywhere and are held against the whole name.
		{"deny server", "mcp__srv", Deny, tool("srv", "read"), true},
		{"deny server, another", "mcp__srv", Deny, tool("srv2", "read"), false},
		{"deny all MCP", "mcp__*", Deny, tool("srv", "read"), true},
		{"deny all MCP leaves others", "mcp__*", Deny, Request{Tool: "ToolSearch"}, false},
		{"deny everything", "*", Deny, Request{Tool: "ToolSearch"}, true},
		{"deny by verb", "mcp__*__delete_*", Deny, tool("srv", "delete_all"), true},
		{"deny by ending", "*_delete", Deny, tool("srv", "user_delete"), true},
		{"deny by key prefix", "mcp__s*", Deny, tool("srv", "read"), true},
		{"ask by verb", "mcp__*__write*", Ask, tool("srv", "write_file"), true},
		{"deny covers more in doubt", "mcp__srv__*", Deny, tool("srv__admin", "drop"), true},
		{"deny by the whole of a shortened name", "mcp__long__n*e", Deny, Request{Tool: "mcp__long__na_0123abcd", Server: "long", ToolName: "name"}, true},
		{"deny a server, caller leaves the server out", "mcp__srv", Deny, Request{Tool: "mcp__srv__read"}, true},
		{"allow a server, caller leaves the server out", "mcp__srv__*", Allow, Request{Tool: "mcp__srv__read"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := ParseRule(tt.rule, tt.behavior)
			if err != nil {
				t.Fatalf("ParseRule: %v", err)
			}
			if got := matches(r, nil, tt.call); got != tt.want {
				t.Errorf("%s %s on %s: got %v, want %v", tt.behavior, tt.rule, tt.call.Tool, got, tt.want)
			}
		})
	}
}

// No rule is ignored in silence: what cannot match is an error that says what to write.
func TestParseRuleRefuses(t *testing.T) {
	tests := []struct {
		rule     string
		behavior Behavior
		message  string
		instead  string
	}{
		{"", Allow, "empty", ""},
		{"*", Allow, "only after a literal mcp__SERVER__", "one rule mcp__SERVER__*"},
		{"mcp__*", Allow, "only after a literal", "one rule mcp__SERVER__*"},
		{"mcp__s_*", Allow, "only after a literal", "mcp__s__*"},
		{"mcp__srv*", Allow, "only after a literal", "mcp__srv__*"},
		{"mcp__*__a", Allow, "only after a literal", "one rule"},
		{"Rea*", Allow, "only after a literal", "one rule"},
		{"mcp__", Allow, "names no server", "mcp__SERVER__*"},
		{"mcp__srv__tool(args)", Allow, "never matches an MCP tool", "mcp__srv__tool"},
		{"mcp__srv__tool(args)", Deny, "never matches an MCP tool", "mcp__srv__tool"},
		{"Bash(git", Deny, "closing", ""},
		{"mcp__s.one__a", Allow, "matches nothing", "mcp__s_one__a"},
		{"mcp__s.one__*", Deny, "matches nothing", "mcp__s_one__*"},
		{"mcp__my server", Ask, "matches nothing", "mcp__my_server"},
		{"mcp_srv_tool", Allow, "begin with mcp__", "mcp__srv_tool"},
		{"mcp-srv__tool", Allow, "begin with mcp__", "mcp__srv__tool"},
		{"MCP__srv__tool", Deny, "begin with mcp__", "mcp__srv__tool"},
		{"mcp__srv", "forbid", "unknown behavior", ""},
	}
	for _, tt := range tests {
		t.Run(string(tt.behavior)+" "+tt.rule, func(t *testing.T) {
			_, err := ParseRule(tt.rule, tt.behavior)
			var re *RuleError
			if !errors.As(err, &re) {
				t.Fatalf("got %v, want a RuleError", err)
			}
			if !strings.Contains(re.Message, tt.message) || !strings.Contains(re.Instead, tt.instead) || (tt.instead == "") != (re.Instead == "") {
				t.Errorf("got %q, instead %q; want %q, instead %q", re.Message, re.Instead, tt.message, tt.instead)
			}
			if !strings.Contains(err.Error(), re.Instead) {
				t.Errorf("the error %q does not say what to write", err)
			}
		})
	}
}

func TestSplitList(t *testing.T) {
	tests := []struct {
		in   string
		want []string
	}{
		{"", nil},
		{" , ", nil},
		{"mcp__a__*,mcp__b", []string{"mcp__a__*", "mcp__b"}},
		{"Read,Bash(git log:*, git diff) mcp__srv", []string{"Read", "Bash(git log:*, git diff)", "mcp__srv"}},
		{"a\tb\nc", []string{"a", "b", "c"}},
		{"a) b(c d", []string{"a)", "b(c d"}},
	}
	for _, tt := range tests {
		if got := SplitList(tt.in); !slices.Equal(got, tt.want) {
			t.Errorf("SplitList(%q): got %q, want %q", tt.in, got, tt.want)
		}
	}
}

// D21: an exact name or mcp__SERVER__* names a server, nothing else does.
func TestNamed(t *testing.T) {
	tests := []struct {
		name  string
		rules []string
		want  []string
	}{
		{"exact name", []string{"mcp__slow__read"}, []string{"slow"}},
		{"wildcard", []string{"mcp__my_server__*"}, []string{"my.server"}},
		{"server form", []string{"mcp__slow"}, nil},
		{"prefix", []string{"mcp__slow__re*"}, nil},
		{"all", []string{"mcp__*", "*"}, nil},
		{"key not normalised", []string{"mcp__my.server__x"}, nil},
		{"another server", []string{"mcp__slower__x", "Read"}, nil},
		{"in doubt the longest key", []string{"mcp__a__b__c"}, []string{"a__b"}},
		{"the tool of a key that is another's beginning", []string{"mcp__a__x"}, []string{"a"}},
		{"order of the servers", []string{"mcp__slow__x", "mcp__a__*"}, []string{"a", "slow"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Named([]string{"a", "a__b", "my.server", "slow"}, tt.rules...)
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func FuzzParseRule(f *testing.F) {
	for _, s := range []string{"mcp__srv__*", "*", "Bash(x:*)", "mcp__*__a", "mcp____*", "**"} {
		f.Add(s, "mcp__srv__tool")
	}
	f.Fuzz(func(t *testing.T, rule, name string) {
		for _, b := range []Behavior{Allow, Deny, Ask} {
			r, err := ParseRule(rule, b)
			if err != nil {
				continue
			}
			if again, err := ParseRule(r.String(), b); err != nil || again != r {
				t.Errorf("%q parses to %q, which does not parse to itself: %v", rule, r, err)
			}
			// An allow rule never covers a second server unless the keys run together.
			if b == Allow && matches(r, known("srv", "other"), tool("srv", name)) && matches(r, known("srv", "other"), tool("other", name)) {
				t.Errorf("allow rule %q covers tool %q of two servers", rule, name)
			}
		}
	})
}
