package permission

import (
	"fmt"
	"testing"

	"github.com/tenon-sdk/tenon/internal/toolname"
)

// A rule is about the server that it names, whatever the tools of another are called. fault A6
func TestRulesNameOneServer(t *testing.T) {
	two := []Server{{Key: "pay"}, {Key: "pay__eu"}}
	euSend, send := tool("pay", "eu__send"), tool("pay__eu", "send")
	renamed := func(c Request) Request { c.Tool += toolname.Hash(c.Server, c.ToolName); return c }
	cut := Request{Tool: toolname.Fit("pay", "eu__"+fmt.Sprintf("%0100d", 1), 0), Server: "pay", ToolName: "eu__" + fmt.Sprintf("%0100d", 1)}
	tests := []struct {
		name     string
		servers  []Server
		rule     string
		behavior Behavior
		call     Request
		want     bool
	}{
		{"wildcard", two, "mcp__pay__eu__*", Allow, euSend, false},
		{"wildcard, the server named", two, "mcp__pay__eu__*", Allow, send, true},
		{"exact", two, "mcp__pay__eu__send", Allow, euSend, false},
		{"exact, the server named", two, "mcp__pay__eu__send", Allow, send, true},
		{"prefix", two, "mcp__pay__eu__s*", Allow, euSend, false},
		{"prefix, the server named", two, "mcp__pay__eu__s*", Allow, send, true},
		{"server form", two, "mcp__pay__eu", Allow, tool("pay", "eu"), false},
		{"server form, the server named", two, "mcp__pay__eu", Allow, send, true},
		{"the shorter key's wildcard", two, "mcp__pay__*", Allow, euSend, true},
		{"the shorter key's wildcard covers nothing of the longer", two, "mcp__pay__*", Allow, send, false},
		{"the shorter key's server form", two, "mcp__pay", Allow, send, false},
		{"a prefix that is no other key", two, "mcp__pay__e*", Allow, euSend, true},
		{"a prefix that is no other key covers nothing of the longer", two, "mcp__pay__e*", Allow, send, false},
		{"the order of the list counts for nothing", []Server{two[1], two[0]}, "mcp__pay__eu__*", Allow, euSend, false},
		{"the longer key is not in the run", two[:1], "mcp__pay__eu__*", Allow, euSend, true},
		{"two names alike, the one told apart", two, renamed(euSend).Tool, Allow, renamed(euSend), true},
		{"two names alike, the other's", two, renamed(euSend).Tool, Allow, send, false},
		{"two names alike, by the plain name", two, "mcp__pay__eu__send", Allow, renamed(euSend), false},
		{"a name that was cut", two, cut.Tool, Allow, cut, true},
		{"a name that was cut, no hash of this tool", two, cut.Tool[:len(cut.Tool)-1] + "x", Allow, Request{Tool: cut.Tool[:len(cut.Tool)-1] + "x", Server: "pay", ToolName: cut.ToolName}, false},
		{"the hash beside a plain name", two, renamed(euSend).Tool, Allow, euSend, true},
		{"a key that ends in an underscore", []Server{{Key: "pay"}, {Key: "pay_"}}, "mcp__pay___send", Allow, tool("pay", "_send"), false},
		{"a key that ends in an underscore, the server named", []Server{{Key: "pay"}, {Key: "pay_"}}, "mcp__pay___send", Allow, tool("pay_", "send"), true},

		{"keys alike, the one that is written so", []Server{{Key: "my db"}, {Key: "my_db"}}, "mcp__my_db__*", Allow, tool("my_db", "x"), true},
		{"keys alike, the one that is not", []Server{{Key: "my db"}, {Key: "my_db"}}, "mcp__my_db__*", Allow, tool("my db", "x"), false},
		{"keys alike, neither is written so", []Server{{Key: "my db"}, {Key: "my.db"}}, "mcp__my_db__*", Allow, tool("my db", "x"), false},
		{"one key that is not written so", []Server{{Key: "my db"}}, "mcp__my_db__*", Allow, tool("my db", "x"), true},

		{"a foreign server takes no rule", []Server{{Key: "pay"}, {Key: "pay__eu", Foreign: true}}, "mcp__pay__eu__*", Allow, send, false},
		{"a foreign server makes a rule unclear", []Server{{Key: "pay"}, {Key: "pay__eu", Foreign: true}}, "mcp__pay__eu__*", Allow, euSend, false},
		{"a foreign server leaves the others be", []Server{{Key: "pay"}, {Key: "pay__eu", Foreign: true}}, "mcp__pay__*", Allow, euSend, true},
		{"a foreign key alike", []Server{{Key: "my db"}, {Key: "my_db", Foreign: true}}, "mcp__my_db__*", Allow, tool("my_db", "x"), false},
		{"a foreign key alike, the program's", []Server{{Key: "my db"}, {Key: "my_db", Foreign: true}}, "mcp__my_db__*", Allow, tool("my db", "x"), true},
		{"foreign servers alone", []Server{{Key: "pay", Foreign: true}, {Key: "pay__eu", Foreign: true}}, "mcp__pay__eu__*", Allow, send, true},
		{"a server that is not in the list", two, "mcp__pay__eu__x__*", Allow, tool("pay__eu__x", "y"), false},

		{"deny, all readings", two, "mcp__pay__eu__*", Deny, euSend, true},
		{"deny, all readings, the longer key", two, "mcp__pay__eu__*", Deny, send, true},
		{"deny, exact", two, "mcp__pay__eu__send", Deny, euSend, true},
		{"deny, exact, under its other name", two, "mcp__pay__eu__send", Deny, renamed(euSend), true},
		{"ask, server form", two, "mcp__pay__eu", Ask, tool("pay", "eu"), true},
		{"deny, keys alike", []Server{{Key: "my db"}, {Key: "my.db"}}, "mcp__my_db__*", Deny, tool("my.db", "x"), true},
		{"deny, a foreign server", []Server{{Key: "pay"}, {Key: "pay__eu", Foreign: true}}, "mcp__pay__eu__*", Deny, send, true},
		{"deny, a server that is not in the list", two, "mcp__other", Deny, tool("other", "x"), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := ParseRule(tt.rule, tt.behavior)
			if err != nil {
				t.Fatal(err)
			}
			if got := matches(r, NewServers(tt.servers...), tt.call); got != tt.want {
				t.Errorf("%s %s on tool %q of server %q: got %v, want %v", tt.behavior, tt.rule, tt.call.ToolName, tt.call.Server, got, tt.want)
			}
		})
	}
}

