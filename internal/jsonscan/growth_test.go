package jsonscan

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/internal/growth"
)

// What is hostile is read in proportion to its size; what nests costs no memory at all.
func TestScanningGrowsWithTheText(t *testing.T) {
	for name, text := range map[string]func(n int) string{
		"members":            func(n int) string { return `{` + strings.Repeat(`"a":1,`, n) + `"b":2}` },
		"escaped names":      func(n int) string { return `{` + strings.Repeat(`"\u0061":1,`, n) + `"b":2}` },
		"levels":             func(n int) string { return `{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}` },
		"levels without end": func(n int) string { return `{"a":` + strings.Repeat(`{"a":[`, n) },
		"a string":           func(n int) string { return `{"a":"` + strings.Repeat(`\"`, n) + `"}` },
		"a number":           func(n int) string { return `{"a":` + strings.Repeat("1", n) + `}` },
		"space":              func(n int) string { return `{` + strings.Repeat(" ", n) + `}` },
	} {
		t.Run(name, func(t *testing.T) {
			growth.Check(t, 2000, func(n int) int {
				data := []byte(text(n))
				return 1 + growth.Bytes(func() { _ = Object(data, func([]byte, json.RawMessage) {}) })
			})
		})
	}
	growth.AtMost(t, 4<<10, []int{100, 100_000}, func(n int) int {
		data := []byte(`{"a":[` + strings.Repeat(`{"b":[1,"x",null]},`, n) + `1]}`)
		return growth.Bytes(func() { _ = Object(data, func([]byte, json.RawMessage) {}) })
	})
}
