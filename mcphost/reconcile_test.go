package mcphost

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/internal/growth"
	"github.com/tenon-sdk/tenon/mcpauth"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// Pain 27: what did not change is left alone, and what did is connected anew, functions and logins included.
func TestSameConfig(t *testing.T) {
	computing := func(v string) HeadersFunc {
		return func(context.Context) (map[string]string, error) { return map[string]string{"X": v}, nil }
	}
	one := computing("1")
	memory := mcpauth.NewMemoryStore()
	login := func(id string) *mcpauth.Authenticator {
		a, err := mcpauth.New("https://h/mcp", &mcpauth.Options{Store: memory, ClientID: id})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	calc := calculator(nil)
	client := &http.Client{}
	for name, tt := range map[string]struct {
		a, b ServerConfig
		want bool
	}{
		"equal":                   {Stdio{Command: "x", Args: []string{"a"}}, Stdio{Command: "x", Args: []string{"a"}}, true},
		"other argument":          {Stdio{Command: "x", Args: []string{"a"}}, Stdio{Command: "x", Args: []string{"b"}}, false},
		"other kind":              {HTTP{URL: "http://h"}, SSE{URL: "http://h"}, false},
		"one function":            {HTTP{URL: "http://h", HeadersFunc: one}, HTTP{URL: "http://h", HeadersFunc: one}, true},
		"one code, other values":  {HTTP{URL: "http://h", HeadersFunc: one}, HTTP{URL: "http://h", HeadersFunc: computing("2")}, false},
		"no function any more":    {HTTP{URL: "http://h", HeadersFunc: one}, HTTP{URL: "http://h"}, false},
		"no function but its key": {HTTP{URL: "http://h", HeadersKey: "k", HeadersFunc: one}, HTTP{URL: "http://h", HeadersKey: "k"}, false},
		"one key":                 {SSE{URL: "http://h", HeadersKey: "k", HeadersFunc: one}, SSE{URL: "http://h", HeadersKey: "k", HeadersFunc: computing("1")}, true},
		"another key":             {HTTP{URL: "http://h", HeadersKey: "k", HeadersFunc: one}, HTTP{URL: "http://h", HeadersKey: "l", HeadersFunc: one}, false},
		"another URL":             {HTTP{URL: "http://h", HeadersKey: "k", HeadersFunc: one}, HTTP{URL: "http://i", HeadersKey: "k", HeadersFunc: one}, false},
		"one login":               {HTTP{URL: "http://h", Auth: login("x")}, HTTP{URL: "http://h", Auth: login("x")}, true},
		"another login":           {HTTP{URL: "http://h", Auth: login("x")}, HTTP{URL: "http://h", Auth: login("y")}, false},
		"another client":          {HTTP{URL: "http://h", HTTPClient: client}, HTTP{URL: "http://h", HTTPClient: &http.Client{}}, false},
		"one provider":            {InProcess(calc), InProcess(calc), true},
		"another provider":        {InProcess(calc), InProcess(calculator(nil)), false},
	} {
		if sameConfig(tt.a, tt.b) != tt.want || sameConfig(tt.b, tt.a) != tt.want {
			t.Errorf("%s: the same is %v, want %v", name, !tt.want, tt.want)
		}
	}
}

func TestReconcile(t *testing.T) {
	x, y := Stdio{Command: "x"}, Stdio{Command: "y"}
	got := reconcile(map[string]ServerConfig{"go": x, "keep": x, "change": x}, map[string]ServerConfig{"keep": x, "change": y, "b": x, "a": y})
	want := plan{add: []string{"a", "b"}, remove: []string{"go"}, change: []string{"change"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(plan{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Comparing configurations is in proportion to their number.
func TestReconcileGrows(t *testing.T) {
	growth.Check(t, 1000, func(n int) int {
		running, wanted := map[string]ServerConfig{}, map[string]ServerConfig{}
		for i := range n {
			running[fmt.Sprint(i)] = Stdio{Command: "x", Args: []string{fmt.Sprint(i)}}
			wanted[fmt.Sprint(i+n/2)] = Stdio{Command: "x", Args: []string{fmt.Sprint(i)}}
		}
		return growth.Bytes(func() { reconcile(running, wanted) })
	})
}

// A configuration without a server is a failed server, however often it is set, and so is one with a nil pointer.
// fault B12
func TestNoServerGiven(t *testing.T) {
	h := newHost(t, nil)
	var none *mcpserver.Server
	for _, provider := range []mcpserver.Provider{nil, nil, none, none, nil} {
		res, err := h.SetServers(soon(t), map[string]ServerConfig{"s": InProcess(provider)})
		if err != nil {
			t.Fatal(err)
		}
		s := status(t, h, "s")
		if s.Status != StatusFailed || s.Error != `connecting to MCP server "s": no server given` {
			t.Errorf("%s: %s", s.Status, s.Error)
		}
		if changed := len(res.Added)+len(res.Changed) > 0; changed != (res.Errors["s"] != nil) {
			t.Errorf("the result is %+v", res)
		}
	}
	for _, none := range []ServerConfig{nil, (*Stdio)(nil), (*HTTP)(nil), (*SSE)(nil), (*InProcessServer)(nil)} {
		if _, err := h.SetServers(soon(t), map[string]ServerConfig{"s": none}); err == nil || !strings.Contains(err.Error(), `"s" has no configuration`) {
			t.Errorf("%T: %v", none, err)
		}
		if _, err := New(&Options{Servers: map[string]ServerConfig{"s": none}}); err == nil || !strings.Contains(err.Error(), `"s" has no configuration`) {
			t.Errorf("%T: %v", none, err)
		}
	}
}