// A tool whose name reads as another server's has a name of its own to allow it by, and the one who is asked
// is offered that. fault A6
func TestSuggestNamesOneTool(t *testing.T) {
	p := policy(t, nil).WithServers(known("pay", "pay__eu"))
	euSend, send := tool("pay", "eu__send"), tool("pay__eu", "send")
	after, problems := p.Apply(p.Suggest(euSend)...)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if a, b := after.Decide(euSend).Behavior, after.Decide(send).Behavior; a != Allow || b != Ask {
		t.Errorf("after the suggestion for eu__send of pay (%q): %s it, %s send of pay__eu; want allow and ask", p.Suggest(euSend)[0].Rules, a, b)
	}
	after, _ = p.Apply(p.Suggest(send)...)
	if a, b := after.Decide(euSend).Behavior, after.Decide(send).Behavior; a != Ask || b != Allow {
		t.Errorf("after the suggestion for send of pay__eu: %s eu__send of pay, %s it; want ask and allow", a, b)
	}
}

// fault A6
func TestNamesIsOneTool(t *testing.T) {
	s := known("pay", "pay__eu")
	tests := []struct {
		text string
		call Request
		want bool
	}{
		{"mcp__pay__eu__ask", tool("pay__eu", "ask"), true},
		{"mcp__pay__eu__ask", tool("pay", "eu__ask"), false},
		{"mcp__pay__ask", tool("pay", "ask"), true},
		{" mcp__pay__ask ", tool("pay", "ask"), true},
		{"mcp__pay__eu__ask" + toolname.Hash("pay", "eu__ask"), tool("pay", "eu__ask"), true},
		{"mcp__pay", tool("pay", "ask"), false},
		{"mcp__pay__*", tool("pay", "ask"), false},
		{"mcp__pay__a*", tool("pay", "ask"), false},
		{"Ask", Request{Tool: "Ask"}, true},
		{"ask", Request{Tool: "Ask"}, false},
	}
	for _, tt := range tests {
		if got := s.Names(tt.text, tt.call); got != tt.want {
			t.Errorf("Names(%q) of tool %q of server %q: got %v, want %v", tt.text, tt.call.ToolName, tt.call.Server, got, tt.want)
		}
	}
}

