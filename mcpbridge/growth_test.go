package mcpbridge

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/internal/growth"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// What a client sends costs in proportion to its size.
//
// fault H12
func TestMessagesCostInProportion(t *testing.T) {
	s := mcpserver.New("s", nil)
	defer s.Close()
	for name, message := range map[string]func(n int) string{
		"a method": func(n int) string { return `{"id":1,"method":"` + strings.Repeat(`\u0000`, n) + `"}` },
		"_meta": func(n int) string {
			return `{"id":1,"method":"ping","params":{"_meta":{` + strings.Repeat(`"a":[1],`, n) + `"b":1}}}`
		},
		"capabilities": func(n int) string {
			return `{"id":1,"method":"initialize","params":{"capabilities":{"experimental":{` + strings.Repeat(`"a":{},`, n) + `"b":{}}}}}`
		},
		"a cursor": func(n int) string {
			return `{"id":1,"method":"tools/list","params":{"cursor":"` + strings.Repeat(`MCBh`, n) + `"}}`
		},
		"arguments of a tool that there is not": func(n int) string {
			return `{"id":1,"method":"tools/call","params":{"name":"x","arguments":{` + strings.Repeat(`"a":[1],`, n) + `"b":1}}}`
		},
		"an answer to nothing": func(n int) string { return `{"id":"tenon-1","result":{` + strings.Repeat(`"a":[1],`, n) + `"b":1}}` },
		"an error":             func(n int) string { return `{"id":"tenon-1","error":[` + strings.Repeat(`1,`, n) + `1]}` },
	} {
		t.Run(name, func(t *testing.T) {
			b := New(s, nil)
			defer b.Close()
			growth.Check(t, 1000, func(n int) int {
				raw := json.RawMessage(message(n))
				return growth.Bytes(func() {
					if _, err := b.Handle(t.Context(), raw); err != nil {
						t.Error(err)
					}
				}) + n // some allocate nothing
			})
		})
	}
	t.Run("a batch", func(t *testing.T) {
		b := New(s, nil)
		defer b.Close()
		growth.Check(t, 200, func(n int) int {
			raw := json.RawMessage(`[` + strings.Repeat(`{"id":1,"method":"ping"},`, n-1) + `{"id":1,"method":"ping"}]`)
			return growth.Bytes(func() {
				if _, err := b.Handle(t.Context(), raw); err != nil {
					t.Error(err)
				}
			})
		})
	})
}
