package transport

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/internal/growth"
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
				w := newClient(t.Context(), discardOptions())
				return len(raw) + growth.Bytes(func() { w.receive(raw) })
			})
		})
	}
	growth.Check(t, 4000, func(n int) int {
		raw := json.RawMessage(`{"instructions":"` + strings.Repeat("x", maxHandshake) + `",` + members(n) + `}`)
		w := newClient(t.Context(), discardOptions())
		return growth.Bytes(func() { w.trimHandshake(raw) })
	})
}

// The error of a server is bounded, its data too.
//
// fault H14
func TestLongErrors(t *testing.T) {
	long := strings.Repeat("e", 1<<20)
	for _, raw := range []string{
		fmt.Sprintf(`{"code":-32000,"message":%q,"data":%q}`, long, long),
		fmt.Sprintf(`{"code":-32000,"message":[%q]}`, long),
	} {
		e := serverError(json.RawMessage(raw))
		if len(e.Message) > maxErrorText+200 || len(e.Data) > maxErrorData {
			t.Errorf("%d bytes, %d of data", len(e.Message), len(e.Data))
		}
	}
	e := serverError(json.RawMessage(fmt.Sprintf(`{"code":-32000,"message":%q,"data":%q}`, long, long)))
	if want := fmt.Sprintf("… (%d bytes left out) (with %d bytes of data, which are left out)", len(long)-maxErrorText, len(long)+2); !strings.HasSuffix(e.Message, want) {
		t.Errorf("it ends in %q", e.Message[len(e.Message)-100:])
	}
	if e := replyError([]byte(fmt.Sprintf(`{"error":{"code":1,"message":%q}}`, long))); len(e.Message) > maxErrorText+200 {
		t.Errorf("of a response: %d bytes", len(e.Message))
	}
}
