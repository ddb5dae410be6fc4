package modeltest

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// conversation is a request after a number of tool turns, with twenty tools.
func conversation(turns int, stream bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"model":"claude-test","max_tokens":1024,"stream":%t,"tools":[`, stream)
	for i := range 20 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":"mcp__bench__tool_%d","description":"Does something that takes a sentence to describe.","input_schema":`+
			`{"type":"object","properties":{"path":{"type":"string","description":"where"},"count":{"type":"integer","minimum":0},`+
			`"options":{"type":"object","properties":{"deep":{"type":"boolean"}}}},"required":["path"],"additionalProperties":false}}`, i)
	}
	b.WriteString(`],"messages":[{"role":"user","content":"Go on"}`)
	for i := range turns {
		fmt.Fprintf(&b, `,{"role":"assistant","content":[{"type":"tool_use","id":"toolu_x%d","name":"mcp__bench__tool_1","input":{"path":"/a/b/c","count":%d}}]}`+
			`,{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_x%d","content":[{"type":"text","text":%q}]}]}`,
			i, i, i, strings.Repeat("A line of output.\n", 20))
	}
	b.WriteString(`]}`)
	return b.String()
}

func BenchmarkAnswer(b *testing.B) {
	for _, bm := range []struct{ name, body string }{
		{"small", basic},
		{"small streamed", streamed},
		{"20 tools streamed", conversation(0, true)},
		{"20 tools and 20 turns streamed", conversation(20, true)},
		{"20 tools and 200 turns streamed", conversation(200, true)},
	} {
		b.Run(bm.name, func(b *testing.B) {
			m := NewModel(&Options{KeepRequests: -1, Turns: []Turn{Func(func(*Request) Turn {
				return ToolUse("mcp__bench__tool_1", `{"path":"/a/b/c","count":3}`)
			})}})
			b.SetBytes(int64(len(bm.body)))
			b.ReportAllocs()
			for b.Loop() {
				res, err := m.RoundTrip(newRequest(b, "http://model/v1/messages", bm.body))
				if err != nil || res.StatusCode != 200 {
					b.Fatal(err, res.Status)
				}
				if _, err := io.Copy(io.Discard, res.Body); err != nil {
					b.Fatal(err)
				}
				res.Body.Close()
			}
		})
	}
}

// BenchmarkSchema is the price of a tool that was not seen before.
func BenchmarkSchema(b *testing.B) {
	raw := []byte(`{"type":"object","properties":{"path":{"type":"string"},"options":{"type":"object","properties":{"deep":{"type":"boolean"}}}},"required":["path"]}`)
	for b.Loop() {
		if v := checkSchema(raw); v.msg != "" {
			b.Fatal(v.msg)
		}
	}
}

// BenchmarkPrefixes is what a request with a cache_control costs besides.
func BenchmarkPrefixes(b *testing.B) {
	m := Offline()
	body := conversation(200, false)
	d := &decoder{r: &Request{Header: newRequest(b, "http://model/", "").Header, Body: []byte(body)}, schemas: &m.schemas, thoughts: &m.thoughts}
	d.request()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		prefixesOf(d.r)
	}
}
