package modeltest

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// An offlineCall is one call that a prompt spells out: @name {...}.
type offlineCall struct {
	number int // from 1, in the order of the prompt
	turn   int // calls of one turn go out together
	line   int // where the @ stands, both from 1
	column int
	name   string          // as written, without the @
	input  json.RawMessage // an object; nil when wrong is set
	wrong  string          // why it is no call that can be made
}

func (c *offlineCall) place() string { return fmt.Sprintf("line %d, column %d", c.line, c.column) }

// parsePrompt finds the calls of a prompt. A name with an @ in front and a JSON
// object behind is a call, as is the full name of a tool (known says so, or mcp__
// in front) with no object behind it, which is then wrong. Any other @ is text.
//
// A call begins a new turn when there is a line break between it and the call
// before it. What is wrong with an object ends the reading of its line.
func parsePrompt(text string, known func(name string) bool) []*offlineCall {
	p := promptParser{text: text, data: []byte(text), known: known, line: 1}
	for p.next() {
	}
	return p.calls
}

type promptParser struct {
	text  string
	data  []byte // the same
	known func(string) bool
	i     int // what has been read

	line   int // of i
	column int // of i, from 0
	turn   int
	broken bool // a line break since the last call
	calls  []*offlineCall
}

// to moves on, and counts the lines on the way.
func (p *promptParser) to(i int) {
	passed := p.text[p.i:i]
	if n := strings.Count(passed, "\n"); n > 0 {
		p.line += n
		p.column = 0
		p.broken = true
		passed = passed[strings.LastIndexByte(passed, '\n')+1:]
	}
	p.column += utf8.RuneCountInString(passed)
	p.i = i
}

// next reads up to the end of the next @ and what belongs to it.
func (p *promptParser) next() bool {
	at := strings.IndexByte(p.text[p.i:], '@')
	if at < 0 {
		return false
	}
	at += p.i
	p.to(at)
	name := strings.TrimRight(nameAt(p.text[at+1:]), ".:/")
	if name == "" || insideWord(p.text[:at]) {
		p.to(at + 1)
		return true
	}
	end := at + 1 + len(name)
	object := end + len(p.text[end:]) - len(strings.TrimLeft(p.text[end:], " \t"))
	if !strings.HasPrefix(p.text[object:], "{") {
		if p.known(name) || strings.HasPrefix(name, "mcp__") {
			p.add(name).wrong = "no JSON object follows the name on its line; {} is one without arguments"
		}
		p.to(end)
		return true
	}
	p.object(name, object)
	return true
}

// object reads the JSON object of a call.
func (p *promptParser) object(name string, start int) {
	c := p.add(name)
	dec := newDecoder(strings.NewReader(p.text[start:]))
	input, err := dec.ReadValue()
	var bad *jsonError
	if err != nil {
		bad = asJSONError(err, len(p.text)-start)
	} else if bad = checkJSON(input); bad == nil {
		c.input = json.RawMessage(input.Clone())
		p.to(start + int(dec.InputOffset()))
		p.broken = false
		return
	}
	bad.at += start
	p.to(bad.at)
	c.wrong = fmt.Sprintf("its JSON is malformed at line %d, column %d: %s (the rest of that line was not read)",
		p.line, p.column+1, bad.msg)
	if end := strings.IndexByte(p.text[p.i:], '\n'); end >= 0 {
		p.to(p.i + end)
	} else {
		p.to(len(p.text))
	}
}

// add begins a call at the @ at hand.
func (p *promptParser) add(name string) *offlineCall {
	if p.broken || len(p.calls) == 0 {
		p.turn++
		p.broken = false
	}
	c := &offlineCall{number: len(p.calls) + 1, turn: p.turn, line: p.line, column: p.column + 1, name: name}
	p.calls = append(p.calls, c)
	return c
}

// nameAt is the name that s begins with. It takes more than a tool's name may
// have, so that a wrong one is seen whole.
func nameAt(s string) string {
	n := 0
	for n < len(s) && (isNameByte(s[n]) || strings.IndexByte(".:/", s[n]) >= 0) {
		n++
	}
	return s[:n]
}

// insideWord says that an @ after s is no beginning: it stands in a word, as in
// an e-mail address.
func insideWord(s string) bool {
	if s == "" {
		return false
	}
	c := s[len(s)-1]
	return isNameByte(c) || c == '.' || c == '@' || c == '/' || c >= utf8.RuneSelf
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// OfflineCalls returns the names of the calls that a prompt spells out for the
// [Offline] model, as they are written and in their order, also those that
// cannot be made as they stand.
func OfflineCalls(prompt string) []string {
	var names []string
	for _, c := range parsePrompt(prompt, func(string) bool { return false }) {
		names = append(names, c.name)
	}
	return names
}