func TestAmbiguous(t *testing.T) {
	s := known("pay", "pay__eu", "other", "my db", "my.db")
	for rule, want := range map[string]bool{
		"mcp__pay__eu__*": true, "mcp__pay__eu__send": true, "mcp__pay__eu": true, "mcp__pay": true, "mcp__pay__*": true, "mcp__pay__e*": true,
		"mcp__pay__get": false, "mcp__other__*": false, "mcp__other__eu__x": false, "mcp__my_db__x": true, "mcp__unknown__*": false, "Read": false,
	} {
		if got := s.Ambiguous(rule); got != want {
			t.Errorf("Ambiguous(%q): got %v, want %v", rule, got, want)
		}
	}
}

// What a policy was made for holds for those made of it.
func TestServersOutliveUpdates(t *testing.T) {
	p := policy(t, &Options{Allow: []string{"mcp__pay__eu__*"}}).WithServers(known("pay", "pay__eu"))
	p, _ = p.Apply(Update{Type: AddRules, Behavior: Allow, Rules: []UpdateRule{{ToolName: "mcp__x__y"}}})
	p, err := p.WithMode(ModeDontAsk)
	if err != nil {
		t.Fatal(err)
	}
	if d := p.Decide(tool("pay", "eu__send")); d.Behavior != Deny {
		t.Errorf("got %s, want deny", d.Behavior)
	}
}

// The resources of a server follow the rules that cover all of it. fault A7
func TestDecideResource(t *testing.T) {
	read := Request{Tool: "ReadMcpResourceTool", Server: "stock", Resource: true, ReadOnly: true}
	tests := []struct {
		name   string
		o      Options
		want   Behavior
		reason Reason
		rule   string
	}{
		{"nothing is said", Options{}, Ask, ReasonUnsettled, ""},
		{"ask, server form", Options{Ask: []string{"mcp__stock"}}, Ask, ReasonRule, "mcp__stock"},
		{"ask, wildcard, bypass", Options{Ask: []string{"mcp__stock__*"}, Mode: ModeBypassPermissions}, Ask, ReasonRule, "mcp__stock__*"},
		{"ask, all servers", Options{Ask: []string{"mcp__*"}}, Ask, ReasonRule, "mcp__*"},
		{"ask about another server", Options{Ask: []string{"mcp__other"}}, Ask, ReasonUnsettled, ""},
		{"ask about one tool", Options{Ask: []string{"mcp__stock__lookup", "mcp__stock__l*", "mcp__*__write"}}, Ask, ReasonUnsettled, ""},
		{"deny, server form", Options{Deny: []string{"mcp__stock"}, Allow: []string{"ReadMcpResourceTool"}}, Deny, ReasonRule, "mcp__stock"},
		{"deny the tool", Options{Deny: []string{"ReadMcpResourceTool"}}, Deny, ReasonRule, "ReadMcpResourceTool"},
		{"allow the tool", Options{Allow: []string{"ReadMcpResourceTool"}}, Allow, ReasonRule, "ReadMcpResourceTool"},
		{"allow the server", Options{Allow: []string{"mcp__stock__*"}}, Allow, ReasonRule, "mcp__stock__*"},
		{"allow one tool", Options{Allow: []string{"mcp__stock__read*"}}, Ask, ReasonUnsettled, ""},
		{"ask beats allow", Options{Ask: []string{"mcp__stock"}, Allow: []string{"ReadMcpResourceTool"}}, Ask, ReasonRule, "mcp__stock"},
		{"ask, nobody to ask", Options{Ask: []string{"mcp__stock"}, Mode: ModeDontAsk}, Deny, ReasonRule, "mcp__stock"},
		{"plan reads what is allowed", Options{Mode: ModePlan, Allow: []string{"mcp__stock"}}, Allow, ReasonRule, "mcp__stock"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := policy(t, &tt.o).WithServers(known("stock", "other")).Decide(read)
			if d.Behavior != tt.want || d.Reason != tt.reason || d.Rule != tt.rule {
				t.Errorf("got %s by %s (rule %q), want %s by %s (rule %q)", d.Behavior, d.Reason, d.Rule, tt.want, tt.reason, tt.rule)
			}
			if (d.Behavior == Allow) != (d.Message == "") {
				t.Errorf("%s with message %q", d.Behavior, d.Message)
			}
		})
	}
}
