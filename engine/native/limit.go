package native

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tenon-sdk/tenon/agent"
)

// The most characters of one tool result that the model is sent. A tool that declares
// anthropic/maxResultSizeChars sets its own limit for what succeeds.
const (
	maxResultChars = 50_000
	maxErrorChars  = 10_000
)

// limitContent cuts the texts of a result to a limit over all of them. Images do not count. What is
// left out is said in the place where it was.
func limitContent(c agent.Content, isError bool, declared int) agent.Content {
	limit := maxResultChars
	switch {
	case isError:
		limit = maxErrorChars
	case declared > 0:
		limit = declared
	}
	total := 0
	for _, b := range c {
		if t, ok := b.(*agent.TextBlock); ok {
			total += utf8.RuneCountInString(t.Text)
		}
	}
	if total <= limit {
		return c
	}
	out := make(agent.Content, 0, len(c))
	room := limit
	for _, b := range c {
		t, ok := b.(*agent.TextBlock)
		if !ok {
			out = append(out, b)
			continue
		}
		n := utf8.RuneCountInString(t.Text)
		if n > room {
			out = append(out, &agent.TextBlock{Text: cutMiddle(t.Text, n, room)})
			room = 0
			continue
		}
		room -= n
		out = append(out, t)
	}
	out = append(out, &agent.TextBlock{Text: fmt.Sprintf(
		"[The result was cut: it has %d characters, and at most %d are passed on. Ask for a smaller part of it if you need the rest.]", total, limit)})
	return out
}

// cutMiddle keeps the first and last half of what there is room for of a text of n characters.
func cutMiddle(text string, n, room int) string {
	head := skip(text, room-room/2)
	tail := skip(text, n-room/2)
	var b strings.Builder
	b.WriteString(text[:head])
	fmt.Fprintf(&b, "\n\n... [%d characters truncated] ...\n\n", n-room)
	b.WriteString(text[tail:])
	return b.String()
}

// skip is the index in text after n characters.
func skip(text string, n int) int {
	for i := range text {
		if n == 0 {
			return i
		}
		n--
	}
	return len(text)
}
