package mcphost

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/growth"
	"github.com/tenon-sdk/tenon/toolresult"
)

// What a stream of events costs grows with its length, whatever it is made of; above the limit it costs no memory.
func TestEventsGrowWithTheStream(t *testing.T) {
	read := func(stream string, limit int) int {
		return len(stream)/100 + growth.Bytes(func() {
			r := newEventReader(strings.NewReader(stream), limit)
			for {
				if _, err := r.next(); err != nil {
					return
				}
			}
		})
	}
	for name, part := range map[string]string{
		"empty data":          "data:\n",
		"events":              "data: {}\n\n",
		"ids":                 "id: 1\n",
		"numbered events":     "id: 1\ndata: 1\n\n",
		"names":               "event: x\n\n",
		"comments":            ": hello\n",
		"blank lines":         "\n",
		"carriage returns":    "data: \r\r\r\r\n",
		"no field":            "xxxxxxxxxxxxxxxxxxxxx\n",
		"one line":            "data data data data ",
		"a retry":             "retry: 99999999999999\n",
		"data without an end": "data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n",
	} {
		growth.Check(t, 1<<14, func(n int) int { return read(strings.Repeat(part, n), -1) })
		if name != "events" && name != "numbered events" && name != "ids" && name != "a retry" && name != "comments" {
			growth.AtMost(t, 128<<10, []int{1 << 14, 1 << 17}, func(n int) int {
				return read(strings.Repeat(part, n), 1000) - len(part)*n/100
			})
		}
	}
}

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
					res, err := toolresult.Decode(validUTF8(raw))
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

// What the messages of a server cost grows with their length, whatever they are.
func TestMessagesGrowWithTheirLength(t *testing.T) {
	for name, message := range map[string]func(n int) string{
		"a batch of replies": func(n int) string {
			return `[` + strings.Repeat(`{"jsonrpc":"2.0","id":7,"result":{}},`, n) + `{"jsonrpc":"2.0","id":7,"result":{}}]`
		},
		"a batch of errors": func(n int) string {
			return `[` + strings.Repeat(`{"jsonrpc":"2.0","id":null,"error":{}},`, n) + `{"jsonrpc":"2.0","id":7,"result":{}}]`
		},
		"a batch of cancellations": func(n int) string {
			m := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[[]]}}`
			return `[` + strings.Repeat(m+`,`, n) + m + `]`
		},
		"a batch of progress": func(n int) string {
			m := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`
			return `[` + strings.Repeat(m+`,`, n) + m + `]`
		},
		"members": func(n int) string { return `{"jsonrpc":"2.0","id":1,"result":{},` + members(n) + `}` },
		"a long id": func(n int) string {
			return `{"jsonrpc":"2.0","id":"` + strings.Repeat("7", n) + `","result":{}}`
		},
		"a broken reply": func(n int) string {
			return `{"jsonrpc":"2.0","id":1,"result":` + strings.Repeat(`[`, n)
		},
	} {
		t.Run(name, func(t *testing.T) {
			growth.Check(t, 4000, func(n int) int {
				raw := []byte(message(n))
				w := newWire(t.Context(), slog.New(slog.DiscardHandler), newMasker(Stdio{CleanEnv: true}), notifications{progress: (&remoteLink{}).onProgress}, 0)
				return len(raw) + growth.Bytes(func() { w.receive(raw) })
			})
		})
	}
	growth.Check(t, 4000, func(n int) int {
		raw := json.RawMessage(`{"instructions":"` + strings.Repeat("x", maxHandshake) + `",` + members(n) + `}`)
		w := newWire(t.Context(), slog.New(slog.DiscardHandler), newMasker(Stdio{CleanEnv: true}), notifications{}, 0)
		return growth.Bytes(func() { w.trimHandshake(raw) })
	})
}

// The error of a server is bounded, its data too, and so are reports of progress that wait for the program.
//
// fault H14
func TestLongErrors(t *testing.T) {
	long := strings.Repeat("e", 1<<20)
	for _, raw := range []string{
		fmt.Sprintf(`{"code":-32000,"message":%q,"data":%q}`, long, long),
		fmt.Sprintf(`{"code":-32000,"message":[%q]}`, long),
	} {
		e := wireError(json.RawMessage(raw))
		if len(e.Message) > maxErrorText+200 || len(e.Data) > maxErrorData {
			t.Errorf("%d bytes, %d of data", len(e.Message), len(e.Data))
		}
	}
	e := wireError(json.RawMessage(fmt.Sprintf(`{"code":-32000,"message":%q,"data":%q}`, long, long)))
	if want := fmt.Sprintf("… (%d bytes left out) (with %d bytes of data, which are left out)", len(long)-maxErrorText, len(long)+2); !strings.HasSuffix(e.Message, want) {
		t.Errorf("it ends in %q", e.Message[len(e.Message)-100:])
	}
	if e := replyError([]byte(fmt.Sprintf(`{"error":{"code":1,"message":%q}}`, long))); len(e.Message) > maxErrorText+200 {
		t.Errorf("of a response: %d bytes", len(e.Message))
	}
}

// Reports of progress and changes of resources wait for the program, so each is bounded.
//
// fault H14
func TestWaitingNoticesAreBounded(t *testing.T) {
	long := strings.Repeat("ä", 1<<20)
	var got []Progress
	l := &remoteLink{progress: map[int64]func(Progress){1: func(p Progress) { got = append(got, p) }}}
	for _, m := range []string{"short", long} {
		l.onProgress(&mcp.ProgressNotificationParams{ProgressToken: 1.0, Message: m})
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
