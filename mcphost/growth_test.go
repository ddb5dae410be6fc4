package mcphost

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/growth"
	"github.com/tenon-sdk/tenon/toolresult"
)

// What a server's list costs grows with its length, and ends at a number of elements.
func TestListsGrowWithTheirLength(t *testing.T) {
	for name, element := range map[string]func(i int) string{
		"tools":       func(i int) string { return fmt.Sprintf(`{"name":"t%d"}`, i) },
		"one name":    func(int) string { return `{"name":"t"}` },
		"numbers":     func(int) string { return `1` },
		"nesting":     func(int) string { return `{"name":[[[[[[[]]]]]]]}` },
		"many fields": func(int) string { return `{"a":1,"b":2,"c":3,"d":4,"e":5}` },
	} {
		page := func(n int) json.RawMessage {
			var b strings.Builder
			b.WriteString(`{"tools":[`)
			for i := range n {
				if i > 0 {
					b.WriteByte(',')
				}
				b.WriteString(element(i))
			}
			b.WriteString(`],"nextCursor":"x"}`)
			return json.RawMessage(b.String())
		}
		growth.Check(t, 2000, func(n int) int {
			raw := page(n)
			return growth.Bytes(func() { _, _ = decodeToolPage("s", raw, 0) })
		})
		few, many := page(maxListed), page(4*maxListed)
		most := growth.Bytes(func() { _, _ = decodeToolPage("s", few, 0) })
		if got := growth.Bytes(func() { _, _ = decodeToolPage("s", many, 0) }); got > most+most/10 {
			t.Errorf("%s: a list of %d elements costs %d bytes, one of %d costs %d", name, 4*maxListed, got, maxListed, most)
		}
		if p, err := decodeToolPage("s", many, 0); err == nil || len(p.tools)+len(p.rejected) != maxListed || p.next != "x" {
			t.Errorf("%s: %d tools, %d left out, %v", name, len(p.tools), len(p.rejected), err)
		}
		if p, err := decodeToolPage("s", few, 1); err == nil || len(p.tools)+len(p.rejected) != maxListed-1 {
			t.Errorf("%s: %d tools, %d left out, %v: the page before it does not count", name, len(p.tools), len(p.rejected), err)
		}
	}
}

// What a result costs grows with its length: its blocks, members, questions, and what is no valid text.
func TestResultsGrowWithTheirLength(t *testing.T) {
	for name, result := range map[string]func(n int) string{
		"blocks":     func(n int) string { return `{"content":[` + strings.Repeat(`{"type":"text","text":"x"},`, n) + `1]}` },
		"junk":       func(n int) string { return `{"content":[` + strings.Repeat(`1,`, n) + `1]}` },
		"members":    func(n int) string { return `{` + members(n) + `}` },
		"one member": func(n int) string { return `{` + strings.Repeat(`"content":[1],`, n) + `"a":1}` },
		"nesting": func(n int) string {
			return `{"content":[{"type":"resource","resource":` + strings.Repeat(`[`, n) + strings.Repeat(`]`, n) + `}]}`
		},
		"backslashes": func(n int) string { return `{"content":[{"type":"text","text":"` + strings.Repeat(`\\`, n) + `"}]}` },
		"quotes":      func(n int) string { return `{"content":[{"type":"text","text":"` + strings.Repeat(`\"`, n) + `"}]}` },
		"questions":   func(n int) string { return `{"inputRequests":{` + members(n) + `}}` },
		"bad UTF-8":   func(n int) string { return `{"content":[{"type":"text","text":"` + strings.Repeat("\xff", n) + `"}]}` },
	} {
		t.Run(name, func(t *testing.T) {
			growth.Check(t, 4000, func(n int) int {
				raw := []byte(result(n))
				return len(raw) + growth.Bytes(func() {
					res, err := toolresult.Decode(bytes.ToValidUTF8(raw, []byte("\uFFFD")))
					if err == nil {
						toolresult.Convert(t.Context(), "s", "t", res, nil)
					}
				})
			})
		})
	}
}

func members(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"m%d":{}`, i)
	}
	return b.String()
}

// Reports of progress and changes of resources wait for the program, so each is bounded.
//
// fault H14
func TestWaitingNoticesAreBounded(t *testing.T) {
	long := strings.Repeat("ä", 1<<20)
	var got []Progress
	for _, m := range []string{"short", long} {
		got = append(got, progressOf(&mcp.ProgressNotificationParams{Message: m}))
	}
	if len(got) != 2 || got[0].Message != "short" || len(got[1].Message) > maxProgress+len("…") || !strings.HasSuffix(got[1].Message, "ä…") {
		t.Errorf("%d reports", len(got))
	}
	log := new(records)
	told := make(chan string, 2)
	u := newUpdates(log.logger(), func(uri string) { told <- uri })
	u.put("mem://" + long)
	u.put("mem://a")
	if uri := <-told; uri != "mem://a" || len(log.with("its address is too long")) != 1 {
		t.Errorf("told of %.50q", uri)
	}
	u.close()
}
