package mcphost

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/internal/growth"
	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/permission"
)

func listedOf(server string, tools ...string) listedServer {
	s := listedServer{name: server}
	for _, name := range tools {
		s.tools = append(s.tools, Tool{Server: server, Name: name})
	}
	return s
}

// Two tools with one full name get different names, which depend on the keys that are configured and on their own
// server's tools, and not on who is connected. A rule with the plain name is about the tool that has it.
// fault B16
func TestNamesAreKeptApart(t *testing.T) {
	for _, tt := range []struct {
		name    string
		servers []listedServer
		hashed  []string // server/tool
	}{
		{"nothing alike", []listedServer{listedOf("a", "x", "y"), listedOf("b", "x")}, nil},
		{"a longer key", []listedServer{listedOf("pay", "send", "eu__send", "eu_send"), listedOf("pay__eu", "send")}, []string{"pay/eu__send"}},
		{"a longer key, other tools", []listedServer{listedOf("pay", "eu__send"), listedOf("pay__eu", "get")}, []string{"pay/eu__send"}},
		{"a key that ends in an underscore", []listedServer{listedOf("pay", "_send"), listedOf("pay_", "send")}, []string{"pay/_send"}},
		{"keys alike", []listedServer{listedOf("my db", "x"), listedOf("my_db", "x", "y")}, []string{"my db/x"}},
		{"keys alike, neither is written so", []listedServer{listedOf("my db", "x"), listedOf("my.db", "x")}, []string{"my db/x", "my.db/x"}},
		{"tools alike", []listedServer{listedOf("a", "b.c", "b_c", "b c", "d.e")}, []string{"a/b.c", "a/b c"}},
		{"tools alike, neither is written so", []listedServer{listedOf("a", "b.c", "b c")}, []string{"a/b.c", "a/b c"}},
	} {
		var keys []string
		var known []permission.Server
		for _, s := range tt.servers {
			keys, known = append(keys, s.name), append(known, permission.Server{Key: s.name})
		}
		rules := permission.NewServers(known...)
		check := func(connected []listedServer) {
			t.Helper()
			cat := newCatalog(connected, 0, keys...)
			if len(cat.rejected) != 0 {
				t.Errorf("%s: rejected %+v", tt.name, cat.rejected)
			}
			for _, tool := range cat.tools {
				for _, other := range cat.tools {
					names := rules.Names(tool.FullName, permission.Request{Tool: other.FullName, Server: other.Server, ToolName: other.Name})
					if names != (other.FullName == tool.FullName) && other.Server != tool.Server { // those of one server go by one rule
						t.Errorf("%s: that the rule %s names %s of %s is %v", tt.name, tool.FullName, other.Name, other.Server, names)
					}
				}
				want := toolname.Full(tool.Server, tool.Name)
				if slices.Contains(tt.hashed, tool.Server+"/"+tool.Name) {
					want += toolname.Hash(tool.Server, tool.Name)
				}
				if tool.FullName != want || tool.LongName != want || cat.byFull[want].Name != tool.Name {
					t.Errorf("%s, %d connected: %s of %s is %s, want %s", tt.name, len(connected), tool.Name, tool.Server, tool.FullName, want)
				}
			}
		}
		check(tt.servers)
		for i := range tt.servers { // one alone, and in another order
			check(tt.servers[i : i+1])
		}
		back := slices.Clone(tt.servers)
		slices.Reverse(back)
		check(back)
	}
}

// Tools with one full name on two servers can both be called, whatever comes up first, and keep their names while the
// other server is away.
// fault B16
func TestBothToolsOfOneNameAreCalled(t *testing.T) {
	server := func(tool string) ServerConfig {
		s := mcpserver.New("s", nil)
		mcpserver.MustAddTool(s, &mcpserver.Tool{Name: tool}, func(context.Context, struct{}) (string, error) { return "this is " + tool, nil })
		return InProcess(s)
	}
	h := newHost(t, map[string]ServerConfig{"pay": server("eu__send"), "pay__eu": server("send")})
	connected(t, h)
	renamed := "mcp__pay__eu__send" + toolname.Hash("pay", "eu__send")
	want := []string{"mcp__pay__eu__send", renamed}
	if diff := cmp.Diff(want, toolNames(h.Tools())); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	if got := text(t, h, "mcp__pay__eu__send", "{}") + ", " + text(t, h, renamed, "{}"); got != "this is send, this is eu__send" {
		t.Errorf("got %s", got)
	}
	if err := h.SetEnabled(soon(t), "pay__eu", false); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want[1:], toolNames(h.Tools())); diff != "" {
		t.Errorf("without the other server (-want +got):\n%s", diff)
	}
	if _, ok := h.Tool("mcp__pay__eu__send"); ok {
		t.Error("the plain name became the other server's")
	}
}

// A tool that a server in this process left out when it was registered is in the server's status and, once, in the
// host's log, whatever logger the server has.
// fault I4
func TestRegistrationsThatWereLeftOut(t *testing.T) {
	s := calculator(nil)
	err := s.AddTool(&mcpserver.Tool{Name: "bad", InputSchema: json.RawMessage(`{"type":"string"}`)},
		func(context.Context, json.RawMessage) (*mcpserver.Result, error) { return nil, nil })
	if err == nil {
		t.Fatal("the tool is not left out")
	}
	var log syncBuffer
	h := newHost(t, map[string]ServerConfig{"calc": InProcess(s)}, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	connected(t, h)
	if err := h.Reconnect(soon(t), "calc"); err != nil {
		t.Fatal(err)
	}
	if got := status(t, h, "calc"); len(got.Rejected) != 1 || got.Rejected[0].Name != "bad" || got.Rejected[0].Reason != err.Error() || got.ToolCount != 6 {
		t.Errorf("rejected: %+v", got.Rejected)
	}
	if n := strings.Count(log.String(), `level=WARN msg="tool left out" server=calc tool=bad`); n != 1 {
		t.Errorf("logged %d times: %s", n, log.String())
	}
}

// A catalogue is made in time in proportion to its tools, whatever they are called, and so are the statuses of all
// servers.
func TestCatalogGrows(t *testing.T) {
	hostile := strings.Repeat("__", 200)
	for name, make1 := range map[string]func(n int) []listedServer{
		"one server": func(n int) []listedServer {
			s := listedServer{name: "a"}
			for i := range n {
				s.tools = append(s.tools, Tool{Server: "a", Name: fmt.Sprintf("t.%d", i/2*2) + strings.Repeat("_", i%2)})
			}
			return []listedServer{s}
		},
		"names full of separators": func(n int) []listedServer {
			a := listedOf("a")
			for i := range n {
				a.tools = append(a.tools, Tool{Server: "a", Name: fmt.Sprintf("%d%s", i, hostile)})
			}
			return []listedServer{a, listedOf("a__b", "x"), listedOf("a__b__c", "x")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			growth.Check(t, 2500, func(n int) int {
				in := make1(n)
				return growth.Bytes(func() { newCatalog(in, 0) })
			})
		})
	}
	// What stays as it was is compared once.
	growth.Check(t, 1000, func(n int) int {
		had, tools := map[string]*Tool{}, make([]Tool, n)
		for i := range tools {
			name := fmt.Sprintf("t%d", i)
			had[name] = &Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object","title":"x"}`)}
			tools[i] = Tool{Name: name, InputSchema: json.RawMessage(`{"title":"x","type":"object"}`)}
		}
		return growth.Bytes(func() { keepSchemas(had, tools) })
	})
}
